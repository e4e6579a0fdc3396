//! A place to run engines in, and drafts of workers to run there.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use danlu_core::job::WorkerEnd;
use danlu_core::launch::{
    GANG_TIMEOUT, Gang, LaunchFile, LaunchOptions, Limits, RankPlan, RunLayout, WorkerFolders,
};
use danlu_types::{
    AttemptNumber, Bytes, Cpus, Device, DeviceKind, Framework, Health, JobId, NodeName, Rank, Span, Topology,
    Wiring, WorkerId, WorkerIndex,
};

use super::ground::{Ground, LocalGround};
use super::program::{TestFolder, TestProgram};
use crate::{Engine, ObservedState, Which};

/// How long anything may take on a busy machine before a test gives up on it.
const DEADLINE: Duration = Duration::from_mins(3);
/// Where a cluster's nodes count their Ascend devices from.
const FIRST_ASCEND: u32 = 8;

type LoseNode = Box<dyn Fn(&NodeName) + Send + Sync>;

/// A data folder on which engines are opened, one after the other as servers come and go.
pub struct Site {
    layout: RunLayout,
    open: Box<dyn Fn() -> Arc<dyn Engine> + Send + Sync>,
    ground: Arc<dyn Ground>,
    jobs: AtomicU64,
    nodes: Vec<NodeName>,
    scheduling: Scheduling,
    lose_node: Option<LoseNode>,
}

/// Who decides what a worker gets once Danlu has placed it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheduling {
    /// The engine does as it is told: workers get the devices that were planned, and are started one by one.
    Ours,
    /// A cluster's own scheduler: it chooses among a node's devices, and starts a gang when it is whole. Its nodes have
    /// eight NVIDIA devices or more, and behind them as many of Ascend's.
    Theirs,
    /// All of it is imagined: devices as planned, gangs when they are whole.
    Simulated,
}

impl fmt::Debug for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Site").field("layout", &self.layout).finish_non_exhaustive()
    }
}

/// A worker to be launched: one job with this many workers and ranks in each.
#[derive(Debug, Clone)]
pub struct TestWorker {
    pub job: JobId,
    pub workers: u32,
    pub ranks: u32,
    pub command: String,
    pub devices: Vec<Device>,
    pub memory: Option<Bytes>,
    pub max_time: Option<Span>,
    /// Which attempt of the job it is.
    pub attempt: u32,
    pub layout: RunLayout,
    /// The workers' nodes, in turn.
    pub nodes: Vec<NodeName>,
}

impl Drop for Site {
    /// Leaves the machine as it was, also after a failed test: no launcher, no rank, no cgroup.
    fn drop(&mut self) {
        self.ground.clear();
    }
}

impl Site {
    /// `open` makes an engine on `data`, as a server does when it starts; it may be called many times, but never while
    /// an earlier engine is in use.
    pub fn new(data: PathBuf, open: impl Fn() -> Arc<dyn Engine> + Send + Sync + 'static) -> Self {
        let layout = RunLayout { data };
        Self::above(Arc::new(LocalGround { layout: layout.clone() }), layout, open)
    }

    /// The same where there is no such folder.
    pub fn above(
        ground: Arc<dyn Ground>,
        layout: RunLayout,
        open: impl Fn() -> Arc<dyn Engine> + Send + Sync + 'static,
    ) -> Self {
        Site {
            layout,
            open: Box::new(open),
            ground,
            jobs: AtomicU64::new(1),
            nodes: vec![NodeName("here".to_owned())],
            scheduling: Scheduling::Ours,
            lose_node: None,
        }
    }

    /// With these nodes, of which `lose` takes one away for good.
    #[must_use]
    pub fn with_nodes_to_lose(
        mut self,
        nodes: Vec<NodeName>,
        lose: impl Fn(&NodeName) + Send + Sync + 'static,
    ) -> Self {
        self.nodes = nodes;
        self.lose_node = Some(Box::new(lose));
        self
    }

    /// Takes a node away, with all that runs there.
    pub fn lose_node(&self, node: &NodeName) {
        let lose = self.lose_node.as_ref().expect("a site for losses has nodes to lose");
        lose(node);
    }

    pub fn ground(&self) -> &dyn Ground {
        &*self.ground
    }

    /// The same with a cluster's own scheduler, on these nodes.
    #[must_use]
    pub fn on_cluster(mut self, nodes: Vec<NodeName>) -> Self {
        (self.nodes, self.scheduling) = (nodes, Scheduling::Theirs);
        self
    }

    /// The same where all of it is imagined.
    #[must_use]
    pub fn simulated(mut self) -> Self {
        self.scheduling = Scheduling::Simulated;
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

    /// A new job of one worker with one rank.
    pub fn job(&self, program: &TestProgram) -> TestWorker {
        self.draft(&self.ground.command(program))
    }

    /// The same of a command of the engine's own; for tests of one engine.
    pub fn draft(&self, command: &str) -> TestWorker {
        let job = JobId(self.jobs.fetch_add(1, Ordering::Relaxed));
        TestWorker { nodes: self.nodes.clone(), ..TestWorker::new(&self.layout, job, command) }
    }

    /// Asks until there is an answer; panics with `what` when the deadline is over.
    pub async fn until<T>(&self, what: &str, mut ask: impl AsyncFnMut() -> Option<T>) -> T {
        let deadline = Instant::now() + DEADLINE;
        loop {
            if let Some(answer) = ask().await {
                return answer;
            }
            assert!(Instant::now() < deadline, "waited {DEADLINE:?} in vain until {what}");
            self.ground.pass().await;
        }
    }

    pub async fn seen(&self, engine: &dyn Engine, worker: WorkerId) -> ObservedState {
        let workers = [worker];
        let mut seen = engine.observe(Which::These(&workers)).await.expect("workers can be looked at");
        assert_eq!(seen.len(), 1, "one answer for one worker");
        seen.remove(0).seen
    }

    pub async fn until_running(&self, engine: &dyn Engine, worker: WorkerId) {
        self.until("the worker runs", async || match self.seen(engine, worker).await {
            ObservedState::Running { .. } => Some(()),
            ObservedState::Unknown | ObservedState::Preparing | ObservedState::Unreadable { .. } => None,
            ended @ ObservedState::Ended { .. } => panic!("expected worker {worker} to run, found {ended:?}"),
        })
        .await;
    }

    pub async fn until_ended(&self, engine: &dyn Engine, worker: WorkerId) -> WorkerEnd {
        self.until("the worker ends", async || match self.seen(engine, worker).await {
            ObservedState::Ended { exit, .. } => Some(exit),
            _ => None,
        })
        .await
    }

    /// Waits for a file that a worker writes into its job's output folder, and returns its text without blanks around.
    pub async fn until_written(&self, job: JobId, name: &str) -> String {
        self.until("the worker writes its file", async || {
            self.ground.file(job, TestFolder::Output, name).filter(|text| text.ends_with('\n'))
        })
        .await
        .trim()
        .to_owned()
    }

    /// The lines that a rank printed, from its log.
    pub fn printed(&self, worker: WorkerId, rank: u32) -> Vec<String> {
        self.ground.printed(worker, rank)
    }
}

impl TestWorker {
    pub fn new(layout: &RunLayout, job: JobId, command: &str) -> Self {
        let (command, layout) = (command.to_owned(), layout.clone());
        let nodes = vec![NodeName("here".to_owned())];
        let (memory, max_time) = (None, None);
        let devices = Vec::new();
        TestWorker {
            job,
            workers: 1,
            ranks: 1,
            command,
            devices,
            memory,
            max_time,
            attempt: 1,
            layout,
            nodes,
        }
    }

    pub fn worker(&self, index: u32) -> WorkerId {
        WorkerId { job: self.job, attempt: AttemptNumber(self.attempt), worker: WorkerIndex(index) }
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
            checkpoint: Some("checkpoint".into()),
            env: BTreeMap::new(),
            gang: Gang { workers: self.workers, timeout: GANG_TIMEOUT },
            ranks: (0..self.ranks).map(rank).collect(),
            world_size: self.workers * self.ranks,
            devices: self.devices.clone(),
            topology: Topology::default(),
            options: LaunchOptions::default(),
            limits: Limits {
                cpus: Cpus::whole(1),
                memory: self.memory,
                shared_memory: None,
                processes: None,
            },
            max_time: self.max_time,
            grace: Span::from_seconds(30),
            folders: WorkerFolders {
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
            sandbox: None,
            unsuitable: Vec::new(),
            secrets: Vec::new(),
        }
    }
}
