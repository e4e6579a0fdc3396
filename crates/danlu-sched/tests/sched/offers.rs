//! Explanations hold: what is offered starts, who is named holds, and what is estimated comes true.

use std::sync::Arc;

use danlu_core::{Job, Trigger};
use danlu_sched::Circumstances;
use danlu_types::api::{EstimateBound, Offer};
use danlu_types::{JobId, JobSpec, Span};
use proptest::prelude::*;

use crate::cases::{Case, a_case, a_case_of_boards, a_shared_case};
use crate::fixture::transcript;
use crate::world::World;

/// The spec with an offer's fields, as `--set` sets them.
fn with(offer: &Offer, spec: &JobSpec) -> JobSpec {
    let mut spec = spec.clone();
    for (key, value) in &offer.set {
        match key.as_str() {
            "preemptible" => spec.preemptible = value.parse().unwrap(),
            "devices.count" => spec.devices.count = value.parse().unwrap(),
            "devices.model" => spec.devices.model = Some(value.clone()),
            "workers" => spec.workers = value.parse().unwrap(),
            "cpus" => spec.cpus = value.parse().unwrap(),
            "memory" => spec.memory = Some(value.parse().unwrap()),
            "max_time" => spec.max_time = Some(value.parse().unwrap()),
            "workspace" => spec.workspace.clone_from(value),
            _ => panic!("nobody can set `{key}`"),
        }
    }
    spec
}

/// Takes one offer of one job that waits, and plans; the job must be among those that start.
fn take_an_offer(world: &mut World, choice: usize) -> Result<bool, TestCaseError> {
    let queued: Vec<Job> = world.queued().cloned().collect();
    let now = world.now;
    let explained = queued.iter().map(|job| (job, world.scheduler.explain(job, now).offers));
    let offers: Vec<(&Job, Offer)> =
        explained.flat_map(|(job, offers)| offers.into_iter().map(move |offer| (job, offer))).collect();
    if offers.is_empty() {
        return Ok(false);
    }
    let (job, offer) = &offers[choice % offers.len()];
    let (spec, seen) = (Arc::new(with(offer, &job.spec)), job.generation);
    world.apply(job.id, Trigger::Change { by: "ada".to_owned(), spec, approval: None, seen });
    let plan = world.plan();
    prop_assert!(plan.starts.iter().any(|start| start.job == job.id), "job {} with {offer:?}", job.id);
    Ok(true)
}

/// The same for a job that would be submitted like one that waits.
fn submit_as_offered(world: &mut World, choice: usize) -> Result<bool, TestCaseError> {
    let Some(like) = world.queued().next().cloned() else { return Ok(false) };
    let guest = Job::submitted(JobId(u64::MAX), like.owner.clone(), like.spec.clone(), world.now);
    let offers = world.scheduler.explain(&guest, world.now).offers;
    if offers.is_empty() {
        return Ok(false);
    }
    let offer = &offers[choice % offers.len()];
    let id = 1_000_000 + world.next_id();
    world.submit(id, &like.owner, with(offer, &like.spec));
    let plan = world.plan();
    prop_assert!(
        plan.starts.iter().any(|start| start.job == JobId(id)),
        "like job {} with {offer:?}",
        like.id
    );
    Ok(true)
}

fn play(case: &Case, choice: usize) -> Result<usize, TestCaseError> {
    let mut world = case.world();
    let mut taken = 0;
    for (number, step) in case.steps.iter().enumerate() {
        step.take(&mut world);
        world.plan();
        let has_taken = if number % 3 == 2 {
            submit_as_offered(&mut world, choice)?
        } else {
            take_an_offer(&mut world, choice)?
        };
        taken += usize::from(has_taken);
    }
    Ok(taken)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn every_offer_that_is_taken_starts_in_the_next_pass(
        case in prop_oneof![a_case(false), a_case(true), a_shared_case(false), a_case_of_boards()],
        choice in 0..64usize,
    ) {
        play(&case, choice)?;
    }
}

#[test]
fn a_changed_job_keeps_its_turn_unless_it_becomes_longer() {
    insta::assert_snapshot!(transcript(
        "
        node a 4 ascend:910B3
        job 1 devices ascend:4 max-time 1h
        plan
        job 2 devices ascend:4 max-time 10m at 1s
        job 3 devices ascend:4 max-time 10m at 2s
        change 2 cpus 2
        plan
        change 2 max-time 10h
        plan
        end 1 at 60s
        plan
    "
    ));
}

#[test]
fn what_was_reserved_for_a_job_is_free_when_it_asks_for_less() {
    insta::assert_snapshot!(transcript(
        "
        node a 4 ascend:910B3
        job 1 devices ascend:3 max-time 1h
        job 2 devices ascend:4 max-time 1h
        job 3 devices ascend:1 max-time 2h
        plan
        offers 2
        change 2 devices ascend:1
        plan
    "
    ));
}

#[test]
fn shortage_of_cpus_and_memory_is_blamed_on_those_who_hold_them() {
    let mut world = crate::fixture::world(
        "
        node a 8 nvidia:A100 cpus 64 memory 512Gi
        node b 8 ascend:910B3 cpus 64 memory 512Gi
        job 1 memory 400Gi devices nvidia:1
        job 2 devices nvidia:1 cpus 48
        job 3 memory 500Gi devices ascend:1
        plan
        job 4 devices nvidia:1 memory 200Gi
        job 5 devices nvidia:1 cpus 32
        plan
    ",
    );
    let mut holders = |id| {
        let explanation = world.scheduler.explain(&world.jobs[&JobId(id)], world.now);
        let holders = explanation.holders.iter();
        let holders: Vec<_> =
            holders.map(|holder| (holder.job.unwrap().0, holder.cpus, holder.memory)).collect();
        (
            explanation.reason.code(),
            holders,
            explanation.offers.into_iter().map(|offer| offer.set).collect::<Vec<_>>(),
        )
    };
    insta::assert_debug_snapshot!(holders(4));
    insta::assert_debug_snapshot!(holders(5));
}

#[test]
fn a_cordoned_node_is_named_with_the_reason_that_was_given() {
    let mut world = crate::fixture::world(
        "
        node a 8 nvidia:A100
        job 1 devices nvidia:8
        cordon a
        plan
    ",
    );
    let explanation = world.scheduler.explain(&world.jobs[&JobId(1)], world.now);
    assert_eq!(explanation.reason.word(), "nodes_cordoned");
    insta::assert_snapshot!(explanation.text);
}

#[test]
fn a_job_in_back_off_waits_for_nobody() {
    let mut world = crate::fixture::world(
        "
        node a 8 nvidia:A100
        job 1 devices nvidia:7
        job 2 devices nvidia:1 retries 3
        plan
        fail 2 exit
        plan
    ",
    );
    let explanation = world.scheduler.explain(&world.jobs[&JobId(2)], world.now);
    assert_eq!(explanation.reason.word(), "retry_backoff");
    assert!(explanation.holders.is_empty() && explanation.offers.is_empty() && explanation.supply.is_empty());
    insta::assert_snapshot!(explanation.text);
}

#[test]
fn who_may_be_preempted_soon_is_counted_on() {
    let mut world = crate::fixture::world(
        "
        node a 8 nvidia:A100
        minimum-run 20s
        job 1 devices nvidia:8 preemptible yes priority 1
        plan
        job 2 devices nvidia:8 priority 9 at 3s
        plan
    ",
    );
    let explanation = world.scheduler.explain(&world.jobs[&JobId(2)], world.now);
    let estimate = explanation.estimate.unwrap();
    assert_eq!((estimate.bound, estimate.basis.preemptions), (EstimateBound::Range, 1));
    assert_eq!(estimate.earliest, world.now + Span::from_seconds(17).to_duration());
    world.now = estimate.earliest;
    let plan = world.plan();
    assert_eq!(plan.preemptions.len(), 1, "it is true");
}

/// It said "at the earliest, going by a guess" from the order to stop until the victim had ended.
#[test]
fn who_has_been_told_to_stop_is_counted_on() {
    let mut world = crate::fixture::world(
        "
        node a 8 nvidia:A100
        minimum-run 0s
        job 1 devices nvidia:8 preemptible yes priority 1
        plan
        job 2 devices nvidia:8 priority 9 at 3s
        plan
    ",
    );
    let job = world.jobs[&JobId(2)].clone();
    let estimate = world.scheduler.explain(&job, world.now).estimate.expect("it is the next");
    assert_eq!(
        (estimate.bound, estimate.basis.preemptions, estimate.basis.guesses),
        (EstimateBound::Range, 1, 0)
    );
}

#[test]
fn reported_progress_says_when_a_job_ends_and_nothing_about_whose_turn_it_is() {
    let mut world = crate::fixture::world(
        "
        node a 8 nvidia:A100
        job 1 devices nvidia:8
        plan
        job 2 devices nvidia:8
        plan
    ",
    );
    let job = world.jobs[&JobId(2)].clone();
    let guess = world.scheduler.explain(&job, world.now).estimate.unwrap();
    assert_eq!((guess.bound, guess.latest, guess.basis.guesses), (EstimateBound::Earliest, None, 1));
    let end = world.now + Span::from_seconds(191).to_duration();
    let known = Circumstances { ends: [(JobId(1), end)].into(), ..Circumstances::default() };
    let explanation = world.scheduler.explain_with(&job, world.now, &known);
    let told = explanation.estimate.unwrap();
    assert_eq!((told.earliest, told.latest, told.basis.progress), (end, Some(end), 1));
    assert_eq!(explanation.holders[0].expected_end, Some(end));
}

#[test]
fn nothing_is_expected_of_jobs_that_hold_devices_and_do_not_run() {
    let mut world = crate::fixture::world(
        "
        node a 8 nvidia:A100
        node b 8 nvidia:A100
        job 1 devices nvidia:8 max-time 10m
        job 2 devices nvidia:8 max-time 1h
        plan
        job 3 devices nvidia:8
        plan
    ",
    );
    let job = world.jobs[&JobId(3)].clone();
    let at = |minutes: u64| Some(world.now + Span::from_seconds(60 * minutes).to_duration());
    let (ten, hour) = (at(10), at(60));
    let both = world.scheduler.explain(&job, world.now);
    assert_eq!(both.estimate.unwrap().latest, ten);
    let mut without = |held: &[u64]| {
        let held = held.iter().map(|id| JobId(*id)).collect();
        let known = Circumstances { held, ..Circumstances::default() };
        let explanation = world.scheduler.explain_with(&job, world.now, &known);
        let ends: Vec<_> = explanation.holders.iter().map(|holder| holder.expected_end).collect();
        (explanation.estimate.and_then(|estimate| estimate.latest), ends)
    };
    assert_eq!(without(&[1]), (hour, vec![None, hour]), "the other one ends first of those that run");
    assert_eq!(without(&[1, 2]), (None, vec![None, None]));
}

/// First-generation boards wire four devices together: a node of sixteen has sixteen.
#[test]
fn a_node_is_not_said_to_have_only_what_one_worker_may_get() {
    let mut world = crate::fixture::world("node a 16 ascend:910B");
    let spec = JobSpec { devices: "ascend:910B:8".parse().unwrap(), ..JobSpec::of_command("true") };
    let said = world.scheduler.check(&spec).unwrap_err().message;
    insta::assert_snapshot!(said, @"is 8, but one worker gets at most 4 Ascend 910B here, though the largest node has 16: only so many are wired together, or have the memory and CPUs that are asked for; use `workers: 2` with `count: 4`");
}

#[test]
fn what_a_limit_leaves_is_said_with_what_the_job_asks_for() {
    let mut world = crate::fixture::world(
        "
        node a 8 nvidia:A100
        workspace red limit nvidia=8
        job 1 workspace red devices nvidia:0.5
        job 2 workspace blue devices nvidia:1
        plan
        job 3 workspace red devices nvidia:8
        plan
    ",
    );
    let explanation = world.scheduler.explain(&world.jobs[&JobId(3)], world.now);
    insta::assert_snapshot!(explanation.text);
    assert_eq!(
        explanation.holders.iter().filter_map(|holder| holder.job).map(|job| job.0).collect::<Vec<_>>(),
        [1]
    );
}

#[test]
fn what_is_kept_for_a_head_is_not_expected_before_that_starts() {
    let mut world = crate::fixture::world(
        "
        node a 8 nvidia:A100
        job 1 devices nvidia:6 max-time 2h
        plan
        job 2 devices nvidia:8 max-time 1h
        job 3 devices nvidia:2 max-time 24h
        plan
    ",
    );
    let mut explain = |id| world.scheduler.explain(&world.jobs[&JobId(id)], world.now);
    let (head, behind) = (explain(2), explain(3));
    assert_eq!(behind.reason.word(), "reserved");
    assert!(behind.estimate.unwrap().earliest >= head.estimate.unwrap().earliest, "{}", behind.text);
    assert!(behind.offers.iter().any(|offer| offer.set.contains_key("max_time")), "{}", behind.text);
}
