//! Workers inside allocations of Slurm's.
//!
//! An attempt's workers are submitted together, one job of Slurm's for all of them where their nodes have equally many;
//! its script starts a launcher for each ([`danlu_slurm::batch_script`]). Run folders lie on a disk that server and
//! nodes share, and the launcher's words count here as they do for [`crate::local`]: Slurm is asked only what has become
//! of those that have not said that they ended.
//!
//! Files of an allocation, in this order, so that death at any line neither loses nor doubles a job:
//!
//! | there is | means |
//! |---|---|
//! | `launch.json` and marker of some workers | the gang is not complete: nothing was submitted |
//! | `order.json` | its job's name is fixed; it may have been submitted |
//! | `submitted` | its job's number is known |
//! | `claim` | the job has begun: whatever else bears that name runs nothing |
//!
//! Invariants:
//! - An order whose number is not known is looked for by its name before it is submitted (again); and should that look
//!   come too early, only the first job to begin starts any worker.
//! - A verdict is given only on Slurm's word about that very job, never because something is missing from an answer, and
//!   only once it is on disk.
//! - Only what this data folder submitted is cancelled: a copy of it finds the same orders, whose jobs are not its own.
//! - No look at a worker waits for Slurm: a [`poll`] in the background asks, once for all jobs.

mod call;
mod commands;
mod external_jobs;
mod folders;
mod frozen;
mod node_cache;
mod observe;
mod outage;
mod poll;
mod remote;
mod session;
mod submit;
mod turns;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use async_trait::async_trait;
use danlu_core::job::{Grant, WorkerEnd};
use danlu_core::launch::{LaunchFile, LauncherState, RunLayout, SESSION_SOCKET, StopOrder};
use danlu_slurm::{
    GresSlot, PlacementMode, SlurmSettings, keep_to_reservations, node, parse_nodes, parse_reservations,
};
use danlu_types::{FieldError, JobSpec, Node, NodeName, WorkerId};
use tokio::task::{JoinHandle, spawn_blocking};

use crate::hints::{self, Hints};
use crate::{ClusterAnswer, Engine, EngineError, Observation, Which, WorkerStream, files};
pub use remote::{SidecarOptions, SidecarTokens};

use commands::Programs;
use folders::{AllocationFolders, Call};
use node_cache::NodeCache;
use poll::Watch;
use remote::Remote;

#[derive(Debug, Clone)]
pub struct SlurmOptions {
    /// An absolute path that the nodes see as the same folder, where the settings say that they do; made if need be.
    pub data: PathBuf,
    /// The data folder's name, which copies of it do not share (ADR 14). Where it is not known, nothing is cancelled.
    pub identity: Option<String>,
    /// This program, as the nodes see it: it is started as `PROGRAM slurm-worker FOLDER`.
    pub program: OsString,
    pub settings: SlurmSettings,
    /// Jobs are submitted by users of their own.
    pub many_users: bool,
    /// Needed where the settings say that nodes share no disk with the server.
    pub sidecars: Option<SidecarOptions>,
}

#[derive(Debug)]
pub struct SlurmEngine {
    settings: SlurmSettings,
    /// Where nodes share no disk with the server.
    remote: Option<Arc<Remote>>,
    program: String,
    programs: Arc<Programs>,
    folders: Arc<AllocationFolders>,
    watch: Arc<Watch>,
    hints: Arc<Hints>,
    tasks: [JoinHandle<()>; 2],
    known: Arc<NodeCache>,
    /// One submission at a time for a job, whose workers are launched at once.
    submitting: turns::JobTurns,
    /// When the controller last failed to take a job: others are not held up by waiting for it, too.
    away: Mutex<Option<Instant>>,
    calls: call::Calls,
    holders: Mutex<external_jobs::ExternalJobs>,
    /// Nobody could reach the server before.
    began: Instant,
}

impl SlurmEngine {
    /// Opens the engine on a data folder; what runs in allocations of it is found by `observe`. Must be called within a
    /// tokio runtime.
    pub fn new(options: SlurmOptions) -> Result<Self, EngineError> {
        let SlurmOptions { data, identity, program, settings, many_users, sidecars } = options;
        let failed = |doing| move |source| EngineError::Host { doing, source };
        let invalid = |text: &'static str| {
            failed("set up the Slurm engine")(io::Error::new(ErrorKind::InvalidInput, text))
        };
        if !data.is_absolute() {
            return Err(invalid("its data folder is not an absolute path"));
        }
        if let Some(objection) = settings.objection() {
            return Err(invalid(objection.what));
        }
        let remote = match sidecars {
            _ if settings.shared => None,
            Some(sidecars) => {
                Some(Remote::new(&settings, sidecars, &program).map_err(failed("prepare what nodes fetch"))?)
            }
            None => return Err(invalid("no tokens are issued for its sidecars")),
        };
        let program = settings.program.clone().map_or(program, PathBuf::into_os_string);
        let program = program.into_string().map_err(|_| invalid("its program's path is not UTF-8"))?;
        let layout = RunLayout { data };
        files::make_folder(&layout.live_folder()).map_err(failed("make the folder of live workers"))?;
        files::lay_down_python(&layout.python_folder()).map_err(failed("lay down `danlu.py`"))?;
        let hints = Arc::new(Hints::default());
        let listener = hints::listen(&layout.hints_socket(), Arc::clone(&hints))
            .map_err(failed("listen for launchers' hints"))?;
        let programs = Arc::new(Programs::new(&settings));
        let watch = Arc::new(Watch::default());
        let pace = poll::Pace { every: settings.poll.to_duration(), many_users };
        let poller =
            tokio::spawn(poll::run(Arc::clone(&programs), Arc::clone(&watch), Arc::clone(&hints), pace));
        Ok(SlurmEngine {
            settings,
            remote: remote.map(Arc::new),
            program,
            programs,
            folders: Arc::new(AllocationFolders::new(layout, identity)),
            watch,
            hints,
            tasks: [listener, poller],
            known: Arc::default(),
            submitting: turns::JobTurns::default(),
            away: Mutex::default(),
            calls: call::Calls::default(),
            holders: Mutex::default(),
            began: Instant::now(),
        })
    }

    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&AllocationFolders, &Watch) -> Result<T, EngineError> + Send + 'static,
    ) -> Result<T, EngineError> {
        let (folders, watch) = (Arc::clone(&self.folders), Arc::clone(&self.watch));
        let done = spawn_blocking(move || work(&folders, &watch)).await;
        // Fails only where the runtime is shutting down or `work` panicked.
        done.unwrap_or_else(|error| {
            Err(EngineError::Host { doing: "finish what was begun", source: io::Error::other(error) })
        })
    }

    /// The nodes on offer, without what anybody holds of them.
    async fn nodes(&self) -> Result<Vec<Node>, EngineError> {
        let arguments = ["--oneliner", "--details", "show", "node"].map(str::to_owned);
        let text = self.programs.ask("list Slurm's nodes", "scontrol", &arguments).await?;
        let partition = self.settings.partition.as_ref();
        let records = parse_nodes(&text);
        let ours = records.iter().filter(|it| partition.is_none_or(|name| it.partitions.contains(name)));
        Ok(ours.map(|record| self.known.learn(node(record, &self.settings))).collect())
    }

    /// Whether Slurm is to choose the nodes of a gang. It gives each node of a job the same, and several jobs of Slurm's are
    /// one gang only where all of them have their places; and it must say afterwards which devices it gave. What is not so
    /// is asked for by name.
    fn may_place<'a>(&self, places: impl Iterator<Item = (&'a NodeName, &'a [u32])>) -> bool {
        let mut workers: BTreeMap<&NodeName, u32> = BTreeMap::new();
        for (node, devices) in places {
            if self.settings.placement == PlacementMode::Danlu || !self.known.are_numbered(node, devices) {
                return false;
            }
            *workers.entry(node).or_default() += 1;
        }
        let mut counts = workers.into_values();
        let first = counts.next();
        counts.all(|count| Some(count) == first)
    }

    /// Which resource each device of a node is; asks Slurm where the node is not known yet.
    async fn slots_of(&self, node: &NodeName) -> Result<Vec<GresSlot>, EngineError> {
        if let Some(slots) = self.known.slots(node) {
            return Ok(slots);
        }
        self.nodes().await?;
        // Not final: the answer may have been cut off. A node that is gone for good is gone from the inventory too.
        self.known.slots(node).ok_or_else(|| EngineError::Cluster {
            doing: "find a node",
            program: "scontrol",
            said: format!("nothing of `{node}`"),
            answer: ClusterAnswer::Away,
        })
    }
}

impl Drop for SlurmEngine {
    /// Jobs go on, and are found again.
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

#[async_trait]
impl Engine for SlurmEngine {
    async fn inventory(&self) -> Result<Vec<Node>, EngineError> {
        let mut nodes = self.nodes().await?;
        let arguments = ["--oneliner", "show", "reservation"].map(str::to_owned);
        // Where Slurm does not answer, what it last said holds.
        let answer = self.programs.ask("list Slurm's reservations", "scontrol", &arguments).await.ok();
        let reservations = self.known.reservations(answer.as_deref().map(parse_reservations));
        keep_to_reservations(&mut nodes, &reservations, self.settings.reservation());
        let jobs = self.jobs_of_others().await;
        self.known.lay_over(&mut nodes, &jobs);
        Ok(nodes)
    }

    fn places(&self, planned: &[&Grant]) -> bool {
        let places = planned.iter().map(|grant| (&grant.node, grant.devices.as_slice()));
        self.may_place(places)
    }

    fn inventory_changes(&self) -> bool {
        true
    }

    fn trouble(&self) -> Option<String> {
        self.programs.trouble()
    }

    fn fit(&self, spec: JobSpec) -> Result<JobSpec, FieldError> {
        if self.remote.is_some() {
            danlu_slurm::check_unshared(&spec)?;
        }
        danlu_slurm::fit(spec)
    }

    async fn launch(&self, launch: &LaunchFile) -> Result<(), EngineError> {
        let worker = launch.worker;
        if launch.user.is_some() && self.remote.is_none() {
            // The server would have to trust files that the user can change, and follow links in them.
            let text = "jobs run as users of their own only where nodes share no disk with the server";
            let source = io::Error::new(ErrorKind::Unsupported, text);
            return Err(EngineError::Worker { doing: "launch", worker, source });
        }
        let _one_at_a_time = self.submitting.take(worker.job).await;
        let copy = launch.clone();
        let failed = move |source| EngineError::Worker { doing: "launch", worker, source };
        self.blocking(move |folders, _| folders.accept(&copy).map_err(failed)).await?;
        self.submit(worker).await
    }

    async fn observe(&self, which: Which<'_>) -> Result<Vec<Observation>, EngineError> {
        let these = match which {
            Which::All => None,
            Which::These(these) => Some(these.to_vec()),
        };
        // Read only where it can be something else than the plan: it is one file more for each worker.
        let is_ours_to_say = self.settings.placement == PlacementMode::Danlu;
        let known = (!is_ours_to_say).then(|| Arc::clone(&self.known));
        self.blocking(move |folders, watch| {
            let these = match these {
                Some(these) => these,
                None => files::live_workers(&folders.layout)
                    .map_err(|source| EngineError::Host { doing: "list the live workers", source })?,
            };
            let observe = |worker: WorkerId| {
                let seen = folders.observe(worker, watch, known.as_deref());
                seen.unwrap_or_else(|error| Observation::unreadable(worker, &error))
            };
            Ok(these.into_iter().map(observe).collect())
        })
        .await
    }

    async fn signal(&self, worker: WorkerId, order: &StopOrder) -> Result<(), EngineError> {
        let order = order.clone();
        let failed = move |source| EngineError::Worker { doing: "stop", worker, source };
        let call = self.blocking(move |folders, _| folders.order(worker, &order).map_err(failed)).await?;
        match call {
            // Sidecars hear of orders from the server.
            Some(Call::Wake { .. }) if self.remote.is_some() => Ok(()),
            Some(call) => self.call(call).await,
            None => Ok(()),
        }
    }

    async fn kill(&self, worker: WorkerId, exit: &WorkerEnd) -> Result<bool, EngineError> {
        // While Slurm is away the launcher could not be woken either, so it is not late; and a `scancel` that waits for Slurm to
        // come back would cut the job's grace short then.
        if self.programs.trouble().is_some() {
            return Ok(false);
        }
        let (exit, contact) = (exit.clone(), self.remote.as_ref().map(|_| self.began));
        let failed = move |source| EngineError::Worker { doing: "kill", worker, source };
        let call = self
            .blocking(move |folders, watch| folders.kill(worker, &exit, watch, contact).map_err(failed))
            .await?;
        match call {
            Some(call) => self.call(call).await.map(|()| true),
            None => Ok(false),
        }
    }

    async fn release(&self, worker: WorkerId) -> Result<(), EngineError> {
        let failed = move |source| EngineError::Worker { doing: "release", worker, source };
        let left =
            self.blocking(move |folders, watch| folders.release(worker, watch).map_err(failed)).await?;
        match left {
            Some(call) => self.call(call).await,
            None => Ok(()),
        }
    }

    async fn connect(&self, worker: WorkerId) -> Result<Box<dyn WorkerStream>, EngineError> {
        let not_reachable = |why| EngineError::NotReachable { worker, why };
        let failed = move |source| EngineError::Worker { doing: "connect to", worker, source };
        let found = self.blocking(move |folders, _| folders.reach(worker).map_err(failed)).await?;
        let Some(reach) = found else { return Err(not_reachable("it does not run here")) };
        match reach.phase {
            None => return Err(not_reachable("Slurm has not started it yet")),
            Some(LauncherState::Ended { .. }) => return Err(not_reachable("it has ended")),
            Some(LauncherState::Preparing | LauncherState::Running { .. }) => {}
        }
        let (Some(job), Some(node)) = (reach.job, reach.node) else {
            return Err(not_reachable("Slurm has not started it yet"));
        };
        let listens = match &self.remote {
            None => reach.run.join(SESSION_SOCKET).exists(),
            // Before a launcher says that its ranks run, it listens.
            Some(_) => matches!(reach.phase, Some(LauncherState::Running { .. })),
        };
        if !listens {
            return Err(not_reachable("its launcher does not listen yet"));
        }
        let place = match (&self.remote, &reach.order) {
            (None, _) => {
                session::SessionTarget { program: self.program.clone().into(), run: reach.run, user: None }
            }
            (Some(remote), Some(order)) => remote.session_place(order, worker),
            (Some(_), None) => return Err(not_reachable("its order is not there")),
        };
        let stream = session::open(&self.programs, &place, job, &node).map_err(failed)?;
        Ok(Box::new(stream))
    }

    async fn changed(&self) -> Vec<WorkerId> {
        self.hints.take().await
    }
}
