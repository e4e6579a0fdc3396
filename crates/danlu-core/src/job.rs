//! A job and where it is in its life.
//!
//! Only a live [`Attempt`] carries grants, and only [`JobLifecycle::Active`] carries a live attempt: a job that waits, is held or
//! has ended cannot hold a device, by construction. The state that people see is derived, never stored.

mod failure;

use std::sync::Arc;

use danlu_types::api::{JobOutcome, JobState};
use danlu_types::device::WHOLE_DEVICE;
use danlu_types::{AttemptNumber, Bytes, Cpus, JobId, JobSpec, NodeName, Span, WorkerId, WorkerIndex};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::approval::ApprovalNeed;
use crate::transition::DANLU;
pub use failure::{FailureCause, ProcessExit, WorkerFailure};

/// A job: what was asked for, and what has become of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    pub id: JobId,
    pub owner: String,
    pub spec: Arc<JobSpec>,
    pub submitted_at: Timestamp,
    /// Grows by one with every transition; a write that names an older one is stale.
    pub generation: u64,
    pub life: JobLifecycle,
    /// Attempts that have ended, oldest first.
    pub past: Vec<PastAttempt>,
}

/// Where a job is in its life, with exactly what is true there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobLifecycle {
    Held {
        since: Timestamp,
        by: String,
        /// Why somebody has to approve it before it may start.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        approval: Option<ApprovalNeed>,
    },
    Queued {
        since: Timestamp,
        why: QueueCause,
    },
    Active(Attempt),
    Ended {
        at: Timestamp,
        outcome: JobEnd,
    },
}

/// How a job came to be queued.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QueueCause {
    Submitted,
    Released,
    Approved {
        by: String,
    },
    Preempted {
        attempt: AttemptNumber,
        for_job: JobId,
    },
    /// It had to leave a node that is being drained.
    Drained {
        attempt: AttemptNumber,
        node: NodeName,
    },
    /// An attempt failed and another will be made, not before the given time.
    Retry {
        attempt: AttemptNumber,
        not_before: Timestamp,
    },
    /// The engine did not start an attempt, or put it back into its own queue. That costs no retry.
    Requeued {
        attempt: AttemptNumber,
        reason: String,
        not_before: Timestamp,
    },
}

/// The attempt that is under way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    pub number: AttemptNumber,
    pub placed_at: Timestamp,
    pub workers: Vec<Worker>,
    /// When the program last said that it had saved its work; what it did before is not lost with the attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub saved_at: Option<Timestamp>,
    /// Set once the attempt is to end; written by the transition function only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<Stop>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Worker {
    pub grant: Grant,
    pub state: WorkerLifecycle,
    /// That it is where its grant says is the word of a cluster that places workers itself. Until that is heard, the grant
    /// of such a worker is only a plan.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub settled: bool,
    /// That it seems to hang, as its launcher says and as long as that is so. Here because history tells it once,
    /// whoever looks and however often.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hangs: bool,
}

/// Which devices of which node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerLocation {
    pub node: NodeName,
    /// Indices of the node's devices, ascending.
    pub devices: Vec<u32>,
}

/// What a worker holds of a node while its attempt is live.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    pub node: NodeName,
    /// Indices of the node's devices, ascending.
    pub devices: Vec<u32>,
    /// What it holds of each of them, in thousandths.
    #[serde(default = "whole_device", skip_serializing_if = "is_whole_device")]
    pub share: u32,
    pub cpus: Cpus,
    pub memory: Bytes,
}

fn whole_device() -> u32 {
    WHOLE_DEVICE
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_whole_device(share: &u32) -> bool {
    *share == WHOLE_DEVICE
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkerLifecycle {
    /// Decided, and perhaps being launched: launching is idempotent, so the difference is not kept.
    Placed,
    Running {
        since: Timestamp,
    },
    /// `since`: when it began to run, if it did.
    Ended {
        since: Option<Timestamp>,
        at: Timestamp,
        exit: WorkerEnd,
    },
}

/// How a worker ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkerEnd {
    Succeeded,
    /// Ended because its launcher was told to end it.
    Stopped,
    /// The engine took its node away and wants it to start again: it was preempted or requeued there.
    Requeued {
        reason: String,
    },
    Failed(WorkerFailure),
}

/// An attempt that is to end, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stop {
    pub since: Timestamp,
    pub why: StopCause,
    pub grace: Span,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopCause {
    ByUser {
        who: String,
    },
    Preempted {
        for_job: JobId,
    },
    Drained {
        node: NodeName,
    },
    /// The engine does not start it, or has put it back into its own queue.
    Requeued {
        reason: String,
    },
    /// One worker failed: the gang cannot go on without it.
    WorkerFailed {
        worker: WorkerIndex,
    },
}

/// An attempt that has ended. It holds nothing; grants are kept as history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PastAttempt {
    pub attempt: Attempt,
    pub ended_at: Timestamp,
    pub verdict: AttemptEnd,
}

/// How an attempt ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttemptEnd {
    Succeeded,
    Stopped {
        who: String,
    },
    Preempted {
        for_job: JobId,
    },
    Drained {
        node: NodeName,
    },
    /// `times`: how many attempts in a row have now ended so before any worker ran.
    Requeued {
        reason: String,
        times: u32,
    },
    Failed {
        worker: WorkerIndex,
        failure: WorkerFailure,
    },
}

/// How a job ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobEnd {
    Succeeded,
    Stopped { who: String },
    Failed { attempt: AttemptNumber, worker: WorkerIndex, failure: WorkerFailure },
}

impl Job {
    pub fn submitted(id: JobId, owner: String, spec: Arc<JobSpec>, at: Timestamp) -> Self {
        let life = JobLifecycle::Queued { since: at, why: QueueCause::Submitted };
        Job { id, owner, spec, submitted_at: at, generation: 1, life, past: Vec::new() }
    }

    /// The same, held until somebody approves it.
    #[must_use]
    pub fn waiting_for_approval(self, need: ApprovalNeed) -> Self {
        let life =
            JobLifecycle::Held { since: self.submitted_at, by: DANLU.to_owned(), approval: Some(need) };
        Job { life, ..self }
    }

    pub fn state(&self) -> JobState {
        match &self.life {
            JobLifecycle::Held { .. } => JobState::Held,
            JobLifecycle::Queued { .. } => JobState::Queued,
            JobLifecycle::Active(attempt) => attempt.state(),
            JobLifecycle::Ended { .. } => JobState::Ended,
        }
    }

    pub fn outcome(&self) -> Option<JobOutcome> {
        match &self.life {
            JobLifecycle::Ended { outcome, .. } => Some(outcome.word()),
            _ => None,
        }
    }

    pub fn ended_at(&self) -> Option<Timestamp> {
        match &self.life {
            JobLifecycle::Ended { at, .. } => Some(*at),
            _ => None,
        }
    }

    /// The live attempt, if there is one. Whoever wants to know what a job holds asks this.
    pub fn active(&self) -> Option<&Attempt> {
        match &self.life {
            JobLifecycle::Active(attempt) => Some(attempt),
            _ => None,
        }
    }

    /// The number that the next attempt will have.
    pub fn next_attempt(&self) -> AttemptNumber {
        let last =
            self.active().map(|attempt| attempt.number).or(self.past.last().map(|past| past.attempt.number));
        AttemptNumber(last.map_or(1, |number| number.0 + 1))
    }

    /// How many attempts failed; preemptions, drained nodes and what the engine requeued do not count.
    pub fn failures(&self) -> u32 {
        let failed = self.past.iter().filter(|past| matches!(past.verdict, AttemptEnd::Failed { .. }));
        u32::try_from(failed.count()).unwrap_or(u32::MAX)
    }

    /// Larger priority first, then earlier submission. Nothing that happens to a job changes it.
    pub fn place(&self) -> (std::cmp::Reverse<u8>, JobId) {
        (std::cmp::Reverse(self.spec.priority()), self.id)
    }

    pub fn worker_id(&self, attempt: AttemptNumber, worker: WorkerIndex) -> WorkerId {
        WorkerId { job: self.id, attempt, worker }
    }
}

impl Worker {
    /// As planned, before anything is known of it.
    pub fn placed(grant: Grant) -> Self {
        Worker { grant, state: WorkerLifecycle::Placed, settled: false, hangs: false }
    }
}

impl Attempt {
    pub fn state(&self) -> JobState {
        let all_begun = self.workers.iter().all(|worker| !matches!(worker.state, WorkerLifecycle::Placed));
        match (&self.stop, all_begun) {
            (Some(_), _) => JobState::Stopping,
            (None, true) => JobState::Running,
            (None, false) => JobState::Starting,
        }
    }

    /// What its workers hold, in their order.
    pub fn grants(&self) -> Vec<&Grant> {
        self.workers.iter().map(|worker| &worker.grant).collect()
    }

    /// How many devices each worker holds: the same for all, whichever of the job's alternatives it was.
    pub fn devices_per_worker(&self) -> u32 {
        let devices = self.workers.first().map_or(0, |worker| worker.grant.devices.len());
        u32::try_from(devices).unwrap_or(u32::MAX)
    }

    /// When the last worker began to run, once all did.
    pub fn running_since(&self) -> Option<Timestamp> {
        let mut latest = None;
        for worker in &self.workers {
            match worker.state {
                WorkerLifecycle::Placed => return None,
                WorkerLifecycle::Running { since } => latest = latest.max(Some(since)),
                WorkerLifecycle::Ended { since, .. } => latest = latest.max(since),
            }
        }
        latest
    }

    pub fn has_ended(&self) -> bool {
        self.workers.iter().all(|worker| matches!(worker.state, WorkerLifecycle::Ended { .. }))
    }
}

impl JobEnd {
    pub fn word(&self) -> JobOutcome {
        match self {
            JobEnd::Succeeded => JobOutcome::Succeeded,
            JobEnd::Stopped { .. } => JobOutcome::Stopped,
            JobEnd::Failed { .. } => JobOutcome::Failed,
        }
    }
}
