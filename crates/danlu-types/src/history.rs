//! What became of jobs, for replaying it: the lines of `danlu history export`.
//!
//! One JSON value on each line: first [`Header`], then one [`JobRecord`] for each job in any order. Commands,
//! parameters and environments are left out: they may hold secrets, and a replay does not need them.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::api::{AttemptView, JobOutcome, JobView, WorkerPhase};
use crate::{JobId, JobSpec, Node};

/// The format that this version writes and reads.
pub const FORMAT: u32 = 1;

/// The first line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    pub danlu_history: u32,
    pub exported_at: Timestamp,
    pub nodes: Vec<Node>,
}

/// A job: what was asked for, and when it had its devices.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobRecord {
    pub id: JobId,
    pub owner: String,
    pub submitted_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<JobOutcome>,
    #[serde(default)]
    pub attempts: Vec<AttemptRecord>,
    pub spec: JobSpec,
}

/// One try at running it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptRecord {
    /// When it got its devices.
    pub placed_at: Timestamp,
    /// When all its workers ran, if they did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub running_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// How it ended, as the API's code says: `succeeded`, `preempted`, `exit`, `node_lost`, …
    pub reason: String,
}

impl Header {
    pub fn new(exported_at: Timestamp, nodes: Vec<Node>) -> Self {
        Header { danlu_history: FORMAT, exported_at, nodes }
    }
}

impl From<JobView> for JobRecord {
    fn from(job: JobView) -> Self {
        let spec = JobSpec {
            command: String::new(),
            parameters: Vec::new(),
            env: std::collections::BTreeMap::new(),
            setup: None,
            code: None,
            working_directory: None,
            ..job.spec
        };
        JobRecord {
            id: job.id,
            owner: job.owner,
            submitted_at: job.submitted_at,
            ended_at: job.ended_at,
            outcome: job.outcome,
            attempts: job.attempts.iter().map(AttemptRecord::from).collect(),
            spec,
        }
    }
}

impl From<&AttemptView> for AttemptRecord {
    fn from(attempt: &AttemptView) -> Self {
        let began = attempt.workers.iter().all(|worker| worker.phase != WorkerPhase::Starting);
        let last = attempt.workers.iter().map(|worker| worker.running_at).max().flatten();
        AttemptRecord {
            placed_at: attempt.placed_at,
            running_at: last.filter(|_| began),
            ended_at: attempt.ended_at,
            reason: attempt.reason.word().to_owned(),
        }
    }
}
