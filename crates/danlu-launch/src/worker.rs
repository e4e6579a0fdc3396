//! The life of one worker, from its launch file to its last status.

mod background;
mod confine;
mod distributed_env;
mod failure;
mod setup;
mod supervise;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd};
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::Arc;
use std::time::{Duration, Instant};

use danlu_core::job::{FailureCause, WorkerEnd, WorkerFailure};
use danlu_core::launch::{
    LaunchFile, LauncherState, RankPlan, RankProcess, Rendezvous, STOP_FILE, StopOrder, bind_ranks,
    rank_environment,
};
use danlu_core::log::{SCHEDULER_LOG, rank_log_name};
use danlu_device::cgroup::{self, Groups, WorkerGroup};
use danlu_device::process;
use danlu_types::{Compat, Rank};
use jiff::Timestamp;
use nix::unistd::getpid;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::capture::Capture;
use crate::children::{Children, SignalEvent, Signals};
use crate::error::{LauncherError, StartAborted, StartError, chain};
use crate::launcher_log::LauncherLog;
use crate::port::Port;
use crate::rank::Surroundings;
use crate::reports::ReportWriter;
use crate::sampling::Sampling;
use crate::secrets::Secrets;
use crate::session::{Inside, Sessions};
use crate::spool::Spool;
use crate::status::Status;
use crate::termination::{Termination, TerminationCause};
use crate::user::WorkerUser;
use crate::{binding, folders, rendezvous, secrets, shared_memory, steps};

/// How often a status is tried again that the disk had no room for.
const STATUS_RETRY: Duration = Duration::from_millis(250);
/// A worker that ends within this time is not worth two words: its end says when it ran, and the server has half the work
/// with jobs of a moment.
const WORTH_SAYING: Duration = Duration::from_millis(5);

/// Where somebody watches, they see what the ranks print and can interrupt them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Audience {
    Nobody,
    Terminal,
}

/// Who holds the worker to its limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Confinement {
    Ours,
    /// A cluster's own scheduler: a cgroup of ours would take the ranks out of its.
    Theirs,
}

pub(crate) async fn run(
    launch: LaunchFile,
    audience: Audience,
    confinement: Confinement,
) -> Result<WorkerEnd, LauncherError> {
    // Before the first file.
    let user = WorkerUser::new(&launch);
    let signals = Signals::new(audience).map_err(LauncherError::Runtime)?;
    let launcher_log = LauncherLog::new(&launch.folders.run);
    let own = process::identity(getpid().as_raw()).ok_or_else(|| {
        LauncherError::Runtime(std::io::Error::other("`/proc` does not know this process: is it mounted?"))
    })?;
    let status = Status::new(launch.worker, own, &launch.folders.hints);
    // No hint: for the server nothing has changed yet.
    if let Err(error) = status.write(&LauncherState::Preparing) {
        launcher_log.note(format_args!("cannot write the first status: {error}"));
    }
    let mut worker = Worker {
        launch: &launch,
        user,
        audience,
        confinement,
        looking: None,
        reports: ReportWriter::new(launch.folders.run.clone(), launcher_log.clone()),
        launcher_log,
        signals,
        children: Arc::default(),
        status,
        group: WorkerGroup::default(),
        captures: Vec::new(),
        finish: watch::Sender::new(false),
        inside: None,
        sessions: None,
        sampling: None,
        port: None,
        sourced: BTreeMap::new(),
        secrets: Secrets::default(),
        server: None,
        background: Background::new(own),
        unsaid: None,
        disk_is_full: false,
        running_since: None,
    };
    let mut exit = worker.live().await.unwrap_or_else(WorkerEnd::from);
    worker.clean_up().await;
    worker.diagnose(&mut exit);
    let ended = LauncherState::Ended {
        running_since: worker.running_since,
        at: Timestamp::now(),
        exit: exit.clone(),
    };
    worker.status.write_at_last(&ended, &worker.launcher_log).await.map_err(LauncherError::LastStatus)?;
    worker.status.poke();
    Ok(exit)
}

struct Worker<'a> {
    launch: &'a LaunchFile,
    user: WorkerUser,
    audience: Audience,
    confinement: Confinement,
    /// Somebody said that there is an order, and this disk does not show it yet: when to look again, and until when.
    looking: Option<(Instant, Instant)>,
    launcher_log: LauncherLog,
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
    reports: ReportWriter,
    /// From when the ranks run.
    sampling: Option<Sampling>,
    /// Held for as long as the launcher lives: rank 0 may listen there at any time.
    port: Option<Port>,
    secrets: Secrets,
    /// What the code's own script set for all ranks.
    sourced: BTreeMap<String, String>,
    /// A process that serves the ranks and is none of them.
    server: Option<i32>,
    background: Background,
    /// A status that is still to be written, and when.
    unsaid: Option<(LauncherState, Instant)>,
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
        loop {
            match self.signals.next().await {
                SignalEvent::Order => return,
                SignalEvent::Look if Path::new(STOP_FILE).exists() => return,
                // It is read again before the ranks are started.
                SignalEvent::Look => {}
                SignalEvent::Reap => drop(self.children.reap()),
            }
        }
    }
}

impl Worker<'_> {
    async fn live(&mut self) -> Result<WorkerEnd, StartAborted> {
        if self.order().is_some() {
            return Err(StartAborted::Stopped);
        }
        let launch = self.launch;
        // Before anything that the job decides the size of.
        self.make_group();
        let join = self.group.join_files().map_err(StartError::Group)?;
        let working_directory = folders::prepare(launch, &self.user, &join)?;
        self.secrets = secrets::take(launch, &self.user).map_err(StartError::Secrets)?;
        if let Some(size) = launch.limits.shared_memory
            && let Err(error) = shared_memory::mount_own(size)
        {
            self.launcher_log.note(format_args!("shared memory is not limited to {size}: {error}"));
        }
        let mut orders = Orders { signals: &mut self.signals, children: &self.children };
        let (port, workers) = rendezvous::assemble(launch, &mut orders).await?;
        self.port = port;
        let rendezvous = self.meet(workers, &working_directory)?;
        // When all folders are there, and before anything is started.
        self.close_data()?;
        let surroundings = Surroundings {
            working_directory: Arc::from(working_directory),
            join,
            user: self.user.clone(),
            filter: self.filter(),
            processes: self.processes_of_user(),
        };

        let deadline = launch.max_time.map(|limit| Instant::now() + limit.to_duration());
        self.pre_start(&surroundings, &rendezvous, deadline).await?;
        if let Some(setup) = &launch.setup {
            self.set_up(setup, &surroundings, &rendezvous, deadline).await?;
        }
        if self.order().is_some() {
            return Err(StartAborted::Stopped);
        }
        self.run_ranks(surroundings, &rendezvous, deadline).await
    }

    fn make_group(&mut self) {
        if self.confinement == Confinement::Theirs {
            return;
        }
        let groups = Groups::detect();
        if let Some(limitation) = groups.limitation() {
            self.launcher_log.note(limitation);
        }
        let data = self.launch.folders.hints.parent().unwrap_or(Path::new("/"));
        let name = cgroup::worker_group_name(data, self.launch.worker);
        let closed = self.closed_devices(&groups);
        self.group = cgroup::create(&groups, &name, &self.launch.limits, &closed).unwrap_or_else(|error| {
            self.launcher_log.note(format_args!("not all limits hold: {}", chain(&error)));
            cgroup::open(&groups, &name).unwrap_or_default()
        });
    }

    async fn run_ranks(
        &mut self,
        surroundings: Surroundings,
        rendezvous: &Rendezvous,
        deadline: Option<Instant>,
    ) -> Result<WorkerEnd, StartAborted> {
        let launch = self.launch;
        let mut started = Vec::with_capacity(launch.ranks.len());
        let mut first_env = None;
        self.start_server(&surroundings, rendezvous)?;
        self.remember_what_runs();
        let bindings = bind_ranks(launch, &binding::allowed());
        for (index, plan) in launch.ranks.iter().enumerate() {
            let rank = plan.rank;
            let mut env = self.environment(plan, rendezvous);
            let processors = bindings.as_ref().and_then(|bindings| bindings.get(index));
            if let Some(processors) = processors.filter(|_| !launch.env.contains_key("OMP_NUM_THREADS")) {
                let threads = env.entry("OMP_NUM_THREADS".to_owned()).or_default();
                // More threads than processors wait for each other.
                if threads.parse().is_ok_and(|threads: usize| threads > processors.len()) {
                    *threads = processors.len().to_string();
                }
            }
            let start = || {
                if launch.options.is_compatible_with(Compat::Slurm) {
                    let program = steps::rank_program(launch).display().to_string();
                    surroundings.start_logged(&[&program], &env)
                } else {
                    surroundings.start_logged(&["-c", &launch.command], &env)
                }
            };
            let child =
                binding::bound(processors, start).map_err(|source| StartError::Rank { rank, source })?;
            started.push(RankProcess { rank, pid: pid_of(&child) });
            self.capture(rank_log_name(rank), child, Some(rank))
                .map_err(|source| StartError::Log { rank, source })?;
            first_env.get_or_insert(env);
        }
        let pids: Vec<i32> = started.iter().map(|process| process.pid).collect();
        let since = Timestamp::now();
        self.running_since = Some(since);
        let env = first_env.unwrap_or_default();
        self.inside = Some(Inside {
            surroundings,
            env,
            children: Arc::clone(&self.children),
            reports: self.reports.clone(),
            ranks: launch.ranks.iter().map(|plan| plan.rank).collect(),
            key: None,
        });
        let running = LauncherState::Running { since, ranks: started };
        self.unsaid = Some((running, Instant::now() + WORTH_SAYING));

        self.reports.on_output();
        self.sampling = Some(Sampling::new(launch));
        let mut termination = Termination::new(pids.len(), launch.grace.to_duration());
        self.supervise(&mut termination, &pids, deadline).await;
        Ok(match termination.why() {
            None => WorkerEnd::Succeeded,
            Some(TerminationCause::Ordered) => WorkerEnd::Stopped,
            Some(TerminationCause::TimeLimit) => WorkerEnd::Failed(self.time_limit()),
            Some(TerminationCause::Hang) => WorkerEnd::Failed(WorkerFailure {
                cause: FailureCause::Hang,
                rank: None,
                exit: None,
                detail: self.hang_sentence(),
            }),
            Some(TerminationCause::Failed { index, exit }) => WorkerEnd::Failed(self.failure(index, exit)),
            Some(TerminationCause::BackgroundFailed { pid, exit }) => {
                WorkerEnd::Failed(self.background.failure(pid, exit))
            }
            Some(TerminationCause::ServerFailed { exit }) => WorkerEnd::Failed(WorkerFailure {
                cause: FailureCause::Exit,
                rank: None,
                exit: Some(exit),
                detail: format!("MindSpore's scheduler failed; what it printed is in `{SCHEDULER_LOG}`"),
            }),
        })
    }

    fn environment(&self, plan: &RankPlan, rendezvous: &Rendezvous) -> BTreeMap<String, String> {
        let mut env = rank_environment(self.launch, rendezvous, plan);
        env.extend(self.secrets.variables.clone());
        env.extend(self.sourced.clone());
        if let Some(helper) = &self.launch.folders.python {
            // At the end: a module of the user's with the same name is the one that they mean.
            let before = env.get("PYTHONPATH").cloned().or_else(|| std::env::var("PYTHONPATH").ok());
            let before = before.filter(|path| !path.is_empty()).map(|path| path + ":").unwrap_or_default();
            env.insert("PYTHONPATH".to_owned(), format!("{before}{}", helper.display()));
        }
        env
    }

    fn capture(&mut self, name: String, mut child: Child, rank: Option<Rank>) -> io::Result<()> {
        let spool = Spool::open(&PathBuf::from(&name))?;
        if rank.is_some() {
            let streams = [child.stdout.as_ref().map(AsFd::as_fd), child.stderr.as_ref().map(AsFd::as_fd)];
            self.background.pipes.extend(streams.into_iter().flatten().filter_map(pipe_name));
        }
        let pipes = (child.stdout.take(), child.stderr.take());
        let listener = rank.map(|rank| (self.reports.clone(), rank));
        let echo = match (self.audience, rank) {
            (Audience::Nobody, _) => None,
            (Audience::Terminal, Some(rank)) if self.launch.world_size > 1 => Some(format!("[{rank}] ")),
            (Audience::Terminal, _) => Some(String::new()),
        };
        let mask = self.secrets.mask.clone();
        let capture = Capture::new(spool, pipes, self.launcher_log.clone(), name, listener, echo, mask)?;
        self.captures.push(tokio::spawn(capture.run(self.finish.subscribe())));
        Ok(())
    }

    /// A worker without a way in still works.
    fn open_sessions(&mut self) {
        let Some(inside) = self.inside.take() else { return };
        match self.session_key().and_then(|key| Sessions::open(Inside { key, ..inside })) {
            Ok(sessions) => self.sessions = Some(sessions),
            Err(error) => self.launcher_log.note(format_args!("no sessions in this worker: {error}")),
        }
    }

    /// Writes a status and asks the server to look at it; what finds no room on the disk is tried again later.
    fn say(&mut self, phase: LauncherState) {
        // First the sessions: whoever reads that the worker runs may connect at once.
        self.open_sessions();
        match self.status.write(&phase) {
            Ok(()) => {
                self.unsaid = None;
                self.status.poke();
            }
            Err(error) => {
                if !self.disk_is_full {
                    self.launcher_log.note(format_args!("cannot write the status, trying on: {error}"));
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
                self.launcher_log
                    .note(format_args!("`{STOP_FILE}` is damaged, taking it as an order: {error}"));
                Some(self.launch.grace.to_duration())
            }
        }
    }
}

use background::Background;
pub(crate) use distributed_env::write_whole;

/// Both ends of a pipe have this name in `/proc/PID/fd`.
fn pipe_name(end: BorrowedFd<'_>) -> Option<String> {
    let target = fs::read_link(format!("/proc/self/fd/{}", end.as_raw_fd())).ok()?;
    target.to_str().map(str::to_owned)
}

pub(crate) fn pid_of(child: &Child) -> i32 {
    i32::try_from(child.id()).expect("the kernel's process numbers are positive i32")
}
