//! What holds for every life, however events and clocks jumble. Each invariant is a test of its own name.

use std::collections::BTreeMap;
use std::sync::Arc;

use danlu_core::job::{AttemptEnd, PastAttempt, QueueCause};
use danlu_core::transition::EventKind;
use danlu_core::{
    FailureCause, HistoryEvent, Job, JobEnd, JobLifecycle, StopCause, Transition, Trigger, WorkerEnd,
    WorkerLifecycle, apply, view,
};
use danlu_types::{AttemptNumber, JobId, JobSpec, NodeName, Retry, RetryCause, Span, WorkerIndex};
use proptest::prelude::*;

use crate::builders::{at, failed, grants, hangs, moved, submitted};

/// What to try next; which attempt it is about is filled in while walking, so that most news are not stale.
#[derive(Debug, Clone)]
enum Try {
    Hold,
    Release,
    Stop(Option<u64>),
    Change { workers: u32, stale: bool },
    Preempt,
    Drain,
    Requeue { stale: bool },
    Place { workers_too_few: bool },
    Running { worker: u32, stale: bool },
    Moved { worker: u32, stale: bool, settled: bool },
    Hangs { worker: u32, stale: bool, hang: bool },
    Saved { stale: bool },
    Ended { worker: u32, stale: bool, exit: WorkerEnd },
}

/// One event, what the job was before it, and what it became.
#[derive(Debug)]
struct Taken {
    before: Job,
    event: Trigger,
    step: Transition,
}

impl Taken {
    fn after(&self) -> &Job {
        match &self.step {
            Transition::Next { job, .. } => job,
            Transition::Ignore | Transition::Refuse(_) => &self.before,
        }
    }

    fn records(&self) -> &[HistoryEvent] {
        match &self.step {
            Transition::Next { records, .. } => records,
            Transition::Ignore | Transition::Refuse(_) => &[],
        }
    }
}

fn an_exit() -> impl Strategy<Value = WorkerEnd> {
    let causes = [
        FailureCause::Exit,
        FailureCause::OutOfMemory,
        FailureCause::TimeLimit,
        FailureCause::StartFailed,
        FailureCause::NodeLost,
    ];
    prop_oneof![
        2 => Just(WorkerEnd::Succeeded),
        1 => Just(WorkerEnd::Stopped),
        1 => Just(WorkerEnd::Requeued { reason: "as planned".to_owned() }),
        3 => prop::sample::select(causes.to_vec()).prop_map(failed),
    ]
}

fn a_try() -> impl Strategy<Value = Try> {
    let stale = || prop::bool::weighted(0.1);
    prop_oneof![
        1 => Just(Try::Hold),
        1 => Just(Try::Release),
        1 => prop::option::of(0..60u64).prop_map(Try::Stop),
        1 => (1..4u32, stale()).prop_map(|(workers, stale)| Try::Change { workers, stale }),
        2 => Just(Try::Preempt),
        1 => Just(Try::Drain),
        2 => stale().prop_map(|stale| Try::Requeue { stale }),
        6 => prop::bool::weighted(0.1).prop_map(|workers_too_few| Try::Place { workers_too_few }),
        6 => (0..4u32, stale()).prop_map(|(worker, stale)| Try::Running { worker, stale }),
        3 => (0..4u32, stale(), prop::bool::ANY)
            .prop_map(|(worker, stale, settled)| Try::Moved { worker, stale, settled }),
        3 => (0..4u32, stale(), prop::bool::ANY)
            .prop_map(|(worker, stale, hang)| Try::Hangs { worker, stale, hang }),
        2 => stale().prop_map(|stale| Try::Saved { stale }),
        12 => (0..4u32, stale(), an_exit())
            .prop_map(|(worker, stale, exit)| Try::Ended { worker, stale, exit }),
    ]
}

/// Lives of up to 60 events. Clocks jump: times are in no order.
fn a_life() -> impl Strategy<Value = Vec<Taken>> {
    let causes =
        vec![RetryCause::NodeLost, RetryCause::Exit, RetryCause::StartFailed, RetryCause::OutOfMemory];
    let on = prop::sample::subsequence(causes, 0..=4);
    let tries = prop::collection::vec((a_try(), -10_000..10_000i64), 1..60);
    (1..4u32, 0..4u32, on, tries).prop_map(|(workers, limit, on, tries)| {
        let spec = JobSpec { workers, retry: Retry { limit, on }, ..JobSpec::of_command("true") };
        let mut job = submitted(spec);
        let mut life = Vec::new();
        for (attempted, seconds) in tries {
            let event = event_of(&job, attempted);
            let step = apply(&job, event.clone(), at(seconds));
            life.push(Taken { before: job.clone(), event, step });
            job = life.last().unwrap().after().clone();
        }
        life
    })
}

fn event_of(job: &Job, attempted: Try) -> Trigger {
    let attempt = |stale: bool| {
        let live = job.active().map_or(job.next_attempt(), |attempt| attempt.number);
        if stale { AttemptNumber(live.0 - 1) } else { live }
    };
    match attempted {
        Try::Hold => Trigger::Hold { by: "ada".to_owned() },
        Try::Release => Trigger::Release { by: "ada".to_owned() },
        Try::Stop(grace) => Trigger::Stop { by: "ada".to_owned(), grace: grace.map(Span::from_seconds) },
        Try::Change { workers, stale } => Trigger::Change {
            by: "ada".to_owned(),
            spec: Arc::new(JobSpec { workers, ..JobSpec::clone(&job.spec) }),
            approval: None,
            seen: job.generation - u64::from(stale),
        },
        Try::Preempt => Trigger::Preempt { for_job: JobId(8) },
        Try::Drain => Trigger::Drain { node: NodeName("a".to_owned()), by: "ada".to_owned() },
        Try::Requeue { stale } => {
            Trigger::Requeue { attempt: attempt(stale), reason: "as planned".to_owned() }
        }
        Try::Place { workers_too_few } => {
            Trigger::Place { grants: grants(job.spec.workers - u32::from(workers_too_few)) }
        }
        Try::Running { worker, stale } => {
            Trigger::WorkerRunning { attempt: attempt(stale), worker: WorkerIndex(worker) }
        }
        Try::Moved { worker, stale, settled } => moved(attempt(stale).0, worker, "z", settled),
        Try::Hangs { worker, stale, hang } => hangs(attempt(stale).0, worker, hang.then_some("silent")),
        Try::Saved { stale } => Trigger::Saved { attempt: attempt(stale) },
        Try::Ended { worker, stale, exit } => {
            Trigger::WorkerEnded { attempt: attempt(stale), worker: WorkerIndex(worker), exit }
        }
    }
}

fn last(life: &[Taken]) -> &Job {
    life.last().unwrap().after()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn an_ended_job_holds_nothing_and_never_changes_again(life in a_life()) {
        for taken in &life {
            if matches!(taken.before.life, JobLifecycle::Ended { .. }) {
                prop_assert!(taken.before.active().is_none());
                prop_assert_eq!(taken.after(), &taken.before);
            }
        }
    }

    #[test]
    fn only_a_change_of_what_waits_changes_a_spec(life in a_life()) {
        for taken in &life {
            if taken.after().spec != taken.before.spec {
                let is_current = matches!(taken.event, Trigger::Change { seen, .. } if seen == taken.before.generation);
                prop_assert!(is_current && taken.before.active().is_none() && taken.after().active().is_none());
            }
        }
    }

    #[test]
    fn a_preempted_job_keeps_its_place(life in a_life()) {
        for taken in &life {
            prop_assert_eq!(taken.after().place(), life[0].before.place());
            prop_assert_eq!(taken.after().submitted_at, life[0].before.submitted_at);
        }
    }

    #[test]
    fn a_preempted_attempt_ends_in_the_queue_or_in_success_or_in_a_persons_stop(life in a_life()) {
        for taken in &life {
            let Some(attempt) = taken.before.active() else { continue };
            let stop = attempt.stop.as_ref().map(|stop| &stop.why);
            let preempted = matches!(stop, Some(StopCause::Preempted { .. } | StopCause::Drained { .. }));
            if preempted && taken.after().active().is_none() {
                let why = |why: &QueueCause| matches!(why, QueueCause::Preempted { .. } | QueueCause::Drained { .. });
                let queued = matches!(&taken.after().life, JobLifecycle::Queued { why: waits, .. } if why(waits));
                prop_assert!(queued || taken.after().past.last().unwrap().verdict == AttemptEnd::Succeeded);
            }
        }
    }

    #[test]
    fn every_attempt_begins_and_ends_exactly_once(life in a_life()) {
        let mut begun: BTreeMap<AttemptNumber, u32> = BTreeMap::new();
        let mut over: BTreeMap<AttemptNumber, u32> = BTreeMap::new();
        for record in life.iter().flat_map(Taken::records) {
            let counts = match record.kind {
                EventKind::AttemptPlaced => &mut begun,
                EventKind::AttemptEnded => &mut over,
                _ => continue,
            };
            *counts.entry(record.attempt.unwrap()).or_default() += 1;
        }
        let job = last(&life);
        let past: Vec<AttemptNumber> = job.past.iter().map(|past| past.attempt.number).collect();
        prop_assert!(begun.values().chain(over.values()).all(|count| *count == 1));
        prop_assert_eq!(over.into_keys().collect::<Vec<_>>(), past.clone());
        let live = job.active().map(|attempt| attempt.number);
        prop_assert_eq!(begun.into_keys().collect::<Vec<_>>(), past.into_iter().chain(live).collect::<Vec<_>>());
    }

    #[test]
    fn attempt_numbers_count_from_one_without_gaps(life in a_life()) {
        let job = last(&life);
        let past = job.past.iter().map(|past| &past.attempt);
        let numbers: Vec<u32> = past.chain(job.active()).map(|attempt| attempt.number.0).collect();
        prop_assert_eq!(numbers.clone(), (1..).take(numbers.len()).collect::<Vec<_>>());
    }

    #[test]
    fn past_attempts_are_never_rewritten_and_all_their_workers_have_ended(life in a_life()) {
        for taken in &life {
            prop_assert!(taken.after().past.starts_with(&taken.before.past));
            for past in &taken.after().past {
                prop_assert!(past.attempt.has_ended());
            }
        }
    }

    #[test]
    fn the_generation_grows_by_exactly_one_with_each_step(life in a_life()) {
        for taken in &life {
            let grown = u64::from(matches!(taken.step, Transition::Next { .. }));
            prop_assert_eq!(taken.after().generation, taken.before.generation + grown);
        }
    }

    #[test]
    fn every_step_changes_something(life in a_life()) {
        for taken in &life {
            if let Transition::Next { job, .. } = &taken.step {
                let before = &taken.before;
                prop_assert_ne!((&job.spec, &job.life, &job.past), (&before.spec, &before.life, &before.past));
            }
        }
    }

    #[test]
    fn the_same_news_twice_is_ignored(life in a_life(), seconds in -10_000..10_000i64) {
        for taken in &life {
            let again = apply(taken.after(), taken.event.clone(), at(seconds));
            if matches!(taken.event, Trigger::WorkerRunning { .. } | Trigger::WorkerMoved { .. } | Trigger::WorkerHangs { .. } | Trigger::WorkerEnded { .. } | Trigger::Preempt { .. } | Trigger::Drain { .. } | Trigger::Requeue { .. }) {
                prop_assert_eq!(again, Transition::Ignore);
            }
        }
    }

    #[test]
    fn a_job_that_a_person_stopped_is_never_queued_again(life in a_life()) {
        let mut stopped = false;
        for taken in &life {
            stopped |= matches!((&taken.event, &taken.step), (Trigger::Stop { .. }, Transition::Next { .. }));
            if stopped {
                let waits = matches!(taken.after().life, JobLifecycle::Queued { .. } | JobLifecycle::Held { .. });
                prop_assert!(!waits);
            }
        }
    }

    #[test]
    fn a_stop_never_lengthens_the_grace_nor_starts_it_anew(life in a_life()) {
        for taken in &life {
            let stop = |job: &Job| job.active().and_then(|attempt| attempt.stop.clone());
            if let (Some(before), Some(after)) = (stop(&taken.before), stop(taken.after())) {
                prop_assert!(after.grace <= before.grace && after.since == before.since);
            }
        }
    }

    #[test]
    fn retries_never_exceed_their_limit_and_are_only_made_for_causes_that_were_named(life in a_life()) {
        let job = last(&life);
        let retry = &job.spec.retry;
        let is_failure = |past: &&PastAttempt| matches!(past.verdict, AttemptEnd::Failed { .. });
        prop_assert!(job.failures() <= retry.limit + 1);
        let over = matches!(job.life, JobLifecycle::Ended { outcome: JobEnd::Failed { .. }, .. });
        for past in job.past.iter().filter(is_failure).rev().skip(usize::from(over)) {
            let AttemptEnd::Failed { failure, .. } = &past.verdict else { unreachable!() };
            prop_assert!(failure.cause.retry_cause().is_some_and(|cause| retry.on.contains(&cause)));
        }
    }

    #[test]
    fn a_failed_attempt_names_a_worker_that_failed(life in a_life()) {
        for past in &last(&life).past {
            if let AttemptEnd::Failed { worker, failure } = &past.verdict {
                let state = &past.attempt.workers[worker.0 as usize].state;
                let named = matches!(state, WorkerLifecycle::Ended { exit: WorkerEnd::Failed(own), .. } if own == failure);
                prop_assert!(named);
            }
        }
    }

    #[test]
    fn a_gang_that_lost_a_worker_is_being_stopped(life in a_life()) {
        for taken in &life {
            let Some(attempt) = taken.after().active() else { continue };
            let lost = attempt.workers.iter().any(|worker| {
                matches!(&worker.state, WorkerLifecycle::Ended { exit, .. } if *exit != WorkerEnd::Succeeded)
            });
            prop_assert!(!lost || attempt.stop.is_some());
            prop_assert!(!attempt.has_ended());
        }
    }

    #[test]
    fn a_back_off_is_never_longer_than_five_minutes(life in a_life()) {
        for taken in &life {
            if let JobLifecycle::Queued { since, why: QueueCause::Retry { not_before, .. } } = &taken.after().life {
                let wait = not_before.duration_since(*since);
                prop_assert!((1..=300).contains(&wait.as_secs()));
            }
            if let JobLifecycle::Queued { since, why: QueueCause::Requeued { not_before, .. } } = &taken.after().life {
                let wait = not_before.duration_since(*since);
                prop_assert!((1..=600).contains(&wait.as_secs()));
            }
        }
    }

    #[test]
    fn lives_read_back_as_they_were_written(life in a_life()) {
        for taken in &life {
            let job = taken.after();
            let written = serde_json::to_string(&(&job.life, &job.past)).unwrap();
            let (life, past): (JobLifecycle, Vec<PastAttempt>) = serde_json::from_str(&written).unwrap();
            prop_assert_eq!((&life, &past), (&job.life, &job.past));
        }
    }

    #[test]
    fn every_life_can_be_shown(life in a_life()) {
        for taken in &life {
            let shown = view::job_view(taken.after(), None);
            prop_assert!(!shown.reason.to_string().is_empty());
            let ended = shown.outcome.is_some();
            prop_assert_eq!((ended, ended), (shown.ended_at.is_some(), shown.exit_code.is_some()));
        }
    }
}
