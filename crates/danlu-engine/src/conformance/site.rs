//! A place to run engines in, and drafts of workers to run there.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use danlu_core::job::WorkerExit;
use danlu_core::launch::{
    Folders, GANG_TIMEOUT, Gang, LaunchFile, LaunchOptions, LauncherStatus, Limits, RankPlan, RunLayout,
    STATUS_FILE,
};
use danlu_core::log;
use danlu_device::cgroup::{self, Groups};
use danlu_device::process;
use danlu_types::api::LogStream;
use danlu_types::{
    AttemptNumber, Bytes, Cpus, Device, DeviceKind, Framework, Health, JobId, NodeName, Rank, Span, Topology,
    Wiring, WorkerId, WorkerIndex,
};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::{Engine, Seen, Which};

/// How long anything may take on a busy machine before a test gives up on it.
const DEADLINE: Duration = Duration::from_mins(1);
const PAUSE: Duration = Duration::from_millis(3);
/// Where a cluster's nodes count their Ascend devices from.
const FIRST_ASCEND: u32 = 8;

/// A data folder on which engines are opened, one after the other as servers come and go.
pub struct Site {
    layout: RunLayout,
    open: Box<dyn Fn() -> Arc<dyn Engine> + Send + Sync>,
    jobs: AtomicU64,
    nodes: Vec<NodeName>,
    scheduling: Scheduling,
}

/// Who decides what a worker gets once Danlu has placed it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheduling {
    /// The engine does as it is told: workers get the devices that were planned, and are started one by one.
    Ours,
    /// A cluster's own scheduler: it chooses among a node's devices, and starts a gang when it is whole. Its nodes have
    /// eight NVIDIA devices or more, and behind them as many of Ascend's.
    Theirs,
}

impl fmt::Debug for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Site").field("layout", &self.layout).finish_non_exhaustive()
    }
}

/// A worker to be launched: one job with this many workers and ranks in each.
#[derive(Debug, Clone)]
pub struct Draft {
    pub job: JobId,
    pub workers: u32,
    pub ranks: u32,
    pub command: String,
    pub devices: Vec<Device>,
    pub layout: RunLayout,
    /// The workers' nodes, in turn.
    pub nodes: Vec<NodeName>,
}

impl Drop for Site {
    /// Leaves the machine as it was, also after a failed test: no launcher, no rank, no cgroup.
    fn drop(&mut self) {
        let live = fs::read_dir(self.layout.live_folder()).into_iter().flatten().flatten();
        let workers = live.filter_map(|entry| entry.file_name().to_str()?.parse::<WorkerId>().ok());
        for worker in workers {
            let status = fs::read(self.layout.run_folder(worker).join(STATUS_FILE)).unwrap_or_default();
            let Some(status) = LauncherStatus::last_in(&status) else { continue };
            if status.launcher.pid > 1 && process::is_alive(status.launcher) {
                let _ = kill(Pid::from_raw(status.launcher.pid), Signal::SIGKILL);
            }
        }
        let worker = WorkerId { job: JobId(0), attempt: AttemptNumber(0), worker: WorkerIndex(0) };
        let name = cgroup::worker_group_name(&self.layout.data, worker);
        let all_of_the_site = name.split('/').next().and_then(|all| cgroup::open(&Groups::detect(), all));
        if let Some(group) = all_of_the_site {
            let deadline = Instant::now() + Duration::from_secs(1);
            while group.kill().and_then(|()| group.remove()).is_err() && Instant::now() < deadline {
                std::thread::sleep(PAUSE);
            }
        }
    }
}

impl Site {
    /// `open` makes an engine on `data`, as a server does when it starts; it may be called many times, but never while
    /// an earlier engine is in use.
    pub fn new(data: PathBuf, open: impl Fn() -> Arc<dyn Engine> + Send + Sync + 'static) -> Self {
        Site {
            layout: RunLayout { data },
            open: Box::new(open),
            jobs: AtomicU64::new(1),
            nodes: vec![NodeName("here".to_owned())],
            scheduling: Scheduling::Ours,
        }
    }

    /// The same with a cluster's own scheduler, on these nodes.
    #[must_use]
    pub fn on_cluster(mut self, nodes: Vec<NodeName>) -> Self {
        (self.nodes, self.scheduling) = (nodes, Scheduling::Theirs);
        self
    }

    pub fn scheduling(&self) -> Scheduling {
        self.scheduling
    }

    /// A device of a node, the so manieth of its kind.
    pub fn device(&self, kind: DeviceKind, number: u32) -> Device {
        let first = match (self.scheduling, kind) {
            (Scheduling::Theirs, DeviceKind::Ascend) => FIRST_ASCEND,
            _ => 0,
        };
        Device {
            index: first + number,
            kind,
            model: "any".to_owned(),
            memory: Bytes(1 << 30),
            island: 0,
            health: Health::Ok,
            wiring: Wiring::default(),
        }
    }

    pub fn engine(&self) -> Arc<dyn Engine> {
        (self.open)()
    }

    pub fn layout(&self) -> &RunLayout {
        &self.layout
    }

    /// A new job of one worker with one rank that runs `command` under a shell.
    pub fn draft(&self, command: &str) -> Draft {
        let job = JobId(self.jobs.fetch_add(1, Ordering::Relaxed));
        Draft { nodes: self.nodes.clone(), ..Draft::new(&self.layout, job, command) }
    }

    /// Asks until there is an answer; panics with `what` when the deadline is over.
    pub async fn until<T>(&self, what: &str, mut ask: impl AsyncFnMut() -> Option<T>) -> T {
        let deadline = Instant::now() + DEADLINE;
        loop {
            if let Some(answer) = ask().await {
                return answer;
            }
            assert!(Instant::now() < deadline, "waited {DEADLINE:?} in vain until {what}");
            tokio::time::sleep(PAUSE).await;
        }
    }

    pub async fn seen(&self, engine: &dyn Engine, worker: WorkerId) -> Seen {
        let workers = [worker];
        let mut seen = engine.observe(Which::These(&workers)).await.expect("workers can be looked at");
        assert_eq!(seen.len(), 1, "one answer for one worker");
        seen.remove(0).seen
    }

    pub async fn until_running(&self, engine: &dyn Engine, worker: WorkerId) {
        self.until("the worker runs", async || match self.seen(engine, worker).await {
            Seen::Running { .. } => Some(()),
            Seen::Unknown | Seen::Preparing => None,
            ended @ Seen::Ended { .. } => panic!("expected worker {worker} to run, found {ended:?}"),
        })
        .await;
    }

    pub async fn until_ended(&self, engine: &dyn Engine, worker: WorkerId) -> WorkerExit {
        self.until("the worker ends", async || match self.seen(engine, worker).await {
            Seen::Ended { exit, .. } => Some(exit),
            _ => None,
        })
        .await
    }

    /// Waits for a file that a worker writes into its job's output folder, and returns its text without blanks around.
    pub async fn until_written(&self, job: JobId, name: &str) -> String {
        let path = self.layout.output_folder(job).join(name);
        self.until("the worker writes its file", async || {
            fs::read_to_string(&path).ok().filter(|text| text.ends_with('\n'))
        })
        .await
        .trim()
        .to_owned()
    }

    /// The lines that a rank printed, from its log.
    pub fn printed(&self, worker: WorkerId, rank: u32) -> Vec<String> {
        let path = self.layout.run_folder(worker).join(log::rank_log_name(Rank(rank)));
        let bytes = fs::read(&path).expect("every rank has a log");
        let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let decoded = lines.map(|line| log::decode(line).expect("every line is a record"));
        decoded
            .filter(|(_, stream, _)| *stream != LogStream::Danlu)
            .map(|(_, _, text)| String::from_utf8_lossy(text).into_owned())
            .collect()
    }
}

impl Draft {
    pub fn new(layout: &RunLayout, job: JobId, command: &str) -> Self {
        let (command, layout) = (command.to_owned(), layout.clone());
        let nodes = vec![NodeName("here".to_owned())];
        Draft { job, workers: 1, ranks: 1, command, devices: Vec::new(), layout, nodes }
    }

    pub fn worker(&self, index: u32) -> WorkerId {
        WorkerId { job: self.job, attempt: AttemptNumber(1), worker: WorkerIndex(index) }
    }

    pub fn launch_file(&self, index: u32) -> LaunchFile {
        let worker = self.worker(index);
        let layout = &self.layout;
        let rank = |local_rank| RankPlan { rank: Rank(index * self.ranks + local_rank), local_rank };
        LaunchFile {
            worker,
            job_name: "conformance".to_owned(),
            owner: "local".to_owned(),
            workspace: "local".to_owned(),
            node: self.nodes[index as usize % self.nodes.len()].clone(),
            address: "127.0.0.1".to_owned(),
            framework: Framework::None,
            command: self.command.clone(),
            setup: None,
            working_directory: None,
            checkpoint: None,
            env: BTreeMap::new(),
            gang: Gang { workers: self.workers, timeout: GANG_TIMEOUT },
            ranks: (0..self.ranks).map(rank).collect(),
            world_size: self.workers * self.ranks,
            devices: self.devices.clone(),
            topology: Topology::default(),
            options: LaunchOptions::default(),
            limits: Limits { cpus: Cpus::whole(1), memory: None, shared_memory: None },
            max_time: None,
            grace: Span::from_seconds(30),
            folders: Folders {
                run: layout.run_folder(worker),
                gang: layout.gang_folder(worker.job, worker.attempt),
                checkpoint: layout.checkpoint_folder(worker.job),
                output: layout.output_folder(worker.job),
                code: None,
                python: None,
                hints: layout.hints_socket(),
            },
            user: None,
            access: None,
            secrets: Vec::new(),
        }
    }
}
