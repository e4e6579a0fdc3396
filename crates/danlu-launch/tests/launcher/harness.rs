//! A worker to launch: a run folder, a launch file, and the launcher as a real process.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use danlu_core::job::{WorkerEnd, WorkerFailure};
use danlu_core::launch::{
    Gang, LAUNCH_FILE, LaunchFile, LaunchOptions, LauncherState, LauncherStatus, Limits, RankPlan,
    STATUS_FILE, STOP_FILE, StopOrder, WorkerFolders,
};
use danlu_core::log::decode;
use danlu_device::cgroup::{self, Groups};
use danlu_types::api::LogStream;
use danlu_types::{
    AttemptNumber, Cpus, Framework, JobId, NodeName, Rank, Span, Topology, WorkerId, WorkerIndex,
};
use jiff::Timestamp;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;

/// Nothing here takes this long; what does is broken.
const PATIENCE: Duration = Duration::from_mins(3);

/// Built by cargo together with the tests: two folders up from the test program.
pub(crate) fn launcher_program() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let program = test.parent().unwrap().parent().unwrap().join("examples/launch-worker");
    assert!(program.exists(), "`{}` is not built: run `cargo test` without `--test`", program.display());
    program
}

pub(crate) struct Bench {
    data: TempDir,
}

pub(crate) struct Launched {
    pub(crate) launch: LaunchFile,
    pub(crate) launcher: Child,
}

impl Bench {
    pub(crate) fn new() -> Self {
        Bench { data: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self) -> &Path {
        self.data.path()
    }

    pub(crate) fn launch_file(&self, command: &str) -> LaunchFile {
        let data = self.data.path();
        let worker = WorkerId { job: JobId(1), attempt: AttemptNumber(1), worker: WorkerIndex(0) };
        LaunchFile {
            worker,
            job_name: "probe".to_owned(),
            owner: "admin".to_owned(),
            workspace: "default".to_owned(),
            node: NodeName("here".to_owned()),
            address: "127.0.0.1".to_owned(),
            framework: Framework::None,
            command: command.to_owned(),
            setup: None,
            working_directory: None,
            checkpoint: None,
            env: BTreeMap::new(),
            gang: Gang { workers: 1, timeout: Span::from_seconds(20) },
            ranks: vec![RankPlan { rank: Rank(0), local_rank: 0 }],
            world_size: 1,
            devices: Vec::new(),
            topology: Topology::default(),
            options: LaunchOptions::default(),
            limits: Limits { cpus: Cpus::whole(1), memory: None, shared_memory: None, processes: None },
            max_time: None,
            grace: Span::from_seconds(10),
            folders: WorkerFolders {
                run: data.join("runs/1/1.0"),
                gang: data.join("runs/1/1.gang"),
                checkpoint: data.join("runs/1/checkpoint"),
                output: data.join("runs/1/output"),
                code: None,
                python: None,
                hints: data.join("hints.sock"),
            },
            user: None,
            access: None,
            sandbox: None,
            unsuitable: Vec::new(),
            secrets: Vec::new(),
        }
    }

    /// For `ranks` ranks in one worker.
    pub(crate) fn launch_file_of_ranks(&self, ranks: u32, command: &str) -> LaunchFile {
        let mut launch = self.launch_file(command);
        launch.ranks = (0..ranks).map(|rank| RankPlan { rank: Rank(rank), local_rank: rank }).collect();
        launch.world_size = ranks;
        launch
    }

    /// A named pipe: whoever opens one end waits for the other, so nobody has to sleep.
    pub(crate) fn fifo(&self, name: &str) -> PathBuf {
        let path = self.data.path().join(name);
        nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
        path
    }

    pub(crate) fn run(&self, command: &str) -> (Launched, WorkerEnd) {
        Launched::run(self.launch_file(command))
    }
}

/// What a killed launcher left of its groups, which on a server the engine would take away.
impl Drop for Bench {
    fn drop(&mut self) {
        let groups = Groups::detect();
        let worker = self.launch_file("").worker;
        let parent = cgroup::worker_group_name(self.data.path(), worker);
        let parent = parent.split('/').next().unwrap();
        if let Some(group) = cgroup::open(&groups, parent) {
            let _ = group.kill();
            eventually("empty groups", || group.processes().is_empty().then_some(()));
            let _ = group.remove();
        }
    }
}

impl Launched {
    pub(crate) fn start(launch: LaunchFile) -> Self {
        fs::create_dir_all(&launch.folders.run).unwrap();
        fs::write(launch.folders.run.join(LAUNCH_FILE), serde_json::to_vec(&launch).unwrap()).unwrap();
        Launched::start_again(launch)
    }

    /// With the launch file that is there.
    pub(crate) fn start_again(launch: LaunchFile) -> Self {
        let mut command = Command::new(launcher_program());
        command.arg(&launch.folders.run).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::inherit());
        let launcher = command.spawn().unwrap();
        Launched { launch, launcher }
    }

    pub(crate) fn run(launch: LaunchFile) -> (Self, WorkerEnd) {
        let mut launched = Launched::start(launch);
        let exit = launched.exit();
        (launched, exit)
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.launcher.id()).unwrap())
    }

    pub(crate) fn status(&self) -> Option<LauncherStatus> {
        let text = fs::read(self.launch.folders.run.join(STATUS_FILE)).ok()?;
        LauncherStatus::last_in(&text)
    }

    /// Waits for the launcher's end.
    pub(crate) fn exit(&mut self) -> WorkerEnd {
        eventually("the launcher's end", || self.launcher.try_wait().unwrap());
        match self.status().expect("a last status").phase {
            LauncherState::Ended { exit, .. } => exit,
            other => panic!("ended while {other:?}; {}", self.launcher_log()),
        }
    }

    pub(crate) fn failure(&mut self) -> WorkerFailure {
        match self.exit() {
            WorkerEnd::Failed(failure) => failure,
            other => panic!("{other:?} instead of a failure"),
        }
    }

    /// Waits until the ranks run; their pids.
    pub(crate) fn running(&self) -> Vec<i32> {
        eventually("running ranks", || match self.status()?.phase {
            LauncherState::Running { ranks, .. } => Some(ranks.iter().map(|rank| rank.pid).collect()),
            _ => None,
        })
    }

    pub(crate) fn order_stop(&self, grace: Span) {
        let text = serde_json::to_vec(&StopOrder { grace }).unwrap();
        let fresh = self.launch.folders.run.join("stop.json.new");
        fs::write(&fresh, text).unwrap();
        fs::rename(fresh, self.launch.folders.run.join(STOP_FILE)).unwrap();
        kill(self.pid(), Signal::SIGTERM).unwrap();
    }

    pub(crate) fn log(&self, rank: u32) -> Vec<(Timestamp, LogStream, String)> {
        let text = fs::read(self.launch.folders.run.join(format!("rank-{rank}.log"))).unwrap_or_default();
        let lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let record = |line: &[u8]| {
            let (at, stream, text) = decode(line).expect("a whole record");
            (at, stream, String::from_utf8_lossy(text).into_owned())
        };
        lines.map(record).collect()
    }

    pub(crate) fn lines(&self, rank: u32) -> Vec<String> {
        self.log(rank).into_iter().map(|(_, _, text)| text).collect()
    }

    pub(crate) fn launcher_log(&self) -> String {
        fs::read_to_string(self.launch.folders.run.join("launcher.log")).unwrap_or_default()
    }
}

impl Drop for Launched {
    fn drop(&mut self) {
        let _ = self.launcher.kill();
        let _ = self.launcher.wait();
    }
}

pub(crate) fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begun.elapsed() < PATIENCE, "no sign of {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

pub(crate) fn is_gone(pid: i32) -> bool {
    danlu_device::process::identity(pid).is_none()
}
