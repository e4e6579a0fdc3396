//! Jobs, events and the words for them.

use std::sync::Arc;

use danlu_core::job::{QueueCause, WorkerFailure, WorkerLocation};
use danlu_core::{
    FailureCause, Grant, Job, JobLifecycle, ProcessExit, StopCause, Transition, Trigger, WorkerEnd, apply,
};
use danlu_types::{AttemptNumber, Bytes, Cpus, JobId, JobSpec, NodeName, Rank, WorkerIndex};
use jiff::{SignedDuration, Timestamp};

pub(crate) fn at(seconds: i64) -> Timestamp {
    let start: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    start + SignedDuration::from_secs(seconds)
}

pub(crate) fn submitted(spec: JobSpec) -> Job {
    Job::submitted(JobId(7), "ada".to_owned(), Arc::new(spec), at(0))
}

/// One grant for each worker, on nodes `a`, `b`, ….
pub(crate) fn grants(workers: u32) -> Vec<Grant> {
    let name = |worker: u32| char::from_u32(u32::from('a') + worker).unwrap().to_string();
    let grant = |worker| Grant {
        node: NodeName(name(worker)),
        devices: Vec::new(),
        share: 1000,
        cpus: Cpus::whole(1),
        memory: Bytes(0),
    };
    (0..workers).map(grant).collect()
}

pub(crate) fn failed(cause: FailureCause) -> WorkerEnd {
    let exit = (cause == FailureCause::Exit).then_some(ProcessExit::Code(1));
    let rank = exit.is_some().then_some(Rank(3));
    WorkerEnd::Failed(WorkerFailure { cause, rank, exit, detail: String::new() })
}

pub(crate) fn running(attempt: u32, worker: u32) -> Trigger {
    Trigger::WorkerRunning { attempt: AttemptNumber(attempt), worker: WorkerIndex(worker) }
}

/// To another node: to stay, or only in plans.
pub(crate) fn hangs(attempt: u32, worker: u32, hang: Option<&str>) -> Trigger {
    let (attempt, worker) = (AttemptNumber(attempt), WorkerIndex(worker));
    Trigger::WorkerHangs { attempt, worker, hang: hang.map(str::to_owned) }
}

pub(crate) fn moved(attempt: u32, worker: u32, node: &str, settled: bool) -> Trigger {
    let to = WorkerLocation { node: NodeName(node.to_owned()), devices: Vec::new() };
    Trigger::WorkerMoved { attempt: AttemptNumber(attempt), worker: WorkerIndex(worker), to, settled }
}

pub(crate) fn ended(attempt: u32, worker: u32, exit: WorkerEnd) -> Trigger {
    Trigger::WorkerEnded { attempt: AttemptNumber(attempt), worker: WorkerIndex(worker), exit }
}

pub(crate) fn stop(grace: Option<u64>) -> Trigger {
    Trigger::Stop { by: "ada".to_owned(), grace: grace.map(danlu_types::Span::from_seconds) }
}

/// What the job becomes; the event must be taken.
pub(crate) fn after(job: &Job, events: impl IntoIterator<Item = Trigger>) -> Job {
    let mut job = job.clone();
    for event in events {
        match apply(&job, event.clone(), at(60)) {
            Transition::Next { job: next, .. } => job = *next,
            other => panic!("{event:?} was not taken: {other:?}"),
        }
    }
    job
}

/// The state, and where one state has several faces, which of them.
pub(crate) fn face(job: &Job) -> String {
    let state = job.state().as_str();
    let why = match &job.life {
        JobLifecycle::Held { approval: Some(_), .. } => Some("needs approval"),
        JobLifecycle::Held { approval: None, .. }
        | JobLifecycle::Queued {
            why: QueueCause::Submitted | QueueCause::Released | QueueCause::Approved { .. },
            ..
        } => None,
        JobLifecycle::Queued { why: QueueCause::Preempted { .. }, .. } => Some("preempted"),
        JobLifecycle::Queued { why: QueueCause::Drained { .. }, .. } => Some("drained"),
        JobLifecycle::Queued { why: QueueCause::Retry { .. }, .. } => Some("back-off"),
        JobLifecycle::Queued { why: QueueCause::Requeued { .. }, .. } => Some("requeued"),
        JobLifecycle::Active(attempt) => attempt.stop.as_ref().map(|stop| match stop.why {
            StopCause::ByUser { .. } => "by a person",
            StopCause::Preempted { .. } => "preempted",
            StopCause::Drained { .. } => "drained",
            StopCause::Requeued { .. } => "requeued",
            StopCause::WorkerFailed { .. } => "worker failed",
        }),
        JobLifecycle::Ended { outcome, .. } => Some(outcome.word().as_str()),
    };
    why.map_or(state.to_owned(), |why| format!("{state} ({why})"))
}
