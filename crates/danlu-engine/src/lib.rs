//! Where workers run: the [`Engine`] trait and its implementations.
//!
//! An engine knows nothing of queues, users or quotas. All calls are idempotent, and `observe` returns everything the
//! engine knows, so that a restarted server adopts what runs.

#[cfg(feature = "conformance")]
pub mod conformance;
mod files;
mod hints;
pub mod local;
mod pace;
#[cfg(feature = "conformance")]
pub mod sim;
pub mod slurm;

use std::collections::BTreeMap;

use async_trait::async_trait;
use danlu_core::job::{Grant, WorkerEnd, WorkerLocation};
use danlu_core::launch::{LaunchFile, StopOrder};
use danlu_core::node::Readings;
use danlu_core::report::ProgramReport;
use danlu_slurm::QueueWait;
use danlu_types::{FieldError, JobSpec, Node, NodeName, Reason, WorkerId};
use jiff::Timestamp;
use tokio::io::{AsyncRead, AsyncWrite};

pub use pace::pause_after;

#[async_trait]
pub trait Engine: Send + Sync + std::fmt::Debug {
    /// The machines on offer, with their devices.
    async fn inventory(&self) -> Result<Vec<Node>, EngineError>;

    /// Whether others change what is on offer while the server runs, so that the inventory is to be taken again now and then.
    fn inventory_changes(&self) -> bool {
        false
    }

    /// The job as this engine can run it: rounded up to what it hands out, so that plans count what is really taken.
    /// What it cannot hand out at all is refused.
    fn fit(&self, spec: JobSpec) -> Result<JobSpec, FieldError> {
        Ok(spec)
    }

    /// Whether an attempt's workers, for which this was planned, may be put elsewhere. An engine that does so says where they
    /// are ([`Observation::place`]), and keeps away from nodes that their launch files call unsuitable.
    fn places(&self, _planned: &[&Grant]) -> bool {
        false
    }

    /// What keeps the engine from working at all just now, for people.
    fn trouble(&self) -> Option<String> {
        None
    }

    /// Why nodes offer less than people may expect of them, for people: devices whose tool does not answer.
    fn notices(&self) -> BTreeMap<NodeName, String> {
        BTreeMap::new()
    }

    /// How the devices are doing, for the nodes of which that can be told. Cheap to ask often: an answer may be a few
    /// seconds old.
    async fn readings(&self) -> Result<Readings, EngineError> {
        Ok(Readings::new())
    }

    /// Starts a worker's launcher. A worker that was launched before is left alone; one that was released, too, is never run
    /// again: that is refused for good, or its end is observed once more.
    async fn launch(&self, launch: &LaunchFile) -> Result<(), EngineError>;

    /// What is known of the given workers, or of all that were launched and not released. One that cannot be looked at is
    /// [`ObservedState::Unreadable`] and keeps nobody from seeing the others.
    async fn observe(&self, which: Which<'_>) -> Result<Vec<Observation>, EngineError>;

    /// Tells a worker's launcher to end it. A worker that is gone already is no error.
    async fn signal(&self, worker: WorkerId, order: &StopOrder) -> Result<(), EngineError>;

    /// Ends a worker whose launcher should have done so and did not, because it hangs: kills both, and says `exit` of the
    /// worker from then on. Where a cluster does the killing, that is ordered here, and `exit` is said once the cluster says that
    /// nothing of the worker runs any more. A worker that has ended is left alone. False where nothing was done.
    async fn kill(&self, _worker: WorkerId, _exit: &WorkerEnd) -> Result<bool, EngineError> {
        Ok(false)
    }

    /// Forgets an ended worker and frees what it held outside its run folder, killing whatever is left of it.
    async fn release(&self, worker: WorkerId) -> Result<(), EngineError>;

    /// A byte stream to the worker's launcher, speaking `danlu_types::session`.
    async fn connect(&self, worker: WorkerId) -> Result<Box<dyn WorkerStream>, EngineError>;

    /// Waits until workers may have changed, and returns which: hints, which may be lost or doubled.
    async fn changed(&self) -> Vec<WorkerId>;
}

pub trait WorkerStream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> WorkerStream for T {}

#[derive(Debug, Clone, Copy)]
pub enum Which<'a> {
    All,
    These(&'a [WorkerId]),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observation {
    pub worker: WorkerId,
    pub seen: ObservedState,
    /// What people should know beyond that: what a worker that is preparing waits for, or that it is suspended.
    pub remark: Option<Reason>,
    /// Where it is, once that is known, with engines that place workers themselves.
    pub place: Option<WorkerLocation>,
    /// That it waits in a queue of the engine's own, and for what.
    pub wait: Option<QueueWait>,
    /// Why nobody looks after it although it lives, such as a launcher that somebody has stopped.
    pub trouble: Option<String>,
}

impl Observation {
    pub fn new(worker: WorkerId, seen: ObservedState) -> Self {
        Observation { worker, seen, remark: None, place: None, wait: None, trouble: None }
    }

    /// Of a worker at which one cannot look: it alone is not seen, and the others are.
    pub(crate) fn unreadable(worker: WorkerId, error: &std::io::Error) -> Self {
        Observation::new(worker, ObservedState::Unreadable { error: error.to_string() })
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ObservedState {
    /// Never launched here, or released.
    Unknown,
    /// What is known of it cannot be read now. Nothing follows from that.
    Unreadable {
        error: String,
    },
    Preparing,
    Running {
        since: Timestamp,
        /// What its program has said of itself.
        report: Option<Box<ProgramReport>>,
    },
    Ended {
        running_since: Option<Timestamp>,
        at: Timestamp,
        exit: WorkerEnd,
    },
}

#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The engine's host lacks something now; trying again may help.
    #[error("could not {doing} worker {worker}")]
    Worker {
        doing: &'static str,
        worker: WorkerId,
        #[source]
        source: std::io::Error,
    },
    #[error("could not {doing}")]
    Host {
        doing: &'static str,
        #[source]
        source: std::io::Error,
    },
    /// One of the cluster's own programs failed or refused.
    #[error("could not {doing}: `{program}` said: {said}")]
    Cluster { doing: &'static str, program: &'static str, said: String, answer: ClusterAnswer },
    #[error("worker {worker} has no launcher to talk to: {why}")]
    NotReachable { worker: WorkerId, why: &'static str },
}

/// What a cluster's program that failed means for the same question, asked again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClusterAnswer {
    /// The cluster could not be asked: it is asked again, and nothing else changes.
    Away,
    /// It refuses now. It may agree later, or to the same job on other nodes.
    NotNow,
    /// It would refuse this job always.
    Never,
}

impl EngineError {
    /// True where a file could not be written for want of room.
    pub fn is_full_disk(&self) -> bool {
        use std::io::ErrorKind::{QuotaExceeded, StorageFull};
        match self {
            EngineError::Worker { source, .. } | EngineError::Host { source, .. } => {
                matches!(source.kind(), StorageFull | QuotaExceeded)
            }
            EngineError::Cluster { .. } | EngineError::NotReachable { .. } => false,
        }
    }

    /// Why the cluster does not take a job now, where it might later or elsewhere.
    pub fn not_now(&self) -> Option<String> {
        match self {
            EngineError::Cluster { answer: ClusterAnswer::NotNow, .. } => Some(self.to_string()),
            _ => None,
        }
    }

    /// True where the next pass may well succeed, so the job is not to be failed for it: a disk that is full or
    /// read-only, a program that is being replaced, a machine out of processes or descriptors. Jobs that wait for such
    /// a thing to be mended lose time; jobs failed for it would empty the whole queue.
    pub fn is_transient(&self) -> bool {
        use nix::errno::Errno;
        use std::io::ErrorKind;
        match self {
            EngineError::Worker { source, .. } | EngineError::Host { source, .. } => {
                let errno = source.raw_os_error().map(Errno::from_raw);
                matches!(errno, Some(Errno::EMFILE | Errno::ENFILE | Errno::EIO))
                    || matches!(
                        source.kind(),
                        ErrorKind::StorageFull
                            | ErrorKind::ReadOnlyFilesystem
                            | ErrorKind::PermissionDenied
                            | ErrorKind::NotFound
                            | ErrorKind::ResourceBusy
                            | ErrorKind::WouldBlock
                            | ErrorKind::OutOfMemory
                            | ErrorKind::TimedOut
                            | ErrorKind::QuotaExceeded
                    )
            }
            EngineError::Cluster { answer, .. } => *answer == ClusterAnswer::Away,
            EngineError::NotReachable { .. } => false,
        }
    }
}
