//! What is heard of an attempt's workers, up to its end.

use danlu_types::{AttemptNumber, WorkerIndex};
use jiff::Timestamp;

use super::retry::{back_off, requeue_back_off, retries, verdict_of};
use super::{ADMINISTRATOR, DANLU, Transition, live_attempt, next, record};
use crate::event::{EventKind, HistoryEvent};
use crate::job::{
    Attempt, AttemptEnd, Grant, Job, JobEnd, JobLifecycle, PastAttempt, QueueCause, Stop, StopCause, Worker,
    WorkerEnd, WorkerLifecycle, WorkerLocation,
};
use crate::view::{attempt_reason, outcome_reason, worker_reason};

pub(super) fn on_worker_moved(
    job: &Job,
    number: AttemptNumber,
    index: WorkerIndex,
    to: WorkerLocation,
    settled: bool,
) -> Transition {
    let Some(attempt) = live_attempt(job, number) else { return Transition::Ignore };
    let Some(worker) = attempt.workers.get(index.0 as usize) else { return Transition::Ignore };
    let may_move = match worker.state {
        WorkerLifecycle::Placed => true,
        // One that runs is not planned for anywhere else.
        WorkerLifecycle::Running { .. } => settled,
        WorkerLifecycle::Ended { .. } => false,
    };
    let grant = Grant { node: to.node, devices: to.devices, ..worker.grant.clone() };
    // How many devices it has decides how many ranks there are: that does not change.
    let is_as_large = grant.devices.len() == worker.grant.devices.len();
    let is_news = settled || grant != worker.grant;
    if worker.settled || !may_move || !is_as_large || !is_news {
        return Transition::Ignore;
    }
    let mut records = Vec::new();
    if settled && grant.node != worker.grant.node {
        let message = format!("worker {index} was put on {}, not on {}", grant.node, worker.grant.node);
        records.push(record(EventKind::WorkerMoved, Some(number), DANLU, message));
    }
    let mut attempt = attempt.clone();
    attempt.workers[index.0 as usize] = Worker { grant, settled, ..worker.clone() };
    next(job, JobLifecycle::Active(attempt), records)
}

pub(super) fn on_worker_running(
    job: &Job,
    number: AttemptNumber,
    index: WorkerIndex,
    at: Timestamp,
) -> Transition {
    let Some(attempt) = live_attempt(job, number) else { return Transition::Ignore };
    match attempt.workers.get(index.0 as usize).map(|worker| &worker.state) {
        Some(WorkerLifecycle::Placed) => {
            let mut attempt = attempt.clone();
            attempt.workers[index.0 as usize].state = WorkerLifecycle::Running { since: at };
            let mut records = Vec::new();
            if attempt.stop.is_none() && attempt.running_since().is_some() {
                let message = format!("attempt {number} is running");
                records.push(record(EventKind::AttemptRunning, Some(number), DANLU, message));
            }
            next(job, JobLifecycle::Active(attempt), records)
        }
        Some(WorkerLifecycle::Running { .. } | WorkerLifecycle::Ended { .. }) | None => Transition::Ignore,
    }
}

/// Told when it begins and when it is over; that it shows in another way meanwhile is no news.
pub(super) fn on_worker_hangs(
    job: &Job,
    number: AttemptNumber,
    index: WorkerIndex,
    hang: Option<String>,
) -> Transition {
    let Some(attempt) = live_attempt(job, number) else { return Transition::Ignore };
    let Some(worker) = attempt.workers.get(index.0 as usize) else { return Transition::Ignore };
    let runs = matches!(worker.state, WorkerLifecycle::Running { .. });
    // One that is being ended may well be silent.
    let is_ending = attempt.stop.is_some() && hang.is_some();
    if !runs || is_ending || worker.hangs == hang.is_some() {
        return Transition::Ignore;
    }
    let (kind, message) = match &hang {
        Some(how) => (EventKind::WorkerHangs, format!("worker {index} seems to hang: {how}")),
        None => (EventKind::WorkerGoesOn, format!("worker {index} goes on")),
    };
    let mut attempt = attempt.clone();
    attempt.workers[index.0 as usize].hangs = hang.is_some();
    next(job, JobLifecycle::Active(attempt), vec![record(kind, Some(number), DANLU, message)])
}

/// Nothing for the job's history: a program may save every minute.
pub(super) fn on_saved(job: &Job, number: AttemptNumber, at: Timestamp) -> Transition {
    match live_attempt(job, number) {
        Some(attempt) if attempt.saved_at < Some(at) => {
            next(job, JobLifecycle::Active(Attempt { saved_at: Some(at), ..attempt.clone() }), Vec::new())
        }
        _ => Transition::Ignore,
    }
}

pub(super) fn on_worker_ended(
    job: &Job,
    number: AttemptNumber,
    index: WorkerIndex,
    exit: WorkerEnd,
    at: Timestamp,
) -> Transition {
    let Some(attempt) = live_attempt(job, number) else { return Transition::Ignore };
    let since = match attempt.workers.get(index.0 as usize).map(|worker| &worker.state) {
        Some(WorkerLifecycle::Placed) => None,
        Some(WorkerLifecycle::Running { since }) => Some(*since),
        Some(WorkerLifecycle::Ended { .. }) | None => return Transition::Ignore,
    };
    let mut attempt = attempt.clone();
    let mut records = Vec::new();
    if attempt.workers.len() > 1 {
        let message = format!("worker {index} {}", worker_reason(&exit));
        records.push(record(EventKind::WorkerEnded, Some(number), DANLU, message));
    }
    // Either way the gang cannot go on without this worker: the others must not wait for it until `max_time`.
    let ends_the_gang = match &exit {
        WorkerEnd::Succeeded => None,
        WorkerEnd::Requeued { reason } => Some(StopCause::Requeued { reason: reason.clone() }),
        WorkerEnd::Failed(_) => Some(StopCause::WorkerFailed { worker: index }),
        WorkerEnd::Stopped => Some(StopCause::ByUser { who: ADMINISTRATOR.to_owned() }),
    };
    if let (None, Some(why)) = (&attempt.stop, ends_the_gang) {
        attempt.stop = Some(Stop { since: at, why, grace: job.spec.grace });
    }
    attempt.workers[index.0 as usize].state = WorkerLifecycle::Ended { since, at, exit };
    if !attempt.has_ended() {
        return next(job, JobLifecycle::Active(attempt), records);
    }
    let verdict = verdict_of(&attempt, job.past.last());
    let message = format!("attempt {number} {}", attempt_reason(&verdict));
    records.push(record(EventKind::AttemptEnded, Some(number), DANLU, message));
    on_attempt_ended(job, PastAttempt { attempt, ended_at: at, verdict }, records, at)
}

fn on_attempt_ended(
    job: &Job,
    past: PastAttempt,
    mut records: Vec<HistoryEvent>,
    at: Timestamp,
) -> Transition {
    let number = past.attempt.number;
    let verdict = past.verdict.clone();
    let mut job = job.clone();
    job.past.push(past);
    let life = match verdict {
        AttemptEnd::Succeeded => JobLifecycle::Ended { at, outcome: JobEnd::Succeeded },
        AttemptEnd::Stopped { who } => JobLifecycle::Ended { at, outcome: JobEnd::Stopped { who } },
        AttemptEnd::Preempted { for_job } => {
            JobLifecycle::Queued { since: at, why: QueueCause::Preempted { attempt: number, for_job } }
        }
        AttemptEnd::Drained { node } => {
            JobLifecycle::Queued { since: at, why: QueueCause::Drained { attempt: number, node } }
        }
        AttemptEnd::Requeued { reason, times } => {
            let not_before = at.checked_add(requeue_back_off(times)).unwrap_or(Timestamp::MAX);
            JobLifecycle::Queued {
                since: at,
                why: QueueCause::Requeued { attempt: number, reason, not_before },
            }
        }
        AttemptEnd::Failed { worker, failure } => {
            if retries(&job, failure.cause) {
                let wait = back_off(job.failures());
                let not_before = at.checked_add(wait).unwrap_or(Timestamp::MAX);
                JobLifecycle::Queued { since: at, why: QueueCause::Retry { attempt: number, not_before } }
            } else {
                JobLifecycle::Ended { at, outcome: JobEnd::Failed { attempt: number, worker, failure } }
            }
        }
    };
    let (kind, message) = match &life {
        JobLifecycle::Ended { outcome, .. } => (EventKind::JobEnded, outcome_reason(outcome).to_string()),
        _ => (EventKind::JobQueuedAgain, format!("queued again after attempt {number}")),
    };
    records.push(record(kind, None, DANLU, message));
    next(&job, life, records)
}
