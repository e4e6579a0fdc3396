//! What is written into history.

use danlu_types::AttemptNumber;
use serde::{Deserialize, Serialize};

/// A line of history, of a job or a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryEvent {
    pub kind: EventKind,
    pub attempt: Option<AttemptNumber>,
    pub actor: String,
    pub message: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    JobSubmitted,
    JobHeld,
    JobReleased,
    JobChanged,
    StopRequested,
    AttemptPreempted,
    AttemptPlaced,
    AttemptRunning,
    WorkerMoved,
    WorkerHangs,
    WorkerGoesOn,
    WorkerEnded,
    AttemptEnded,
    JobQueuedAgain,
    JobEnded,
    NodeCordoned,
    NodeUncordoned,
    DeviceTakenOut,
    DeviceRestored,
}

impl EventKind {
    pub fn as_str(self) -> &'static str {
        match self {
            EventKind::JobSubmitted => "job_submitted",
            EventKind::JobHeld => "job_held",
            EventKind::JobReleased => "job_released",
            EventKind::JobChanged => "job_changed",
            EventKind::StopRequested => "stop_requested",
            EventKind::AttemptPreempted => "attempt_preempted",
            EventKind::AttemptPlaced => "attempt_placed",
            EventKind::AttemptRunning => "attempt_running",
            EventKind::WorkerMoved => "worker_moved",
            EventKind::WorkerHangs => "worker_hangs",
            EventKind::WorkerGoesOn => "worker_goes_on",
            EventKind::WorkerEnded => "worker_ended",
            EventKind::AttemptEnded => "attempt_ended",
            EventKind::JobQueuedAgain => "job_queued_again",
            EventKind::JobEnded => "job_ended",
            EventKind::NodeCordoned => "node_cordoned",
            EventKind::NodeUncordoned => "node_uncordoned",
            EventKind::DeviceTakenOut => "device_taken_out",
            EventKind::DeviceRestored => "device_restored",
        }
    }
}
