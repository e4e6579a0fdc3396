//! Which queued jobs to start now, and where.
//!
//! One pass over the queue on a scratch copy of what is free. Once a pool's head is blocked, later jobs of that pool
//! cost a look at their request and nothing more: a pass over a full cluster does not multiply jobs by nodes.

use std::collections::BTreeMap;

use danlu_core::job::Waiting as Why;
use danlu_core::{Grant, Job, Life};
use danlu_types::{Bytes, Cpus, DeviceKind, JobId, JobSpec};
use jiff::Timestamp;

use crate::cluster::Cluster;
use crate::fit::{Ask, fits, place_gang};
use crate::layout::Free;
use crate::reason::WaitReason;

/// A plan gives reasons for so many waiting jobs; further back a place in the queue says enough, and [`crate::explain`]
/// has the rest.
pub const MOST_REASONS: usize = 1000;

/// A job in the queue. Those that are not in `Life::Queued` are passed over.
#[derive(Debug, Clone, Copy)]
pub struct Waiting<'a> {
    pub job: &'a Job,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Plan {
    pub starts: Vec<Start>,
    /// Why the others wait, in the queue's order, for the first [`MOST_REASONS`] of them.
    pub waiting: Vec<(JobId, WaitReason)>,
}

/// Start this job with one grant for each of its workers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Start {
    pub job: JobId,
    pub grants: Vec<Grant>,
}

/// Decides what to start. `queue` is in the order of [`Job::place`]; `cluster` is not changed: whoever commits a start
/// calls [`Cluster::take`], which checks it against the newest state.
pub fn plan<'a>(cluster: &Cluster, queue: impl IntoIterator<Item = Waiting<'a>>, now: Timestamp) -> Plan {
    let mut pass = Pass::new(cluster, now);
    let mut plan = Plan::default();
    for Waiting { job } in queue {
        match pass.consider(job) {
            Some(Decision::Start(grants)) => plan.starts.push(Start { job: job.id, grants }),
            Some(Decision::Wait(reason)) if plan.waiting.len() < MOST_REASONS => {
                plan.waiting.push((job.id, reason));
            }
            Some(Decision::Wait(_)) if pass.all_blocked() => break,
            Some(Decision::Wait(_)) | None => {}
        }
    }
    plan
}

/// When the next back-off ends: the time at which a plan may come out differently although nothing has happened.
pub fn next_wake<'a>(queue: impl IntoIterator<Item = Waiting<'a>>, now: Timestamp) -> Option<Timestamp> {
    queue.into_iter().filter_map(|waiting| backs_off_until(waiting.job, now)).min()
}

/// `None`: may start at once. A clock that was set back must not make a job wait for the time it was set back by.
fn backs_off_until(job: &Job, now: Timestamp) -> Option<Timestamp> {
    match &job.life {
        Life::Queued { since, why: Why::Retry { not_before, .. } } => {
            (*since <= now && now < *not_before).then_some(*not_before)
        }
        _ => None,
    }
}

/// Jobs that wait for each other. One that takes any kind of device stands in all the pools of devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Pool {
    Devices(DeviceKind),
    CpuOnly,
}

const POOLS: usize = DeviceKind::ALL.len() + 1;

#[derive(Debug)]
pub(crate) enum Decision {
    Start(Vec<Grant>),
    Wait(WaitReason),
}

/// One pass over the queue, job by job.
#[derive(Debug)]
pub(crate) struct Pass<'c> {
    cluster: &'c Cluster,
    now: Timestamp,
    free: Free,
    /// The first job of each pool that did not fit.
    heads: BTreeMap<Pool, JobId>,
    /// Answers of [`Pass::could_ever_fit`]: many jobs ask the same.
    possible: BTreeMap<(Pool, Shape), bool>,
}

type Shape = (u32, u32, Option<String>, Cpus, Option<Bytes>);

impl<'c> Pass<'c> {
    pub(crate) fn new(cluster: &'c Cluster, now: Timestamp) -> Self {
        let free = cluster.free.clone();
        Pass { cluster, now, free, heads: BTreeMap::new(), possible: BTreeMap::new() }
    }

    /// What becomes of the next job in the queue; `None` if it is not queued.
    pub(crate) fn consider(&mut self, job: &Job) -> Option<Decision> {
        if !matches!(job.life, Life::Queued { .. }) {
            return None;
        }
        if let Some(not_before) = backs_off_until(job, self.now) {
            return Some(Decision::Wait(WaitReason::BackOff { not_before }));
        }
        let pools = pools_of(&job.spec);
        let open = || pools.iter().filter(|pool| !self.heads.contains_key(pool)).copied();
        if open().next().is_none() {
            return Some(Decision::Wait(self.behind_head(&pools)));
        }
        let open: Vec<Pool> = open().collect();
        let ask = Ask::of(&job.spec);
        let models = self.models(&job.spec, &open);
        if let Some(picks) = place_gang(&self.cluster.layout, &mut self.free, &ask, &models) {
            let memory = job.spec.memory.unwrap_or_default();
            let grants = picks.iter().map(|pick| self.cluster.grant(pick, job.spec.cpus, memory)).collect();
            return Some(Decision::Start(grants));
        }
        Some(Decision::Wait(self.block(job, &pools, &open, &ask)))
    }

    fn all_blocked(&self) -> bool {
        self.heads.len() == POOLS
    }

    /// The job does not fit: it becomes the head of the pools in which it could one day.
    fn block(&mut self, job: &Job, pools: &[Pool], open: &[Pool], ask: &Ask) -> WaitReason {
        let waits_in: Vec<Pool> =
            open.iter().copied().filter(|pool| self.could_ever_fit(&job.spec, ask, *pool)).collect();
        if waits_in.is_empty() {
            let closed = pools.iter().filter(|pool| !open.contains(pool));
            let elsewhere: Vec<Pool> =
                closed.copied().filter(|pool| self.could_ever_fit(&job.spec, ask, *pool)).collect();
            return if elsewhere.is_empty() {
                WaitReason::NoSuchDevices
            } else {
                self.behind_head(&elsewhere)
            };
        }
        let reason = self.shortage(&job.spec, ask, &self.models(&job.spec, &waits_in));
        for pool in waits_in {
            self.heads.insert(pool, job.id);
        }
        if !matches!(reason, WaitReason::DevicesBusy { .. }) {
            self.heads.entry(Pool::CpuOnly).or_insert(job.id);
        }
        reason
    }

    fn behind_head(&self, pools: &[Pool]) -> WaitReason {
        let head = pools.iter().filter_map(|pool| self.heads.get(pool)).min();
        WaitReason::BehindOthers { head: *head.expect("only called for pools that have a head") }
    }

    /// What is missing: devices before CPUs before memory.
    fn shortage(&self, spec: &JobSpec, ask: &Ask, models: &[usize]) -> WaitReason {
        let (layout, free) = (&self.cluster.layout, &self.free);
        let nodes = || 0..layout.nodes.len();
        let on = |node: usize| {
            let counts = models.iter().map(|&model| layout.free_on(free, node, Some(model)));
            counts.max().unwrap_or(0)
        };
        if spec.devices.count.devices() > 0
            && !fits(layout, free, &Ask { milli_cpus: 0, bytes: 0, ..*ask }, models)
        {
            return WaitReason::DevicesBusy {
                free: models.iter().map(|&model| layout.free_of(free, model)).sum(),
                most_on_one_node: nodes().map(on).max().unwrap_or(0),
            };
        }
        let candidates = || nodes().filter(|&node| on(node) >= spec.devices.count.devices());
        let most = |amounts: &[i64]| {
            let most = candidates().map(|node| amounts[node]).max().unwrap_or(0);
            u64::try_from(most).unwrap_or(0)
        };
        if fits(layout, free, &Ask { bytes: 0, ..*ask }, models) {
            WaitReason::MemoryBusy { most_on_one_node: Bytes(most(&free.bytes)) }
        } else {
            WaitReason::CpusBusy { most_on_one_node: Cpus { milli: most(&free.milli_cpus) } }
        }
    }

    fn could_ever_fit(&mut self, spec: &JobSpec, ask: &Ask, pool: Pool) -> bool {
        let shape =
            (spec.workers, spec.devices.count.devices(), spec.devices.model.clone(), spec.cpus, spec.memory);
        if let Some(&known) = self.possible.get(&(pool, shape.clone())) {
            return known;
        }
        let models = self.models(spec, &[pool]);
        let possible = fits(&self.cluster.layout, &self.cluster.usable, ask, &models);
        self.possible.insert((pool, shape), possible);
        possible
    }

    fn models(&self, spec: &JobSpec, pools: &[Pool]) -> Vec<usize> {
        let layout = &self.cluster.layout;
        let mut models = layout.accepted(&spec.devices);
        models.retain(|&model| pools.contains(&Pool::Devices(layout.models[model].kind)));
        models
    }
}

fn pools_of(spec: &JobSpec) -> Vec<Pool> {
    match spec.devices.kind {
        _ if spec.devices.count.devices() == 0 => vec![Pool::CpuOnly],
        Some(kind) => vec![Pool::Devices(kind)],
        None => DeviceKind::ALL.map(Pool::Devices).to_vec(),
    }
}
