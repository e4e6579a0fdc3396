//! A job as people and programs see it: derived states, and the reasons for them.

use danlu_types::api::{AttemptView, JobState, JobView, WorkerPhase, WorkerView};
use danlu_types::reason::{FailedWorker, PendingCause, Reason};
use danlu_types::{AttemptNumber, Span, WorkerIndex};
use jiff::Timestamp;

use crate::job::{
    Attempt, AttemptEnd, FailureCause, Job, JobEnd, JobLifecycle, PastAttempt, ProcessExit, QueueCause,
    StopCause, Worker, WorkerEnd, WorkerFailure, WorkerLifecycle,
};

/// The job for the API. `waiting` is the scheduler's word for why it is queued, where there is one.
pub fn job_view(job: &Job, waiting: Option<Reason>) -> JobView {
    let mut attempts: Vec<AttemptView> = job
        .past
        .iter()
        .map(|past| attempt_view(&past.attempt, Some(past.ended_at), attempt_reason(&past.verdict)))
        .collect();
    if let Some(attempt) = job.active() {
        attempts.push(attempt_view(attempt, None, activity_reason(attempt)));
    }
    let started_at = job.past.iter().map(|past| &past.attempt).chain(job.active()).find_map(begun);
    let Times { queued_since, waited, running_since, ran } = times(job);
    JobView {
        id: job.id,
        name: job.spec.name.clone(),
        workspace: job.spec.workspace.clone(),
        owner: job.owner.clone(),
        state: job.state(),
        outcome: job.outcome(),
        reason: reason(job, waiting),
        priority: job.spec.priority(),
        submitted_at: job.submitted_at,
        started_at,
        ended_at: job.ended_at(),
        queued_since,
        waited,
        running_since,
        ran,
        exit_code: exit_code(job),
        generation: job.generation,
        progress: None,
        spec: (*job.spec).clone(),
        attempts,
    }
}

struct Times {
    queued_since: Option<Timestamp>,
    waited: Span,
    running_since: Option<Timestamp>,
    ran: Span,
}

/// Waits and runs, each by itself: a job that was preempted or tried again has several of both.
fn times(job: &Job) -> Times {
    let (mut waited, mut ran) = (0, 0);
    let mut idle_from = job.submitted_at;
    for PastAttempt { attempt, ended_at, .. } in &job.past {
        waited += milliseconds(idle_from, attempt.placed_at);
        ran += begun(attempt).map_or(0, |begun| milliseconds(begun, *ended_at));
        idle_from = *ended_at;
    }
    let waited_until = match &job.life {
        JobLifecycle::Active(attempt) => attempt.placed_at,
        JobLifecycle::Ended { at, .. } => *at,
        JobLifecycle::Queued { since, .. } | JobLifecycle::Held { since, .. } => *since,
    };
    waited += milliseconds(idle_from, waited_until);
    let queued_since = match &job.life {
        JobLifecycle::Queued { since, .. } => Some(*since),
        _ => None,
    };
    let running_since = job.active().and_then(begun);
    Times {
        queued_since,
        waited: Span { milliseconds: waited },
        running_since,
        ran: Span { milliseconds: ran },
    }
}

/// When the first worker of an attempt began to run.
fn begun(attempt: &Attempt) -> Option<Timestamp> {
    attempt.workers.iter().filter_map(running_at).min()
}

/// Clocks jump: what would be negative is nothing.
fn milliseconds(from: Timestamp, to: Timestamp) -> u64 {
    u64::try_from(to.duration_since(from).as_millis()).unwrap_or(0)
}

/// Why the job is in its state. `waiting` is the scheduler's word for why it is queued, where there is one.
pub fn reason(job: &Job, waiting: Option<Reason>) -> Reason {
    match &job.life {
        JobLifecycle::Held { approval: Some(need), .. } => {
            Reason::NeedsApproval { job: job.id, excess: need.excess().cloned() }
        }
        JobLifecycle::Held { by, approval: None, .. } => Reason::Held { by: by.clone(), job: job.id },
        JobLifecycle::Queued { why, .. } => waiting.unwrap_or_else(|| queue_reason(job, why)),
        JobLifecycle::Active(attempt) => activity_reason(attempt),
        JobLifecycle::Ended { outcome, .. } => outcome_reason(outcome),
    }
}

/// What `danlu run` exits with: the culprit's code, 0 for success, and codes of its own for what is nobody's exit.
pub fn exit_code(job: &Job) -> Option<i32> {
    const STOPPED: i32 = 130;
    const PLATFORM: i32 = 125;
    const TIMED_OUT: i32 = 124;
    match &job.life {
        JobLifecycle::Ended { outcome, .. } => Some(match outcome {
            JobEnd::Succeeded => 0,
            JobEnd::Stopped { .. } => STOPPED,
            JobEnd::Failed { failure, .. } if failure.cause == FailureCause::TimeLimit => TIMED_OUT,
            JobEnd::Failed { failure, .. } => failure.exit.map_or(PLATFORM, ProcessExit::shell_code),
        }),
        _ => None,
    }
}

/// How a job ended.
pub fn outcome_reason(outcome: &JobEnd) -> Reason {
    match outcome {
        JobEnd::Succeeded => Reason::Succeeded,
        JobEnd::Stopped { who } => Reason::Stopped { by: Some(who.clone()) },
        JobEnd::Failed { attempt, worker, failure } => {
            let attempt = Some(*attempt).filter(|attempt| *attempt != AttemptNumber(1));
            failure_reason(attempt, Some(*worker), failure)
        }
    }
}

/// How an attempt ended.
pub fn attempt_reason(end: &AttemptEnd) -> Reason {
    match end {
        AttemptEnd::Succeeded => Reason::Succeeded,
        AttemptEnd::Stopped { who } => Reason::Stopped { by: Some(who.clone()) },
        AttemptEnd::Preempted { for_job } => Reason::Preempted { job: *for_job },
        AttemptEnd::Drained { node } => Reason::Drained { node: node.clone() },
        AttemptEnd::Requeued { reason, .. } => Reason::Requeued { detail: reason.clone() },
        AttemptEnd::Failed { worker, failure } => failure_reason(None, Some(*worker), failure),
    }
}

/// How a worker ended.
pub fn worker_reason(exit: &WorkerEnd) -> Reason {
    match exit {
        WorkerEnd::Succeeded => Reason::Succeeded,
        WorkerEnd::Stopped => Reason::Stopped { by: None },
        WorkerEnd::Requeued { reason } => Reason::Requeued { detail: reason.clone() },
        WorkerEnd::Failed(failure) => failure_reason(None, None, failure),
    }
}

fn failure_reason(
    attempt: Option<AttemptNumber>,
    worker: Option<WorkerIndex>,
    failure: &WorkerFailure,
) -> Reason {
    let WorkerFailure { cause, rank, exit, detail } = failure;
    let failed = FailedWorker { attempt, worker, rank: *rank, exit: *exit, detail: detail.clone() };
    match cause {
        FailureCause::Exit => Reason::Exit(failed),
        FailureCause::OutOfMemory => Reason::OutOfMemory(failed),
        FailureCause::TimeLimit => Reason::TimeLimit(failed),
        FailureCause::StartFailed => Reason::StartFailed(failed),
        FailureCause::SetupFailed => Reason::SetupFailed(failed),
        FailureCause::GangTimeout => Reason::GangTimeout(failed),
        FailureCause::LauncherLost => Reason::LauncherLost(failed),
        FailureCause::NodeLost => Reason::NodeLost(failed),
        FailureCause::DeviceError => Reason::DeviceError(failed),
        FailureCause::ProgramError => Reason::ProgramError(failed),
        FailureCause::Hang => Reason::Hang(failed),
    }
}

fn queue_reason(job: &Job, cause: &QueueCause) -> Reason {
    match cause {
        QueueCause::Submitted => Reason::SchedulingPending { cause: PendingCause::Submitted },
        QueueCause::Released => Reason::SchedulingPending { cause: PendingCause::Released },
        QueueCause::Approved { by } => {
            Reason::SchedulingPending { cause: PendingCause::Approved { by: by.clone() } }
        }
        QueueCause::Preempted { for_job, .. } => Reason::RequeuedAfterPreemption { job: *for_job },
        QueueCause::Drained { node, .. } => Reason::RequeuedAfterDrain { node: node.clone() },
        QueueCause::Retry { attempt, not_before } => {
            let past = job.past.iter().find(|past| past.attempt.number == *attempt);
            let failure = past.filter(|past| matches!(past.verdict, AttemptEnd::Failed { .. }));
            let failure = failure.map(|past| Box::new(attempt_reason(&past.verdict)));
            Reason::RetryBackoff { attempt: *attempt, not_before: *not_before, failure }
        }
        QueueCause::Requeued { reason, not_before, .. } => {
            Reason::RequeuedByCluster { detail: reason.clone(), not_before: *not_before }
        }
    }
}

fn activity_reason(attempt: &Attempt) -> Reason {
    let workers = u32::try_from(attempt.workers.len()).unwrap_or(u32::MAX);
    match &attempt.stop {
        Some(stop) => match &stop.why {
            StopCause::ByUser { who } => Reason::StopRequested { by: who.clone(), grace: stop.grace },
            StopCause::Preempted { for_job } => Reason::BeingPreempted { job: *for_job, grace: stop.grace },
            StopCause::Drained { node } => Reason::BeingDrained { node: node.clone(), grace: stop.grace },
            StopCause::Requeued { reason } => Reason::BeingRequeued { detail: reason.clone() },
            StopCause::WorkerFailed { worker } => Reason::WorkerFailed { worker: *worker },
        },
        None if attempt.state() == JobState::Running => Reason::Running { workers },
        None => {
            let begun = attempt.workers.iter().filter(|worker| worker.state != WorkerLifecycle::Placed);
            let started = u32::try_from(begun.count()).unwrap_or(u32::MAX);
            Reason::Starting { started, workers }
        }
    }
}

fn attempt_view(attempt: &Attempt, ended_at: Option<Timestamp>, reason: Reason) -> AttemptView {
    let workers = attempt.workers.iter().zip(0..).map(|(worker, index)| worker_view(worker, index)).collect();
    AttemptView { number: attempt.number, placed_at: attempt.placed_at, ended_at, reason, workers }
}

fn worker_view(worker: &Worker, index: u32) -> WorkerView {
    let (phase, ended_at, reason) = match &worker.state {
        WorkerLifecycle::Placed => (WorkerPhase::Starting, None, None),
        WorkerLifecycle::Running { .. } => (WorkerPhase::Running, None, None),
        WorkerLifecycle::Ended { at, exit, .. } => (WorkerPhase::Ended, Some(*at), Some(worker_reason(exit))),
    };
    WorkerView {
        index: WorkerIndex(index),
        node: worker.grant.node.clone(),
        devices: worker.grant.devices.clone(),
        phase,
        running_at: running_at(worker),
        ended_at,
        reason,
    }
}

fn running_at(worker: &Worker) -> Option<Timestamp> {
    match worker.state {
        WorkerLifecycle::Placed => None,
        WorkerLifecycle::Running { since } => Some(since),
        WorkerLifecycle::Ended { since, .. } => since,
    }
}
