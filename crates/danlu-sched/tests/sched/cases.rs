//! Random small clusters, rules, queues and histories.

use danlu_core::Job;
use danlu_core::job::{FailureCause, WorkerEnd};
use danlu_types::{
    Amounts, Cpus, DeviceCount, DeviceKind, DeviceRequest, ForeignHold, HeadOfLine, Health, JobId, JobSpec,
    Node, Sharing, Span, Workspace,
};
use jiff::SignedDuration;
use proptest::prelude::*;

use crate::world::{World, foreign, node, start_of_time};

#[derive(Debug, Clone)]
pub(crate) struct Case {
    pub(crate) nodes: Vec<Node>,
    pub(crate) sharing: Sharing,
    pub(crate) steps: Vec<Step>,
}

/// Something that happens before the next plan.
#[derive(Debug, Clone)]
pub(crate) struct Step {
    pub(crate) seconds: i64,
    pub(crate) jobs: Vec<(String, JobSpec)>,
    pub(crate) happening: Happening,
}

#[derive(Debug, Clone)]
pub(crate) enum Happening {
    Nothing,
    /// One of those that run ends; those that were told to end have ended.
    Ends(prop::sample::Index),
    /// Those that were told to end have ended.
    Stops,
    /// One of those that run fails.
    Fails(prop::sample::Index),
    /// One of those that run saves its work.
    Saves(prop::sample::Index),
    Breaks(prop::sample::Index),
    Cordons(prop::sample::Index),
    AllIsWell,
}

impl Case {
    pub(crate) fn world(&self) -> World {
        World::new(self.nodes.clone(), self.sharing.clone())
    }
}

impl Step {
    /// Lets it happen; nobody's length is remembered, so that estimates are limits.
    pub(crate) fn take(&self, world: &mut World) {
        world.now += SignedDuration::from_secs(self.seconds);
        let active: Vec<Job> = world.jobs.values().filter(|job| job.active().is_some()).cloned().collect();
        let is_stopping = |job: &Job| job.active().is_some_and(|attempt| attempt.stop.is_some());
        let running: Vec<JobId> = active.iter().filter(|job| !is_stopping(job)).map(|job| job.id).collect();
        if matches!(self.happening, Happening::Stops | Happening::Ends(_)) {
            for job in active.iter().filter(|job| is_stopping(job)) {
                world.end(job.id, &WorkerEnd::Stopped);
            }
        }
        match &self.happening {
            Happening::Ends(which) if !running.is_empty() => {
                world.vanish(running[which.index(running.len())]);
            }
            Happening::Fails(which) if !running.is_empty() => {
                world.fail(running[which.index(running.len())], 0, FailureCause::DeviceError);
            }
            Happening::Saves(which) if !running.is_empty() => {
                world.save(running[which.index(running.len())]);
            }
            Happening::Breaks(which) => {
                let mut devices: Vec<_> = world.nodes.iter_mut().flat_map(|node| &mut node.devices).collect();
                let which = which.index(devices.len());
                devices[which].health = Health::Failed;
            }
            Happening::Cordons(which) => {
                let which = which.index(world.nodes.len());
                world.nodes[which].cordoned = Some("maintenance".to_owned());
            }
            Happening::AllIsWell => {
                for node in &mut world.nodes {
                    node.cordoned = None;
                    node.devices.iter_mut().for_each(|device| device.health = Health::Ok);
                }
            }
            _ => {}
        }
        // At times others outlive their limits.
        if !matches!(self.happening, Happening::Nothing) {
            let is_over = |hold: &ForeignHold| hold.until.is_some_and(|until| until <= world.now);
            for node in &mut world.nodes {
                node.foreign.retain(|hold| !is_over(hold));
            }
        }
        world.refresh();
        for (owner, spec) in &self.jobs {
            let id = world.next_id();
            world.submit(id, owner, spec.clone());
        }
    }
}

/// With preemption: whole devices, processors without end, since only then the fewest victims are found exactly.
pub(crate) fn a_case(preempts: bool) -> impl Strategy<Value = Case> {
    let nodes = prop::collection::vec(a_node(preempts), 1..4).prop_map(named);
    let steps = prop::collection::vec(a_step(preempts), 1..7);
    (nodes, a_sharing(preempts), steps).prop_map(|(nodes, sharing, steps)| Case { nodes, sharing, steps })
}

/// On a cluster that others use as well.
pub(crate) fn a_shared_case(preempts: bool) -> impl Strategy<Value = Case> {
    let until = prop::option::weighted(0.8, prop::sample::select(vec![1, 60, 600, 3600, 4000, 10_000]));
    let hold = prop::option::of((1..4u32, 0..4u64, until));
    (a_case(preempts), prop::collection::vec(hold, 3)).prop_map(|(mut case, holds)| {
        for (node, hold) in case.nodes.iter_mut().zip(holds) {
            node.foreign.extend(hold.map(|(devices, cpus, until)| {
                let until = until.map(|seconds| start_of_time() + SignedDuration::from_secs(seconds));
                foreign(devices.min(u32::try_from(node.devices.len()).unwrap()), cpus, until)
            }));
        }
        case
    })
}

/// Many who wait and are alike but for their lengths and priorities, so that one finds out what holds for others.
pub(crate) fn a_crowd() -> impl Strategy<Value = Case> {
    let spec = (a_spec(true), prop::sample::select(vec![1u32, 2, 4]), 1..3u32).prop_map(
        |(mut spec, count, workers)| {
            spec.any_of = Vec::new();
            spec.devices.kind = Some(DeviceKind::Nvidia);
            (spec.devices.model, spec.devices.count) = (None, DeviceCount::whole(count));
            spec.workers = workers;
            spec
        },
    );
    let jobs = prop::collection::vec((Just("ada".to_owned()), spec), 4..14);
    let step = (a_step(true), jobs).prop_map(|(step, jobs)| Step { jobs, ..step });
    let nodes = prop::collection::vec(a_node(true), 2..4).prop_map(named);
    let steps = prop::collection::vec(step, 2..7);
    (nodes, a_sharing(true), steps).prop_map(|(nodes, sharing, steps)| Case { nodes, sharing, steps })
}

const MODELS: [(DeviceKind, &str); 4] = [
    (DeviceKind::Nvidia, "A100"),
    (DeviceKind::Ascend, "910B3"),
    (DeviceKind::Nvidia, "T4"),
    (DeviceKind::Ascend, "910A"),
];

fn a_node(preempts: bool) -> impl Strategy<Value = Node> {
    let models = if preempts { 0..2usize } else { 0..4 };
    let counts = if preempts { 3..5u32 } else { 1..5 };
    let devices = prop::collection::vec((counts, models), 1..=if preempts { 1 } else { 2 });
    (devices, 1..5u32, 2..12u64, prop::option::of(prop::sample::select(vec!["r1", "r2"]))).prop_map(
        move |(mut devices, island, cpus, rack)| {
            devices.sort_by_key(|(_, model)| *model);
            devices.dedup_by_key(|(_, model)| *model);
            let devices: Vec<_> =
                devices.iter().map(|(count, model)| (*count, MODELS[*model].0, MODELS[*model].1)).collect();
            let mut node = node("", &devices, island);
            if !preempts {
                node.capacity.cpus = Cpus::whole(cpus);
            }
            node.labels.extend(rack.map(|rack| ("rack".to_owned(), rack.to_owned())));
            node
        },
    )
}

fn a_sharing(preempts: bool) -> impl Strategy<Value = Sharing> {
    let workspaces = prop::collection::vec(a_workspace(preempts), 3);
    let lending = prop::bool::weighted(if preempts { 0.95 } else { 0.6 });
    (lending, prop::sample::select(vec![0, 60, 600]), workspaces).prop_map(
        |(lending, minimum, workspaces)| Sharing {
            lending,
            minimum_run_time: Span::from_seconds(minimum),
            workspaces: ["blue", "green", "red"].map(str::to_owned).into_iter().zip(workspaces).collect(),
            ..Sharing::default()
        },
    )
}

fn a_workspace(preempts: bool) -> impl Strategy<Value = Workspace> {
    let amount = |from: u32, most: u32, weight: f64| {
        prop::option::weighted(weight, (from..=most).prop_map(DeviceCount::whole))
    };
    let policies = vec![HeadOfLine::Backfill, HeadOfLine::Backfill, HeadOfLine::Strict, HeadOfLine::Skip];
    let limited = if preempts { 0.1 } else { 0.3 };
    let guaranteed = (amount(1, 4, 0.6), amount(1, 4, 0.4));
    let limits = (amount(2, 6, limited), amount(0, 4, limited), amount(1, 4, limited));
    let cpus = prop::option::weighted(limited / 2.0, 1..8u64);
    (guaranteed, limits, cpus, prop::sample::select(policies)).prop_map(
        |((nvidia, ascend), limits, cpus, head_of_line)| Workspace {
            guaranteed: Amounts { nvidia, ascend, ..Amounts::default() },
            limit: Amounts {
                nvidia: limits.0,
                ascend: limits.1,
                cpus: cpus.map(Cpus::whole),
                ..Amounts::default()
            },
            per_user: Amounts { nvidia: limits.2, ..Amounts::default() },
            head_of_line,
            ..Workspace::default()
        },
    )
}

fn a_step(preempts: bool) -> impl Strategy<Value = Step> {
    let index = any::<prop::sample::Index>;
    let happening = prop_oneof![
        3 => Just(Happening::Nothing),
        3 => Just(Happening::Stops),
        4 => index().prop_map(Happening::Ends),
        1 => index().prop_map(Happening::Fails),
        2 => index().prop_map(Happening::Saves),
        1 => index().prop_map(Happening::Breaks),
        1 => index().prop_map(Happening::Cordons),
        1 => Just(Happening::AllIsWell),
    ];
    let jobs = prop::collection::vec((prop::sample::select(vec!["ada", "bob"]), a_spec(preempts)), 0..6);
    (prop::sample::select(vec![0, 1, 60, 700, 700, 4000]), jobs, happening).prop_map(
        |(seconds, jobs, happening)| {
            let jobs = jobs.into_iter().map(|(owner, spec)| (owner.to_owned(), spec)).collect();
            Step { seconds, jobs, happening }
        },
    )
}

fn a_request(preempts: bool) -> impl Strategy<Value = DeviceRequest> {
    let count = if preempts {
        prop_oneof![4 => Just(1000), 3 => Just(2000), 1 => Just(3000), 1 => Just(4000)].boxed()
    } else {
        prop_oneof![2 => Just(1000), 2 => Just(2000), 1 => Just(4000), 1 => Just(500), 1 => Just(300)].boxed()
    };
    let what = prop_oneof![
        1 => Just((None, None)),
        8 => Just((Some(DeviceKind::Nvidia), None)),
        1 => Just((Some(DeviceKind::Nvidia), Some("A*".to_owned()))),
        2 => Just((Some(DeviceKind::Ascend), None)),
    ];
    (what, count).prop_map(|((kind, model), milli)| DeviceRequest {
        kind,
        model,
        count: DeviceCount::from_milli(milli).unwrap(),
    })
}

pub(crate) fn a_spec(preempts: bool) -> impl Strategy<Value = JobSpec> {
    let devices = prop_oneof![
        1 => Just(Vec::new()),
        8 => a_request(preempts).prop_map(|request| vec![request]),
        2 => prop::collection::vec(a_request(preempts), 2..4),
    ];
    let workers = prop_oneof![8 => Just(1u32), 2 => Just(2u32), 1 => Just(3u32)];
    let time = prop::option::weighted(0.7, prop::sample::select(vec![50u64, 600, 3600, 10_000]));
    let workspace = prop::sample::select(vec!["blue", "green", "red"]);
    let cpus = if preempts { 1..2u64 } else { 1..4u64 };
    (
        workers,
        devices,
        workspace,
        time,
        prop::sample::select(vec![3u8, 5, 9]),
        (prop::bool::weighted(0.3), any::<bool>()),
        cpus,
    )
        .prop_map(move |(workers, devices, workspace, time, priority, (firm, same_rack), cpus)| {
            let mut spec = JobSpec::of_command("true");
            match devices.len() {
                0 => {}
                1 => spec.devices.clone_from(&devices[0]),
                _ => spec.any_of = devices,
            }
            workspace.clone_into(&mut spec.workspace);
            (spec.workers, spec.priority, spec.cpus) = (workers, Some(priority), Cpus::whole(cpus));
            spec.preemptible = preempts && !firm;
            spec.nodes.same_rack = same_rack && workers > 1;
            spec.max_time = time.map(Span::from_seconds);
            spec.retry.limit = 3;
            spec
        })
}

/// Boards with rules, and jobs that put them to the test.
pub(crate) fn a_case_of_boards() -> impl Strategy<Value = Case> {
    let boards = vec![("910A", 8, 4), ("910B2", 16, 8), ("Ascend910", 16, 2), ("910B3", 8, 8)];
    let board = prop::sample::select(boards)
        .prop_map(|(model, count, island)| node("", &[(count, DeviceKind::Ascend, model)], island));
    let nodes = prop::collection::vec(board, 1..4).prop_map(named);
    let count = prop_oneof![8 => (1..17u32).prop_map(|count| count * 1000), 1 => Just(500u32)];
    let spec = (count, 1..3u32).prop_map(|(milli, workers)| {
        let mut spec = JobSpec { workers, ..JobSpec::of_command("true") };
        spec.devices.kind = Some(DeviceKind::Ascend);
        spec.devices.count = DeviceCount::from_milli(milli).unwrap();
        spec.max_time = Some(Span::from_seconds(60));
        spec
    });
    let jobs = prop::collection::vec(spec.prop_map(|spec| ("ada".to_owned(), spec)), 0..6);
    let happening = prop_oneof![
        4 => any::<prop::sample::Index>().prop_map(Happening::Ends),
        1 => any::<prop::sample::Index>().prop_map(Happening::Breaks),
    ];
    let step = (jobs, happening).prop_map(|(jobs, happening)| Step { seconds: 10, jobs, happening });
    let steps = prop::collection::vec(step, 1..8);
    let skip = Workspace { head_of_line: HeadOfLine::Skip, ..Workspace::default() };
    let sharing = Sharing { workspaces: [("default".to_owned(), skip)].into(), ..Sharing::default() };
    (nodes, steps).prop_map(move |(nodes, steps)| Case { nodes, sharing: sharing.clone(), steps })
}

fn named(mut nodes: Vec<Node>) -> Vec<Node> {
    for (node, name) in nodes.iter_mut().zip(["a", "b", "c"]) {
        name.clone_into(&mut node.name.0);
    }
    nodes
}
