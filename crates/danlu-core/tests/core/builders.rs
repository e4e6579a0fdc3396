//! Jobs, events and the words for them.

use std::sync::Arc;

use danlu_core::job::{Failure, Waiting, Whereabouts};
use danlu_core::{Event, Exit, FailureCause, Grant, Job, Life, Step, StopReason, WorkerExit, apply};
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

pub(crate) fn failed(cause: FailureCause) -> WorkerExit {
    let exit = (cause == FailureCause::Exit).then_some(Exit::Code(1));
    let rank = exit.is_some().then_some(Rank(3));
    WorkerExit::Failed(Failure { cause, rank, exit, detail: String::new() })
}

pub(crate) fn running(attempt: u32, worker: u32) -> Event {
    Event::WorkerRunning { attempt: AttemptNumber(attempt), worker: WorkerIndex(worker) }
}

/// To another node: to stay, or only in plans.
pub(crate) fn hangs(attempt: u32, worker: u32, hang: Option<&str>) -> Event {
    let (attempt, worker) = (AttemptNumber(attempt), WorkerIndex(worker));
    Event::WorkerHangs { attempt, worker, hang: hang.map(str::to_owned) }
}

pub(crate) fn moved(attempt: u32, worker: u32, node: &str, settled: bool) -> Event {
    let to = Whereabouts { node: NodeName(node.to_owned()), devices: Vec::new() };
    Event::WorkerMoved { attempt: AttemptNumber(attempt), worker: WorkerIndex(worker), to, settled }
}

pub(crate) fn ended(attempt: u32, worker: u32, exit: WorkerExit) -> Event {
    Event::WorkerEnded { attempt: AttemptNumber(attempt), worker: WorkerIndex(worker), exit }
}

pub(crate) fn stop(grace: Option<u64>) -> Event {
    Event::Stop { by: "ada".to_owned(), grace: grace.map(danlu_types::Span::from_seconds) }
}

/// What the job becomes; the event must be taken.
pub(crate) fn after(job: &Job, events: impl IntoIterator<Item = Event>) -> Job {
    let mut job = job.clone();
    for event in events {
        match apply(&job, event.clone(), at(60)) {
            Step::Next { job: next, .. } => job = *next,
            other => panic!("{event:?} was not taken: {other:?}"),
        }
    }
    job
}

/// The state, and where one state has several faces, which of them.
pub(crate) fn face(job: &Job) -> String {
    let state = job.state().as_str();
    let why = match &job.life {
        Life::Held { approval: Some(_), .. } => Some("needs approval"),
        Life::Held { approval: None, .. }
        | Life::Queued { why: Waiting::Submitted | Waiting::Released | Waiting::Approved { .. }, .. } => None,
        Life::Queued { why: Waiting::Preempted { .. }, .. } => Some("preempted"),
        Life::Queued { why: Waiting::Drained { .. }, .. } => Some("drained"),
        Life::Queued { why: Waiting::Retry { .. }, .. } => Some("back-off"),
        Life::Queued { why: Waiting::Requeued { .. }, .. } => Some("requeued"),
        Life::Active(attempt) => attempt.stop.as_ref().map(|stop| match stop.why {
            StopReason::ByUser { .. } => "by a person",
            StopReason::Preempted { .. } => "preempted",
            StopReason::Drained { .. } => "drained",
            StopReason::Requeued { .. } => "requeued",
            StopReason::WorkerFailed { .. } => "worker failed",
        }),
        Life::Ended { outcome, .. } => Some(outcome.word().as_str()),
    };
    why.map_or(state.to_owned(), |why| format!("{state} ({why})"))
}
