//! Breaking and mending the daemons of a cluster, of which `SlurmRig` knows only a part.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use danlu_testkit::{SlurmRig, alive, eventually, processes_of};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// Ends the daemon after the cluster is gone, however this process ends. Its socket is needed until then.
const KEEPER: &str =
    r#"folder=$1; shift; "$@" & pid=$!; read -r _; while [ -d "$folder" ]; do sleep 0.2; done; kill "$pid""#;

#[derive(Debug)]
pub(crate) struct Cluster<'a> {
    rig: &'a SlurmRig,
    folder: PathBuf,
    /// What nodes see as their own outlives their daemons.
    mounts: BTreeMap<String, File>,
    munge: Vec<String>,
    keepers: Vec<Child>,
}

/// A process of Danlu's on a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Launcher,
    Guard,
    Sidecar,
}

impl<'a> Cluster<'a> {
    pub(crate) fn of(rig: &'a SlurmRig) -> Self {
        let folder = rig.configuration().parent().unwrap().to_owned();
        let mut cluster =
            Cluster { rig, folder, mounts: BTreeMap::new(), munge: Vec::new(), keepers: Vec::new() };
        for node in SlurmRig::nodes() {
            let pid = cluster.daemon(&slurmd(&node)).unwrap();
            cluster.mounts.insert(node, File::open(format!("/proc/{pid}/ns/mnt")).unwrap());
        }
        let munged = cluster.daemon("munged").unwrap();
        let command = std::fs::read(format!("/proc/{munged}/cmdline")).unwrap();
        let words = command.split(|byte| *byte == 0).filter(|word| !word.is_empty());
        cluster.munge = words.map(|word| String::from_utf8(word.to_owned()).unwrap()).collect();
        cluster
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// What one of Slurm's programs says, if it succeeds.
    pub(crate) fn ask(&self, program: &str, arguments: &[&str]) -> Option<String> {
        let output = self.rig.run(program, arguments);
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    /// Jobs of Danlu's in one of these states.
    pub(crate) fn jobs(&self, states: &str) -> Vec<String> {
        let states = format!("--states={states}");
        let found = self.ask("squeue", &["--noheader", &states, "--format=%i %j"]).unwrap_or_default();
        let ours = found.lines().filter_map(|line| line.split_once(' '));
        ours.filter(|(_, name)| name.starts_with("danlu-")).map(|(id, _)| id.to_owned()).collect()
    }

    /// Of munge, the controller, or a node.
    pub(crate) fn daemon(&self, name: &str) -> Option<i32> {
        let text = std::fs::read_to_string(self.folder.join(format!("run/{name}.pid"))).ok()?;
        text.trim().parse().ok().filter(|pid| alive(*pid))
    }

    pub(crate) fn signal(&self, name: &str, signal: Signal) -> bool {
        self.daemon(name).is_some_and(|pid| kill(Pid::from_raw(pid), signal).is_ok())
    }

    pub(crate) async fn kill(&self, name: &str) -> bool {
        let Some(pid) = self.daemon(name) else { return false };
        let is_killed = kill(Pid::from_raw(pid), Signal::SIGKILL).is_ok();
        eventually(name, || async { (!alive(pid)).then_some(()) }).await;
        // Its number may be another's before the cluster ends.
        let _ = std::fs::remove_file(self.folder.join(format!("run/{name}.pid")));
        is_killed
    }

    pub(crate) async fn restart_controller(&mut self) {
        if self.daemon("slurmctld").is_none() {
            let mut command = Command::new("/usr/sbin/slurmctld");
            command.args(["-D", "-f"]).arg(self.rig.configuration());
            self.spawn(command);
        }
        eventually("the controller to answer", || async { self.ask("scontrol", &["ping"]) }).await;
    }

    pub(crate) async fn restart_munge(&mut self) {
        let mut command = Command::new("sh");
        command
            .args(["-c", KEEPER, "sh"])
            .arg(self.folder.join("run"))
            .args(&self.munge)
            .stdin(Stdio::piped());
        self.spawn(command);
        let socket = format!("--socket={}", self.folder.join("run/munge.socket").display());
        eventually("munge to answer", || async { self.ask("munge", &["--no-input", &socket]) }).await;
    }

    pub(crate) async fn restart_node_daemon(&mut self, node: &str) {
        let mounts = format!("--mount=/proc/{}/fd/{}", std::process::id(), self.mounts[node].as_raw_fd());
        let mut command = Command::new("nsenter");
        command
            .args([&mounts, "--", "/usr/sbin/slurmd", "-D", "-N", node, "-f"])
            .arg(self.rig.configuration());
        self.spawn(command);
        eventually("the node's daemon to be back", || async { self.daemon(&slurmd(node)) }).await;
    }

    fn spawn(&mut self, mut command: Command) {
        command.env("SLURM_CONF", self.rig.configuration()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        if child.stdin.is_some() {
            self.keepers.push(child);
        } else {
            std::thread::spawn(move || child.wait());
        }
    }

    /// Danlu's processes on nodes.
    pub(crate) fn parts(&self, wanted: Part) -> Vec<i32> {
        let word = |pid: i32| {
            let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let word = command.split(|byte| *byte == 0).nth(1).unwrap_or_default().to_owned();
            String::from_utf8(word).unwrap_or_default()
        };
        let is = |pid: i32, program: &str| word(pid) == program;
        // Each has a guard above it that is called the same.
        let is_below_its_guard = |pid: i32, program: &str| {
            is(pid, program) && parent_of(pid).is_some_and(|parent| is(parent, program))
        };
        // By the environment, which names the cluster's configuration.
        let all = processes_of(&self.folder);
        let (worker, sidecar) = ("slurm-worker", "slurm-sidecar");
        let found = all.into_iter().filter(|pid| match wanted {
            Part::Sidecar => is_below_its_guard(*pid, sidecar),
            Part::Launcher => is_below_its_guard(*pid, worker),
            Part::Guard => [worker, sidecar]
                .iter()
                .any(|program| is(*pid, program) && !is_below_its_guard(*pid, program)),
        });
        found.collect()
    }
}

/// The name of a node's daemon's file in `run/`.
pub(crate) fn slurmd(node: &str) -> String {
    format!("slurmd-{node}")
}

fn parent_of(pid: i32) -> Option<i32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(1)?.parse().ok()
}

pub(crate) fn children(pid: i32) -> Vec<i32> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    text.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

/// Whether somebody has stopped it with SIGSTOP.
pub(crate) fn is_halted(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T'))
}

/// The clock of the marks.
pub(crate) fn uptime() -> f64 {
    let text = std::fs::read_to_string("/proc/uptime").unwrap();
    text.split_whitespace().next().unwrap().parse().unwrap()
}
