//! Who holds what a job waits for.
//!
//! Which holders matter follows from the reason: where CPUs or memory are short, those who hold them on nodes that would
//! do; where a limit is reached, those who count in it; otherwise those who hold devices that the job would take.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use danlu_types::api::{ForeignHolder, Holder};
use danlu_types::reason::QuotaResource;
use danlu_types::{Bytes, Cpus, ForeignKind, JobId};
use jiff::Timestamp;

use super::history::Witness;
use super::queue::QueuedJob;
use super::running::Running;
use super::{Circumstances, Scheduler, WaitReason};
use crate::fleet::{NodeId, WorkerPlacement};
use crate::shape::Shape;

/// Lists of holders stop here: past a dozen names, a list explains no more than its length.
const MOST_HOLDERS: usize = 12;

/// What of a job's holdings another one waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wanted {
    Devices,
    Cpus,
    Memory,
}

impl Scheduler {
    /// Who holds what the job waits for, the largest first.
    pub(super) fn holders_of(
        &self,
        waiting: &QueuedJob,
        reason: &WaitReason,
        now: Timestamp,
        known: &Circumstances,
    ) -> Vec<Holder> {
        let shape = self.fleet.shape_of(waiting.class.shape);
        let Some(wanted) = wanted(shape, reason) else { return Vec::new() };
        let counts = |running: &Running| match reason {
            WaitReason::WorkspaceLimit { .. } => running.account == waiting.class.account,
            WaitReason::UserLimit { .. } => {
                running.account == waiting.class.account && running.owner == waiting.owner
            }
            _ => true,
        };
        let amount = |running: &Running| match reason {
            WaitReason::WorkspaceLimit { resource, .. } | WaitReason::UserLimit { resource, .. } => {
                running.usage.get(*resource)
            }
            _ => running.placement.parts.iter().map(|part| self.amount(shape, part, wanted)).sum(),
        };
        let mut holders: Vec<(Reverse<u64>, JobId)> = self
            .running
            .iter()
            .filter(|(_, running)| counts(running))
            .map(|(job, running)| (Reverse(amount(running)), job))
            .filter(|(Reverse(amount), _)| *amount > 0)
            .collect();
        if holders.len() > MOST_HOLDERS {
            holders.select_nth_unstable(MOST_HOLDERS);
            holders.truncate(MOST_HOLDERS);
        }
        holders.sort_unstable();
        let holders = holders.into_iter();
        holders
            .filter_map(|(Reverse(amount), job)| {
                let holder = self.holder(job, wanted, amount, now, known)?;
                // Those who count in a limit are told with all that they hold.
                let is_quota =
                    matches!(reason, WaitReason::WorkspaceLimit { .. } | WaitReason::UserLimit { .. });
                let devices = self
                    .running
                    .get(job)?
                    .placement
                    .parts
                    .iter()
                    .map(|part| if is_quota { part.devices.len() } else { self.accepted(shape, part) });
                let devices = if wanted == Wanted::Devices { devices.sum() } else { 0 };
                Some(Holder { devices: u32::try_from(devices).unwrap_or(u32::MAX), ..holder })
            })
            .collect()
    }

    /// How much of what is wanted a part of a placement holds.
    fn amount(&self, shape: &Shape, part: &WorkerPlacement, wanted: Wanted) -> u64 {
        let node = &self.fleet.nodes()[part.node.ordinal()];
        match wanted {
            Wanted::Devices => self.accepted(shape, part) as u64 * u64::from(part.share),
            _ if !shape.may_run_on(node) => 0,
            Wanted::Cpus => part.milli_cpus,
            Wanted::Memory => part.bytes,
        }
    }

    /// How many devices of a part the gang would take.
    fn accepted(&self, shape: &Shape, part: &WorkerPlacement) -> usize {
        let devices = &self.fleet.nodes()[part.node.ordinal()].devices;
        let devices = part.devices.iter().map(|position| &devices[usize::from(*position)]);
        let would_do = |device: &&danlu_types::Device| {
            shape.alternatives.iter().any(|ask| ask.accepts(device.kind, &device.model))
        };
        devices.filter(would_do).count()
    }

    fn holder(
        &self,
        job: JobId,
        wanted: Wanted,
        amount: u64,
        now: Timestamp,
        known: &Circumstances,
    ) -> Option<Holder> {
        let running = self.running.get(job)?;
        let mut nodes: Vec<NodeId> = running.placement.parts.iter().map(|part| part.node).collect();
        nodes.dedup();
        Some(Holder {
            job: Some(job),
            name: running.name.to_string(),
            workspace: self.accounts.get(running.account).name.clone(),
            owner: running.owner.to_string(),
            devices: 0,
            cpus: (wanted == Wanted::Cpus).then_some(Cpus { milli: amount }),
            memory: (wanted == Wanted::Memory).then_some(Bytes(amount)),
            nodes: nodes.into_iter().map(|node| self.fleet.nodes()[node.ordinal()].name.clone()).collect(),
            expected_end: match known.ends.get(&job) {
                _ if known.held.contains(&job) => None,
                Some(told) => Some(*told),
                None => self.expected_end(job, now),
            },
        })
    }

    /// When a running job should end, if there is anything to tell it by.
    pub fn expected_end(&self, job: JobId, now: Timestamp) -> Option<Timestamp> {
        let running = self.running.get(job)?;
        (running.estimate.witness != Witness::Guess).then(|| running.typical_end_at(now))
    }

    /// Jobs of the cluster's own that hold what the job would take, the largest first.
    pub(super) fn foreign_holders_of(&self, waiting: &QueuedJob, reason: &WaitReason) -> Vec<ForeignHolder> {
        let shape = self.fleet.shape_of(waiting.class.shape);
        let is_quota = matches!(reason, WaitReason::WorkspaceLimit { .. } | WaitReason::UserLimit { .. });
        let Some(wanted) = wanted(shape, reason).filter(|_| !is_quota) else { return Vec::new() };
        let mut found: BTreeMap<(ForeignKind, &str), (u64, ForeignHolder)> = BTreeMap::new();
        for node in self.fleet.nodes() {
            for hold in &node.foreign {
                let of_hold = node.devices.iter().filter(|device| hold.devices.contains(&device.index));
                let accepted = of_hold.filter(|device| {
                    shape.alternatives.iter().any(|ask| ask.accepts(device.kind, &device.model))
                });
                let accepted: Vec<u32> = accepted.map(|device| device.index).collect();
                let devices = u32::try_from(accepted.len()).unwrap_or(u32::MAX);
                let amount = match wanted {
                    Wanted::Devices => u64::from(devices),
                    _ if !shape.may_run_on(node) => 0,
                    Wanted::Cpus => hold.cpus.milli,
                    Wanted::Memory => hold.memory.0,
                };
                if amount == 0 {
                    continue;
                }
                let (sum, holder) = found.entry((hold.kind, &hold.job)).or_insert_with(|| {
                    let holder = ForeignHolder {
                        kind: hold.kind,
                        job: hold.job.clone(),
                        name: hold.name.clone(),
                        user: hold.user.clone(),
                        devices: 0,
                        device_indices: Vec::new(),
                        nodes: Vec::new(),
                        until: hold.until,
                    };
                    (0, holder)
                });
                *sum += amount;
                holder.devices += devices;
                // Indices say something only of one node.
                if holder.nodes.iter().all(|known| *known == node.name) {
                    holder.device_indices.extend(accepted);
                } else {
                    holder.device_indices.clear();
                }
                if holder.nodes.last() != Some(&node.name) {
                    holder.nodes.push(node.name.clone());
                }
            }
        }
        let mut found: Vec<(u64, ForeignHolder)> = found.into_values().collect();
        found.sort_by_key(|(amount, _)| Reverse(*amount));
        found.into_iter().map(|(_, holder)| holder).take(MOST_HOLDERS).collect()
    }
}

/// What others hold that keeps the job from starting, if anything that others hold does.
fn wanted(shape: &Shape, reason: &WaitReason) -> Option<Wanted> {
    let usual =
        if shape.alternatives.iter().all(|ask| ask.count.is_none()) { Wanted::Cpus } else { Wanted::Devices };
    match reason {
        WaitReason::DevicesBusy { .. }
        | WaitReason::BehindOthers { .. }
        | WaitReason::Reserved { .. }
        | WaitReason::Preempting { .. } => Some(usual),
        WaitReason::CpusBusy { .. } => Some(Wanted::Cpus),
        WaitReason::MemoryBusy { .. } => Some(Wanted::Memory),
        WaitReason::WorkspaceLimit { resource, .. } | WaitReason::UserLimit { resource, .. } => {
            Some(match resource {
                QuotaResource::Nvidia | QuotaResource::Ascend => Wanted::Devices,
                QuotaResource::Cpus => Wanted::Cpus,
                QuotaResource::Memory => Wanted::Memory,
            })
        }
        WaitReason::GuaranteedToOthers { .. }
        | WaitReason::KeepsAway { .. }
        | WaitReason::BackOff
        | WaitReason::NodesCordoned { .. }
        | WaitReason::NoSuchDevices
        | WaitReason::NotYetConsidered => None,
    }
}
