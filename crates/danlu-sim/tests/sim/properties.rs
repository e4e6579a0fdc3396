//! What holds in every cluster, between any two moments of its life.

use std::collections::BTreeSet;

use danlu_core::job::AttemptEnd;
use danlu_core::{JobLifecycle, WorkerEnd};
use danlu_sched::Cluster;
use danlu_sim::{Faults, Happening, Intervention, Scenario, SimJob, Simulation, WorkerScript};
use danlu_types::{Cpus, DeviceCount, DeviceKind, DeviceRequest, JobSpec, Node, Retry, RetryCause, Span};
use proptest::prelude::*;

use crate::story::{lost, node};

fn nodes() -> impl Strategy<Value = Vec<Node>> {
    prop::collection::vec((1..6u32, prop::bool::ANY, 2..8u64), 1..4).prop_map(|nodes| {
        let named = nodes.into_iter().zip(["a", "b", "c"]);
        let build = |((devices, ascend, cpus), name)| {
            if ascend {
                node(name, devices, DeviceKind::Ascend, "910B3", cpus)
            } else {
                node(name, devices, DeviceKind::Nvidia, "A100-80G", cpus)
            }
        };
        named.map(build).collect()
    })
}

fn an_exit() -> impl Strategy<Value = WorkerEnd> {
    prop_oneof![3 => Just(WorkerEnd::Succeeded), 2 => Just(lost()), 1 => Just(WorkerEnd::Stopped)]
}

fn a_job() -> impl Strategy<Value = SimJob> {
    let devices = (0..4u32, prop::option::of(prop::sample::select(DeviceKind::ALL.to_vec())));
    let attempts = prop::collection::vec((0..100u64, an_exit()), 0..3);
    let shape = (1..4u32, devices, 1..4u64, 1..10u8, 0..3u32);
    let stopping = (0..40u64, prop::option::of(1..30u64), 0..5u64);
    (0..200u64, shape, attempts, stopping, prop::option::weighted(0.2, 1..50u64)).prop_map(
        |(submit, (workers, (count, kind), cpus, priority, limit), attempts, stopping, max_time)| SimJob {
            submit_at: Span::from_seconds(submit),
            spec: JobSpec {
                workers,
                devices: DeviceRequest { kind, model: None, count: DeviceCount::whole(count) },
                cpus: Cpus::whole(cpus),
                priority: Some(priority),
                retry: Retry { limit, on: vec![RetryCause::NodeLost] },
                max_time: max_time.map(Span::from_seconds),
                ..JobSpec::of_command("true")
            },
            owner: "ann".to_owned(),
            parts: attempts
                .into_iter()
                .map(|(runs, exit)| WorkerScript { runs: Span::from_seconds(runs), exit })
                .collect(),
            takes_to_stop: Span::from_seconds(stopping.0),
            checkpoint_every: stopping.1.map(Span::from_seconds),
            restart_cost: Span::from_seconds(stopping.2),
        },
    )
}

/// Trouble that passes: everything that breaks is mended, and who is held is released, in the end.
fn trouble() -> impl Strategy<Value = Vec<Intervention>> {
    let name =
        || prop::sample::select(vec!["a", "b", "c"]).prop_map(|name| danlu_types::NodeName(name.to_owned()));
    let pair = prop_oneof![
        name().prop_map(|node| (Happening::NodeLost { node: node.clone() }, Happening::NodeBack { node })),
        (name(), 0..6u32).prop_map(|(node, device)| (
            Happening::DeviceFailed { node: node.clone(), device },
            Happening::DeviceMended { node, device }
        )),
        (name(), 0..6u32).prop_map(|(node, device)| (
            Happening::DeviceBroke { node: node.clone(), device },
            Happening::DeviceMended { node, device }
        )),
        (0..8usize).prop_map(|job| (Happening::Hold { job }, Happening::Release { job })),
        (0..8usize, 0..8usize)
            .prop_map(|(job, for_job)| (Happening::Preempt { job, for_job }, Happening::Release { job })),
        (0..8usize).prop_map(|job| (Happening::Stop { job }, Happening::Release { job })),
    ];
    prop::collection::vec((pair, 0..300u64), 0..5).prop_map(|troubles| {
        let mut interventions = Vec::new();
        for ((what, mended), at) in troubles {
            interventions.push(Intervention { at: Span::from_seconds(at), what });
            // After every trouble has begun, so that none outlasts the mending.
            interventions.push(Intervention { at: Span::from_seconds(1000), what: mended });
        }
        interventions
    })
}

fn simulations() -> impl Strategy<Value = Scenario> {
    let faults =
        prop::option::weighted(0.3, (50..500u64, 50..500u64, 1..100u64, 0..1000u64)).prop_map(|faults| {
            let (node, device, repair, seed) = faults?;
            Some(Faults {
                node_every: Some(Span::from_seconds(node)),
                device_every: Some(Span::from_seconds(device)),
                repair: Span::from_seconds(repair),
                seed,
            })
        });
    (nodes(), prop::collection::vec(a_job(), 1..9), trouble(), faults).prop_map(
        |(nodes, jobs, interventions, faults)| Scenario {
            nodes,
            jobs,
            interventions,
            faults,
            ..Scenario::default()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn no_device_is_held_twice_and_only_live_attempts_hold_any(world in simulations()) {
        let mut simulation = Simulation::new(world);
        while simulation.step() {
            let mut held = BTreeSet::new();
            for job in simulation.jobs() {
                let grants: Vec<_> =
                    job.active().into_iter().flat_map(|attempt| &attempt.workers).map(|worker| &worker.grant).collect();
                prop_assert_eq!(
                    grants.iter().map(|grant| (*grant).clone()).collect::<Vec<_>>(),
                    simulation.cluster().held_by(job.id)
                );
                for grant in grants {
                    for device in &grant.devices {
                        prop_assert!(held.insert((&grant.node, *device)), "held twice");
                        let known = simulation.cluster().nodes().iter().any(|node| node.name == grant.node);
                        let holder = simulation.cluster().holder_of(&grant.node, *device);
                        prop_assert_eq!(holder, known.then_some(job.id));
                    }
                }
            }
        }
    }

    #[test]
    fn no_node_is_over_its_capacity(world in simulations()) {
        let mut simulation = Simulation::new(world);
        while simulation.step() {
            for node in simulation.cluster().nodes() {
                let used = simulation.cluster().usage(&node.name).unwrap();
                prop_assert!(used.cpus <= node.capacity.cpus && used.memory <= node.capacity.memory);
            }
        }
    }

    #[test]
    fn the_kept_cluster_is_the_one_a_restart_would_build(world in simulations()) {
        let mut simulation = Simulation::new(world);
        while simulation.step() {
            let kept = simulation.cluster();
            let mut built = Cluster::new(kept.nodes());
            for (job, grants) in kept.holders() {
                prop_assert_eq!(built.force_allocate(job, grants), None);
            }
            for node in kept.nodes() {
                prop_assert_eq!(built.usage(&node.name), kept.usage(&node.name));
            }
        }
    }

    #[test]
    fn nothing_that_could_start_is_left_waiting(world in simulations()) {
        let mut simulation = Simulation::new(world);
        while simulation.step() {
            prop_assert_eq!(simulation.would_start(), 0);
        }
    }

    #[test]
    fn every_accepted_job_ends_and_then_nothing_is_held(world in simulations()) {
        let mut simulation = Simulation::new(world);
        while simulation.step() {}
        for job in simulation.jobs() {
            prop_assert!(matches!(job.life, JobLifecycle::Ended { .. }), "job {} never ended", job.id);
            prop_assert!(job.past.iter().all(|past| past.attempt.has_ended()));
            let failures = job.past.iter().filter(|past| matches!(past.verdict, AttemptEnd::Failed { .. }));
            prop_assert!(failures.count() <= job.spec.retry.limit as usize + 1);
        }
        prop_assert_eq!(simulation.cluster().holders().count(), 0);
    }

    #[test]
    fn a_job_that_never_had_trouble_runs_once_and_as_long_as_it_said(nodes in nodes(), jobs in prop::collection::vec(a_job(), 1..9)) {
        let jobs: Vec<SimJob> = jobs
            .into_iter()
            .map(|job| SimJob::succeeding(job.submit_at, JobSpec { max_time: None, ..job.spec }, job.takes_to_stop))
            .collect();
        let report = danlu_sim::simulate(Scenario { nodes, jobs: jobs.clone(), ..Scenario::default() });
        for (job, told) in jobs.iter().zip(&report.jobs) {
            if told.refused.is_none() {
                prop_assert_eq!((told.attempts, told.ran), (1, job.parts[0].runs));
                let end = job.submit_at.milliseconds + told.waited.milliseconds + told.ran.milliseconds;
                prop_assert_eq!(told.ended_at, Some(Span { milliseconds: end }));
            }
        }
        prop_assert!((0.0..=1.0).contains(&report.device_utilisation));
    }

    #[test]
    fn the_same_world_has_the_same_history(world in simulations()) {
        let first = danlu_sim::simulate(world.clone());
        prop_assert_eq!(first, danlu_sim::simulate(world));
    }

    #[test]
    fn lost_work_is_part_of_what_ran_and_less_than_a_checkpoint_for_each_interruption(world in simulations()) {
        let report = danlu_sim::simulate(world.clone());
        for (job, told) in world.jobs.iter().zip(&report.jobs) {
            prop_assert!(told.lost <= told.ran);
            if let Some(every) = job.checkpoint_every {
                prop_assert!(told.lost.milliseconds <= u64::from(told.attempts) * every.milliseconds);
            }
        }
    }
}
