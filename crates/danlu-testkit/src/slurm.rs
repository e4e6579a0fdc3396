//! A Slurm cluster on this machine, for the tests of one process: munge, a controller and some nodes, each with eight
//! GPUs and sixteen NPUs that are only names. Gone with the process.
//!
//! It is of whichever Slurm is installed where the test runs; `scripts/newer-slurm.sh` has tests run where that is a newer one.

mod accounting;
mod configuration;
mod hardware;
mod programs;
mod version;

use std::cmp::Reverse;
use std::fmt::Write;
use std::iter::successors;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::sys::stat::{Mode, SFlag, makedev, mknod};
use nix::unistd::Pid;

use self::configuration::{gres_conf, slurm_conf};
use self::version::SlurmVersion;
use crate::{alive, processes_of, skip};

pub use self::programs::slurm_programs;

/// Starts everything, and ends it when its input does: however we end, the kernel closes that.
const WATCH: &str = include_str!("slurm.sh");
/// A controller that does not lose nodes because the machine is busy.
const PATIENT: Duration = Duration::from_mins(5);
const PATIENCE: Duration = Duration::from_mins(2);
/// Jobs are told of a fifth of a second after they changed, at the latest.
const PAUSE: Duration = Duration::from_millis(20);

#[derive(Debug)]
pub struct SlurmRig {
    folder: PathBuf,
    version: SlurmVersion,
    disks: Disks,
    accounting: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Disks {
    Shared,
    /// Nodes see [`SlurmRig::hidden`] and [`SlurmRig::of_node`] as folders of their own.
    Apart,
}

impl SlurmRig {
    pub const NODES: u32 = 4;
    pub const GPUS: u32 = 8;
    pub const NPUS: u32 = 16;

    /// The cluster of this process, started by the first test that asks. `None` where Slurm is not installed or nobody is
    /// root; with `CI=true` that is a failure.
    pub fn shared() -> Option<&'static SlurmRig> {
        static RIG: OnceLock<Option<SlurmRig>> = OnceLock::new();
        RIG.get_or_init(Self::start).as_ref()
    }

    /// A cluster of its own, for a test that breaks it.
    pub fn start() -> Option<SlurmRig> {
        Self::start_that_misses_nodes_after(PATIENT)
    }

    /// The same with a controller that gives up on nodes that do not answer for so long.
    pub fn start_that_misses_nodes_after(timeout: Duration) -> Option<SlurmRig> {
        Self::start_with(Disks::Shared, timeout, false)
    }

    /// The cluster of this process whose nodes share no disk with the server: each has mounts of its own.
    pub fn apart() -> Option<&'static SlurmRig> {
        static RIG: OnceLock<Option<SlurmRig>> = OnceLock::new();
        RIG.get_or_init(|| Self::start_with(Disks::Apart, PATIENT, false)).as_ref()
    }

    /// A cluster of its own that keeps accounts, by a database of its own: `sacctmgr` sets limits, and they hold. Root is the
    /// only user, of the account `root`.
    pub fn start_with_accounting() -> Option<SlurmRig> {
        if !accounting::is_installed() {
            skip(
                "Slurm's accounting is not installed (Debian: `apt-get install slurmdbd mariadb-server-core mariadb-client-core`)",
            );
            return None;
        }
        let rig = Self::start_with(Disks::Shared, PATIENT, true)?;
        rig.wait_for_accounts();
        Some(rig)
    }

    /// Where nodes find an empty folder, whatever is in it here.
    pub fn hidden(&self) -> PathBuf {
        self.folder.join("hidden")
    }

    /// A folder that every node has for itself.
    pub fn of_node(&self) -> PathBuf {
        self.folder.join("node")
    }

    fn start_with(disks: Disks, timeout: Duration, accounting: bool) -> Option<SlurmRig> {
        let Some(version) = SlurmVersion::installed() else {
            skip("Slurm is not installed (Debian: `apt-get install munge slurm-wlm`)");
            return None;
        };
        if !nix::unistd::geteuid().is_root() {
            skip("only root can make the device files of a Slurm cluster's nodes");
            return None;
        }
        // Not a `TempDir`: the watcher removes it, after the daemons have ended.
        let folder =
            tempfile::Builder::new().prefix("danlu-slurm-").tempdir().expect("a temporary folder").keep();
        let rig = SlurmRig { folder, version, disks, accounting };
        rig.configure(timeout);
        rig.watch();
        rig.wait_for_nodes();
        Some(rig)
    }

    /// `SLURM_CONF` of Slurm's programs.
    pub fn configuration(&self) -> PathBuf {
        self.folder.join("slurm.conf")
    }

    pub fn nodes() -> impl Iterator<Item = String> {
        (1..=Self::NODES).map(|number| format!("n{number}"))
    }

    /// One of Slurm's programs, run to its end.
    pub fn run(&self, program: &str, arguments: &[&str]) -> Output {
        Command::new("timeout")
            .args(["30", program])
            .args(arguments)
            .env("SLURM_CONF", self.configuration())
            .output()
            .expect("Slurm's programs are installed")
    }

    /// What it prints; it must succeed.
    pub fn ask(&self, program: &str, arguments: &[&str]) -> String {
        let output = self.run(program, arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{program} {arguments:?} failed: {said}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// `kill -9`, and another one that knows of no job, as after a death that came before the jobs were saved: the controller
    /// writes them down up to five seconds late.
    pub fn forget_all_jobs(&self) {
        self.end_controller();
        for name in ["job_state", "job_state.old"] {
            let _ = std::fs::remove_file(self.folder.join("state").join(name));
        }
        self.start_controller_again();
    }

    /// `kill -9`; jobs run on. What was submitted before is saved by then, for what is not is Slurm's to lose and not ours.
    pub fn kill_controller(&self) {
        let saved = || self.folder.join("state/job_state").metadata().and_then(|file| file.modified()).ok();
        let before = std::time::SystemTime::now();
        self.ask("sbatch", &["--hold", "--job-name=last", "--output=/dev/null", "--wrap=true"]);
        wait_until("the controller has saved its jobs", || saved().is_some_and(|at| at > before));
        self.end_controller();
    }

    fn end_controller(&self) {
        let pid = self.controller().expect("the controller runs");
        kill(Pid::from_raw(pid), Signal::SIGKILL).expect("it is ours to kill");
        wait_until("the controller is gone", || !alive(pid));
    }

    /// Starts it again, with what it had written down. It ends with the cluster.
    pub fn restart_controller(&self) {
        self.start_controller_again();
        self.ask("scancel", &["--name=last"]);
    }

    fn start_controller_again(&self) {
        self.spawn("/usr/sbin/slurmctld", &["-D", "-f"]);
        self.wait_for_nodes();
    }

    /// `kill -9` of a node's daemon only: what runs on the node runs on.
    pub fn kill_node_daemon(&self, node: &str) {
        let pid = self.daemon(&slurmd(node)).expect("the node's daemon runs");
        kill(Pid::from_raw(pid), Signal::SIGKILL).expect("it is ours to kill");
        wait_until("the node's daemon is gone", || !alive(pid));
        // Its number may be another's before the cluster ends.
        let _ = std::fs::remove_file(self.folder.join(format!("run/{}.pid", slurmd(node))));
    }

    /// Power off: the daemon, those who watch over steps, and whatever they started. All stand still before the first is killed,
    /// as a machine without power has no last words: an `srun` that outlives another process has Slurm kill its step. Children
    /// go first, for the kernel wakes those that stand still when whoever they answer to is gone.
    pub fn lose_node(&self, node: &str) {
        self.kill_node_daemon(node);
        let send = |signal| {
            let mut found = self.processes_on(node);
            found.sort_by_cached_key(|pid| Reverse(successors(Some(*pid), |pid| parent_of(*pid)).count()));
            for pid in &found {
                let _ = kill(Pid::from_raw(*pid), signal);
            }
            found
        };
        let mut found = send(Signal::SIGSTOP);
        wait_until("all stands still", || std::mem::replace(&mut found, send(Signal::SIGSTOP)) == found);
        wait_until("nothing of the node is left", || send(Signal::SIGKILL).is_empty());
    }

    /// Starts a node's daemon again, which finds what still runs there. It ends with the cluster.
    pub fn restart_node_daemon(&self, node: &str) {
        self.spawn("/usr/sbin/slurmd", &["-D", "-N", node, "-f"]);
        wait_until("the node's daemon is back", || self.daemon(&slurmd(node)).is_some());
        self.wait_for_nodes();
    }

    fn controller(&self) -> Option<i32> {
        self.daemon("slurmctld")
    }

    fn daemon(&self, name: &str) -> Option<i32> {
        let text = std::fs::read_to_string(self.folder.join(format!("run/{name}.pid"))).ok()?;
        text.trim().parse().ok().filter(|pid| alive(*pid))
    }

    fn spawn(&self, program: &str, arguments: &[&str]) {
        let mut daemon = Command::new(program)
            .args(arguments)
            .arg(self.configuration())
            .env("SLURM_CONF", self.configuration())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("Slurm's daemons are installed");
        std::thread::spawn(move || daemon.wait());
    }

    /// Tasks on a node, by what Slurm put into their environment, and who watches over them.
    fn processes_on(&self, node: &str) -> Vec<i32> {
        let own = format!("SLURMD_NODENAME={node}");
        let is_task = |pid: &i32| {
            let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|variable| variable == own.as_bytes())
        };
        let tasks: Vec<i32> = processes_of(&self.folder).into_iter().filter(is_task).collect();
        let is_watcher = |pid: &i32| {
            let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            name.trim() == "slurmstepd"
        };
        let watchers: Vec<i32> = tasks.iter().filter_map(|pid| parent_of(*pid)).filter(is_watcher).collect();
        watchers.into_iter().chain(tasks).collect()
    }

    fn configure(&self, timeout: Duration) {
        let folder = &self.folder;
        let make = |path: &Path| std::fs::create_dir_all(path).expect("the folder is ours");
        for name in ["run", "log", "state", "dev", "hidden", "node"] {
            make(&folder.join(name));
        }
        for path in [folder.clone(), folder.join("run")] {
            // munge wants everybody to be able to reach its socket.
            std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).expect("the folder is ours");
        }
        for node in Self::nodes() {
            make(&folder.join("spool").join(node));
        }
        let key = folder.join("munge.key");
        let random = std::fs::File::open("/dev/urandom").and_then(|mut file| {
            let mut bytes = [0; 1024];
            std::io::Read::read_exact(&mut file, &mut bytes).map(|()| bytes)
        });
        std::fs::write(&key, random.expect("the kernel has random bytes")).expect("the folder is ours");
        std::fs::set_permissions(&key, PermissionsExt::from_mode(0o600)).expect("the key is ours");
        // Slurm hands out numbers only for what has device files; these are `/dev/null` by other names.
        for (name, count) in [("gpu", Self::GPUS), ("npu", Self::NPUS)] {
            for number in 0..count {
                let path = folder.join(format!("dev/{name}{number}"));
                mknod(&path, SFlag::S_IFCHR, Mode::S_IRUSR | Mode::S_IWUSR, makedev(1, 3)).expect("root may");
            }
        }
        let write = |name: &str, text: String| std::fs::write(folder.join(name), text).expect("a file");
        write("gres.conf", gres_conf(folder, |_| Self::GPUS));
        if self.version.wants_cgroups() {
            write("cgroup.conf", "CgroupPlugin=disabled\n".to_owned());
        }
        let mut text = slurm_conf(folder, timeout);
        if self.accounting {
            text.push_str(&accounting::configure(folder));
        }
        write("slurm.conf", text);
    }

    fn watch(&self) {
        let watcher = Command::new("sh")
            .args(["-c", WATCH, "sh"])
            .arg(&self.folder)
            .arg(Self::NODES.to_string())
            .arg(if self.disks == Disks::Apart { "apart" } else { "" })
            .arg(if self.accounting { "accounting" } else { "" })
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("a shell is everywhere");
        // The pipe must stay open as long as the process lives.
        std::mem::forget(watcher);
    }

    /// The daemons' logs, which are gone with the cluster.
    fn last_words(&self) -> String {
        let mut words = String::new();
        let logs = std::fs::read_dir(self.folder.join("log")).into_iter().flatten().flatten();
        for log in logs {
            let text = std::fs::read_to_string(log.path()).unwrap_or_default();
            let _ = writeln!(words, "{}:\n{text}", log.file_name().display());
        }
        words
    }

    /// The controller has heard of them from the database's daemon.
    fn wait_for_accounts(&self) {
        let known = || {
            let shown = self.run("scontrol", &["show", "assoc_mgr", "flags=users"]);
            String::from_utf8_lossy(&shown.stdout).contains("UserName=root")
        };
        let deadline = Instant::now() + PATIENCE;
        while !known() {
            assert!(Instant::now() < deadline, "waited in vain for Slurm's accounts:\n{}", self.last_words());
            std::thread::sleep(PAUSE);
        }
    }

    fn wait_for_nodes(&self) {
        let all = Self::NODES.to_string();
        let up = || {
            let output = self.run(
                "sinfo",
                &["--noheader", "--partition=main", "--states=idle,mixed,allocated", "--format=%D"],
            );
            let counts = String::from_utf8_lossy(&output.stdout).into_owned();
            let sum: u32 = counts.lines().filter_map(|line| line.trim().parse::<u32>().ok()).sum();
            sum.to_string() == all
        };
        let deadline = Instant::now() + PATIENCE;
        while !up() {
            assert!(Instant::now() < deadline, "waited in vain for Slurm's nodes:\n{}", self.last_words());
            std::thread::sleep(PAUSE);
        }
    }
}

/// The name of a node's daemon's file in `run/`.
fn slurmd(node: &str) -> String {
    format!("slurmd-{node}")
}

fn parent_of(pid: i32) -> Option<i32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(1)?.parse().ok()
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "waited in vain until {what}");
        std::thread::sleep(PAUSE);
    }
}
