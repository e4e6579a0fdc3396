//! What holds for every plan, on random small clusters and queues; and that the fast planner says what the slow one does.

use std::collections::{BTreeMap, BTreeSet};

use danlu_core::job::Waiting as Why;
use danlu_core::{Grant, Job, Life};
use danlu_sched::{Cluster, Plan, ReasonCode, WaitReason, Waiting, can_ever_run, explain, next_wake, plan};
use danlu_types::{
    AttemptNumber, Bytes, Cpus, DeviceKind, DeviceRequest, Health, JobId, JobSpec, Node, NodeName,
};
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;

use crate::fixture::{node, queued, start_of_time};
use crate::reference::{Said, reference_plan};

const KINDS: [(DeviceKind, &str); 4] = [
    (DeviceKind::Ascend, "910B1"),
    (DeviceKind::Ascend, "910B3"),
    (DeviceKind::Nvidia, "A100-80G"),
    (DeviceKind::Nvidia, "H100"),
];

fn a_node() -> impl Strategy<Value = Node> {
    let devices = prop::collection::vec((1..5u32, 0..KINDS.len()), 0..3);
    (devices, 1..4u32, 1..12u64, 1..12u64, prop::collection::vec(0..8usize, 0..2)).prop_map(
        |(devices, island, cpus, memory, failed)| {
            let devices: Vec<_> =
                devices.into_iter().map(|(count, kind)| (count, KINDS[kind].0, KINDS[kind].1)).collect();
            let mut node = node("", &devices, island, cpus, Bytes(memory << 30));
            for position in failed {
                if let Some(device) = node.devices.get_mut(position) {
                    device.health = Health::Failed;
                }
            }
            node
        },
    )
}

fn a_cluster() -> impl Strategy<Value = Vec<Node>> {
    prop::collection::vec(a_node(), 1..4).prop_map(|mut nodes| {
        for (node, name) in nodes.iter_mut().zip(["a", "b", "c"]) {
            node.name = NodeName(name.to_owned());
        }
        nodes
    })
}

fn a_spec() -> impl Strategy<Value = JobSpec> {
    let request = prop_oneof![
        2 => Just(DeviceRequest::default()),
        2 => (1..4u32).prop_map(|count| DeviceRequest { kind: None, model: None, count }),
        6 => (1..5u32, prop::bool::ANY, prop::option::of(prop::sample::select(vec!["910B*", "910B3", "A100*", "*"])))
            .prop_map(|(count, ascend, model)| DeviceRequest {
                kind: Some(if ascend { DeviceKind::Ascend } else { DeviceKind::Nvidia }),
                model: model.map(str::to_owned),
                count,
            }),
    ];
    (1..4u32, request, 1..5u64, prop::option::of(1..5u64), 1..10u8).prop_map(
        |(workers, devices, cpus, memory, priority)| JobSpec {
            workers,
            devices,
            cpus: Cpus::whole(cpus),
            memory: memory.map(|memory| Bytes(memory << 30)),
            priority,
            ..JobSpec::of_command("true")
        },
    )
}

fn seconds(count: i64) -> Timestamp {
    start_of_time() + SignedDuration::from_secs(count)
}

fn a_queue() -> impl Strategy<Value = Vec<Job>> {
    let back_off = prop::option::weighted(0.2, (0..20i64, 0..40i64));
    prop::collection::vec((a_spec(), back_off), 0..10).prop_map(|jobs| {
        let mut queue: Vec<Job> = Vec::new();
        for (id, (spec, back_off)) in (100..).zip(jobs) {
            let mut job = queued(id, spec);
            if let Some((since, until)) = back_off {
                let why = Why::Retry { attempt: AttemptNumber(1), not_before: seconds(until) };
                job.life = Life::Queued { since: seconds(since), why };
            }
            queue.push(job);
        }
        queue.sort_by_key(Job::place);
        queue
    })
}

/// A cluster on which some jobs run already, and the grants they hold.
fn busy(nodes: &[Node], runners: Vec<JobSpec>) -> (Cluster, Vec<Grant>) {
    let mut cluster = Cluster::new(nodes);
    let mut held = Vec::new();
    for (id, spec) in (1..).zip(runners) {
        let job = queued(id, spec);
        for start in plan(&cluster, [Waiting { job: &job }], start_of_time()).starts {
            cluster.take(start.job, &start.grants).unwrap();
            held.extend(start.grants);
        }
    }
    (cluster, held)
}

fn plan_at(cluster: &Cluster, queue: &[Job], now: Timestamp) -> Plan {
    plan(cluster, queue.iter().map(|job| Waiting { job }), now)
}

/// Adds up what is granted, from the inventory itself rather than from the cluster's own counts.
fn audit(nodes: &[Node], grants: &[Grant]) {
    let mut devices = BTreeSet::new();
    let mut used: BTreeMap<&NodeName, (u64, u64)> = BTreeMap::new();
    for grant in grants {
        let node = nodes.iter().find(|node| node.name == grant.node).expect("the node exists");
        for index in &grant.devices {
            let device = node.devices.iter().find(|device| device.index == *index);
            assert!(device.expect("the device exists").usable(), "a broken device was given out");
            assert!(devices.insert((&grant.node, *index)), "a device was given out twice");
        }
        let (milli, bytes) = used.entry(&grant.node).or_default();
        *milli += grant.cpus.milli;
        *bytes += grant.memory.0;
        assert!(*milli <= node.capacity.cpus.milli, "more CPUs than {} has", grant.node);
        assert!(*bytes <= node.capacity.memory.0, "more memory than {} has", grant.node);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn never_over_capacity_and_no_device_twice(
        nodes in a_cluster(), runners in prop::collection::vec(a_spec(), 0..4), queue in a_queue()
    ) {
        let (mut cluster, mut grants) = busy(&nodes, runners);
        for start in plan_at(&cluster, &queue, seconds(30)).starts {
            prop_assert_eq!(cluster.take(start.job, &start.grants), Ok(()));
            grants.extend(start.grants);
        }
        audit(&nodes, &grants);
    }

    #[test]
    fn gangs_start_whole_on_one_model_that_was_asked_for(nodes in a_cluster(), queue in a_queue()) {
        let cluster = Cluster::new(&nodes);
        for start in plan_at(&cluster, &queue, seconds(30)).starts {
            let spec = &queue.iter().find(|job| job.id == start.job).unwrap().spec;
            prop_assert_eq!(start.grants.len(), spec.workers as usize);
            let mut models = BTreeSet::new();
            for grant in &start.grants {
                prop_assert_eq!(grant.devices.len(), spec.devices.count as usize);
                prop_assert!(grant.devices.is_sorted());
                prop_assert_eq!((grant.cpus, grant.memory), (spec.cpus, spec.memory.unwrap_or_default()));
                let node = nodes.iter().find(|node| node.name == grant.node).unwrap();
                for device in node.devices.iter().filter(|device| grant.devices.contains(&device.index)) {
                    prop_assert!(spec.devices.accepts(device));
                    models.insert((device.kind, &device.model));
                }
            }
            prop_assert!(models.len() <= 1);
        }
    }

    #[test]
    fn order_within_a_pool_is_respected(
        nodes in a_cluster(), runners in prop::collection::vec(a_spec(), 0..4), queue in a_queue()
    ) {
        let (cluster, _) = busy(&nodes, runners);
        let plan = plan_at(&cluster, &queue, seconds(30));
        let pool = |spec: &JobSpec| (spec.devices.count > 0, spec.devices.kind);
        for (id, reason) in &plan.waiting {
            if matches!(reason, WaitReason::BackOff { .. } | WaitReason::NoSuchDevices) {
                continue;
            }
            let at = queue.iter().position(|job| job.id == *id).unwrap();
            // One that takes any kind may wait in one pool while a smaller one finds room in the other.
            if pool(&queue[at].spec) == (true, None) {
                continue;
            }
            for later in &queue[at + 1..] {
                if pool(&later.spec) == pool(&queue[at].spec) {
                    prop_assert!(plan.starts.iter().all(|start| start.job != later.id));
                }
            }
        }
    }

    #[test]
    fn every_queued_job_starts_or_has_a_reason(nodes in a_cluster(), queue in a_queue()) {
        let plan = plan_at(&Cluster::new(&nodes), &queue, seconds(30));
        let starts = plan.starts.iter().map(|start| start.job);
        let mut answered: Vec<JobId> = starts.chain(plan.waiting.iter().map(|(job, _)| *job)).collect();
        answered.sort_unstable();
        let mut asked: Vec<JobId> = queue.iter().map(|job| job.id).collect();
        asked.sort_unstable();
        prop_assert_eq!(answered, asked);
    }

    #[test]
    fn plans_depend_on_what_is_held_and_not_on_how_it_came_about(
        nodes in a_cluster(), runners in prop::collection::vec(a_spec(), 0..6), queue in a_queue()
    ) {
        let (cluster, _) = busy(&nodes, runners);
        let mut other = Cluster::new(&nodes[..1]);
        let mut holders: Vec<(JobId, Vec<Grant>)> =
            cluster.holders().map(|(job, grants)| (job, grants.to_vec())).collect();
        holders.reverse();
        for (job, grants) in &holders {
            other.adopt(*job, grants).unwrap();
        }
        other.update_nodes(&nodes);
        for (job, grants) in &holders {
            other.give_back(*job);
            prop_assert_eq!(other.take(*job, grants), Ok(()));
        }
        prop_assert_eq!(plan_at(&cluster, &queue, seconds(30)), plan_at(&other, &queue, seconds(30)));
    }

    #[test]
    fn what_is_given_back_is_free_again(nodes in a_cluster(), runners in prop::collection::vec(a_spec(), 0..6)) {
        let (mut cluster, _) = busy(&nodes, runners);
        let everyone: Vec<JobId> = cluster.holders().map(|(job, _)| job).collect();
        for job in everyone {
            cluster.give_back(job);
        }
        let anything = DeviceRequest::default();
        prop_assert_eq!(cluster.free_devices(&anything), Cluster::new(&nodes).free_devices(&anything));
        for node in &nodes {
            prop_assert_eq!(cluster.usage(&node.name), Some(danlu_sched::Usage::default()));
        }
    }

    #[test]
    fn a_take_that_is_refused_changes_nothing(
        nodes in a_cluster(), runners in prop::collection::vec(a_spec(), 1..5), greedy in a_spec()
    ) {
        let (mut cluster, _) = busy(&nodes, runners);
        let (_, grants) = busy(&nodes, vec![greedy]);
        let before = format!("{cluster:?}");
        if cluster.take(JobId(99), &grants).is_err() {
            prop_assert_eq!(format!("{cluster:?}"), before);
        }
    }

    #[test]
    fn explanations_say_what_the_plan_did(
        nodes in a_cluster(), runners in prop::collection::vec(a_spec(), 0..4), queue in a_queue()
    ) {
        let (cluster, _) = busy(&nodes, runners);
        let now = seconds(30);
        let plan = plan_at(&cluster, &queue, now);
        for (place, job) in (1..).zip(&queue) {
            let told = explain(&cluster, queue.iter().map(|job| Waiting { job }), job, now);
            prop_assert_eq!(told.position, Some(place));
            if let Some((_, reason)) = plan.waiting.iter().find(|(id, _)| *id == job.id) { prop_assert_eq!(told.reason, reason.reason(&job.spec)) } else { prop_assert_eq!(told.reason.code, ReasonCode::NotYetConsidered.as_str()) }
        }
    }

    #[test]
    fn what_is_accepted_starts_on_the_idle_cluster_and_what_is_refused_never_does(
        nodes in a_cluster(), spec in a_spec()
    ) {
        let mut mended = nodes.clone();
        mended.iter_mut().flat_map(|node| &mut node.devices).for_each(|device| device.health = Health::Ok);
        let accepted = can_ever_run(&nodes, &spec).is_ok();
        let job = queued(1, spec);
        let starts = plan(&Cluster::new(&mended), [Waiting { job: &job }], seconds(0)).starts.len();
        prop_assert_eq!(accepted, starts == 1);
    }

    #[test]
    fn the_next_wake_is_the_first_back_off_to_end(queue in a_queue(), now in 0..40i64) {
        let wake = next_wake(queue.iter().map(|job| Waiting { job }), seconds(now));
        let plan = plan_at(&Cluster::new(&[]), &queue, seconds(now));
        let ends = plan.waiting.iter().filter_map(|(_, reason)| match reason {
            WaitReason::BackOff { not_before } => Some(*not_before),
            _ => None,
        });
        prop_assert_eq!(wake, ends.min());
        prop_assert!(wake.is_none_or(|wake| wake > seconds(now)));
    }

    #[test]
    fn the_planner_says_what_the_slow_and_obvious_one_says(
        nodes in a_cluster(),
        runners in prop::collection::vec(a_spec(), 0..4),
        queue in a_queue(),
        now in 0..40i64,
    ) {
        let (cluster, held) = busy(&nodes, runners);
        let plan = plan_at(&cluster, &queue, seconds(now));
        let said: Vec<Said> = queue
            .iter()
            .map(|job| if let Some(start) = plan.starts.iter().find(|start| start.job == job.id) { Said::Start(start.grants.clone()) } else {
                let waiting = plan.waiting.iter().find(|(id, _)| *id == job.id);
                Said::Wait(waiting.unwrap().1.code().as_str())
            })
            .collect();
        prop_assert_eq!(said, reference_plan(&nodes, &held, &queue, seconds(now)));
    }
}
