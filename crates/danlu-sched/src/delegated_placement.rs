//! For clusters that place workers themselves: a plan says when a job starts and what that takes, and its places are a guess.
//!
//! What is free is to be right nevertheless. When a worker turns out to be where another was planned to be, that other one
//! is planned for somewhere else: otherwise its old place would look free, and more would be started than there is room for.

use danlu_core::job::WorkerLocation;
use danlu_core::{Attempt, Grant, Job, WorkerLifecycle};
use danlu_types::{Node, NodeName, WorkerId, WorkerIndex};

use crate::fleet::{Fleet, PlacementConstraints};
use crate::scheduler::blamed;
use crate::shape::{DeviceAsk, Shape};

/// Nodes that will not do for a worker of this attempt, wherever the plan has it: what its job asks for, and which model of
/// device it was given, holds for every place.
pub fn unsuitable(job: &Job, attempt: &Attempt, nodes: &[Node]) -> Vec<NodeName> {
    let Some(grant) = attempt.workers.first().map(|worker| &worker.grant) else { return Vec::new() };
    let planned = nodes.iter().find(|node| node.name == grant.node);
    let model = planned.and_then(|node| model_of(node, grant));
    let shape = Shape::of(&job.spec);
    let blamed = blamed(job);
    let is_planned = |node: &Node| attempt.workers.iter().any(|worker| worker.grant.node == node.name);
    let would_do = |node: &Node| {
        let same = |device: &&danlu_types::Device| {
            device.usable() && model.as_ref().is_some_and(|ask| ask.accepts(device.kind, &device.model))
        };
        node.cordoned.is_none()
            && blamed.as_ref() != Some(&node.name)
            && shape.architecture.as_deref().is_none_or(|wanted| wanted == node.architecture)
            && shape.labels.iter().all(|(name, value)| node.labels.get(name) == Some(value))
            && (!shape.same_rack
                || planned.is_some_and(|it| it.labels.get("rack") == node.labels.get("rack")))
            && node.capacity.cpus >= grant.cpus
            && node.capacity.memory >= grant.memory
            && node.devices.iter().filter(same).count() >= grant.devices.len()
    };
    let others = nodes.iter().filter(|node| !is_planned(node) && !would_do(node));
    others.map(|node| node.name.clone()).collect()
}

/// Where workers that are only planned go whose place is no longer free. Those for whom there is no other stay, and so do
/// those of attempts that may not move.
pub fn replan_displaced<'a>(
    nodes: &[Node],
    jobs: impl IntoIterator<Item = &'a Job>,
    may_move: impl Fn(&Attempt) -> bool,
) -> Vec<(WorkerId, WorkerLocation)> {
    let (mut there, mut planned) = (Vec::new(), Vec::new());
    for job in jobs {
        let Some(attempt) = job.active() else { continue };
        let is_movable = may_move(attempt);
        for (worker, index) in attempt.workers.iter().zip(0..) {
            match worker.state {
                WorkerLifecycle::Placed if !worker.settled && is_movable => {
                    planned.push((job, attempt.number, WorkerIndex(index), &worker.grant));
                }
                _ => there.push(&worker.grant),
            }
        }
    }
    if planned.is_empty() {
        return Vec::new();
    }
    let mut fleet = Fleet::new(nodes);
    fleet.expect_nothing();
    for grant in there {
        let held = fleet.placement(std::slice::from_ref(grant));
        fleet.allocate(&held);
    }
    planned.sort_by_key(|(job, _, index, _)| (job.id, *index));
    let mut homeless = Vec::new();
    for worker in planned {
        let held = fleet.placement(std::slice::from_ref(worker.3));
        if held.parts.len() == 1 && fleet.has(&held) {
            fleet.allocate(&held);
        } else {
            homeless.push(worker);
        }
    }
    let mut moves = Vec::new();
    for (job, attempt, index, grant) in homeless {
        let place = find_place(&mut fleet, nodes, job, grant);
        moves.extend(place.map(|place| (job.worker_id(attempt, index), place)));
    }
    moves
}

/// Takes it, too.
fn find_place(fleet: &mut Fleet, nodes: &[Node], job: &Job, grant: &Grant) -> Option<WorkerLocation> {
    let planned = nodes.iter().find(|node| node.name == grant.node)?;
    let ask = match grant.devices.len() {
        0 => DeviceAsk::none(),
        _ => model_of(planned, grant)?,
    };
    let whole = Shape::of(&job.spec);
    let shape = Shape {
        workers: 1,
        alternatives: vec![ask],
        cpus: grant.cpus,
        memory: grant.memory,
        same_rack: false,
        ..whole
    };
    let shape = fleet.shape(&shape);
    let found = fleet.place(shape, &PlacementConstraints::NONE)?;
    let grant = fleet.grants(&found).into_iter().next()?;
    Some(WorkerLocation { node: grant.node, devices: grant.devices })
}

/// As many devices of the very model that a worker was given.
fn model_of(node: &Node, grant: &Grant) -> Option<DeviceAsk> {
    let device = node.devices.iter().find(|device| grant.devices.contains(&device.index))?;
    Some(DeviceAsk::exactly(device, grant.devices.len()))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use danlu_core::{Transition, Trigger, apply};
    use danlu_types::{AttemptNumber, Cpus, JobId, JobSpec};
    use jiff::Timestamp;

    use super::*;
    use crate::cluster::test_nodes;

    fn applied(job: &Job, event: Trigger) -> Job {
        match apply(job, event, Timestamp::UNIX_EPOCH) {
            Transition::Next { job, .. } => *job,
            step => panic!("it was not taken: {step:?}"),
        }
    }

    fn grant(node: &str, devices: std::ops::Range<u32>) -> Grant {
        let (node, devices) = (NodeName(node.to_owned()), devices.collect());
        Grant { node, devices, share: 1000, cpus: Cpus::whole(1), memory: danlu_types::Bytes(0) }
    }

    fn planned(id: u64, grants: Vec<Grant>) -> Job {
        let workers = u32::try_from(grants.len()).unwrap();
        let spec = JobSpec { workers, ..JobSpec::of_command("true") };
        let job = Job::submitted(JobId(id), "ada".to_owned(), Arc::new(spec), Timestamp::UNIX_EPOCH);
        applied(&job, Trigger::Place { grants })
    }

    fn settled(job: &Job, worker: u32, at: Grant) -> Job {
        let (attempt, worker) = (AttemptNumber(1), WorkerIndex(worker));
        let to = WorkerLocation { node: at.node, devices: at.devices };
        applied(job, Trigger::WorkerMoved { attempt, worker, to, settled: true })
    }

    fn replan_displaced<'a>(
        nodes: &[Node],
        jobs: impl IntoIterator<Item = &'a Job>,
    ) -> Vec<(WorkerId, WorkerLocation)> {
        super::replan_displaced(nodes, jobs, |_| true)
    }

    fn shown(moves: Vec<(WorkerId, WorkerLocation)>) -> String {
        let line =
            |(worker, to): (WorkerId, WorkerLocation)| format!("{worker} to {} {:?}", to.node, to.devices);
        moves.into_iter().map(line).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn who_was_planned_where_another_is_gets_what_that_one_left() {
        let nodes = test_nodes(2);
        let all = vec![planned(1, vec![grant("n0", 0..8)]), planned(2, vec![grant("n1", 0..8)])];
        assert_eq!(replan_displaced(&nodes, &all), []);
        let swapped = vec![settled(&all[0], 0, grant("n1", 0..8)), all[1].clone()];
        insta::assert_snapshot!(shown(replan_displaced(&nodes, &swapped)), @"2.1.0 to n0 [0, 1, 2, 3, 4, 5, 6, 7]");
        // Both have been put somewhere: nobody is moved for the other.
        let there = vec![swapped[0].clone(), settled(&all[1], 0, grant("n1", 0..8))];
        assert_eq!(replan_displaced(&nodes, &there), []);
    }

    #[test]
    fn workers_of_one_gang_change_places() {
        let nodes = test_nodes(2);
        let gang = planned(1, vec![grant("n0", 0..8), grant("n1", 0..8)]);
        let swapped = settled(&gang, 0, grant("n1", 0..8));
        insta::assert_snapshot!(shown(replan_displaced(&nodes, [&swapped])), @"1.1.1 to n0 [0, 1, 2, 3, 4, 5, 6, 7]");
    }

    #[test]
    fn who_fits_nowhere_else_stays() {
        let nodes = test_nodes(2);
        let large = planned(2, vec![grant("n1", 0..8)]);
        let small = settled(&planned(1, vec![grant("n0", 0..4)]), 0, grant("n1", 4..8));
        let other = settled(&planned(3, vec![grant("n0", 4..8)]), 0, grant("n0", 4..8));
        assert_eq!(replan_displaced(&nodes, &[small, large, other]), []);
    }

    #[test]
    fn who_may_not_move_stays() {
        let nodes = test_nodes(4);
        let fixed = planned(2, vec![grant("n1", 0..2)]);
        let other = settled(&planned(1, vec![grant("n2", 0..8)]), 0, grant("n1", 0..8));
        let jobs = [fixed, other];
        assert_eq!(super::replan_displaced(&nodes, &jobs, |_| false), []);
        assert_eq!(replan_displaced(&nodes, &jobs).len(), 1);
    }

    #[test]
    fn processors_count_too() {
        let nodes = test_nodes(2);
        let of = |node: &str| Grant { cpus: Cpus::whole(40), ..grant(node, 0..0) };
        let first = settled(&planned(1, vec![of("n0")]), 0, of("n1"));
        let moves = replan_displaced(&nodes, &[first, planned(2, vec![of("n1")])]);
        insta::assert_snapshot!(shown(moves), @"2.1.0 to n0 []");
    }

    #[test]
    fn what_a_job_asks_for_holds_wherever_it_is_put() {
        let mut nodes = test_nodes(7);
        nodes[1].cordoned = Some("new fans".to_owned());
        nodes[2].devices.truncate(3);
        nodes[3].architecture = "aarch64".to_owned();
        nodes[4].devices.iter_mut().for_each(|device| device.model = "H100".to_owned());
        nodes[5].capacity.cpus = Cpus { milli: 500 };
        let mut job = planned(1, vec![grant("n0", 0..4)]);
        let mut spec = JobSpec::clone(&job.spec);
        spec.nodes.architecture = Some("x86_64".to_owned());
        job.spec = Arc::new(spec);
        let unsuitable = unsuitable(&job, job.active().unwrap(), &nodes);
        let names: Vec<&str> = unsuitable.iter().map(|node| node.0.as_str()).collect();
        assert_eq!(names, ["n1", "n2", "n3", "n4", "n5"]);
    }
}
