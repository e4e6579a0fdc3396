//! How an attempt ended, and whether another is made.

use danlu_types::RetryCause;
use jiff::SignedDuration;

use super::ADMINISTRATOR;
use crate::job::{
    Attempt, AttemptEnd, FailureCause, Job, PastAttempt, StopCause, Worker, WorkerEnd, WorkerLifecycle,
};

/// The first retry waits this long, each further one twice as long as the one before.
const FIRST_BACK_OFF: SignedDuration = SignedDuration::from_secs(1);
const LONGEST_BACK_OFF: SignedDuration = SignedDuration::from_secs(300);
const LONGEST_REQUEUE_BACK_OFF: SignedDuration = SignedDuration::from_secs(600);

/// How an attempt ended whose workers all have, after what came before it.
pub(super) fn verdict_of(attempt: &Attempt, before: Option<&PastAttempt>) -> AttemptEnd {
    let exit = |worker: &Worker| match &worker.state {
        WorkerLifecycle::Ended { exit, .. } => Some(exit.clone()),
        WorkerLifecycle::Placed | WorkerLifecycle::Running { .. } => None,
    };
    let exits: Vec<Option<WorkerEnd>> = attempt.workers.iter().map(exit).collect();
    // Whoever finished its work before the stop reached it has succeeded.
    if exits.iter().all(|exit| *exit == Some(WorkerEnd::Succeeded)) {
        return AttemptEnd::Succeeded;
    }
    let failure_of = |index: usize| match &exits[index] {
        Some(WorkerEnd::Failed(failure)) => Some(failure.clone()),
        _ => None,
    };
    match attempt.stop.as_ref().map(|stop| &stop.why) {
        Some(StopCause::ByUser { who }) => AttemptEnd::Stopped { who: who.clone() },
        Some(StopCause::Preempted { for_job }) => AttemptEnd::Preempted { for_job: *for_job },
        Some(StopCause::Drained { node }) => AttemptEnd::Drained { node: node.clone() },
        Some(StopCause::Requeued { reason }) => {
            let earlier = before.map_or(0, |past| times_requeued(&past.verdict));
            let times = if has_run(attempt) { 0 } else { earlier + 1 };
            AttemptEnd::Requeued { reason: reason.clone(), times }
        }
        Some(StopCause::WorkerFailed { worker }) => AttemptEnd::Failed {
            worker: *worker,
            failure: failure_of(worker.0 as usize).unwrap_or_else(lost_without_trace),
        },
        // Unreachable through `apply`, like what follows; a total function needs an answer.
        None => AttemptEnd::Stopped { who: ADMINISTRATOR.to_owned() },
    }
}

fn times_requeued(verdict: &AttemptEnd) -> u32 {
    match verdict {
        AttemptEnd::Requeued { times, .. } => *times,
        _ => 0,
    }
}

fn has_run(attempt: &Attempt) -> bool {
    let ran = |worker: &Worker| match worker.state {
        WorkerLifecycle::Placed => false,
        WorkerLifecycle::Running { .. } => true,
        WorkerLifecycle::Ended { since, .. } => since.is_some(),
    };
    attempt.workers.iter().any(ran)
}

/// Unreachable through `apply`, which sets the culprit and its failure together.
fn lost_without_trace() -> crate::job::WorkerFailure {
    crate::job::WorkerFailure {
        cause: FailureCause::LauncherLost,
        rank: None,
        exit: None,
        detail: String::new(),
    }
}

pub(super) fn retries(job: &Job, cause: FailureCause) -> bool {
    let wanted = |cause: RetryCause| job.spec.retry.on.contains(&cause);
    (cause == FailureCause::Hang || cause.retry_cause().is_some_and(wanted))
        && job.failures() <= job.spec.retry.limit
}

/// A cluster may refuse a job for days, and each attempt leaves a line of history.
pub(super) fn requeue_back_off(times: u32) -> SignedDuration {
    let doublings = times.saturating_sub(1).min(16);
    (FIRST_BACK_OFF * (1 << doublings)).min(LONGEST_REQUEUE_BACK_OFF)
}

pub(super) fn back_off(failures: u32) -> SignedDuration {
    let doublings = failures.saturating_sub(1).min(16);
    (FIRST_BACK_OFF * (1 << doublings)).min(LONGEST_BACK_OFF)
}
