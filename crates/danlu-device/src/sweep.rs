//! Processes that hold devices without a job: who they are, how their owners are told, how they are ended.
//!
//! [`plan_sweep`] decides; the rest acts on what it decided, and only on the very processes that it saw.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::thread;
use std::time::{Duration, Instant};

use danlu_core::launch::ProcessIdentity;
use danlu_types::device::glob_matches;
use danlu_types::{Bytes, DeviceProcess, JobId, Reading};
use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, User};
use serde::Serialize;

use crate::process;

/// Whom to leave alone, as globs.
#[derive(Debug, Clone, Default)]
pub struct Exclusions {
    pub users: Vec<String>,
    pub names: Vec<String>,
}

/// A process that holds devices, and what is to become of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HoldingProcess {
    pub pid: i32,
    pub name: String,
    pub user: Option<String>,
    pub devices: BTreeSet<u32>,
    pub memory: Bytes,
    pub verdict: ProcessOwner,
    #[serde(skip)]
    pub identity: Option<ProcessIdentity>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ProcessOwner {
    /// It is part of a job.
    Leased {
        job: JobId,
    },
    Excluded,
    /// Of another container or machine: there is nothing here to end.
    OutOfReach,
    /// It holds devices that nobody gave it.
    Foreign,
}

/// What became of a process that was to be ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum KillResult {
    /// Gone before anybody asked.
    AlreadyGone,
    Ended,
    /// It did not end when asked to.
    Killed,
    NotAllowed,
    /// Stuck in the driver: it dies when the driver lets go of it.
    Stuck,
}

/// What the outside world knows of processes; a parameter, so that the decision is a function of values.
pub trait Processes {
    fn identity(&self, pid: i32) -> Option<ProcessIdentity>;
    /// The job of its next ancestor that has one: programs may start others without their environment.
    fn inherited_job(&self, pid: i32) -> Option<JobId>;
}

/// Those of this machine.
#[derive(Debug, Clone, Copy)]
pub struct Here;

impl Processes for Here {
    fn identity(&self, pid: i32) -> Option<ProcessIdentity> {
        process::identity(pid)
    }

    fn inherited_job(&self, pid: i32) -> Option<JobId> {
        process::ancestors(pid).into_iter().find_map(process::job_of)
    }
}

/// Each process that holds devices once, whatever number of them it holds, by its number.
pub fn plan_sweep(
    readings: &BTreeMap<u32, Reading>,
    exclusions: &Exclusions,
    processes: &impl Processes,
) -> Vec<HoldingProcess> {
    let mut holders: BTreeMap<i32, HoldingProcess> = BTreeMap::new();
    for (device, reading) in readings {
        for seen in &reading.processes {
            let holder = holders.entry(seen.pid).or_insert_with(|| judge(seen, exclusions, processes));
            holder.devices.insert(*device);
            holder.memory = Bytes(holder.memory.0.saturating_add(seen.memory.unwrap_or_default().0));
        }
    }
    holders.into_values().collect()
}

fn judge(seen: &DeviceProcess, exclusions: &Exclusions, processes: &impl Processes) -> HoldingProcess {
    let matches = |globs: &[String], text: &str| globs.iter().any(|glob| glob_matches(glob, text));
    let excluded = matches(&exclusions.names, &seen.name)
        || seen.user.as_deref().is_some_and(|user| matches(&exclusions.users, user));
    let identity = processes.identity(seen.pid);
    let verdict = match (identity, seen.job.or_else(|| processes.inherited_job(seen.pid))) {
        (None, _) => ProcessOwner::OutOfReach,
        (Some(_), Some(job)) => ProcessOwner::Leased { job },
        (Some(_), None) if excluded => ProcessOwner::Excluded,
        (Some(_), None) => ProcessOwner::Foreign,
    };
    HoldingProcess {
        pid: seen.pid,
        name: seen.name.clone(),
        user: seen.user.clone(),
        devices: BTreeSet::new(),
        memory: Bytes(0),
        verdict,
        identity,
    }
}

/// Writes to the terminals of a user that take messages (`mesg y`). Returns to how many.
pub fn tell(user: &str, message: &str) -> usize {
    const TAKES_MESSAGES: u32 = 0o020;
    let Ok(Some(user)) = User::from_name(user) else { return 0 };
    let terminals = fs::read_dir("/dev/pts").into_iter().flatten().flatten();
    let told = terminals.filter(|terminal| {
        let takes = terminal
            .metadata()
            .is_ok_and(|file| file.uid() == user.uid.as_raw() && file.mode() & TAKES_MESSAGES != 0);
        // A terminal that nobody reads is full, and must not make us wait.
        let open =
            || OpenOptions::new().write(true).custom_flags(OFlag::O_NONBLOCK.bits()).open(terminal.path());
        takes && open().is_ok_and(|mut file| write!(file, "\r\n{message}\r\n").is_ok())
    });
    told.count()
}

/// Asks the process to end, and kills it when its grace is over. Blocks until then. A later process with the same number is
/// none of its business.
pub fn end(process: ProcessIdentity, grace: Duration) -> KillResult {
    const DYING: Duration = Duration::from_secs(5);
    if !process::is_alive(process) {
        return KillResult::AlreadyGone;
    }
    match kill(Pid::from_raw(process.pid), Signal::SIGTERM) {
        Err(Errno::EPERM) => return KillResult::NotAllowed,
        Err(_) => return KillResult::AlreadyGone,
        Ok(()) => {}
    }
    if ends_within(process, grace) {
        return KillResult::Ended;
    }
    let _ = kill(Pid::from_raw(process.pid), Signal::SIGKILL);
    if ends_within(process, DYING) { KillResult::Killed } else { KillResult::Stuck }
}

fn ends_within(process: ProcessIdentity, limit: Duration) -> bool {
    const LOOK_AGAIN: Duration = Duration::from_millis(20);
    let deadline = Instant::now() + limit;
    while process::is_alive(process) {
        if Instant::now() >= deadline {
            return false;
        }
        thread::sleep(LOOK_AGAIN);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pid 1 is of another container; the parent of 4 has a job.
    struct Few;

    impl Processes for Few {
        fn identity(&self, pid: i32) -> Option<ProcessIdentity> {
            (pid > 1).then_some(ProcessIdentity { pid, start_ticks: 7 })
        }

        fn inherited_job(&self, pid: i32) -> Option<JobId> {
            (pid == 4).then_some(JobId(9))
        }
    }

    #[test]
    fn only_processes_without_a_job_that_nobody_excluded_are_foreign() {
        let seen = |pid, name: &str, user: &str, job: Option<u64>| DeviceProcess {
            pid,
            name: name.to_owned(),
            user: Some(user.to_owned()),
            memory: Some(Bytes(1 << 30)),
            job: job.map(JobId),
        };
        let on = |processes| Reading { processes, ..Reading::default() };
        let readings = BTreeMap::from([
            (0, on(vec![seen(2, "python", "eve", None), seen(3, "python", "amy", Some(8))])),
            (1, on(vec![seen(2, "python", "eve", None), seen(4, "worker", "amy", None)])),
            (
                2,
                on(vec![
                    seen(5, "Xorg", "root", None),
                    seen(6, "python", "ops-1", None),
                    seen(1, "?", "x", None),
                ]),
            ),
        ]);
        let exclusions = Exclusions { users: vec!["ops-*".to_owned()], names: vec!["xorg".to_owned()] };
        let lines: Vec<String> = plan_sweep(&readings, &exclusions, &Few)
            .iter()
            .map(|holder| {
                format!("{} on {:?} with {}: {:?}", holder.pid, holder.devices, holder.memory, holder.verdict)
            })
            .collect();
        insta::assert_snapshot!(lines.join("\n"), @"
        1 on {2} with 1Gi: OutOfReach
        2 on {0, 1} with 2Gi: Foreign
        3 on {0} with 1Gi: Leased { job: JobId(8) }
        4 on {1} with 1Gi: Leased { job: JobId(9) }
        5 on {2} with 1Gi: Excluded
        6 on {2} with 1Gi: Excluded
        ");
    }

    #[test]
    fn a_process_that_ends_when_asked_is_not_killed_and_a_deaf_one_is() {
        let start = |script: &str| {
            let child = std::process::Command::new("sh")
                .args(["-c", script])
                .stdout(std::process::Stdio::piped())
                .spawn()
                .unwrap();
            (process::identity(i32::try_from(child.id()).unwrap()).unwrap(), child)
        };
        let (polite, mut child) = start("exec sleep 1000");
        assert_eq!(end(polite, Duration::from_mins(1)), KillResult::Ended);
        child.wait().unwrap();
        assert_eq!(end(polite, Duration::from_mins(1)), KillResult::AlreadyGone);

        let (deaf, mut child) = start("trap '' TERM; echo ready; exec sleep 1000");
        let mut said = [0; 5];
        std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut said).unwrap();
        assert_eq!(end(deaf, Duration::from_millis(50)), KillResult::Killed);
        child.wait().unwrap();
    }
}
