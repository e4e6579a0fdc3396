//! What is heard of an attempt's workers, up to its end.

use danlu_types::{AttemptNumber, WorkerIndex};
use jiff::Timestamp;

use super::verdict::{back_off, requeue_back_off, retries, verdict_of};
use super::{ADMINISTRATOR, DANLU, Step, live_attempt, next, record};
use crate::job::{
    Attempt, Grant, Job, Life, Outcome, PastAttempt, Stop, StopReason, Verdict, Waiting, Whereabouts, Worker,
    WorkerExit, WorkerState,
};
use crate::record::{Record, RecordKind};

pub(super) fn on_worker_moved(
    job: &Job,
    number: AttemptNumber,
    index: WorkerIndex,
    to: Whereabouts,
    settled: bool,
) -> Step {
    let Some(attempt) = live_attempt(job, number) else { return Step::Ignore };
    let Some(worker) = attempt.workers.get(index.0 as usize) else { return Step::Ignore };
    let may_move = match worker.state {
        WorkerState::Placed => true,
        // One that runs is not planned for anywhere else.
        WorkerState::Running { .. } => settled,
        WorkerState::Ended { .. } => false,
    };
    let grant = Grant { node: to.node, devices: to.devices, ..worker.grant.clone() };
    // How many devices it has decides how many ranks there are: that does not change.
    let is_as_large = grant.devices.len() == worker.grant.devices.len();
    let is_news = settled || grant != worker.grant;
    if worker.settled || !may_move || !is_as_large || !is_news {
        return Step::Ignore;
    }
    let mut records = Vec::new();
    if settled && grant.node != worker.grant.node {
        let message = format!("worker {index} was put on {}, not on {}", grant.node, worker.grant.node);
        records.push(record(RecordKind::WorkerMoved, Some(number), DANLU, message));
    }
    let mut attempt = attempt.clone();
    attempt.workers[index.0 as usize] = Worker { grant, settled, ..worker.clone() };
    next(job, Life::Active(attempt), records)
}

pub(super) fn on_worker_running(job: &Job, number: AttemptNumber, index: WorkerIndex, at: Timestamp) -> Step {
    let Some(attempt) = live_attempt(job, number) else { return Step::Ignore };
    match attempt.workers.get(index.0 as usize).map(|worker| &worker.state) {
        Some(WorkerState::Placed) => {
            let mut attempt = attempt.clone();
            attempt.workers[index.0 as usize].state = WorkerState::Running { since: at };
            let mut records = Vec::new();
            if attempt.stop.is_none() && attempt.running_since().is_some() {
                let message = format!("attempt {number} is running");
                records.push(record(RecordKind::AttemptRunning, Some(number), DANLU, message));
            }
            next(job, Life::Active(attempt), records)
        }
        Some(WorkerState::Running { .. } | WorkerState::Ended { .. }) | None => Step::Ignore,
    }
}

/// Told when it begins and when it is over; that it shows in another way meanwhile is no news.
pub(super) fn on_worker_hangs(
    job: &Job,
    number: AttemptNumber,
    index: WorkerIndex,
    hang: Option<String>,
) -> Step {
    let Some(attempt) = live_attempt(job, number) else { return Step::Ignore };
    let Some(worker) = attempt.workers.get(index.0 as usize) else { return Step::Ignore };
    let runs = matches!(worker.state, WorkerState::Running { .. });
    // One that is being ended may well be silent.
    let is_ending = attempt.stop.is_some() && hang.is_some();
    if !runs || is_ending || worker.hangs == hang.is_some() {
        return Step::Ignore;
    }
    let (kind, message) = match &hang {
        Some(how) => (RecordKind::WorkerHangs, format!("worker {index} seems to hang: {how}")),
        None => (RecordKind::WorkerGoesOn, format!("worker {index} goes on")),
    };
    let mut attempt = attempt.clone();
    attempt.workers[index.0 as usize].hangs = hang.is_some();
    next(job, Life::Active(attempt), vec![record(kind, Some(number), DANLU, message)])
}

/// Nothing for the job's history: a program may save every minute.
pub(super) fn on_saved(job: &Job, number: AttemptNumber, at: Timestamp) -> Step {
    match live_attempt(job, number) {
        Some(attempt) if attempt.saved_at < Some(at) => {
            next(job, Life::Active(Attempt { saved_at: Some(at), ..attempt.clone() }), Vec::new())
        }
        _ => Step::Ignore,
    }
}

pub(super) fn on_worker_ended(
    job: &Job,
    number: AttemptNumber,
    index: WorkerIndex,
    exit: WorkerExit,
    at: Timestamp,
) -> Step {
    let Some(attempt) = live_attempt(job, number) else { return Step::Ignore };
    let since = match attempt.workers.get(index.0 as usize).map(|worker| &worker.state) {
        Some(WorkerState::Placed) => None,
        Some(WorkerState::Running { since }) => Some(*since),
        Some(WorkerState::Ended { .. }) | None => return Step::Ignore,
    };
    let mut attempt = attempt.clone();
    let mut records = Vec::new();
    if attempt.workers.len() > 1 {
        let message = format!("worker {index} {}", crate::view::exit_sentence(&exit));
        records.push(record(RecordKind::WorkerEnded, Some(number), DANLU, message));
    }
    // Either way the gang cannot go on without this worker: the others must not wait for it until `max_time`.
    let ends_the_gang = match &exit {
        WorkerExit::Succeeded => None,
        WorkerExit::Requeued { reason } => Some(StopReason::Requeued { reason: reason.clone() }),
        WorkerExit::Failed(_) => Some(StopReason::WorkerFailed { worker: index }),
        WorkerExit::Stopped => Some(StopReason::ByUser { who: ADMINISTRATOR.to_owned() }),
    };
    if let (None, Some(why)) = (&attempt.stop, ends_the_gang) {
        attempt.stop = Some(Stop { since: at, why, grace: job.spec.grace });
    }
    attempt.workers[index.0 as usize].state = WorkerState::Ended { since, at, exit };
    if !attempt.has_ended() {
        return next(job, Life::Active(attempt), records);
    }
    let verdict = verdict_of(&attempt, job.past.last());
    let message = format!("attempt {number} {}", crate::view::verdict_sentence(&verdict));
    records.push(record(RecordKind::AttemptEnded, Some(number), DANLU, message));
    on_attempt_ended(job, PastAttempt { attempt, ended_at: at, verdict }, records, at)
}

fn on_attempt_ended(job: &Job, past: PastAttempt, mut records: Vec<Record>, at: Timestamp) -> Step {
    let number = past.attempt.number;
    let verdict = past.verdict.clone();
    let mut job = job.clone();
    job.past.push(past);
    let life = match verdict {
        Verdict::Succeeded => Life::Ended { at, outcome: Outcome::Succeeded },
        Verdict::Stopped { who } => Life::Ended { at, outcome: Outcome::Stopped { who } },
        Verdict::Preempted { for_job } => {
            Life::Queued { since: at, why: Waiting::Preempted { attempt: number, for_job } }
        }
        Verdict::Drained { node } => {
            Life::Queued { since: at, why: Waiting::Drained { attempt: number, node } }
        }
        Verdict::Requeued { reason, times } => {
            let not_before = at.checked_add(requeue_back_off(times)).unwrap_or(Timestamp::MAX);
            Life::Queued { since: at, why: Waiting::Requeued { attempt: number, reason, not_before } }
        }
        Verdict::Failed { worker, failure } => {
            if retries(&job, failure.cause) {
                let wait = back_off(job.failures());
                let not_before = at.checked_add(wait).unwrap_or(Timestamp::MAX);
                Life::Queued { since: at, why: Waiting::Retry { attempt: number, not_before } }
            } else {
                Life::Ended { at, outcome: Outcome::Failed { attempt: number, worker, failure } }
            }
        }
    };
    let (kind, message) = match &life {
        Life::Ended { outcome, .. } => (RecordKind::JobEnded, crate::view::outcome_sentence(outcome)),
        _ => (RecordKind::JobQueuedAgain, format!("queued again after attempt {number}")),
    };
    records.push(record(kind, None, DANLU, message));
    next(&job, life, records)
}
