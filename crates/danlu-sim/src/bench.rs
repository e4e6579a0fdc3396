//! How fast the scheduler is on a large cluster: a pass, a pass after one event, placements, an explanation.
//!
//! Times come from a clock that the caller hands in, so that this crate stays without one.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use danlu_core::{Job, Transition, Trigger, apply};
use danlu_sched::Scheduler;
use danlu_types::{
    Bytes, Cpus, Device, DeviceCount, DeviceKind, DeviceRequest, Health, JobId, JobSpec, Node, NodeCapacity,
    NodeName, Sharing, Span, Topology, Wiring, Workspace,
};
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

/// What was measured, in milliseconds where nothing else is said.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BenchReport {
    pub nodes: u32,
    pub devices: u32,
    pub queued: usize,
    /// The first pass over the whole queue, with nothing computed before.
    pub full_pass_ms: f64,
    pub full_pass_starts: usize,
    /// A pass after one job has ended: median and slowest of so many.
    pub incremental_passes: usize,
    pub incremental_pass_ms: f64,
    pub slowest_incremental_pass_ms: f64,
    /// The same where half of the jobs that run may be preempted, so that those who wait look for victims. Searches make
    /// that slow, so a large cluster is made smaller for it.
    pub preemptible_nodes: u32,
    pub preemptible_queued: usize,
    pub full_pass_with_preemptible_ms: f64,
    pub incremental_pass_with_preemptible_ms: f64,
    pub slowest_incremental_pass_with_preemptible_ms: f64,
    /// Explanations of jobs throughout the queue: median and slowest of so many.
    pub explanations: usize,
    pub explain_ms: f64,
    pub slowest_explain_ms: f64,
    pub placement_nodes: u32,
    pub placements: usize,
    pub placements_per_second: f64,
}

/// How large the measured cluster is; the sizes by default.
#[derive(Debug, Clone, Copy)]
pub struct BenchSize {
    pub nodes: u32,
    pub queued: u64,
    pub placement_nodes: u32,
    pub placements: u64,
}

impl Default for BenchSize {
    fn default() -> Self {
        BenchSize { nodes: 10_000, queued: 100_000, placement_nodes: 5_000, placements: 50_000 }
    }
}

const DEVICES_PER_NODE: u32 = 8;
const EVENTS: usize = 101;
const EXPLANATIONS: u64 = 21;
/// How large the cluster is at most on which jobs may be preempted: on 10,000 nodes it took half a minute.
const MOST_PREEMPTIBLE_NODES: u32 = 1_000;
const MOST_PREEMPTIBLE_QUEUED: u64 = 10_000;

/// Measures everything. `clock` tells the time since some moment; `say` is told what is being measured.
pub fn bench(size: BenchSize, clock: impl Fn() -> Duration, mut say: impl FnMut(&str)) -> BenchReport {
    say("filling the cluster");
    let mut world = World::new(size.nodes);
    let Passes { full, starts, one_event: passes } = world.passes(size.queued, false, &clock, &mut say);
    say("filling the cluster with jobs of which half may be preempted");
    let preemptible_nodes = size.nodes.min(MOST_PREEMPTIBLE_NODES);
    let preemptible_queued = size.queued.min(MOST_PREEMPTIBLE_QUEUED);
    let mut preemptible_world = World::new(preemptible_nodes);
    let with_preemptible = preemptible_world.passes(preemptible_queued, true, &clock, &mut say);
    say("explanations");
    let mut explanations: Vec<Duration> =
        (0..EXPLANATIONS).map(|number| world.explain(number * size.queued / EXPLANATIONS, &clock)).collect();
    explanations.sort_unstable();
    say("placements");
    let (placements, took) = placements(size, &clock);
    BenchReport {
        nodes: size.nodes,
        devices: size.nodes * DEVICES_PER_NODE,
        queued: world.scheduler.queue_len(),
        full_pass_ms: milliseconds(full),
        full_pass_starts: starts,
        incremental_passes: passes.len(),
        incremental_pass_ms: milliseconds(passes[passes.len() / 2]),
        slowest_incremental_pass_ms: milliseconds(passes[passes.len() - 1]),
        preemptible_nodes,
        preemptible_queued: preemptible_world.scheduler.queue_len(),
        full_pass_with_preemptible_ms: milliseconds(with_preemptible.full),
        incremental_pass_with_preemptible_ms: milliseconds(with_preemptible.one_event[EVENTS / 2]),
        slowest_incremental_pass_with_preemptible_ms: milliseconds(with_preemptible.one_event[EVENTS - 1]),
        explanations: explanations.len(),
        explain_ms: milliseconds(explanations[explanations.len() / 2]),
        slowest_explain_ms: milliseconds(explanations[explanations.len() - 1]),
        placement_nodes: size.placement_nodes,
        placements,
        placements_per_second: placements as f64 / took.as_secs_f64(),
    }
}

/// How long passes took.
struct Passes {
    full: Duration,
    starts: usize,
    /// After one event each, the fastest first.
    one_event: Vec<Duration>,
}

/// All of the queue fits: one pass that places it.
fn placements(size: BenchSize, clock: &impl Fn() -> Duration) -> (usize, Duration) {
    let mut scheduler = Scheduler::new(&nodes(size.placement_nodes), Sharing::default());
    let wanted = size.placements.min(u64::from(size.placement_nodes * DEVICES_PER_NODE));
    for id in 1..=size.placements {
        scheduler.file(&job(id, spec(1, 1, 8, "default", 5, None), start()));
    }
    let begin = clock();
    let plan = scheduler.plan(start());
    let took = clock().saturating_sub(begin);
    assert!(plan.starts.len() as u64 == wanted, "{} of {wanted} jobs were placed", plan.starts.len());
    (plan.starts.len(), took)
}

struct World {
    scheduler: Scheduler,
    now: Timestamp,
    waiting: BTreeMap<JobId, Job>,
    active: Vec<Job>,
    next: u64,
}

impl World {
    fn new(count: u32) -> Self {
        let capacity = count * DEVICES_PER_NODE;
        let mut sharing = Sharing::default();
        for workspace in 0..WORKSPACES {
            let guaranteed = danlu_types::Amounts {
                nvidia: Some(DeviceCount::whole(capacity / u32::try_from(WORKSPACES).unwrap_or(1))),
                ..Default::default()
            };
            sharing
                .workspaces
                .insert(format!("team-{workspace}"), Workspace { guaranteed, ..Workspace::default() });
        }
        let scheduler = Scheduler::new(&nodes(count), sharing);
        World { scheduler, now: start(), waiting: BTreeMap::new(), active: Vec::new(), next: 1 }
    }

    /// Fills the cluster and the queue, and measures passes.
    fn passes(
        &mut self,
        queued: u64,
        half_preemptible: bool,
        clock: &impl Fn() -> Duration,
        say: &mut impl FnMut(&str),
    ) -> Passes {
        self.fill(half_preemptible);
        // Beyond the minimum run time, so that those who may be preempted are worth a look.
        self.now += SignedDuration::from_mins(30);
        let held = self.active.len();
        self.queue(queued);
        say("one full pass");
        let begin = clock();
        let plan = self.scheduler.plan(self.now);
        let full = clock().saturating_sub(begin);
        let starts = plan.starts.len();
        self.carry_out(plan);
        say("passes after one event");
        let events = (0..EVENTS).map(|event| self.incremental(event * held / EVENTS, clock));
        let mut one_event: Vec<Duration> = events.collect();
        one_event.sort_unstable();
        Passes { full, starts, one_event }
    }

    /// Starts jobs until 95 % of the devices are held.
    fn fill(&mut self, half_preemptible: bool) {
        let devices = u32::try_from(self.scheduler.nodes().len()).unwrap_or(u32::MAX) * DEVICES_PER_NODE;
        let mut held = 0;
        while held < devices / 100 * 95 {
            let id = self.next;
            let mut spec = mixed(id, &[1, 2, 4, 8, 1, 2, 1, 8]);
            spec.preemptible = half_preemptible && (id / 8).is_multiple_of(2);
            held += spec.workers * spec.devices.count.devices();
            self.submit(spec);
        }
        let plan = self.scheduler.plan(self.now);
        self.carry_out(plan);
        let rest: Vec<JobId> = self.waiting.keys().copied().collect();
        for id in rest {
            self.waiting.remove(&id);
            self.scheduler.forget(id);
        }
    }

    fn queue(&mut self, count: u64) {
        for _ in 0..count {
            let spec = mixed(self.next, &[8, 16, 4, 32, 8, 64, 2, 128, 8, 1, 16, 8]);
            self.submit(spec);
        }
    }

    fn submit(&mut self, spec: JobSpec) {
        let job = job(self.next, spec, self.now);
        self.next += 1;
        self.scheduler.file(&job);
        self.waiting.insert(job.id, job);
    }

    fn carry_out(&mut self, plan: danlu_sched::Plan) {
        for start in plan.starts {
            let Some(job) = self.waiting.remove(&start.job) else { continue };
            let Transition::Next { job, .. } = apply(&job, Trigger::Place { grants: start.grants }, self.now)
            else {
                continue;
            };
            self.scheduler.file(&job);
            self.active.push(*job);
        }
        for danlu_sched::Preemption { victim, for_job } in plan.preemptions {
            let Some(victim) = self.active.iter_mut().find(|job| job.id == victim) else { continue };
            if let Transition::Next { job, .. } = apply(victim, Trigger::Preempt { for_job }, self.now) {
                self.scheduler.file(&job);
                *victim = *job;
            }
        }
    }

    /// One job ends; then a pass.
    fn incremental(&mut self, which: usize, clock: &impl Fn() -> Duration) -> Duration {
        self.now += SignedDuration::from_secs(1);
        let ended = self.active.swap_remove(which % self.active.len());
        let begin = clock();
        self.scheduler.forget(ended.id);
        let plan = self.scheduler.plan(self.now);
        let took = clock().saturating_sub(begin);
        self.carry_out(plan);
        took
    }

    fn explain(&mut self, number: u64, clock: &impl Fn() -> Duration) -> Duration {
        let position = usize::try_from(number).unwrap_or(0) % self.waiting.len().max(1);
        let Some(job) = self.waiting.values().nth(position).cloned() else { return Duration::ZERO };
        let begin = clock();
        let explanation = self.scheduler.explain(&job, self.now);
        let took = clock().saturating_sub(begin);
        assert!(!explanation.text.is_empty(), "an explanation has a text");
        took
    }
}

const WORKSPACES: u64 = 8;

/// Gangs of many sizes, lengths, priorities and workspaces.
fn mixed(id: u64, sizes: &[u32]) -> JobSpec {
    let devices = sizes[usize::try_from(id).unwrap_or(0) % sizes.len()];
    let (workers, count) = if devices > 8 { (devices / 8, 8) } else { (1, devices) };
    let hours = [1, 2, 4, 8, 24, 72][usize::try_from(id / 7).unwrap_or(0) % 6];
    let priority = [5, 5, 5, 7, 3][usize::try_from(id / 3).unwrap_or(0) % 5];
    let cpus = [4, 8, 12][usize::try_from(id / 5).unwrap_or(0) % 3] * u64::from(count);
    let workspace = format!("team-{}", (id / 11) % WORKSPACES);
    spec(workers, count, cpus, &workspace, priority, Some(Span::from_seconds(hours * 3600)))
}

fn spec(workers: u32, count: u32, cpus: u64, workspace: &str, priority: u8, limit: Option<Span>) -> JobSpec {
    JobSpec {
        workers,
        devices: DeviceRequest {
            kind: Some(DeviceKind::Nvidia),
            model: None,
            count: DeviceCount::whole(count),
        },
        cpus: Cpus::whole(cpus),
        workspace: workspace.to_owned(),
        priority: Some(priority),
        max_time: limit,
        ..JobSpec::of_command("true")
    }
}

fn job(id: u64, spec: JobSpec, at: Timestamp) -> Job {
    Job::submitted(JobId(id), format!("user-{}", id % 40), Arc::new(spec), at)
}

fn nodes(count: u32) -> Vec<Node> {
    let device = |index| Device {
        index,
        kind: DeviceKind::Nvidia,
        model: "H200".to_owned(),
        memory: Bytes(141 << 30),
        island: 0,
        health: Health::Ok,
        wiring: Wiring::default(),
    };
    let node = |number| Node {
        name: NodeName(format!("node-{number:05}")),
        architecture: "x86_64".to_owned(),
        capacity: NodeCapacity { cpus: Cpus::whole(128), memory: Bytes(2 << 40) },
        devices: (0..DEVICES_PER_NODE).map(device).collect(),
        labels: BTreeMap::new(),
        cordoned: None,
        address: "127.0.0.1".to_owned(),
        topology: Topology::default(),
        simulated: true,
        foreign: Vec::new(),
    };
    (0..count).map(node).collect()
}

fn start() -> Timestamp {
    Timestamp::UNIX_EPOCH
}

fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}
