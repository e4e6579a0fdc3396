//! The one function that changes a job's life.
//!
//! [`apply`] is total: every event in every state is taken, ignored as stale, or refused with a sentence. Nothing else
//! writes [`Job::life`]. What follows from a change (launching, signalling, cleaning up) is not said here: reconcilers
//! read it off the new state, so a crash between deciding and acting loses nothing.

mod change;
mod verdict;
mod workers;

use std::sync::Arc;

use danlu_types::api::JobState;
use danlu_types::{AttemptNumber, JobId, JobSpec, NodeName, Span, WorkerIndex};
use jiff::Timestamp;

use crate::approval::ApprovalNeed;
use crate::job::{
    Attempt, Grant, Job, Life, Outcome, Stop, StopReason, Waiting, Whereabouts, Worker, WorkerExit,
    WorkerState,
};
pub use crate::record::{Record, RecordKind};
use workers::{on_saved, on_worker_ended, on_worker_hangs, on_worker_moved, on_worker_running};

/// Something that happened to a job, or that somebody wants of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
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
        to: Whereabouts,
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
        exit: WorkerExit,
    },
}

/// What became of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// The job's new value, and what to write into its history.
    Next {
        job: Box<Job>,
        records: Vec<Record>,
    },
    /// Old news: it is true already, or is about an attempt that is over.
    Ignore,
    Refuse(Refusal),
}

/// Why a wish cannot be granted in this state.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
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
pub fn apply(job: &Job, event: Event, at: Timestamp) -> Step {
    match event {
        Event::Hold { by } => on_hold(job, by, at),
        Event::Release { by } => on_release(job, &by, at),
        Event::Approve { by } => on_approve(job, by, at),
        Event::Stop { by, grace } => on_stop(job, by, grace, at),
        Event::Change { by, spec, approval, seen } => change::on_change(job, &by, spec, approval, seen, at),
        Event::Preempt { for_job } => on_preempt(job, for_job, at),
        Event::Drain { node, by } => on_drain(job, node, &by, at),
        Event::Requeue { attempt, reason } => on_requeue(job, attempt, reason, at),
        Event::Place { grants } => on_place(job, grants, at),
        Event::WorkerMoved { attempt, worker, to, settled } => {
            on_worker_moved(job, attempt, worker, to, settled)
        }
        Event::WorkerRunning { attempt, worker } => on_worker_running(job, attempt, worker, at),
        Event::WorkerHangs { attempt, worker, hang } => on_worker_hangs(job, attempt, worker, hang),
        Event::Saved { attempt } => on_saved(job, attempt, at),
        Event::WorkerEnded { attempt, worker, exit } => on_worker_ended(job, attempt, worker, exit, at),
    }
}

/// The record of a submission, which is no transition: before it there is no job.
pub fn submission_record(job: &Job) -> Record {
    Record {
        kind: RecordKind::JobSubmitted,
        attempt: None,
        actor: job.owner.clone(),
        message: format!("submitted `{}`", job.spec.name),
    }
}

fn on_hold(job: &Job, by: String, at: Timestamp) -> Step {
    match &job.life {
        Life::Held { .. } => Step::Ignore,
        Life::Queued { .. } => {
            let records = vec![record(RecordKind::JobHeld, None, &by, "held".to_owned())];
            next(job, Life::Held { since: at, by, approval: None }, records)
        }
        Life::Active(_) => Step::Refuse(Refusal::AlreadyPlaced { job: job.id }),
        Life::Ended { .. } => Step::Refuse(Refusal::AlreadyEnded { job: job.id }),
    }
}

fn on_release(job: &Job, by: &str, at: Timestamp) -> Step {
    match &job.life {
        Life::Held { approval: Some(_), .. } => Step::Refuse(Refusal::NeedsApproval { job: job.id }),
        Life::Held { approval: None, .. } => {
            let records = vec![record(RecordKind::JobReleased, None, by, "released".to_owned())];
            next(job, Life::Queued { since: at, why: Waiting::Released }, records)
        }
        Life::Queued { .. } | Life::Active(_) => Step::Refuse(Refusal::NotHeld { job: job.id }),
        Life::Ended { .. } => Step::Refuse(Refusal::AlreadyEnded { job: job.id }),
    }
}

fn on_approve(job: &Job, by: String, at: Timestamp) -> Step {
    match &job.life {
        Life::Held { approval: Some(_), .. } => {
            let records = vec![record(RecordKind::JobReleased, None, &by, "approved".to_owned())];
            next(job, Life::Queued { since: at, why: Waiting::Approved { by } }, records)
        }
        Life::Held { approval: None, .. } | Life::Queued { .. } | Life::Active(_) => {
            Step::Refuse(Refusal::NeedsNoApproval { job: job.id })
        }
        Life::Ended { .. } => Step::Refuse(Refusal::AlreadyEnded { job: job.id }),
    }
}

fn on_stop(job: &Job, by: String, grace: Option<Span>, at: Timestamp) -> Step {
    match &job.life {
        Life::Held { .. } | Life::Queued { .. } => {
            let asked = record(RecordKind::StopRequested, None, &by, "stop requested".to_owned());
            let outcome = Outcome::Stopped { who: by };
            let ended = record(RecordKind::JobEnded, None, DANLU, "stopped before it started".to_owned());
            next(job, Life::Ended { at, outcome }, vec![asked, ended])
        }
        Life::Active(attempt) => {
            // A later stop never lengthens the grace: the launcher may have begun to count it.
            let longest = attempt.stop.as_ref().map_or(Span { milliseconds: u64::MAX }, |stop| stop.grace);
            let grace = grace.unwrap_or(job.spec.grace).min(longest);
            let already = |stop: &Stop| matches!(stop.why, StopReason::ByUser { .. }) && stop.grace <= grace;
            if attempt.stop.as_ref().is_some_and(already) {
                return Step::Ignore;
            }
            // A person's stop replaces any other reason: after it there is no retry and no requeueing.
            let since = attempt.stop.as_ref().map_or(at, |stop| stop.since);
            let message = format!("stop requested, with {grace} of grace");
            let records = vec![record(RecordKind::StopRequested, Some(attempt.number), &by, message)];
            let stop = Some(Stop { since, why: StopReason::ByUser { who: by }, grace });
            next(job, Life::Active(Attempt { stop, ..attempt.clone() }), records)
        }
        Life::Ended { .. } => Step::Refuse(Refusal::AlreadyEnded { job: job.id }),
    }
}

fn on_preempt(job: &Job, for_job: JobId, at: Timestamp) -> Step {
    match &job.life {
        Life::Active(attempt) if attempt.stop.is_none() => {
            let message = format!("preempted for job {for_job}");
            let records = vec![record(RecordKind::AttemptPreempted, Some(attempt.number), DANLU, message)];
            let stop =
                Some(Stop { since: at, why: StopReason::Preempted { for_job }, grace: job.spec.grace });
            next(job, Life::Active(Attempt { stop, ..attempt.clone() }), records)
        }
        // It is giving its devices back already, or holds none.
        Life::Active(_) | Life::Held { .. } | Life::Queued { .. } | Life::Ended { .. } => Step::Ignore,
    }
}

fn on_drain(job: &Job, node: NodeName, by: &str, at: Timestamp) -> Step {
    match &job.life {
        Life::Active(attempt)
            if attempt.stop.is_none() && attempt.workers.iter().any(|worker| worker.grant.node == node) =>
        {
            let message = format!("has to leave {node}, which is being drained");
            let records = vec![record(RecordKind::AttemptPreempted, Some(attempt.number), by, message)];
            let stop = Some(Stop { since: at, why: StopReason::Drained { node }, grace: job.spec.grace });
            next(job, Life::Active(Attempt { stop, ..attempt.clone() }), records)
        }
        Life::Active(_) | Life::Held { .. } | Life::Queued { .. } | Life::Ended { .. } => Step::Ignore,
    }
}

/// Only what has not begun: a worker that runs has what the engine was asked for.
fn on_requeue(job: &Job, number: AttemptNumber, reason: String, at: Timestamp) -> Step {
    let begun = |worker: &Worker| worker.state != WorkerState::Placed;
    match live_attempt(job, number) {
        Some(attempt) if attempt.stop.is_none() && !attempt.workers.iter().any(begun) => {
            let records = vec![record(RecordKind::AttemptPreempted, Some(number), DANLU, reason.clone())];
            let stop = Some(Stop { since: at, why: StopReason::Requeued { reason }, grace: Span::default() });
            next(job, Life::Active(Attempt { stop, ..attempt.clone() }), records)
        }
        _ => Step::Ignore,
    }
}

fn on_place(job: &Job, grants: Vec<Grant>, at: Timestamp) -> Step {
    match &job.life {
        Life::Queued { .. } => {
            if grants.len() != job.spec.workers as usize {
                let refusal =
                    Refusal::WrongGang { job: job.id, asked: job.spec.workers, offered: grants.len() };
                return Step::Refuse(refusal);
            }
            let number = job.next_attempt();
            let message = format!("attempt {number} placed on {}", places(&grants));
            let workers = grants.into_iter().map(Worker::placed).collect();
            let attempt = Attempt { number, placed_at: at, workers, saved_at: None, stop: None };
            let records = vec![record(RecordKind::AttemptPlaced, Some(number), DANLU, message)];
            next(job, Life::Active(attempt), records)
        }
        Life::Active(_) => Step::Refuse(Refusal::AlreadyPlaced { job: job.id }),
        Life::Held { .. } => Step::Refuse(Refusal::NotQueued { job: job.id }),
        Life::Ended { .. } => Step::Refuse(Refusal::AlreadyEnded { job: job.id }),
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

fn record(kind: RecordKind, attempt: Option<AttemptNumber>, actor: &str, message: String) -> Record {
    Record { kind, attempt, actor: actor.to_owned(), message }
}

fn next(job: &Job, life: Life, records: Vec<Record>) -> Step {
    let job = Job { life, generation: job.generation + 1, ..job.clone() };
    Step::Next { job: Box::new(job), records }
}
