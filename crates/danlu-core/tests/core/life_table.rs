//! The whole transition function as a table: a snapshot, and a page of the reference that is checked to be fresh.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::sync::Arc;

use danlu_core::{ApprovalNeed, FailureCause, Job, Transition, Trigger, WorkerEnd, apply};
use danlu_types::api::JobState;
use danlu_types::{AttemptNumber, JobId, JobSpec, NodeName, Retry, RetryCause};

use crate::builders::{after, at, ended, face, failed, grants, hangs, moved, running, stop, submitted};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/job-life.md");

const INTRODUCTION: &str = "\
# The life of a job

<!-- Written by a test of danlu-core from the code itself: `DANLU_BLESS=1 cargo test -p danlu-core` rewrites it. -->

A job is queued until the scheduler gives it devices, or held while a person wants it to wait. Each try at running it is an
*attempt*: its workers are started together, and it ends when the last of them has. After a preemption, or a failure that
`retry` covers, the job is queued again, in its old place; otherwise it has ended. One total function decides all of this
([`transition.rs`](../../crates/danlu-core/src/transition.rs)): every event in every state is taken, ignored because it is
old news, or refused with a sentence. Only starting, running and stopping jobs hold devices.
";

const LEGEND: &str = "\
The tables below show every event in every state, for a job of two workers with `retry: { limit: 1, on: [node_lost] }`. A cell
says which state follows and what is written into the job's history; `·` means that the event is ignored.
";

fn states() -> Vec<(&'static str, Job)> {
    let retry = Retry { limit: 1, on: vec![RetryCause::NodeLost] };
    let queued = submitted(JobSpec { workers: 2, retry, ..JobSpec::of_command("true") });
    let place = || Trigger::Place { grants: grants(2) };
    let held = after(&queued, [Trigger::Hold { by: "ada".to_owned() }]);
    let starting = after(&queued, [place()]);
    let running_both = after(&starting, [running(1, 0), running(1, 1)]);
    let one_done = after(&running_both, [ended(1, 0, WorkerEnd::Succeeded)]);
    let stopping = after(&running_both, [stop(None)]);
    let stopping_last = after(&stopping, [ended(1, 0, WorkerEnd::Stopped)]);
    let preempted = after(&running_both, [Trigger::Preempt { for_job: JobId(8) }]);
    let preempted_last = after(&preempted, [ended(1, 0, WorkerEnd::Stopped)]);
    let lost = || failed(FailureCause::NodeLost);
    let failing = after(&running_both, [ended(1, 0, lost())]);
    let back_off = after(&failing, [ended(1, 1, WorkerEnd::Stopped)]);
    let last_chance =
        after(&back_off, [place(), running(2, 0), running(2, 1), ended(2, 0, WorkerEnd::Succeeded)]);
    let succeeded = after(&one_done, [ended(1, 1, WorkerEnd::Succeeded)]);
    let needs_approval =
        queued.clone().waiting_for_approval(ApprovalNeed::Sentence("asks for much".to_owned()));
    vec![
        ("queued", queued),
        ("queued, backing off", back_off),
        ("held", held),
        ("held, needs approval", needs_approval),
        ("starting", starting),
        ("running", running_both),
        ("running, the other worker has succeeded", one_done),
        ("the same, without a retry left", last_chance),
        ("stopping for a person", stopping),
        ("stopping for a person, the other worker has ended", stopping_last),
        ("stopping for a preemption", preempted),
        ("stopping for a preemption, the other worker has ended", preempted_last),
        ("stopping, the other worker was lost", failing),
        ("ended", succeeded),
    ]
}

type MakeEvent = fn(&Job) -> Trigger;

/// The live attempt's number, or the last one's: news about it are then old.
fn attempt(job: &Job) -> u32 {
    let past = job.past.last().map(|past| past.attempt.number);
    job.active().map(|attempt| attempt.number).or(past).map_or(1, |number| number.0)
}

const WISHES: [(&str, MakeEvent); 10] = [
    ("hold", |_| Trigger::Hold { by: "ada".to_owned() }),
    ("release", |_| Trigger::Release { by: "ada".to_owned() }),
    ("approve", |job| Trigger::Approve { by: "otto".to_owned(), seen: job.generation }),
    ("change", |job| {
        let spec = JobSpec { workers: 3, ..JobSpec::clone(&job.spec) };
        Trigger::Change { by: "ada".to_owned(), spec: Arc::new(spec), approval: None, seen: job.generation }
    }),
    ("stop", |_| stop(None)),
    ("stop at once", |_| stop(Some(0))),
    ("preempt", |_| Trigger::Preempt { for_job: JobId(8) }),
    ("drain its node", |_| Trigger::Drain { node: NodeName("a".to_owned()), by: "ada".to_owned() }),
    ("requeue", |job| Trigger::Requeue {
        attempt: AttemptNumber(attempt(job)),
        reason: "Slurm's queue is closed".to_owned(),
    }),
    ("place", |_| Trigger::Place { grants: grants(2) }),
];

const NEWS: [(&str, MakeEvent); 12] = [
    ("worker 1 is elsewhere", |job| moved(attempt(job), 1, "c", true)),
    ("worker 1 is planned elsewhere", |job| moved(attempt(job), 1, "c", false)),
    ("worker 1 hangs", |job| hangs(attempt(job), 1, Some("nothing printed for 30m"))),
    ("worker 1 goes on", |job| hangs(attempt(job), 1, None)),
    ("its work is saved", |job| Trigger::Saved { attempt: AttemptNumber(attempt(job)) }),
    ("worker 1 runs", |job| running(attempt(job), 1)),
    ("worker 1 succeeded", |job| ended(attempt(job), 1, WorkerEnd::Succeeded)),
    ("worker 1 failed", |job| ended(attempt(job), 1, failed(FailureCause::Exit))),
    ("worker 1 was lost", |job| ended(attempt(job), 1, failed(FailureCause::NodeLost))),
    ("worker 1 was requeued", |job| {
        ended(attempt(job), 1, WorkerEnd::Requeued { reason: "Slurm preempted it".to_owned() })
    }),
    ("worker 1 was stopped", |job| ended(attempt(job), 1, WorkerEnd::Stopped)),
    ("news of another attempt", |job| ended(attempt(job) + 1, 1, WorkerEnd::Succeeded)),
];

fn cell(job: &Job, event: Trigger) -> String {
    match apply(job, event, at(120)) {
        Transition::Next { job: next, records } => {
            let messages: Vec<&str> = records.iter().map(|record| record.message.as_str()).collect();
            let colon = if messages.is_empty() { "" } else { ": " };
            format!("→ **{}**{colon}{}", face(&next), messages.join("; "))
        }
        Transition::Ignore => "·".to_owned(),
        Transition::Refuse(refusal) => format!("refused: {refusal}"),
    }
}

fn table(events: &[(&str, MakeEvent)]) -> String {
    let mut out = String::from("| |");
    for (name, _) in events {
        write!(out, " {name} |").unwrap();
    }
    writeln!(out, "\n|---|{}", "---|".repeat(events.len())).unwrap();
    for (name, job) in states() {
        write!(out, "| **{name}** |").unwrap();
        for (_, event) in events {
            write!(out, " {} |", cell(&job, event(&job))).unwrap();
        }
        out.push('\n');
    }
    out
}

/// Every change of state that some event makes, drawn.
fn diagram() -> String {
    let mut arrows = BTreeSet::new();
    for (_, job) in states() {
        for (name, event) in WISHES.iter().chain(&NEWS) {
            if let Transition::Next { job: next, .. } = apply(&job, event(&job), at(120)) {
                let (from, to) = (job.state(), next.state());
                // Worker 1 is one of several: its number says nothing in a picture.
                let name = name.replace("worker 1", "a worker").replace("stop at once", "stop");
                let name = match (from, name.starts_with("a worker ")) {
                    (JobState::Stopping, true) => "the last worker has ended".to_owned(),
                    _ => name,
                };
                if from != to {
                    arrows.insert((from, to, name));
                }
            }
        }
    }
    let starting = states().into_iter().find(|(name, _)| *name == "starting").unwrap().1;
    let starting = after(&starting, [running(1, 0)]);
    let begun = after(&starting, [running(1, 1)]);
    arrows.insert((starting.state(), begun.state(), "all workers run".to_owned()));
    let mut out = String::from("```mermaid\nstateDiagram-v2\n    [*] --> queued: submit\n");
    let mut pairs: Vec<_> = arrows.iter().map(|(from, to, _)| (*from, *to)).collect();
    pairs.dedup();
    for (from, to) in pairs {
        let same = arrows.iter().filter(|(a, b, _)| (*a, *b) == (from, to));
        let names: Vec<&str> = same.map(|(_, _, name)| name.as_str()).collect();
        writeln!(out, "    {} --> {}: {}", from.as_str(), to.as_str(), names.join(", ")).unwrap();
    }
    out.push_str("    ended --> [*]\n```\n");
    out
}

fn page() -> String {
    let (diagram, wishes, news) = (diagram(), table(&WISHES), table(&NEWS));
    format!(
        "{INTRODUCTION}\n{diagram}\n{LEGEND}\n## What people and the scheduler want\n\n{wishes}\n\
         ## What workers report\n\n{news}"
    )
}

#[test]
fn every_event_in_every_state() {
    let tables = format!("{}\n{}", table(&WISHES), table(&NEWS));
    insta::assert_snapshot!(tables);
}

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "the page lies in the tree; the crate itself still reads nothing"
)]
fn the_reference_page_is_fresh() {
    let page = page();
    if std::env::var_os("DANLU_BLESS").is_some() {
        std::fs::create_dir_all(std::path::Path::new(PAGE).parent().unwrap()).unwrap();
        std::fs::write(PAGE, &page).unwrap();
    }
    let written = std::fs::read_to_string(PAGE).unwrap_or_default();
    assert!(
        written == page,
        "docs/reference/job-life.md is not what the code does; `DANLU_BLESS=1 cargo test -p danlu-core` rewrites it"
    );
}
