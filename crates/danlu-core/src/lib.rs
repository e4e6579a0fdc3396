//! What may happen: the life of a job, the files its workers are launched with, the form of its logs.
//!
//! Everything here is a plain function of values: no clock, no randomness, no input or output. Time and ids are
//! parameters, so the simulator runs this very code under virtual time.

pub mod admission;
mod approval;
pub mod audit;
pub mod authorization;
pub mod diagnosis;
mod event;
pub mod job;
pub mod launch;
pub mod log;
pub mod node;
pub mod quota;
pub mod report;
pub mod sample;
pub mod srun;
pub mod ssh_key;
pub mod synced_files;
pub mod transition;
pub mod view;

pub use approval::ApprovalNeed;
pub use job::{
    Attempt, FailureCause, Grant, Job, JobEnd, JobLifecycle, PastAttempt, ProcessExit, Stop, StopCause,
    Worker, WorkerEnd, WorkerLifecycle,
};
pub use node::NodeOverride;
pub use transition::{HistoryEvent, Transition, TransitionError, Trigger, apply};
