//! How an attempt ended, and whether another is made.

use danlu_types::RetryCause;
use jiff::SignedDuration;

use super::ADMINISTRATOR;
use crate::job::{
    Attempt, FailureCause, Job, PastAttempt, StopReason, Verdict, Worker, WorkerExit, WorkerState,
};

/// The first retry waits this long, each further one twice as long as the one before.
const FIRST_BACK_OFF: SignedDuration = SignedDuration::from_secs(1);
const LONGEST_BACK_OFF: SignedDuration = SignedDuration::from_secs(300);
const LONGEST_REQUEUE_BACK_OFF: SignedDuration = SignedDuration::from_secs(600);

/// How an attempt ended whose workers all have, after what came before it.
pub(super) fn verdict_of(attempt: &Attempt, before: Option<&PastAttempt>) -> Verdict {
    let exit = |worker: &Worker| match &worker.state {
        WorkerState::Ended { exit, .. } => Some(exit.clone()),
        WorkerState::Placed | WorkerState::Running { .. } => None,
    };
    let exits: Vec<Option<WorkerExit>> = attempt.workers.iter().map(exit).collect();
    // Whoever finished its work before the stop reached it has succeeded.
    if exits.iter().all(|exit| *exit == Some(WorkerExit::Succeeded)) {
        return Verdict::Succeeded;
    }
    let failure_of = |index: usize| match &exits[index] {
        Some(WorkerExit::Failed(failure)) => Some(failure.clone()),
        _ => None,
    };
    match attempt.stop.as_ref().map(|stop| &stop.why) {
        Some(StopReason::ByUser { who }) => Verdict::Stopped { who: who.clone() },
        Some(StopReason::Preempted { for_job }) => Verdict::Preempted { for_job: *for_job },
        Some(StopReason::Drained { node }) => Verdict::Drained { node: node.clone() },
        Some(StopReason::Requeued { reason }) => {
            let earlier = before.map_or(0, |past| times_requeued(&past.verdict));
            let times = if has_run(attempt) { 0 } else { earlier + 1 };
            Verdict::Requeued { reason: reason.clone(), times }
        }
        Some(StopReason::WorkerFailed { worker }) => Verdict::Failed {
            worker: *worker,
            failure: failure_of(worker.0 as usize).unwrap_or_else(lost_without_trace),
        },
        // Unreachable through `apply`, like what follows; a total function needs an answer.
        None => Verdict::Stopped { who: ADMINISTRATOR.to_owned() },
    }
}

fn times_requeued(verdict: &Verdict) -> u32 {
    match verdict {
        Verdict::Requeued { times, .. } => *times,
        _ => 0,
    }
}

fn has_run(attempt: &Attempt) -> bool {
    let ran = |worker: &Worker| match worker.state {
        WorkerState::Placed => false,
        WorkerState::Running { .. } => true,
        WorkerState::Ended { since, .. } => since.is_some(),
    };
    attempt.workers.iter().any(ran)
}

/// Unreachable through `apply`, which sets the culprit and its failure together.
fn lost_without_trace() -> crate::job::Failure {
    crate::job::Failure { cause: FailureCause::LauncherLost, rank: None, exit: None, detail: String::new() }
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
