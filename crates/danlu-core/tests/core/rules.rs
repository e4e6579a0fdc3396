//! The rules of a job's life, one story each.
//!
//! Each line of a story is an event, with its time in seconds; the transcript says what state follows, for which reason,
//! and what was written into the job's history.

use std::fmt::Write;
use std::sync::Arc;

use danlu_core::{ApprovalNeed, FailureCause, Job, Transition, Trigger, WorkerEnd, apply, view};
use danlu_types::{AttemptNumber, JobId, JobSpec, Retry, RetryCause};

use crate::builders::{at, ended, face, failed, grants, moved, running, stop, submitted};

fn spec(workers: u32) -> JobSpec {
    JobSpec { workers, ..JobSpec::of_command("true") }
}

fn with_retries(limit: u32, on: &[RetryCause]) -> JobSpec {
    JobSpec { retry: Retry { limit, on: on.to_vec() }, ..spec(1) }
}

fn hold() -> Trigger {
    Trigger::Hold { by: "ada".to_owned() }
}

fn release() -> Trigger {
    Trigger::Release { by: "ada".to_owned() }
}

fn preempt() -> Trigger {
    Trigger::Preempt { for_job: JobId(8) }
}

fn place(workers: u32) -> Trigger {
    Trigger::Place { grants: grants(workers) }
}

fn change(seen: u64, spec: JobSpec, approval: Option<&str>) -> Trigger {
    let approval = approval.map(|text| ApprovalNeed::Sentence(text.to_owned()));
    Trigger::Change { by: "ada".to_owned(), spec: Arc::new(spec), approval, seen }
}

fn approve(seen: u64) -> Trigger {
    Trigger::Approve { by: "otto".to_owned(), seen }
}

fn story(spec: JobSpec, events: impl IntoIterator<Item = (i64, Trigger)>) -> String {
    story_of(submitted(spec), events)
}

fn story_of(mut job: Job, events: impl IntoIterator<Item = (i64, Trigger)>) -> String {
    let mut out = format!("{}\n", told(&job));
    for (seconds, event) in events {
        writeln!(out, "{seconds:>4}s {}", name(&event)).unwrap();
        match apply(&job, event, at(seconds)) {
            Transition::Next { job: next, records } => {
                job = *next;
                for record in records {
                    writeln!(out, "      {} ({}): {}", record.kind.as_str(), record.actor, record.message)
                        .unwrap();
                }
                writeln!(out, "      {}", told(&job)).unwrap();
            }
            Transition::Ignore => out.push_str("      ignored\n"),
            Transition::Refuse(refusal) => writeln!(out, "      refused: {refusal}").unwrap(),
        }
    }
    if let Some(code) = view::exit_code(&job) {
        writeln!(out, "`danlu run` exits with {code}").unwrap();
    }
    out
}

fn told(job: &Job) -> String {
    format!("= {}: {}", face(job), view::reason(job, None))
}

fn name(event: &Trigger) -> String {
    match event {
        Trigger::Hold { .. } => "hold".to_owned(),
        Trigger::Release { .. } => "release".to_owned(),
        Trigger::Approve { seen, .. } => format!("approve what was seen at generation {seen}"),
        Trigger::Change { seen, .. } => format!("change what was seen at generation {seen}"),
        Trigger::Stop { grace: None, .. } => "stop".to_owned(),
        Trigger::Stop { grace: Some(grace), .. } => format!("stop with {grace} of grace"),
        Trigger::Preempt { for_job } => format!("preempt for {for_job}"),
        Trigger::Drain { node, .. } => format!("drain node {node}"),
        Trigger::Requeue { attempt, reason } => format!("attempt {attempt} is requeued: {reason}"),
        Trigger::Place { grants } => format!("place on {} node(s)", grants.len()),
        Trigger::WorkerMoved { attempt, worker, to, settled: true } => {
            format!("worker {attempt}.{worker} is on {}", to.node)
        }
        Trigger::WorkerMoved { attempt, worker, to, settled: false } => {
            format!("worker {attempt}.{worker} is planned for {}", to.node)
        }
        Trigger::WorkerRunning { attempt, worker } => format!("worker {attempt}.{worker} runs"),
        Trigger::WorkerHangs { attempt, worker, hang } => {
            format!("worker {attempt}.{worker} {}", if hang.is_some() { "hangs" } else { "goes on" })
        }
        Trigger::Saved { attempt } => format!("attempt {attempt} has saved its work"),
        Trigger::WorkerEnded { attempt, worker, exit } => {
            format!("worker {attempt}.{worker} ends: {}", view::worker_reason(exit))
        }
    }
}

macro_rules! assert_story {
    ($spec:expr, $events:expr) => {
        let story = story($spec, $events);
        insta::assert_snapshot!(story);
    };
}

#[test]
fn a_plain_success() {
    assert_story!(spec(1), [(1, place(1)), (2, running(1, 0)), (9, ended(1, 0, WorkerEnd::Succeeded))]);
}

#[test]
fn a_gang_runs_when_all_workers_do_and_has_succeeded_when_all_have() {
    assert_story!(
        spec(2),
        [
            (1, place(2)),
            (2, running(1, 1)),
            (3, running(1, 0)),
            (8, ended(1, 0, WorkerEnd::Succeeded)),
            (9, ended(1, 1, WorkerEnd::Succeeded)),
        ]
    );
}

#[test]
fn the_first_worker_to_fail_ends_the_gang_and_is_named() {
    assert_story!(
        spec(3),
        [
            (1, place(3)),
            (2, running(1, 0)),
            (2, running(1, 1)),
            (2, running(1, 2)),
            (5, ended(1, 1, failed(FailureCause::Exit))),
            (6, ended(1, 0, failed(FailureCause::NodeLost))),
            (7, ended(1, 2, WorkerEnd::Stopped)),
        ]
    );
}

#[test]
fn a_worker_that_somebody_else_stopped_ends_the_gang() {
    assert_story!(
        spec(2),
        [
            (1, place(2)),
            (2, running(1, 0)),
            (2, running(1, 1)),
            (5, ended(1, 0, WorkerEnd::Stopped)),
            (6, ended(1, 1, WorkerEnd::Stopped)),
        ]
    );
}

fn requeue(attempt: u32) -> Trigger {
    Trigger::Requeue { attempt: AttemptNumber(attempt), reason: "Slurm's queue is closed".to_owned() }
}

#[test]
fn what_the_engine_does_not_start_is_planned_again_ever_later() {
    assert_story!(
        spec(1),
        [
            (1, place(1)),
            (10, requeue(1)),
            (11, ended(1, 0, WorkerEnd::Stopped)),
            (12, place(1)),
            (20, requeue(2)),
            (21, ended(2, 0, WorkerEnd::Stopped)),
            (23, place(1)),
            (24, running(3, 0)),
            (25, requeue(3)),
            (30, ended(3, 0, WorkerEnd::Succeeded)),
        ]
    );
}

#[test]
fn a_job_that_the_cluster_requeues_keeps_its_retries() {
    let again = || WorkerEnd::Requeued { reason: "Slurm's job 17 was preempted by Slurm".to_owned() };
    assert_story!(
        spec(2),
        [
            (1, place(2)),
            (2, running(1, 0)),
            (2, running(1, 1)),
            (9, ended(1, 0, again())),
            (9, ended(1, 1, WorkerEnd::Stopped)),
            (11, place(2)),
            (12, running(2, 0)),
            (12, running(2, 1)),
            (19, ended(2, 0, again())),
            (20, ended(2, 1, failed(FailureCause::Exit))),
        ]
    );
}

#[test]
fn retries_back_off_and_run_out() {
    let lost = || failed(FailureCause::NodeLost);
    assert_story!(
        with_retries(2, &[RetryCause::NodeLost]),
        [
            (1, place(1)),
            (10, ended(1, 0, lost())),
            (11, place(1)),
            (20, ended(2, 0, lost())),
            (22, place(1)),
            (30, ended(3, 0, lost())),
        ]
    );
}

#[test]
fn only_causes_that_were_named_are_retried() {
    assert_story!(
        with_retries(5, &[RetryCause::NodeLost]),
        [(1, place(1)), (2, ended(1, 0, failed(FailureCause::OutOfMemory)))]
    );
}

#[test]
fn a_time_limit_is_never_retried() {
    let all = [RetryCause::NodeLost, RetryCause::Exit, RetryCause::DeviceError, RetryCause::OutOfMemory];
    assert_story!(
        with_retries(5, &all),
        [(1, place(1)), (2, running(1, 0)), (3602, ended(1, 0, failed(FailureCause::TimeLimit)))]
    );
}

#[test]
fn a_preempted_job_is_queued_again_without_using_up_a_retry() {
    assert_story!(
        with_retries(0, &[]),
        [
            (1, place(1)),
            (2, running(1, 0)),
            (5, preempt()),
            (6, preempt()),
            (7, ended(1, 0, WorkerEnd::Stopped)),
            (8, place(1)),
            (9, ended(2, 0, WorkerEnd::Succeeded)),
        ]
    );
}

#[test]
fn a_preempted_job_that_finished_in_its_grace_has_succeeded() {
    assert_story!(
        spec(1),
        [(1, place(1)), (2, running(1, 0)), (5, preempt()), (6, ended(1, 0, WorkerEnd::Succeeded))]
    );
}

#[test]
fn a_person_who_stops_a_preempted_job_ends_it_and_cannot_lengthen_its_grace() {
    assert_story!(
        spec(1),
        [
            (1, place(1)),
            (2, running(1, 0)),
            (5, preempt()),
            (6, stop(Some(600))),
            (7, ended(1, 0, WorkerEnd::Stopped)),
        ]
    );
}

#[test]
fn a_second_stop_may_shorten_the_grace() {
    assert_story!(
        spec(1),
        [
            (1, place(1)),
            (2, running(1, 0)),
            (3, stop(None)),
            (4, stop(Some(300))),
            (5, stop(Some(0))),
            (5, stop(None)),
            (6, ended(1, 0, failed(FailureCause::Exit))),
            (7, stop(None)),
        ]
    );
}

#[test]
fn held_jobs_are_not_placed() {
    assert_story!(
        spec(1),
        [(1, hold()), (2, hold()), (3, place(1)), (4, release()), (5, release()), (6, place(1)), (7, hold())]
    );
}

#[test]
fn a_job_that_never_started_is_stopped_at_once() {
    assert_story!(spec(1), [(1, hold()), (2, stop(None)), (3, release())]);
}

#[test]
fn a_gang_is_placed_whole() {
    assert_story!(spec(3), [(1, place(2)), (2, place(3)), (3, place(3))]);
}

#[test]
fn a_worker_is_where_the_cluster_put_it_and_stays_there() {
    assert_story!(
        spec(2),
        [
            (1, place(2)),
            (2, moved(1, 0, "c", false)),
            (3, moved(1, 0, "b", true)),
            (4, moved(1, 0, "c", false)),
            (5, moved(1, 0, "c", true)),
            (6, running(1, 1)),
            (7, moved(1, 1, "d", false)),
            (8, moved(1, 1, "b", true)),
            (9, running(1, 0)),
            (10, ended(1, 0, WorkerEnd::Succeeded)),
            (11, moved(1, 0, "d", true)),
        ]
    );
}

#[test]
fn news_of_attempts_that_are_over_are_old() {
    assert_story!(
        with_retries(1, &[RetryCause::NodeLost]),
        [
            (1, place(1)),
            (2, ended(1, 0, failed(FailureCause::NodeLost))),
            (3, running(1, 0)),
            (4, place(1)),
            (5, ended(1, 0, WorkerEnd::Succeeded)),
            (6, running(2, 0)),
            (7, running(2, 5)),
            (8, ended(2, 0, WorkerEnd::Succeeded)),
            (9, ended(2, 0, failed(FailureCause::NodeLost))),
        ]
    );
}

#[test]
fn a_job_that_needs_approval_is_not_released_by_its_owner() {
    let job = submitted(spec(1)).waiting_for_approval(ApprovalNeed::Sentence("asks for much".to_owned()));
    let story = story_of(job, [(1, release()), (2, hold()), (3, place(1)), (4, approve(1)), (5, approve(1))]);
    insta::assert_snapshot!(story);
}

#[test]
fn a_job_that_changed_since_it_was_looked_at_is_not_approved() {
    let need = ApprovalNeed::Sentence("asks for much".to_owned());
    let job = submitted(spec(2)).waiting_for_approval(need);
    let events = [(1, change(1, spec(64), Some("asks for more"))), (2, approve(1)), (3, approve(2))];
    insta::assert_snapshot!(story_of(job, events));
}

#[test]
fn a_waiting_job_is_changed_in_place_and_a_running_one_is_not() {
    let short = |workers| JobSpec { max_time: Some(danlu_types::Span::from_seconds(600)), ..spec(workers) };
    assert_story!(
        spec(2),
        [
            (1, change(1, short(4), None)),
            (2, change(1, short(1), None)),
            (3, change(2, short(4), None)),
            (4, hold()),
            (5, change(3, short(1), None)),
            (6, release()),
            (7, place(1)),
            (8, change(6, short(4), None)),
            (9, running(1, 0)),
            (10, ended(1, 0, WorkerEnd::Succeeded)),
            (11, change(8, short(4), None)),
        ]
    );
}

#[test]
fn a_change_is_approved_as_a_submission_is() {
    let large = JobSpec { command: "python\ttrain.py".to_owned(), ..spec(9) };
    assert_story!(
        spec(1),
        [
            (1, change(1, large.clone(), Some("asks for much"))),
            (2, change(2, spec(8), Some("asks for less"))),
            (3, place(8)),
            (4, change(3, spec(1), None)),
            (5, hold()),
            (6, change(5, large, Some("asks for much"))),
            (7, release()),
        ]
    );
}
