//! What happens in the end: nobody is left behind, and what was promised is kept.

use std::collections::BTreeMap;

use danlu_core::Job;
use danlu_core::job::WorkerEnd;
use danlu_types::{
    Amounts, Cpus, DeviceCount, DeviceKind, HeadOfLine, Health, JobId, JobSpec, Node, Sharing, Span,
    Workspace,
};
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;

use crate::cases::{a_case, a_spec};
use crate::world::{World, node};

fn policies() -> impl Strategy<Value = HeadOfLine> {
    prop::sample::select(vec![
        HeadOfLine::Backfill,
        HeadOfLine::Strict,
        HeadOfLine::Skip,
        HeadOfLine::Balance,
    ])
}

fn stop_all(world: &mut World) {
    let stopping: Vec<JobId> = world
        .holders()
        .filter(|(job, _)| job.active().is_some_and(|attempt| attempt.stop.is_some()))
        .map(|(job, _)| job.id)
        .collect();
    for job in stopping {
        world.end(job, &WorkerEnd::Stopped);
    }
}

fn one_device(workspace: &str, preemptible: bool) -> JobSpec {
    let mut spec = JobSpec::of_command("true");
    workspace.clone_into(&mut spec.workspace);
    spec.devices.kind = Some(DeviceKind::Nvidia);
    spec.devices.count = DeviceCount::whole(1);
    spec.preemptible = preemptible;
    spec
}

fn limit(spec: &JobSpec) -> SignedDuration {
    spec.max_time.unwrap().to_duration().try_into().unwrap()
}

/// The workspace that goes first, if there is no doubt: of those that wait the one that uses the least, and none is
/// guaranteed anything.
fn whose_turn(world: &World) -> Option<String> {
    let mut shares: BTreeMap<&String, f64> = world.queued().map(|job| (&job.spec.workspace, 0.0)).collect();
    let devices = world.nodes.iter().map(|node| node.devices.len()).sum::<usize>() as f64;
    let milli_cpus = world.nodes.iter().map(|node| node.capacity.cpus.milli).sum::<u64>() as f64;
    for (workspace, share) in &mut shares {
        let own =
            || world.holders().filter(|(job, _)| job.spec.workspace == **workspace).map(|(job, _)| &job.spec);
        let used: u32 = own().map(|spec| spec.workers * spec.devices.count.devices()).sum();
        let used_cpus: u64 = own().map(|spec| u64::from(spec.workers) * spec.cpus.milli).sum();
        *share = (f64::from(used) / devices).max(used_cpus as f64 / milli_cpus);
    }
    let (first, share) = shares.iter().min_by(|one, other| one.1.total_cmp(other.1))?;
    let is_tied = shares.iter().any(|(other, theirs)| other != first && theirs <= share);
    (!is_tied).then(|| (*first).clone())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn who_is_accepted_starts_in_the_end_under_every_policy(
        case in prop_oneof![a_case(false), a_case(true)], policy in policies()
    ) {
        let mut world = case.world();
        world.sharing.workspaces.values_mut().for_each(|workspace| workspace.head_of_line = policy);
        world.refresh();
        for step in &case.steps {
            step.take(&mut world);
            world.plan();
        }
        for node in &mut world.nodes {
            node.cordoned = None;
            node.devices.iter_mut().for_each(|device| device.health = Health::Ok);
        }
        world.refresh();
        let mut rounds = 0;
        while world.queued().count() > 0 {
            world.now += SignedDuration::from_mins(11);
            stop_all(&mut world);
            let oldest = world.holders().map(|(job, _)| (job.active().unwrap().placed_at, job.id)).min();
            if let Some((_, oldest)) = oldest {
                world.vanish(oldest);
            }
            let plan = world.plan();
            rounds += 1;
            if oldest.is_none() && plan.starts.is_empty() {
                break;
            }
            prop_assert!(rounds < 200, "it goes round in circles");
        }
        let left: Vec<JobSpec> = world.queued().map(|job| JobSpec::clone(&job.spec)).collect();
        for spec in left {
            prop_assert!(world.scheduler.check(&spec).is_err(), "left behind: {spec:?}");
        }
    }

    /// One-device jobs, so that what is free always fits.
    #[test]
    fn a_guarantee_is_never_denied_to_its_owner_beyond_the_minimum_run_and_grace_times(
        nodes in prop::collection::vec(1..5u32, 1..4),
        guarantees in prop::collection::vec(0..5u32, 3),
        policy in policies(),
        early in prop::collection::vec((0..3usize, any::<bool>()), 0..20),
        owner in 0..3usize,
    ) {
        let capacity: u32 = nodes.iter().sum();
        let mut left = capacity;
        let mut sharing = Sharing::default();
        for (name, wanted) in ["blue", "green", "red"].into_iter().zip(&guarantees) {
            let guaranteed = left.min(*wanted);
            left -= guaranteed;
            let guaranteed = Amounts { nvidia: Some(DeviceCount::whole(guaranteed)), ..Amounts::default() };
            let workspace = Workspace { guaranteed, head_of_line: policy, ..Workspace::default() };
            sharing.workspaces.insert(name.to_owned(), workspace);
        }
        let nodes: Vec<Node> = ["a", "b", "c"].into_iter().zip(&nodes)
            .map(|(name, count)| node(name, &[(*count, DeviceKind::Nvidia, "A100")], 8)).collect();
        let mut world = World::new(nodes, sharing);
        let names = ["blue", "green", "red"];
        for (id, (workspace, preemptible)) in (1..).zip(early) {
            world.submit(id, "ada", one_device(names[workspace], preemptible));
            world.plan();
            world.now += SignedDuration::from_secs(20);
        }
        let owner = names[owner];
        let guaranteed = world.sharing.workspaces[owner].guaranteed.nvidia.unwrap().devices();
        for id in 100..100 + u64::from(guaranteed) {
            let spec = JobSpec { priority: Some(9), ..one_device(owner, false) };
            world.submit(id, "ada", spec);
        }
        world.plan();
        world.now += SignedDuration::from_mins(5);
        world.plan();
        world.now += SignedDuration::from_secs(30);
        stop_all(&mut world);
        world.plan();
        let own = |job: &Job| job.spec.workspace == owner && job.active().unwrap().stop.is_none();
        let holds = world.holders().filter(|(job, _)| own(job)).count();
        prop_assert!(holds >= guaranteed as usize, "{holds} of {guaranteed}");
    }

    /// With limits that are exact, whoever goes first of all starts no later than it is told, unless somebody who is due
    /// before it is yet to come, or another workspace's turn comes. Nobody is preemptible, and what is guaranteed to a
    /// workspace without jobs has to be left to it, so that many wait for quota rather than for devices.
    #[test]
    fn nobody_starves_under_backfill(
        sizes in prop::collection::vec(1..5u32, 1..4),
        (guaranteed, workspaces) in (0..8u32, 1..3usize),
        jobs in prop::collection::vec((0..600i64, 1..3u32, 0..5u32, 1..600u64, (1..6u64, 0..2usize)), 1..25),
    ) {
        let nodes: Vec<Node> = ["a", "b", "c"].into_iter().zip(&sizes)
            .map(|(name, count)| {
                let mut node = node(name, &[(*count, DeviceKind::Nvidia, "A100")], 8);
                node.capacity.cpus = Cpus::whole(8);
                node
            }).collect();
        let idle = Amounts { nvidia: Some(DeviceCount::whole(guaranteed)), ..Amounts::default() };
        let names = ["blue", "green"];
        let mut sharing = Sharing::default();
        sharing.workspaces.extend(names.map(|name| (name.to_owned(), Workspace::default())));
        sharing.workspaces.insert("idle".to_owned(), Workspace { guaranteed: idle, ..Workspace::default() });
        let mut world = World::new(nodes, sharing);
        let begin = world.now;
        let mut arrivals: Vec<(Timestamp, JobSpec)> = jobs.into_iter().map(|(at, workers, count, seconds, (cpus, workspace))| {
            let workspace = names[workspace % workspaces];
            let mut spec = JobSpec { workers, cpus: Cpus::whole(cpus), ..one_device(workspace, false) };
            spec.devices.count = DeviceCount::whole(count);
            spec.max_time = Some(Span::from_seconds(seconds));
            (begin + SignedDuration::from_secs(at), spec)
        }).collect();
        arrivals.retain(|(_, spec)| world.scheduler.check(spec).is_ok());
        arrivals.sort_by_key(|(at, _)| *at);
        let mut promised: BTreeMap<JobId, Timestamp> = BTreeMap::new();
        let mut arrivals = arrivals.into_iter().peekable();
        loop {
            let ends = world.holders().map(|(job, _)| job.active().unwrap().placed_at + limit(&job.spec)).min();
            let arrives = arrivals.peek().map(|(at, _)| *at);
            let Some(next) = ends.into_iter().chain(arrives).min() else { break };
            world.now = next;
            let is_over = |job: &Job| job.active().unwrap().placed_at + limit(&job.spec) <= next;
            let over: Vec<JobId> = world.holders().filter(|(job, _)| is_over(job)).map(|(job, _)| job.id).collect();
            for job in over {
                world.vanish(job);
            }
            while let Some((_, spec)) = arrivals.next_if(|(at, _)| *at <= next) {
                let id = world.next_id();
                world.submit(id, "ada", spec);
            }
            let turn = whose_turn(&world);
            promised.retain(|job, _| world.jobs.get(job).is_some_and(|job| turn.as_ref() == Some(&job.spec.workspace)));
            let in_turn = |job: &&Job| turn.as_ref() == Some(&job.spec.workspace);
            let due = |at: Timestamp, spec: &JobSpec| at + limit(spec);
            let first = world.queued().filter(in_turn).min_by_key(|job| (due(job.submitted_at, &job.spec), job.id));
            let first = first.filter(|job| {
                let mut own = arrivals.clone().filter(|(_, spec)| spec.workspace == job.spec.workspace);
                own.all(|(at, spec)| due(at, &spec) >= due(job.submitted_at, &job.spec))
            }).map(|job| job.id);
            let plan = world.plan();
            for start in &plan.starts {
                if let Some(promise) = promised.get(&start.job) {
                    prop_assert!(world.now <= *promise, "{} was promised {promise}, starts {}", start.job, world.now);
                }
            }
            for reservation in plan.reservations.iter().filter(|reservation| Some(reservation.job) == first) {
                promised.entry(reservation.job).or_insert(reservation.at);
            }
        }
        prop_assert_eq!(world.queued().count(), 0);
    }

    #[test]
    fn what_is_accepted_starts_on_the_idle_cluster_and_what_is_refused_never_does(
        case in a_case(false), spec in a_spec(false)
    ) {
        let mut world = case.world();
        let is_accepted = world.scheduler.check(&spec).is_ok();
        world.submit(1, "ada", spec);
        let plan = world.plan();
        prop_assert_eq!(is_accepted, plan.starts.len() == 1);
    }
}
