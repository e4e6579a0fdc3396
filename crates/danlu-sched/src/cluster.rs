//! What there is, and who holds what of it.
//!
//! Invariant: a device has at most one holder, and what is free plus what is held is what there is. [`Cluster::take`]
//! refuses anything that would break it; [`Cluster::adopt`] bends it only where reality already did (a node that came
//! back smaller, a device that failed in somebody's hands). Both take all grants of a job or none.

use std::collections::BTreeMap;

use danlu_core::Grant;
use danlu_types::{Bytes, Cpus, Device, DeviceRequest, JobId, Node, NodeName};
use thiserror::Error;

use crate::fit::Pick;
use crate::layout::{Free, Layout, signed};

/// The nodes of an engine with what jobs hold of them.
#[derive(Debug, Clone, Default)]
pub struct Cluster {
    nodes: Vec<Node>,
    ordinals: BTreeMap<NodeName, usize>,
    pub(crate) layout: Layout,
    pub(crate) free: Free,
    /// What would be free if nobody held anything.
    pub(crate) usable: Free,
    /// The same, counting devices that do not work now but may be mended.
    pub(crate) whole: Free,
    /// By node and position of the device on it.
    holders: Vec<Vec<Option<JobId>>>,
    held: BTreeMap<JobId, Vec<Grant>>,
}

/// Why something cannot be given to a job.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Overbooked {
    #[error("job {job} holds its devices already")]
    AlreadyHolds { job: JobId },
    #[error("there is no node `{node}`")]
    NoSuchNode { node: NodeName },
    #[error("node `{node}` has no device {device}")]
    NoSuchDevice { node: NodeName, device: u32 },
    #[error("device {device} of node `{node}` does not work")]
    DeviceFailed { node: NodeName, device: u32 },
    #[error("device {device} of node `{node}` is held by job {by}")]
    DeviceHeld { node: NodeName, device: u32, by: JobId },
    #[error("node `{node}` has fewer than {asked} CPUs free")]
    TooFewCpus { node: NodeName, asked: Cpus },
    #[error("node `{node}` has less than {asked} of memory free")]
    TooLittleMemory { node: NodeName, asked: Bytes },
}

/// What jobs hold of one node.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Usage {
    pub cpus: Cpus,
    pub memory: Bytes,
    /// Devices in somebody's hands, by their index on the node.
    pub held: Vec<(u32, JobId)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Check {
    Everything,
    OnlyHolders,
}

impl Cluster {
    pub fn new(nodes: &[Node]) -> Self {
        let layout = Layout::new(nodes);
        let usable = layout.all(nodes, Device::usable);
        Cluster {
            ordinals: nodes.iter().enumerate().map(|(ordinal, node)| (node.name.clone(), ordinal)).collect(),
            holders: nodes.iter().map(|node| vec![None; node.devices.len()]).collect(),
            free: usable.clone(),
            whole: layout.all(nodes, |_| true),
            usable,
            layout,
            nodes: nodes.to_vec(),
            held: BTreeMap::new(),
        }
    }

    /// Gives a job what was planned for it, if all of it is there and free.
    pub fn take(&mut self, job: JobId, grants: &[Grant]) -> Result<(), Overbooked> {
        self.take_all(job, grants, Check::Everything)
    }

    /// Records what a job is found to hold, as after a restart: what runs, runs, even if its node is gone or its device
    /// has failed since. Only a device in two jobs' hands is refused.
    pub fn adopt(&mut self, job: JobId, grants: &[Grant]) -> Result<(), Overbooked> {
        self.take_all(job, grants, Check::OnlyHolders)
    }

    /// Takes back everything a job holds; nothing happens if it holds nothing.
    pub fn give_back(&mut self, job: JobId) {
        for grant in self.held.remove(&job).unwrap_or_default() {
            self.give_back_one(job, &grant);
        }
    }

    /// Follows the engine's inventory: nodes and devices that appear, vanish, fail or recover. What is held stays held,
    /// also on a node that is not there at the moment. Says whether anything changed.
    pub fn update_nodes(&mut self, nodes: &[Node]) -> bool {
        if self.nodes == nodes {
            return false;
        }
        // Inventories change seldom: building anew keeps one way of counting instead of two.
        let held = std::mem::take(&mut self.held);
        *self = Cluster::new(nodes);
        for (job, grants) in held {
            self.adopt(job, &grants).expect("no device had two holders before the inventory changed");
        }
        true
    }

    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// Who holds a device of a node, both by the names the engine gave them.
    pub fn holder_of(&self, node: &NodeName, device: u32) -> Option<JobId> {
        let node = *self.ordinals.get(node)?;
        self.holders[node][self.position(node, device)?]
    }

    /// What a job holds; empty if it holds nothing.
    pub fn held_by(&self, job: JobId) -> &[Grant] {
        self.held.get(&job).map_or(&[], Vec::as_slice)
    }

    /// Everyone who holds anything, in order of submission.
    pub fn holders(&self) -> impl Iterator<Item = (JobId, &[Grant])> {
        self.held.iter().map(|(job, grants)| (*job, grants.as_slice()))
    }

    pub fn usage(&self, node: &NodeName) -> Option<Usage> {
        let node = *self.ordinals.get(node)?;
        let used = |all: i64, free: i64| u64::try_from(all - free).unwrap_or(0);
        let devices = self.nodes[node].devices.iter().zip(&self.holders[node]);
        Some(Usage {
            cpus: Cpus { milli: used(self.usable.milli_cpus[node], self.free.milli_cpus[node]) },
            memory: Bytes(used(self.usable.bytes[node], self.free.bytes[node])),
            held: devices.filter_map(|(device, holder)| holder.map(|job| (device.index, job))).collect(),
        })
    }

    /// How many working devices that a request accepts nobody holds.
    pub fn free_devices(&self, request: &DeviceRequest) -> u32 {
        let models = self.layout.accepted(request);
        models.into_iter().map(|model| self.layout.free_of(&self.free, model)).sum()
    }

    pub(crate) fn ordinal(&self, node: &NodeName) -> Option<usize> {
        self.ordinals.get(node).copied()
    }

    pub(crate) fn grant(&self, pick: &Pick, cpus: Cpus, memory: Bytes) -> Grant {
        Grant {
            node: self.nodes[pick.node].name.clone(),
            devices: pick.devices.clone(),
            share: danlu_types::device::WHOLE_DEVICE,
            cpus,
            memory,
        }
    }

    fn take_all(&mut self, job: JobId, grants: &[Grant], check: Check) -> Result<(), Overbooked> {
        if self.held.contains_key(&job) {
            return Err(Overbooked::AlreadyHolds { job });
        }
        for (taken, grant) in grants.iter().enumerate() {
            if let Err(overbooked) = self.take_one(job, grant, check) {
                for grant in &grants[..taken] {
                    self.give_back_one(job, grant);
                }
                return Err(overbooked);
            }
        }
        self.held.insert(job, grants.to_vec());
        Ok(())
    }

    /// Takes one grant or changes nothing.
    fn take_one(&mut self, job: JobId, grant: &Grant, check: Check) -> Result<(), Overbooked> {
        let strict = check == Check::Everything;
        let name = || grant.node.clone();
        let Some(&node) = self.ordinals.get(&grant.node) else {
            return if strict { Err(Overbooked::NoSuchNode { node: name() }) } else { Ok(()) };
        };
        let mut positions = Vec::with_capacity(grant.devices.len());
        for &device in &grant.devices {
            let Some(position) = self.position(node, device) else {
                if strict {
                    return Err(Overbooked::NoSuchDevice { node: name(), device });
                }
                continue;
            };
            let twice = positions.contains(&position).then_some(job);
            if let Some(by) = self.holders[node][position].or(twice) {
                return Err(Overbooked::DeviceHeld { node: name(), device, by });
            }
            if strict && !self.nodes[node].devices[position].usable() {
                return Err(Overbooked::DeviceFailed { node: name(), device });
            }
            positions.push(position);
        }
        if strict && grant.cpus.milli > 0 && self.free.milli_cpus[node] < signed(grant.cpus.milli) {
            return Err(Overbooked::TooFewCpus { node: name(), asked: grant.cpus });
        }
        if strict && grant.memory != Bytes(0) && self.free.bytes[node] < signed(grant.memory.0) {
            return Err(Overbooked::TooLittleMemory { node: name(), asked: grant.memory });
        }
        for position in positions {
            let (island, bit) = self.layout.nodes[node].bits[position];
            self.holders[node][position] = Some(job);
            self.free.islands[island] &= !(1 << bit);
        }
        self.free.milli_cpus[node] -= signed(grant.cpus.milli);
        self.free.bytes[node] -= signed(grant.memory.0);
        Ok(())
    }

    fn give_back_one(&mut self, job: JobId, grant: &Grant) {
        let Some(&node) = self.ordinals.get(&grant.node) else { return };
        for &device in &grant.devices {
            let Some(position) = self.position(node, device) else { continue };
            if self.holders[node][position] == Some(job) {
                let (island, bit) = self.layout.nodes[node].bits[position];
                self.holders[node][position] = None;
                self.free.islands[island] |= self.usable.islands[island] & (1 << bit);
            }
        }
        self.free.milli_cpus[node] += signed(grant.cpus.milli);
        self.free.bytes[node] += signed(grant.memory.0);
    }

    fn position(&self, node: usize, device: u32) -> Option<usize> {
        self.nodes[node].devices.iter().position(|candidate| candidate.index == device)
    }
}
