//! Jobs to store. Lives are made by the one function that makes lives, so that what is stored is what will be.

use std::sync::Arc;

use danlu_core::job::WorkerFailure;
use danlu_core::transition::EventKind;
use danlu_core::{
    FailureCause, Grant, HistoryEvent, Job, ProcessExit, Transition, Trigger, WorkerEnd, apply,
};
use danlu_store::{Batch, Insert, SubmissionKey, Update};
use danlu_types::{AttemptNumber, Bytes, Cpus, JobId, JobSpec, NodeName, Rank, WorkerIndex};
use jiff::Timestamp;

/// A time with more digits than a database column keeps.
pub(crate) fn time(second: i64) -> Timestamp {
    Timestamp::new(1_800_000_000 + second, 123_456_789).unwrap()
}

pub(crate) fn job(id: u64) -> Job {
    job_with(id, |_| {})
}

pub(crate) fn job_with(id: u64, change: impl FnOnce(&mut JobSpec)) -> Job {
    let mut spec = JobSpec::of_command("python train.py");
    change(&mut spec);
    Job::submitted(JobId(id), "ada".to_owned(), Arc::new(spec), time(i64::try_from(id).unwrap()))
}

pub(crate) fn record(message: &str) -> HistoryEvent {
    HistoryEvent {
        kind: EventKind::JobSubmitted,
        attempt: None,
        actor: "ada".to_owned(),
        message: message.to_owned(),
    }
}

pub(crate) fn insert(job: &Job) -> Insert {
    let records = vec![record(&format!("job {} submitted", job.id))];
    Insert { job: job.clone(), submission_key: None, at: job.submitted_at, records }
}

pub(crate) fn insert_keyed(job: &Job, key: &str) -> Insert {
    let keyed = SubmissionKey { key: key.to_owned(), digest: format!("digest of job {}", job.id) };
    Insert { submission_key: Some(keyed), ..insert(job) }
}

pub(crate) fn inserts<'a>(jobs: impl IntoIterator<Item = &'a Job>) -> Batch {
    Batch { inserts: jobs.into_iter().map(insert).collect(), updates: Vec::new() }
}

/// What happens to a job, and the update that says so.
pub(crate) fn step(job: &Job, event: Trigger, second: i64) -> Update {
    match apply(job, event, time(second)) {
        Transition::Next { job: next, records } => {
            Update { job: *next, seen_generation: job.generation, at: time(second), records }
        }
        other => panic!("the event had no effect: {other:?}"),
    }
}

pub(crate) fn hold(by: &str) -> Trigger {
    Trigger::Hold { by: by.to_owned() }
}

pub(crate) fn stop() -> Trigger {
    Trigger::Stop { by: "ada".to_owned(), grace: None }
}

pub(crate) fn place() -> Trigger {
    let grant = Grant {
        node: NodeName("n1".to_owned()),
        devices: vec![0, 3],
        share: 1000,
        cpus: Cpus::whole(1),
        memory: Bytes(1),
    };
    Trigger::Place { grants: vec![grant] }
}

pub(crate) fn running(attempt: u32) -> Trigger {
    Trigger::WorkerRunning { attempt: AttemptNumber(attempt), worker: WorkerIndex(0) }
}

pub(crate) fn ended(attempt: u32, exit: WorkerEnd) -> Trigger {
    Trigger::WorkerEnded { attempt: AttemptNumber(attempt), worker: WorkerIndex(0), exit }
}

pub(crate) fn failed(detail: &str) -> WorkerEnd {
    WorkerEnd::Failed(WorkerFailure {
        cause: FailureCause::Exit,
        rank: Some(Rank(3)),
        exit: Some(ProcessExit::Signal(9)),
        detail: detail.to_owned(),
    })
}

/// A job that ended `second` seconds into the test.
pub(crate) fn ended_job(id: u64, exit: WorkerEnd, second: i64) -> Job {
    let placed = step(&job(id), place(), second).job;
    let begun = step(&placed, running(1), second).job;
    step(&begun, ended(1, exit), second).job
}
