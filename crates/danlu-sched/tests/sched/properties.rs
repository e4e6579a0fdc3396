//! What holds for every plan, on random small clusters, rules and histories.

use std::collections::{BTreeMap, BTreeSet};

use danlu_core::job::{Stop, StopCause};
use danlu_core::{Grant, Job};
use danlu_sched::{Cluster, Plan, Scheduler, WaitReason};
use danlu_types::device::WHOLE_DEVICE;
use danlu_types::{Amounts, JobId, Node};
use jiff::SignedDuration;
use proptest::prelude::*;

use crate::cases::{Case, a_case, a_case_of_boards, a_crowd, a_shared_case};
use crate::world::World;

/// Plays a case; `look` sees the world before each plan is carried out, and after.
fn play(
    case: &Case,
    mut look: impl FnMut(&World, &Plan, &World) -> Result<(), TestCaseError>,
) -> Result<(), TestCaseError> {
    let mut world = case.world();
    for step in &case.steps {
        step.take(&mut world);
        let plan = world.scheduler.plan(world.now);
        let before = world.copy();
        world.carry_out(&plan);
        look(&before, &plan, &world)?;
    }
    Ok(())
}

fn node_of<'a>(nodes: &'a [Node], grant: &Grant) -> &'a Node {
    nodes.iter().find(|node| node.name == grant.node).unwrap()
}

/// Devices in thousandths by kind, CPUs and memory, of everybody for whom `counts` holds.
fn used(world: &World, counts: impl Fn(&Job) -> bool) -> [u64; 4] {
    let mut all = [0; 4];
    for (_, grants) in world.holders().filter(|(job, _)| counts(job)) {
        for grant in grants {
            let node = node_of(&world.nodes, &grant);
            for index in &grant.devices {
                let device = node.devices.iter().find(|device| device.index == *index).unwrap();
                all[device.kind as usize] += u64::from(grant.share);
            }
            all[2] += grant.cpus.milli;
            all[3] += grant.memory.0;
        }
    }
    all
}

fn is_within(used: [u64; 4], most: &Amounts) -> bool {
    let most = [
        most.nvidia.map(|count| u64::from(count.milli())),
        most.ascend.map(|count| u64::from(count.milli())),
        most.cpus.map(|cpus| cpus.milli),
        most.memory.map(|memory| memory.0),
    ];
    used.iter().zip(most).all(|(used, most)| most.is_none_or(|most| *used <= most))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn never_over_capacity_and_no_device_held_beyond_a_whole(
        case in prop_oneof![a_case(false), a_case(true), a_shared_case(false)],
    ) {
        play(&case, |before, plan, after| {
            // The ledger that the server verifies plans with, filled with what is held.
            let mut cluster = Cluster::new(&before.nodes);
            for (job, grants) in before.holders() {
                prop_assert_eq!(cluster.force_allocate(job.id, &grants), None);
            }
            for start in &plan.starts {
                prop_assert_eq!(cluster.allocate(start.job, &start.grants), Ok(()));
            }
            // And once more by hand.
            let mut devices: BTreeMap<(String, u32), u32> = BTreeMap::new();
            let mut cpus: BTreeMap<String, u64> = BTreeMap::new();
            for grant in after.holders().flat_map(|(_, grants)| grants) {
                for index in &grant.devices {
                    let held = devices.entry((grant.node.0.clone(), *index)).or_default();
                    *held += grant.share;
                    prop_assert!(*held <= WHOLE_DEVICE);
                }
                let used = cpus.entry(grant.node.0.clone()).or_default();
                *used += grant.cpus.milli;
                prop_assert!(*used <= node_of(&after.nodes, &grant).capacity.cpus.milli);
            }
            Ok(())
        })?;
    }

    #[test]
    fn never_over_the_limit_of_a_workspace_or_a_person(case in prop_oneof![a_case(false), a_case(true)]) {
        play(&case, |_, _, after| {
            for (name, workspace) in &after.sharing.workspaces {
                let of_workspace = |job: &Job| job.spec.workspace == *name;
                prop_assert!(is_within(used(after, of_workspace), &workspace.limit));
                for owner in ["ada", "bob"] {
                    let own = used(after, |job| of_workspace(job) && job.owner == owner);
                    prop_assert!(is_within(own, &workspace.per_user));
                }
            }
            Ok(())
        })?;
    }

    #[test]
    fn gangs_start_whole_on_one_model_that_was_asked_for(case in prop_oneof![a_case(false), a_case(true)]) {
        play(&case, |before, plan, _| {
            for start in &plan.starts {
                let spec = &before.jobs[&start.job].spec;
                prop_assert_eq!(start.grants.len(), spec.workers as usize);
                let mut models = BTreeSet::new();
                let mut racks = BTreeSet::new();
                for grant in &start.grants {
                    let node = node_of(&before.nodes, grant);
                    prop_assert!(node.cordoned.is_none());
                    prop_assert!(grant.devices.is_sorted());
                    prop_assert_eq!((grant.cpus, grant.memory), (spec.cpus, spec.memory.unwrap_or_default()));
                    racks.insert(node.labels.get("rack").unwrap_or(&node.name.0));
                    for device in node.devices.iter().filter(|device| grant.devices.contains(&device.index)) {
                        prop_assert!(device.usable());
                        models.insert((device.kind, device.model.clone()));
                    }
                }
                prop_assert!(models.len() <= 1);
                prop_assert!(!spec.nodes.same_rack || racks.len() == 1);
                let granted = &start.grants[0];
                let device = node_of(&before.nodes, granted).devices.iter()
                    .find(|device| granted.devices.contains(&device.index));
                let asked = spec.alternatives().iter().any(|request| {
                    request.count.devices() as usize == granted.devices.len()
                        && (request.count.is_none() || request.count.share() == granted.share)
                        && device.is_none_or(|device| request.accepts(device))
                });
                prop_assert!(asked);
            }
            Ok(())
        })?;
    }

    #[test]
    fn ring_rules_hold(case in a_case_of_boards()) {
        play(&case, |before, plan, _| {
            for start in &plan.starts {
                let is_alone = start.grants.len() == 1;
                for grant in start.grants.iter().filter(|grant| grant.share == WHOLE_DEVICE) {
                    let node = node_of(&before.nodes, grant);
                    let count = grant.devices.len();
                    let in_ring = |size: u32, ring: u32| {
                        grant.devices.iter().filter(|device| **device / size == ring).count()
                    };
                    let is_right = match (node.devices[0].model.as_str(), node.devices.len()) {
                        ("910A", _) => count == 8 || [1, 2, 4].contains(&count) && [0, count].contains(&in_ring(4, 0)),
                        ("910B2", 16) if count <= 8 => [0, count].contains(&in_ring(8, 0)),
                        ("910B2", 16) if is_alone => grant.devices[..count / 2].iter()
                            .all(|device| *device < 8 && grant.devices.contains(&(device + 8))),
                        ("910B2", 16) => in_ring(8, 0) == in_ring(8, 1),
                        ("Ascend910", 16) => {
                            count == 1 && is_alone || (0..8).all(|module| in_ring(2, module) != 1)
                        }
                        _ => true,
                    };
                    prop_assert!(is_right, "{:?} of {}", grant.devices, node.devices[0].model);
                }
                let is_shared = |grant: &&Grant| grant.share < WHOLE_DEVICE;
                let mut shared = start.grants.iter().filter(is_shared);
                prop_assert!(shared.all(|grant| node_of(&before.nodes, grant).devices[0].model != "910A"));
            }
            Ok(())
        })?;
    }

    #[test]
    fn only_preemptible_jobs_are_preempted_and_only_after_the_minimum_run_time(case in a_case(true)) {
        play(&case, |before, plan, _| {
            let mut victims = BTreeSet::new();
            for preemption in &plan.preemptions {
                let victim = &before.jobs[&preemption.victim];
                let attempt = victim.active().unwrap();
                prop_assert!(victim.spec.preemptible && attempt.stop.is_none());
                let minimum: SignedDuration =
                    before.sharing.minimum_run_time.to_duration().try_into().unwrap();
                prop_assert!(attempt.placed_at + minimum <= before.now);
                prop_assert!(victims.insert(preemption.victim), "stopped once is enough");
                prop_assert!(plan.starts.iter().all(|start| start.job != preemption.for_job));
            }
            Ok(())
        })?;
    }

    #[test]
    fn others_are_preempted_only_for_what_is_guaranteed_and_only_as_far_as_they_borrow(case in a_case(true)) {
        play(&case, |before, plan, after| {
            for preemption in &plan.preemptions {
                let (victim, job) = (&before.jobs[&preemption.victim], &before.jobs[&preemption.for_job]);
                if victim.spec.workspace == job.spec.workspace {
                    prop_assert!(victim.spec.priority() <= job.spec.priority());
                    continue;
                }
                prop_assert!(before.sharing.lending);
                let guaranteed = before.sharing.workspaces[&job.spec.workspace].guaranteed;
                prop_assert!(guaranteed != Amounts::default());
                let held = |job: &Job| used(before, |other| other.id == job.id);
                let of = held(victim).iter().position(|amount| *amount > 0).unwrap();
                let theirs = before.sharing.workspaces[&victim.spec.workspace].guaranteed;
                let guaranteed = [theirs.nvidia, theirs.ascend, None, None][of];
                let guaranteed = guaranteed.map_or(0, |count| u64::from(count.milli()));
                let is_own = |other: &Job| other.spec.workspace == victim.spec.workspace;
                // Whoever gives way to its own workspace's job is replaced by that.
                let for_others = |other: &Job, for_job: JobId| {
                    before.jobs.get(&for_job).is_none_or(|job| job.spec.workspace != other.spec.workspace)
                };
                let is_victim = |other: &Job| {
                    let victims = plan.preemptions.iter().filter(|one| one.victim == other.id);
                    victims.into_iter().any(|one| for_others(other, one.for_job))
                };
                let is_leaving = |other: &Job| match &other.active().unwrap().stop {
                    Some(Stop { why: StopCause::Preempted { for_job }, .. }) => for_others(other, *for_job),
                    Some(_) => true,
                    None => false,
                };
                let stays = |other: &Job| is_own(other) && !is_leaving(other);
                let taken = before.jobs.values().filter(|other| is_victim(other) && is_own(other));
                let largest = taken.map(|other| held(other)[of]).max().unwrap();
                // Those for whom others make room hold nothing yet, and count.
                let is_claimant = |job: &Job| plan.preemptions.iter().any(|one| one.for_job == job.id)
                    || before.jobs.values().filter_map(Job::active).filter_map(|attempt| attempt.stop.as_ref())
                        .any(|stop| stop.why == StopCause::Preempted { for_job: job.id });
                let most = |job: &Job| {
                    let counts = job.spec.alternatives().iter().map(|request| u64::from(request.count.milli()));
                    counts.max().unwrap_or(0) * u64::from(job.spec.workers)
                };
                let claimed: u64 = after.queued().filter(|job| is_own(job) && is_claimant(job)).map(most).sum();
                prop_assert!(used(after, stays)[of] + claimed + largest > guaranteed);
            }
            Ok(())
        })?;
    }

    #[test]
    fn planning_twice_gives_the_same_plan(case in prop_oneof![a_case(false), a_case(true), a_shared_case(true)]) {
        let mut world = case.world();
        world.scheduler = world.scheduler.that_expects_nothing();
        for step in &case.steps {
            step.take(&mut world);
            let plan = world.scheduler.plan(world.now);
            let reasons = world.reasons();
            prop_assert_eq!(&world.scheduler.plan(world.now), &plan);
            prop_assert_eq!(world.reasons(), reasons);
            prop_assert!(plan.next_wake.is_none_or(|wake| wake > world.now));
            world.carry_out(&plan);
        }
    }

    #[test]
    fn a_pass_that_follows_others_says_what_a_new_scheduler_says_that_remembers_nothing(
        case in prop_oneof![a_case(false), a_case(true), a_crowd(), a_crowd(), a_shared_case(false), a_shared_case(true)]
    ) {
        let mut world = case.world();
        world.scheduler = world.scheduler.that_expects_nothing();
        for step in &case.steps {
            step.take(&mut world);
            let fresh = Scheduler::new(&world.nodes, world.sharing.clone());
            let mut fresh = fresh.that_expects_nothing().that_searches_anew();
            world.jobs.values().for_each(|job| fresh.file(job));
            let plan = world.scheduler.plan(world.now);
            prop_assert_eq!(&plan, &fresh.plan(world.now));
            for (job, reason) in world.reasons() {
                prop_assert_eq!(reason, fresh.wait_reason(job));
            }
            world.carry_out(&plan);
        }
    }

    #[test]
    fn plans_depend_on_states_and_not_on_the_order_in_which_they_were_filed(
        case in prop_oneof![a_case(false), a_case(true)]
    ) {
        play(&case, |before, _, _| {
            let new = || Scheduler::new(&before.nodes, before.sharing.clone()).that_expects_nothing();
            let mut forwards = new();
            before.jobs.values().for_each(|job| forwards.file(job));
            let mut backwards = new();
            before.jobs.values().rev().for_each(|job| backwards.file(job));
            prop_assert_eq!(forwards.plan(before.now), backwards.plan(before.now));
            Ok(())
        })?;
    }

    #[test]
    fn changing_nodes_and_rules_equals_filing_everything_anew(case in prop_oneof![a_case(false), a_case(true)]) {
        let mut world = case.world();
        world.scheduler = world.scheduler.that_expects_nothing();
        for step in &case.steps {
            step.take(&mut world);
            // Away and back: everything is counted anew, and reservations are forgotten.
            world.scheduler.set_nodes(&world.nodes[..1]);
            world.scheduler.set_sharing(danlu_types::Sharing::default());
            world.refresh();
            let mut fresh = Scheduler::new(&world.nodes, world.sharing.clone()).that_expects_nothing();
            world.jobs.values().for_each(|job| fresh.file(job));
            let plan = fresh.plan(world.now);
            prop_assert_eq!(&world.scheduler.plan(world.now), &plan);
            world.carry_out(&plan);
        }
    }

    #[test]
    fn everybody_who_waits_has_a_reason_that_is_true_after_the_plan(
        case in prop_oneof![a_case(false), a_case(true)]
    ) {
        let mut world = case.world();
        for step in &case.steps {
            step.take(&mut world);
            let plan = world.plan();
            let waiting: Vec<JobId> = world.queued().map(|job| job.id).collect();
            for id in waiting {
                let reason = world.scheduler.wait_reason(id).unwrap();
                prop_assert!(reason != WaitReason::NotYetConsidered, "{id} after {plan:?}");
            }
        }
    }
}
