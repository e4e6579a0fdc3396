//! A job as people and programs see it: derived states, and the sentences that go with them.

use danlu_types::api::{AttemptView, JobState, JobView, Reason, WorkerPhase, WorkerView};
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
        .map(|past| attempt_view(&past.attempt, Some(past.ended_at), verdict_reason(&past.verdict)))
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

/// Why the job is in its state.
pub fn reason(job: &Job, waiting: Option<Reason>) -> Reason {
    match &job.life {
        JobLifecycle::Held { approval: Some(need), .. } => need.described(word(
            "needs_approval",
            format!("{need}; an owner of the workspace can let it start: `danlu approve {}`", job.id),
        )),
        JobLifecycle::Held { by, approval: None, .. } => {
            word("held", format!("held by {by}; `danlu release {}` lets it start", job.id)).with("who", by)
        }
        JobLifecycle::Queued { why, .. } => waiting.unwrap_or_else(|| waiting_reason(job, why)),
        JobLifecycle::Active(attempt) => activity_reason(attempt),
        JobLifecycle::Ended { outcome, .. } => {
            let sentence = outcome_sentence(outcome);
            match outcome {
                JobEnd::Succeeded => word("succeeded", sentence),
                JobEnd::Stopped { who } => word("stopped", sentence).with("who", who),
                JobEnd::Failed { worker, failure, .. } => failed(*worker, failure, sentence),
            }
        }
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

/// "failed: rank 3 ended with code 1", without its subject.
pub fn exit_sentence(exit: &WorkerEnd) -> String {
    match exit {
        WorkerEnd::Succeeded => "succeeded".to_owned(),
        WorkerEnd::Stopped => "stopped as asked".to_owned(),
        WorkerEnd::Requeued { reason } => format!("is to start again: {reason}"),
        WorkerEnd::Failed(failure) => format!("failed: {}", failure_sentence(failure)),
    }
}

pub fn verdict_sentence(verdict: &AttemptEnd) -> String {
    match verdict {
        AttemptEnd::Succeeded => "succeeded".to_owned(),
        AttemptEnd::Stopped { who } => format!("was stopped by {who}"),
        AttemptEnd::Preempted { for_job } => format!("was preempted for job {for_job}"),
        AttemptEnd::Drained { node } => format!("had to leave {node}, which was being drained"),
        AttemptEnd::Requeued { reason, .. } => format!("was requeued: {reason}"),
        AttemptEnd::Failed { worker, failure } => format!("failed: {}", culprit(*worker, failure)),
    }
}

pub fn outcome_sentence(outcome: &JobEnd) -> String {
    match outcome {
        JobEnd::Succeeded => "succeeded".to_owned(),
        JobEnd::Stopped { who } => format!("stopped by {who}"),
        JobEnd::Failed { attempt: AttemptNumber(1), worker, failure } => {
            format!("failed: {}", culprit(*worker, failure))
        }
        JobEnd::Failed { attempt, worker, failure } => {
            format!("failed at attempt {attempt}: {}", culprit(*worker, failure))
        }
    }
}

fn culprit(worker: WorkerIndex, failure: &WorkerFailure) -> String {
    format!("worker {worker}, {}", failure_sentence(failure))
}

fn failure_sentence(failure: &WorkerFailure) -> String {
    let who = failure.rank.map_or("it".to_owned(), |rank| format!("rank {rank}"));
    let ended = match failure.exit {
        Some(ProcessExit::Code(code)) => format!("{who} ended with code {code}"),
        Some(ProcessExit::Signal(signal)) => format!("{who} was killed by signal {signal}"),
        None => format!("{who} ended"),
    };
    let sentence = match failure.cause {
        FailureCause::Exit | FailureCause::DeviceError | FailureCause::ProgramError => ended,
        FailureCause::Hang => "it hung".to_owned(),
        FailureCause::OutOfMemory => format!("{who} was killed for using more memory than the job asked for"),
        FailureCause::TimeLimit => "it ran longer than its `max_time`".to_owned(),
        FailureCause::StartFailed => "it could not be started".to_owned(),
        FailureCause::SetupFailed => match failure.exit {
            Some(exit) => format!("its `setup` ended with code {}", exit.shell_code()),
            None => "its `setup` failed".to_owned(),
        },
        FailureCause::GangTimeout => "its gang did not assemble in time".to_owned(),
        FailureCause::LauncherLost => "its launcher was lost".to_owned(),
        FailureCause::NodeLost => "its node went away".to_owned(),
    };
    if failure.detail.is_empty() { sentence } else { format!("{sentence} ({})", failure.detail) }
}

fn waiting_reason(job: &Job, why: &QueueCause) -> Reason {
    match why {
        QueueCause::Submitted => word("not_yet_considered", "just submitted".to_owned()),
        QueueCause::Released => word("not_yet_considered", "just released".to_owned()),
        QueueCause::Approved { by } => word("not_yet_considered", format!("just approved by {by}")),
        QueueCause::Preempted { for_job, .. } => {
            word("preempted", format!("gave its devices to job {for_job}; keeps its place"))
                .with("job", for_job)
        }
        QueueCause::Drained { node, .. } => {
            word("drained", format!("had to leave {node}, which is being drained; keeps its place"))
                .with("node", node)
        }
        QueueCause::Retry { attempt, not_before } => {
            let past = job.past.iter().find(|past| past.attempt.number == *attempt);
            let failure = past.and_then(|past| match &past.verdict {
                AttemptEnd::Failed { worker, failure } => Some((*worker, failure)),
                _ => None,
            });
            let cause = failure.map(|(worker, failure)| format!(" ({})", culprit(worker, failure)));
            let cause = cause.unwrap_or_default();
            let text =
                format!("attempt {attempt} failed{cause}; the next starts no earlier than {not_before:.0}");
            let reason = word("back_off", text).with("until", not_before).with("attempt", attempt);
            match failure {
                Some((_, failure)) => reason.with("cause", failure.cause.as_str()),
                None => reason,
            }
        }
        QueueCause::Requeued { reason, not_before, .. } => {
            word("requeued", requeued_sentence(reason, *not_before))
                .with("until", not_before)
                .with("detail", reason)
        }
    }
}

/// For a job that the engine has given back, and that is not planned again before a time.
pub fn requeued_sentence(reason: &str, not_before: Timestamp) -> String {
    format!("requeued at no cost of `retry`: {reason}; it is tried again from {not_before:.0} on")
}

fn activity_reason(attempt: &Attempt) -> Reason {
    match &attempt.stop {
        Some(stop) => match &stop.why {
            StopCause::ByUser { who } => {
                word("stop_requested", format!("stopping for {who}, with {} of grace", stop.grace))
                    .with("who", who)
                    .with("grace", stop.grace)
            }
            StopCause::Preempted { for_job } => word(
                "preempted",
                format!("giving its devices to job {for_job}, with {} of grace", stop.grace),
            )
            .with("job", for_job),
            StopCause::Drained { node } => word(
                "drained",
                format!("is leaving {node}, which is being drained, with {} of grace", stop.grace),
            )
            .with("node", node),
            StopCause::Requeued { reason } => {
                word("requeued", format!("is being requeued: {reason}")).with("detail", reason)
            }
            StopCause::WorkerFailed { worker } => {
                word("worker_failed", format!("worker {worker} failed; ending the others"))
                    .with("worker", worker)
            }
        },
        None if attempt.state() == JobState::Running => match attempt.workers.len() {
            1 => word("running", "running".to_owned()),
            workers => word("running", format!("running on {workers} workers")).with("workers", workers),
        },
        None => {
            let begun =
                attempt.workers.iter().filter(|worker| worker.state != WorkerLifecycle::Placed).count();
            word("starting", format!("{begun} of {} workers started", attempt.workers.len()))
                .with("started", begun)
                .with("workers", attempt.workers.len())
        }
    }
}

fn verdict_reason(verdict: &AttemptEnd) -> Reason {
    let sentence = verdict_sentence(verdict);
    match verdict {
        AttemptEnd::Succeeded => word("succeeded", sentence),
        AttemptEnd::Stopped { who } => word("stopped", sentence).with("who", who),
        AttemptEnd::Preempted { for_job } => word("preempted", sentence).with("job", for_job),
        AttemptEnd::Drained { node } => word("drained", sentence).with("node", node),
        AttemptEnd::Requeued { reason, .. } => word("requeued", sentence).with("detail", reason),
        AttemptEnd::Failed { worker, failure } => failed(*worker, failure, sentence),
    }
}

fn failed(worker: WorkerIndex, failure: &WorkerFailure, sentence: String) -> Reason {
    let mut reason = word(failure.cause.as_str(), sentence).with("worker", worker);
    if let Some(rank) = failure.rank {
        reason = reason.with("rank", rank);
    }
    if let Some(exit) = failure.exit {
        reason = reason.with("exit", exit.shell_code());
    }
    if failure.detail.is_empty() { reason } else { reason.with("detail", &failure.detail) }
}

fn attempt_view(attempt: &Attempt, ended_at: Option<Timestamp>, reason: Reason) -> AttemptView {
    let workers = attempt.workers.iter().zip(0..).map(|(worker, index)| worker_view(worker, index)).collect();
    AttemptView { number: attempt.number, placed_at: attempt.placed_at, ended_at, reason, workers }
}

fn worker_view(worker: &Worker, index: u32) -> WorkerView {
    let (phase, ended_at, reason) = match &worker.state {
        WorkerLifecycle::Placed => (WorkerPhase::Starting, None, None),
        WorkerLifecycle::Running { .. } => (WorkerPhase::Running, None, None),
        WorkerLifecycle::Ended { at, exit, .. } => {
            let sentence = exit_sentence(exit);
            let reason = match exit {
                WorkerEnd::Succeeded => word("succeeded", sentence),
                WorkerEnd::Stopped => word("stopped", sentence),
                WorkerEnd::Requeued { .. } => word("requeued", sentence),
                WorkerEnd::Failed(failure) => failed(WorkerIndex(index), failure, sentence),
            };
            (WorkerPhase::Ended, Some(*at), Some(reason))
        }
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

fn word(code: &str, text: String) -> Reason {
    Reason::new(code, text)
}
