//! What is written into history.

use danlu_types::AttemptNumber;
use serde::{Deserialize, Serialize};

/// A line of history, of a job or a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    pub kind: RecordKind,
    pub attempt: Option<AttemptNumber>,
    pub actor: String,
    pub message: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecordKind {
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

impl RecordKind {
    pub fn as_str(self) -> &'static str {
        match self {
            RecordKind::JobSubmitted => "job_submitted",
            RecordKind::JobHeld => "job_held",
            RecordKind::JobReleased => "job_released",
            RecordKind::JobChanged => "job_changed",
            RecordKind::StopRequested => "stop_requested",
            RecordKind::AttemptPreempted => "attempt_preempted",
            RecordKind::AttemptPlaced => "attempt_placed",
            RecordKind::AttemptRunning => "attempt_running",
            RecordKind::WorkerMoved => "worker_moved",
            RecordKind::WorkerHangs => "worker_hangs",
            RecordKind::WorkerGoesOn => "worker_goes_on",
            RecordKind::WorkerEnded => "worker_ended",
            RecordKind::AttemptEnded => "attempt_ended",
            RecordKind::JobQueuedAgain => "job_queued_again",
            RecordKind::JobEnded => "job_ended",
            RecordKind::NodeCordoned => "node_cordoned",
            RecordKind::NodeUncordoned => "node_uncordoned",
            RecordKind::DeviceTakenOut => "device_taken_out",
            RecordKind::DeviceRestored => "device_restored",
        }
    }
}
