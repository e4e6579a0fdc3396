//! The life of one worker, from its launch file to its last status.

mod supervise;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::Arc;
use std::time::{Duration, Instant};

use danlu_core::job::{Exit, Failure, FailureCause, WorkerExit};
use danlu_core::launch::{
    LaunchFile, LauncherPhase, RankPlan, RankProcess, Rendezvous, STOP_FILE, StopOrder, rank_environment,
};
use danlu_core::log::rank_log_name;
use danlu_device::cgroup::{self, Groups, WorkerGroup};
use danlu_device::process;
use jiff::Timestamp;
use nix::unistd::getpid;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::capture::Capture;
use crate::children::{Children, Signals, Wake};
use crate::course::{Course, Why};
use crate::error::{Halt, LauncherError, StartError, chain};
use crate::journal::Journal;
use crate::rank::{Surroundings, setup_arguments};
use crate::session::{Inside, Sessions};
use crate::spool::Spool;
use crate::status::Status;
use crate::{folders, gang, shared_memory};

/// How often a status is tried again that the disk had no room for.
const STATUS_RETRY: Duration = Duration::from_millis(250);
/// A worker that ends within this time is not worth two words: its end says when it ran, and the server has half the work
/// with jobs of a moment.
const WORTH_SAYING: Duration = Duration::from_millis(5);

pub(crate) async fn run(launch: LaunchFile) -> Result<(), LauncherError> {
    let signals = Signals::new().map_err(LauncherError::Runtime)?;
    let journal = Journal::new(&launch.folders.run);
    let own = process::identity(getpid().as_raw()).ok_or_else(|| {
        LauncherError::Runtime(std::io::Error::other("`/proc` does not know this process: is it mounted?"))
    })?;
    let status = Status::new(launch.worker, own, &launch.folders.hints);
    // No hint: for the server nothing has changed yet.
    if let Err(error) = status.write(&LauncherPhase::Preparing) {
        journal.note(format_args!("cannot write the first status: {error}"));
    }
    let mut worker = Worker {
        launch: &launch,
        journal,
        signals,
        children: Arc::default(),
        status,
        group: WorkerGroup::default(),
        captures: Vec::new(),
        finish: watch::Sender::new(false),
        inside: None,
        sessions: None,
        unsaid: None,
        disk_is_full: false,
        running_since: None,
    };
    let exit = worker.live().await.unwrap_or_else(WorkerExit::from);
    worker.clean_up().await;
    let ended = LauncherPhase::Ended { running_since: worker.running_since, at: Timestamp::now(), exit };
    worker.status.write_at_last(&ended, &worker.journal).await.map_err(LauncherError::LastStatus)?;
    worker.status.poke();
    Ok(())
}

struct Worker<'a> {
    launch: &'a LaunchFile,
    journal: Journal,
    signals: Signals,
    children: Arc<Children>,
    status: Status<'a>,
    group: WorkerGroup,
    captures: Vec<JoinHandle<()>>,
    /// Turned true when nobody is left to write into the pipes.
    finish: watch::Sender<bool>,
    /// What sessions will find, until the first may come.
    inside: Option<Inside>,
    sessions: Option<Sessions>,
    /// A status that is still to be written, and when.
    unsaid: Option<(LauncherPhase, Instant)>,
    /// A status could not be written; said once.
    disk_is_full: bool,
    running_since: Option<Timestamp>,
}

/// Orders to stop, for those who wait for something else.
#[derive(Debug)]
pub(crate) struct Orders<'a> {
    signals: &'a mut Signals,
    children: &'a Children,
}

impl Orders<'_> {
    /// Returns when the worker is to stop.
    pub(crate) async fn stop(&mut self) {
        while self.signals.next().await != Wake::Order {
            self.children.reap();
        }
    }
}

impl Worker<'_> {
    async fn live(&mut self) -> Result<WorkerExit, Halt> {
        if self.order().is_some() {
            return Err(Halt::Stopped);
        }
        let launch = self.launch;
        let working_directory = folders::prepare(launch)?;
        self.make_group();
        if let Some(size) = launch.limits.shared_memory
            && let Err(error) = shared_memory::mount_own(size)
        {
            self.journal.note(format_args!("shared memory is not limited to {size}: {error}"));
        }
        let mut orders = Orders { signals: &mut self.signals, children: &self.children };
        let (reserved, first) = gang::assemble(launch, &mut orders).await?;
        let resume = folders::has_checkpoint(launch);
        let rendezvous = Rendezvous { address: first.address, port: first.port, resume };
        let surroundings = Surroundings {
            working_directory: Arc::from(working_directory),
            join: self.group.join_files().map_err(StartError::Group)?,
        };

        let deadline = launch.max_time.map(|limit| Instant::now() + limit.to_duration());
        if let Some(setup) = &launch.setup {
            self.set_up(setup, &surroundings, &rendezvous, deadline).await?;
        }
        if self.order().is_some() {
            return Err(Halt::Stopped);
        }
        drop(reserved);
        self.run_ranks(surroundings, &rendezvous, deadline).await
    }

    fn make_group(&mut self) {
        let groups = Groups::detect();
        if let Some(limitation) = groups.limitation() {
            self.journal.note(limitation);
        }
        let data = self.launch.folders.hints.parent().unwrap_or(Path::new("/"));
        let name = cgroup::worker_group_name(data, self.launch.worker);
        self.group = cgroup::create(&groups, &name, &self.launch.limits).unwrap_or_else(|error| {
            self.journal.note(format_args!("not all limits hold: {}", chain(&error)));
            cgroup::open(&groups, &name).unwrap_or_default()
        });
    }

    async fn set_up(
        &mut self,
        setup: &str,
        surroundings: &Surroundings,
        rendezvous: &Rendezvous,
        deadline: Option<Instant>,
    ) -> Result<(), Halt> {
        let Some(first) = self.launch.ranks.first() else { return Ok(()) };
        let env = self.environment(first, rendezvous);
        let arguments = setup_arguments(&surroundings.working_directory, setup);
        let child = surroundings.start_logged(&arguments, &env).map_err(StartError::Setup)?;
        let pid = pid_of(&child);
        self.capture(first, child)?;
        let mut course = Course::new(1, self.launch.grace.to_duration());
        self.supervise(&mut course, &[pid], deadline).await;
        match course.why() {
            None => Ok(()),
            Some(Why::Ordered) => Err(Halt::Stopped),
            Some(Why::TimeLimit) => Err(Halt::Failed(self.time_limit())),
            Some(Why::Failed { exit, .. }) => Err(Halt::Failed(Failure {
                cause: FailureCause::SetupFailed,
                rank: None,
                exit: Some(exit),
                detail: format!("`{setup}` failed; what it printed is in the log of rank {}", first.rank),
            })),
        }
    }

    async fn run_ranks(
        &mut self,
        surroundings: Surroundings,
        rendezvous: &Rendezvous,
        deadline: Option<Instant>,
    ) -> Result<WorkerExit, Halt> {
        let launch = self.launch;
        let mut started = Vec::with_capacity(launch.ranks.len());
        let mut first_env = None;
        for plan in &launch.ranks {
            let rank = plan.rank;
            let env = self.environment(plan, rendezvous);
            let child = surroundings
                .start_logged(&["-c", &launch.command], &env)
                .map_err(|source| StartError::Rank { rank, source })?;
            started.push(RankProcess { rank, pid: pid_of(&child) });
            self.capture(plan, child)?;
            first_env.get_or_insert(env);
        }
        let pids: Vec<i32> = started.iter().map(|process| process.pid).collect();
        let since = Timestamp::now();
        self.running_since = Some(since);
        let env = first_env.unwrap_or_default();
        self.inside = Some(Inside { surroundings, env, children: Arc::clone(&self.children) });
        let running = LauncherPhase::Running { since, ranks: started };
        self.unsaid = Some((running, Instant::now() + WORTH_SAYING));

        let mut course = Course::new(pids.len(), launch.grace.to_duration());
        self.supervise(&mut course, &pids, deadline).await;
        Ok(match course.why() {
            None => WorkerExit::Succeeded,
            Some(Why::Ordered) => WorkerExit::Stopped,
            Some(Why::TimeLimit) => WorkerExit::Failed(self.time_limit()),
            Some(Why::Failed { index, exit }) => WorkerExit::Failed(self.failure(index, exit)),
        })
    }

    fn environment(&self, plan: &RankPlan, rendezvous: &Rendezvous) -> BTreeMap<String, String> {
        rank_environment(self.launch, rendezvous, plan)
    }

    fn capture(&mut self, plan: &RankPlan, mut child: Child) -> Result<(), StartError> {
        let name = rank_log_name(plan.rank);
        let mut open = || {
            let spool = Spool::open(&PathBuf::from(&name))?;
            Capture::new(spool, child.stdout.take(), child.stderr.take(), self.journal.clone(), name.clone())
        };
        let capture = open().map_err(|source| StartError::Log { rank: plan.rank, source })?;
        self.captures.push(tokio::spawn(capture.run(self.finish.subscribe())));
        Ok(())
    }

    /// A worker without a way in still works.
    fn open_sessions(&mut self) {
        let Some(inside) = self.inside.take() else { return };
        match Sessions::open(inside) {
            Ok(sessions) => self.sessions = Some(sessions),
            Err(error) => self.journal.note(format_args!("no sessions in this worker: {error}")),
        }
    }

    fn failure(&self, index: usize, exit: Exit) -> Failure {
        let kills = self.group.oom_kills();
        // A shell in between reports the death of its child as 128 + 9.
        let killed = matches!(exit, Exit::Signal(9) | Exit::Code(137));
        let limit = self.launch.limits.memory.map(|bytes| format!(" of {bytes}")).unwrap_or_default();
        let (cause, detail) = match (kills, killed) {
            (0, _) => (FailureCause::Exit, String::new()),
            (_, true) => (FailureCause::OutOfMemory, format!("the worker used up its memory{limit}")),
            (_, false) => (
                FailureCause::Exit,
                format!(
                    "before, the kernel killed {kills} of its processes: the worker used up its memory{limit}"
                ),
            ),
        };
        let rank = self.launch.ranks.get(index).map(|plan| plan.rank);
        Failure { cause, rank, exit: Some(exit), detail }
    }

    fn time_limit(&self) -> Failure {
        let detail = self.launch.max_time.map(|limit| limit.to_string()).unwrap_or_default();
        Failure { cause: FailureCause::TimeLimit, rank: None, exit: None, detail }
    }

    /// Writes a status and asks the server to look at it; what finds no room on the disk is tried again later.
    fn say(&mut self, phase: LauncherPhase) {
        // First the sessions: whoever reads that the worker runs may connect at once.
        self.open_sessions();
        match self.status.write(&phase) {
            Ok(()) => {
                self.unsaid = None;
                self.status.poke();
            }
            Err(error) => {
                if !self.disk_is_full {
                    self.journal.note(format_args!("cannot write the status, trying on: {error}"));
                }
                self.disk_is_full = true;
                self.unsaid = Some((phase, Instant::now() + STATUS_RETRY));
            }
        }
    }

    /// The grace of an order to stop, if there is one.
    fn order(&self) -> Option<Duration> {
        let text = fs::read(STOP_FILE).ok()?;
        match serde_json::from_slice::<StopOrder>(&text) {
            Ok(order) => Some(order.grace.to_duration()),
            Err(error) => {
                self.journal.note(format_args!("`{STOP_FILE}` is damaged, taking it as an order: {error}"));
                Some(self.launch.grace.to_duration())
            }
        }
    }
}

pub(crate) fn pid_of(child: &Child) -> i32 {
    i32::try_from(child.id()).expect("the kernel's process numbers are positive i32")
}
