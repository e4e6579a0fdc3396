//! One worker's group: a folder in each hierarchy that holds it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use danlu_core::sample::Counters;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// How often a group without `cgroup.kill` is gone over: each round kills all that was there, so only a program that
/// forks faster than we read needs more than two.
const MOST_KILL_ROUNDS: usize = 100;

/// The group of a worker. The empty one (where no cgroup can be made) holds nothing and does nothing.
#[derive(Debug, Clone, Default)]
pub struct WorkerGroup {
    /// All have the same members; the first is asked for them.
    folders: Vec<PathBuf>,
}

impl WorkerGroup {
    pub(super) fn new(folders: Vec<PathBuf>) -> Self {
        WorkerGroup { folders }
    }

    pub fn is_empty_handed(&self) -> bool {
        self.folders.is_empty()
    }

    /// The files into which a process is written to join.
    pub fn procs_files(&self) -> Vec<PathBuf> {
        self.folders.iter().map(|folder| folder.join("cgroup.procs")).collect()
    }

    /// Those files opened, for [`crate::spawn::ChildSetup`].
    pub fn join_files(&self) -> io::Result<Arc<[File]>> {
        self.procs_files().iter().map(|path| OpenOptions::new().write(true).open(path)).collect()
    }

    /// Kills every process in the group. It returns when all have been sent the signal, not when all are gone.
    pub fn kill(&self) -> io::Result<()> {
        let Some(first) = self.folders.first() else { return Ok(()) };
        match fs::write(first.join("cgroup.kill"), "1") {
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::PermissionDenied) => {}
            done => return done,
        }
        // Before Linux 5.14, and in v1: a process may fork between our reading and our killing.
        let mut seen = Vec::new();
        for _ in 0..MOST_KILL_ROUNDS {
            let now = self.processes();
            if now.iter().all(|pid| seen.contains(pid)) {
                break;
            }
            for pid in &now {
                // Gone already is as good as killed.
                let _ = kill(Pid::from_raw(*pid), Signal::SIGKILL);
            }
            seen.extend(now);
        }
        Ok(())
    }

    /// Who is in the group, or in groups that its members made below it.
    pub fn processes(&self) -> Vec<i32> {
        let mut found = Vec::new();
        for folder in self.folders.first().map(|folder| with_inner(folder)).unwrap_or_default() {
            let text = fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
            found.extend(text.lines().filter_map(|line| line.parse::<i32>().ok()));
        }
        found
    }

    /// How many processes the kernel killed because the group was out of memory.
    pub fn oom_kills(&self) -> u64 {
        let count = |path: PathBuf| {
            let text = fs::read_to_string(path).ok()?;
            text.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse::<u64>().ok())
        };
        let folders = self.folders.iter();
        folders
            .filter_map(|folder| {
                count(folder.join("memory.events")).or(count(folder.join("memory.oom_control")))
            })
            .sum()
    }

    /// What the group has used and uses; `None` for what its hierarchies do not count.
    pub fn counters(&self) -> Counters {
        let number = |file: &str| self.find(file)?.trim().parse::<u64>().ok();
        let processor = self
            .find("cpu.stat")
            .and_then(|text| field(&text, "usage_usec"))
            .map(Duration::from_micros)
            .or_else(|| number("cpuacct.usage").map(Duration::from_nanos));
        let disks = self.find("io.stat");
        let sum = |key: &str| {
            let words = disks.as_ref()?.split_ascii_whitespace();
            Some(words.filter_map(|word| word.strip_prefix(key)?.parse::<u64>().ok()).sum())
        };
        Counters {
            processor,
            memory: number("memory.current").or_else(|| number("memory.usage_in_bytes")),
            read: sum("rbytes="),
            written: sum("wbytes="),
            ..Counters::default()
        }
    }

    fn find(&self, file: &str) -> Option<String> {
        self.folders.iter().find_map(|folder| fs::read_to_string(folder.join(file)).ok())
    }

    /// Removes the group if nothing is in it, neither processes nor groups; else leaves it as it is.
    pub fn remove_if_empty(&self) {
        for folder in &self.folders {
            // The kernel refuses it for a group in use, which is the point.
            let _ = fs::remove_dir(folder);
        }
    }

    /// Removes the group; fails with `ResourceBusy` while a process is in it.
    pub fn remove(&self) -> io::Result<()> {
        for folder in &self.folders {
            // Nearly always there is nothing below.
            if fs::remove_dir(folder).is_ok() {
                continue;
            }
            for inner in with_inner(folder).iter().rev() {
                match fs::remove_dir(inner) {
                    Err(error) if error.kind() == ErrorKind::NotFound => {}
                    done => done?,
                }
            }
        }
        Ok(())
    }
}

fn field(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok())
}

/// The folder and all folders below it, outer ones first.
fn with_inner(folder: &Path) -> Vec<PathBuf> {
    let mut found = vec![folder.to_owned()];
    let mut next = 0;
    while let Some(outer) = found.get(next) {
        let entries = fs::read_dir(outer).into_iter().flatten().flatten();
        let inner: Vec<PathBuf> = entries
            .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
            .map(|entry| entry.path())
            .collect();
        found.extend(inner);
        next += 1;
    }
    found
}
