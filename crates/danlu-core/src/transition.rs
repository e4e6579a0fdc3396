//! The one function that changes a job's life.
//!
//! [`apply`] is total: every event in every state is taken, ignored as stale, or refused with a sentence. Nothing else
//! writes [`Job::life`]. What follows from a change (launching, signalling, cleaning up) is not said here: reconcilers
//! read it off the new state, so a crash between deciding and acting loses nothing.

mod change;
mod retry;
mod workers;

use std::sync::Arc;

use danlu_types::api::JobState;
use danlu_types::{AttemptNumber, JobId, JobSpec, NodeName, Span, WorkerIndex};
use jiff::Timestamp;

use crate::approval::ApprovalNeed;
pub use crate::event::{EventKind, HistoryEvent};
use crate::job::{
    Attempt, Grant, Job, JobEnd, JobLifecycle, QueueCause, Stop, StopCause, Worker, WorkerEnd,
    WorkerLifecycle, WorkerLocation,
};
use workers::{on_saved, on_worker_ended, on_worker_hangs, on_worker_moved, on_worker_running};

/// Something that happened to a job, or that somebody wants of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trigger {
    /// Keep it from starting.
    Hold {
        by: String,
    },
    Release {
        by: String,
    },
    /// Somebody who may lets it start although it asks for much.
    Approve {
        by: String,
        /// The generation of the job that they looked at.
        seen: u64,
    },
    /// End it. A second stop may shorten the grace.
    Stop {
        by: String,
        grace: Option<Span>,
    },
    /// Replace its spec while it waits; it keeps its queue position.
    Change {
        by: String,
        spec: Arc<JobSpec>,
        /// Why the new spec needs approval, if it does.
        approval: Option<ApprovalNeed>,
        /// The generation of the job that the new spec was made from.
        seen: u64,
    },
    /// Take its devices for another job; it keeps its place.
    Preempt {
        for_job: JobId,
    },
    /// A person wants this node empty; the job keeps its place and goes elsewhere.
    Drain {
        node: NodeName,
        by: String,
    },
    /// The engine does not start this attempt: its devices are given back, and it is planned again.
    Requeue {
        attempt: AttemptNumber,
        reason: String,
    },
    /// The scheduler gives it devices: one grant for each worker.
    Place {
        grants: Vec<Grant>,
    },
    /// A worker is where a cluster has put it that places workers itself (`settled`); or, its place having gone to such a
    /// one, is planned for another.
    WorkerMoved {
        attempt: AttemptNumber,
        worker: WorkerIndex,
        to: WorkerLocation,
        settled: bool,
    },
    WorkerRunning {
        attempt: AttemptNumber,
        worker: WorkerIndex,
    },
    /// A worker seems to hang, and how that shows; or no longer does.
    WorkerHangs {
        attempt: AttemptNumber,
        worker: WorkerIndex,
        hang: Option<String>,
    },
    /// The program has saved its work.
    Saved {
        attempt: AttemptNumber,
    },
    WorkerEnded {
        attempt: AttemptNumber,
        worker: WorkerIndex,
        exit: WorkerEnd,
    },
}

/// What became of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transition {
    /// The job's new value, and what to write into its history.
    Next {
        job: Box<Job>,
        records: Vec<HistoryEvent>,
    },
    /// Old news: it is true already, or is about an attempt that is over.
    Ignore,
    Refuse(TransitionError),
}

/// Why a wish cannot be granted in this state.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TransitionError {
    #[error("job {job} has already ended")]
    AlreadyEnded { job: JobId },
    #[error("job {job} has been given its devices already; stop it instead")]
    AlreadyPlaced { job: JobId },
    #[error("job {job} is not held")]
    NotHeld { job: JobId },
    #[error("job {job} waits for approval, not to be released; an owner of its workspace can approve it")]
    NeedsApproval { job: JobId },
    #[error("job {job} does not wait for approval")]
    NeedsNoApproval { job: JobId },
    #[error("job {job} changed since you looked")]
    ChangedSinceSeen { job: JobId },
    #[error("job {job} is not waiting for devices")]
    NotQueued { job: JobId },
    #[error("job {job} is {}, and only queued and held jobs can be changed; `danlu clone {job} --set …` submits a changed copy", .state.as_str())]
    NotWaiting { job: JobId, state: JobState },
    #[error("job {job} has changed in the meantime; try again")]
    ChangedMeanwhile { job: JobId },
    #[error("job {job} asked for {asked} workers, but was offered {offered}")]
    WrongGang { job: JobId, asked: u32, offered: usize },
}

/// The name that stands in history where no person acted.
pub const DANLU: &str = "danlu";

/// Who it was when a launcher was told to stop by somebody else than us.
pub const ADMINISTRATOR: &str = "the machine's administrator";

/// What `event`, at the time `at`, makes of `job`.
pub fn apply(job: &Job, event: Trigger, at: Timestamp) -> Transition {
    match event {
        Trigger::Hold { by } => on_hold(job, by, at),
        Trigger::Release { by } => on_release(job, &by, at),
        Trigger::Approve { by, seen } => on_approve(job, by, seen, at),
        Trigger::Stop { by, grace } => on_stop(job, by, grace, at),
        Trigger::Change { by, spec, approval, seen } => change::on_change(job, &by, spec, approval, seen, at),
        Trigger::Preempt { for_job } => on_preempt(job, for_job, at),
        Trigger::Drain { node, by } => on_drain(job, node, &by, at),
        Trigger::Requeue { attempt, reason } => on_requeue(job, attempt, reason, at),
        Trigger::Place { grants } => on_place(job, grants, at),
        Trigger::WorkerMoved { attempt, worker, to, settled } => {
            on_worker_moved(job, attempt, worker, to, settled)
        }
        Trigger::WorkerRunning { attempt, worker } => on_worker_running(job, attempt, worker, at),
        Trigger::WorkerHangs { attempt, worker, hang } => on_worker_hangs(job, attempt, worker, hang),
        Trigger::Saved { attempt } => on_saved(job, attempt, at),
        Trigger::WorkerEnded { attempt, worker, exit } => on_worker_ended(job, attempt, worker, exit, at),
    }
}

/// The record of a submission, which is no transition: before it there is no job.
pub fn submission_record(job: &Job) -> HistoryEvent {
    HistoryEvent {
        kind: EventKind::JobSubmitted,
        attempt: None,
        actor: job.owner.clone(),
        message: format!("submitted `{}`", job.spec.name),
    }
}

fn on_hold(job: &Job, by: String, at: Timestamp) -> Transition {
    match &job.life {
        JobLifecycle::Held { .. } => Transition::Ignore,
        JobLifecycle::Queued { .. } => {
            let records = vec![record(EventKind::JobHeld, None, &by, "held".to_owned())];
            next(job, JobLifecycle::Held { since: at, by, approval: None }, records)
        }
        JobLifecycle::Active(_) => Transition::Refuse(TransitionError::AlreadyPlaced { job: job.id }),
        JobLifecycle::Ended { .. } => Transition::Refuse(TransitionError::AlreadyEnded { job: job.id }),
    }
}

fn on_release(job: &Job, by: &str, at: Timestamp) -> Transition {
    match &job.life {
        JobLifecycle::Held { approval: Some(_), .. } => {
            Transition::Refuse(TransitionError::NeedsApproval { job: job.id })
        }
        JobLifecycle::Held { approval: None, .. } => {
            let records = vec![record(EventKind::JobReleased, None, by, "released".to_owned())];
            next(job, JobLifecycle::Queued { since: at, why: QueueCause::Released }, records)
        }
        JobLifecycle::Queued { .. } | JobLifecycle::Active(_) => {
            Transition::Refuse(TransitionError::NotHeld { job: job.id })
        }
        JobLifecycle::Ended { .. } => Transition::Refuse(TransitionError::AlreadyEnded { job: job.id }),
    }
}

/// What is approved is what was looked at: its owner may have made it larger since.
fn on_approve(job: &Job, by: String, seen: u64, at: Timestamp) -> Transition {
    match &job.life {
        JobLifecycle::Held { approval: Some(_), .. } if job.generation != seen => {
            Transition::Refuse(TransitionError::ChangedSinceSeen { job: job.id })
        }
        JobLifecycle::Held { approval: Some(_), .. } => {
            let records = vec![record(EventKind::JobReleased, None, &by, "approved".to_owned())];
            next(job, JobLifecycle::Queued { since: at, why: QueueCause::Approved { by } }, records)
        }
        JobLifecycle::Held { approval: None, .. } | JobLifecycle::Queued { .. } | JobLifecycle::Active(_) => {
            Transition::Refuse(TransitionError::NeedsNoApproval { job: job.id })
        }
        JobLifecycle::Ended { .. } => Transition::Refuse(TransitionError::AlreadyEnded { job: job.id }),
    }
}

fn on_stop(job: &Job, by: String, grace: Option<Span>, at: Timestamp) -> Transition {
    match &job.life {
        JobLifecycle::Held { .. } | JobLifecycle::Queued { .. } => {
            let asked = record(EventKind::StopRequested, None, &by, "stop requested".to_owned());
            let outcome = JobEnd::Stopped { who: by };
            let ended = record(EventKind::JobEnded, None, DANLU, "stopped before it started".to_owned());
            next(job, JobLifecycle::Ended { at, outcome }, vec![asked, ended])
        }
        JobLifecycle::Active(attempt) => {
            // A later stop never lengthens the grace: the launcher may have begun to count it.
            let longest = attempt.stop.as_ref().map_or(Span { milliseconds: u64::MAX }, |stop| stop.grace);
            let grace = grace.unwrap_or(job.spec.grace).min(longest);
            let already = |stop: &Stop| matches!(stop.why, StopCause::ByUser { .. }) && stop.grace <= grace;
            if attempt.stop.as_ref().is_some_and(already) {
                return Transition::Ignore;
            }
            // A person's stop replaces any other reason: after it there is no retry and no requeueing.
            let since = attempt.stop.as_ref().map_or(at, |stop| stop.since);
            let message = format!("stop requested, with {grace} of grace");
            let records = vec![record(EventKind::StopRequested, Some(attempt.number), &by, message)];
            let stop = Some(Stop { since, why: StopCause::ByUser { who: by }, grace });
            next(job, JobLifecycle::Active(Attempt { stop, ..attempt.clone() }), records)
        }
        JobLifecycle::Ended { .. } => Transition::Refuse(TransitionError::AlreadyEnded { job: job.id }),
    }
}

fn on_preempt(job: &Job, for_job: JobId, at: Timestamp) -> Transition {
    match &job.life {
        JobLifecycle::Active(attempt) if attempt.stop.is_none() => {
            let message = format!("preempted for job {for_job}");
            let records = vec![record(EventKind::AttemptPreempted, Some(attempt.number), DANLU, message)];
            let stop = Some(Stop { since: at, why: StopCause::Preempted { for_job }, grace: job.spec.grace });
            next(job, JobLifecycle::Active(Attempt { stop, ..attempt.clone() }), records)
        }
        // It is giving its devices back already, or holds none.
        JobLifecycle::Active(_)
        | JobLifecycle::Held { .. }
        | JobLifecycle::Queued { .. }
        | JobLifecycle::Ended { .. } => Transition::Ignore,
    }
}

fn on_drain(job: &Job, node: NodeName, by: &str, at: Timestamp) -> Transition {
    match &job.life {
        JobLifecycle::Active(attempt)
            if attempt.stop.is_none() && attempt.workers.iter().any(|worker| worker.grant.node == node) =>
        {
            let message = format!("has to leave {node}, which is being drained");
            let records = vec![record(EventKind::AttemptPreempted, Some(attempt.number), by, message)];
            let stop = Some(Stop { since: at, why: StopCause::Drained { node }, grace: job.spec.grace });
            next(job, JobLifecycle::Active(Attempt { stop, ..attempt.clone() }), records)
        }
        JobLifecycle::Active(_)
        | JobLifecycle::Held { .. }
        | JobLifecycle::Queued { .. }
        | JobLifecycle::Ended { .. } => Transition::Ignore,
    }
}

/// Only what has not begun: a worker that runs has what the engine was asked for.
fn on_requeue(job: &Job, number: AttemptNumber, reason: String, at: Timestamp) -> Transition {
    let begun = |worker: &Worker| worker.state != WorkerLifecycle::Placed;
    match live_attempt(job, number) {
        Some(attempt) if attempt.stop.is_none() && !attempt.workers.iter().any(begun) => {
            let records = vec![record(EventKind::AttemptPreempted, Some(number), DANLU, reason.clone())];
            let stop = Some(Stop { since: at, why: StopCause::Requeued { reason }, grace: Span::default() });
            next(job, JobLifecycle::Active(Attempt { stop, ..attempt.clone() }), records)
        }
        _ => Transition::Ignore,
    }
}

fn on_place(job: &Job, grants: Vec<Grant>, at: Timestamp) -> Transition {
    match &job.life {
        JobLifecycle::Queued { .. } => {
            if grants.len() != job.spec.workers as usize {
                let refusal = TransitionError::WrongGang {
                    job: job.id,
                    asked: job.spec.workers,
                    offered: grants.len(),
                };
                return Transition::Refuse(refusal);
            }
            let number = job.next_attempt();
            let message = format!("attempt {number} placed on {}", places(&grants));
            let workers = grants.into_iter().map(Worker::placed).collect();
            let attempt = Attempt { number, placed_at: at, workers, saved_at: None, stop: None };
            let records = vec![record(EventKind::AttemptPlaced, Some(number), DANLU, message)];
            next(job, JobLifecycle::Active(attempt), records)
        }
        JobLifecycle::Active(_) => Transition::Refuse(TransitionError::AlreadyPlaced { job: job.id }),
        JobLifecycle::Held { .. } => Transition::Refuse(TransitionError::NotQueued { job: job.id }),
        JobLifecycle::Ended { .. } => Transition::Refuse(TransitionError::AlreadyEnded { job: job.id }),
    }
}

fn live_attempt(job: &Job, number: AttemptNumber) -> Option<&Attempt> {
    job.active().filter(|attempt| attempt.number == number)
}

fn places(grants: &[Grant]) -> String {
    let mut nodes: Vec<&str> = grants.iter().map(|grant| grant.node.0.as_str()).collect();
    nodes.sort_unstable();
    nodes.dedup();
    match nodes[..] {
        [node] => node.to_owned(),
        [first, second] => format!("{first} and {second}"),
        [first, .., last] => format!("{} nodes, {first} to {last}", nodes.len()),
        [] => "nothing".to_owned(),
    }
}

fn record(kind: EventKind, attempt: Option<AttemptNumber>, actor: &str, message: String) -> HistoryEvent {
    HistoryEvent { kind, attempt, actor: actor.to_owned(), message }
}

fn next(job: &Job, life: JobLifecycle, records: Vec<HistoryEvent>) -> Transition {
    let job = Job { life, generation: job.generation + 1, ..job.clone() };
    Transition::Next { job: Box::new(job), records }
}
