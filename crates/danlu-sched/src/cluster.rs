//! What there is, and who holds what of it.
//!
//! Invariant: of a device no more than a whole is held, and what is free plus what is held is what there is. [`Cluster::take`]
//! refuses anything that would break it, and takes all grants of a job or none; [`Cluster::adopt`] bends it only where
//! reality already did (a node that came back smaller, a device that failed in somebody's hands or was given away by others).

use std::collections::BTreeMap;

use danlu_core::Grant;
use danlu_types::device::WHOLE_DEVICE;
use danlu_types::{Bytes, Cpus, JobId, Node, NodeName};
use thiserror::Error;

/// The nodes of an engine with what jobs hold of them.
#[derive(Debug, Clone, Default)]
pub struct Cluster {
    nodes: Vec<Node>,
    ordinals: BTreeMap<NodeName, usize>,
    used: Vec<Used>,
    held: BTreeMap<JobId, Vec<Grant>>,
}

/// What is held of one node. Amounts may exceed what a node has that came back smaller.
#[derive(Debug, Clone, Default)]
struct Used {
    milli_cpus: u64,
    bytes: u64,
    /// By position of the device: who holds how many thousandths.
    devices: Vec<Vec<(JobId, u32)>>,
}

/// Why something cannot be given to a job.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum AllocationConflict {
    #[error("job {job} holds its devices already")]
    AlreadyHolds { job: JobId },
    #[error("node `{node}` not found")]
    NoSuchNode { node: NodeName },
    #[error("node `{node}` takes no jobs: {why}")]
    Cordoned { node: NodeName, why: String },
    #[error("node `{node}` has no device {device}")]
    NoSuchDevice { node: NodeName, device: u32 },
    #[error("device {device} of node `{node}` does not work")]
    DeviceFailed { node: NodeName, device: u32 },
    #[error("device {device} of node `{node}` is held by job {by}")]
    DeviceHeld { node: NodeName, device: u32, by: JobId },
    #[error("device {device} of node `{node}` is held by job {by} of the cluster's own")]
    DeviceForeign { node: NodeName, device: u32, by: String },
    #[error("node `{node}` has fewer than {asked} CPUs free")]
    TooFewCpus { node: NodeName, asked: Cpus },
    #[error("node `{node}` has less than {asked} of memory free")]
    TooLittleMemory { node: NodeName, asked: Bytes },
}

/// What jobs hold of one node; cores and memory with those of others.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NodeUsage {
    pub cpus: Cpus,
    pub memory: Bytes,
    /// Devices in somebody's hands, by their index on the node.
    pub held: Vec<(u32, JobId)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Check {
    Everything,
    Holders,
    Nothing,
}

impl Cluster {
    pub fn new(nodes: &[Node]) -> Self {
        let used = |node: &Node| Used {
            milli_cpus: node.foreign.iter().map(|hold| hold.cpus.milli).fold(0, u64::saturating_add),
            bytes: node.foreign.iter().map(|hold| hold.memory.0).fold(0, u64::saturating_add),
            devices: vec![Vec::new(); node.devices.len()],
        };
        Cluster {
            ordinals: nodes.iter().enumerate().map(|(ordinal, node)| (node.name.clone(), ordinal)).collect(),
            used: nodes.iter().map(used).collect(),
            nodes: nodes.to_vec(),
            held: BTreeMap::new(),
        }
    }

    /// Gives a job what was planned for it, if all of it is there and free.
    pub fn allocate(&mut self, job: JobId, grants: &[Grant]) -> Result<(), AllocationConflict> {
        if self.held.contains_key(&job) {
            return Err(AllocationConflict::AlreadyHolds { job });
        }
        for (taken, grant) in grants.iter().enumerate() {
            if let Err(overbooked) = self.take_one(job, grant, Check::Everything) {
                for grant in &grants[..taken] {
                    self.free_one(job, grant);
                }
                return Err(overbooked);
            }
        }
        self.held.insert(job, grants.to_vec());
        Ok(())
    }

    /// Records what a job is found to hold, instead of what it held before: what runs, runs, even if its node is gone or its
    /// device has failed since. Says the first device that is in other hands as well.
    pub fn force_allocate(&mut self, job: JobId, grants: &[Grant]) -> Option<AllocationConflict> {
        self.free(job);
        let mut shared = None;
        for grant in grants {
            if let Err(overbooked) = self.take_one(job, grant, Check::Holders) {
                shared = shared.or(Some(overbooked));
                let taken = self.take_one(job, grant, Check::Nothing);
                debug_assert_eq!(taken, Ok(()), "nothing was to be checked");
            }
        }
        self.held.insert(job, grants.to_vec());
        shared
    }

    /// What a job holds.
    pub fn held(&self, job: JobId) -> &[Grant] {
        self.held.get(&job).map_or(&[], Vec::as_slice)
    }

    /// Takes back everything a job holds; nothing happens if it holds nothing.
    pub fn free(&mut self, job: JobId) {
        for grant in self.held.remove(&job).unwrap_or_default() {
            self.free_one(job, &grant);
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
            self.force_allocate(job, &grants);
        }
        true
    }

    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// Who holds a device of a node (the first, if several share it), both by the names the engine gave them.
    pub fn holder_of(&self, node: &NodeName, device: u32) -> Option<JobId> {
        let node = *self.ordinals.get(node)?;
        self.used[node].devices[self.position(node, device)?].first().map(|(job, _)| *job)
    }

    /// What a job holds; empty if it holds nothing.
    pub fn held_by(&self, job: JobId) -> &[Grant] {
        self.held.get(&job).map_or(&[], Vec::as_slice)
    }

    /// Everyone who holds anything, in order of submission.
    pub fn holders(&self) -> impl Iterator<Item = (JobId, &[Grant])> {
        self.held.iter().map(|(job, grants)| (*job, grants.as_slice()))
    }

    pub fn usage(&self, node: &NodeName) -> Option<NodeUsage> {
        let node = *self.ordinals.get(node)?;
        let devices = self.nodes[node].devices.iter().zip(&self.used[node].devices);
        Some(NodeUsage {
            cpus: Cpus { milli: self.used[node].milli_cpus },
            memory: Bytes(self.used[node].bytes),
            held: devices
                .flat_map(|(device, holders)| holders.iter().map(|(job, _)| (device.index, *job)))
                .collect(),
        })
    }

    /// Takes one grant or changes nothing.
    fn take_one(&mut self, job: JobId, grant: &Grant, check: Check) -> Result<(), AllocationConflict> {
        let strict = check == Check::Everything;
        let name = || grant.node.clone();
        let Some(&node) = self.ordinals.get(&grant.node) else {
            return if strict { Err(AllocationConflict::NoSuchNode { node: name() }) } else { Ok(()) };
        };
        if let (true, Some(why)) = (strict, &self.nodes[node].cordoned) {
            return Err(AllocationConflict::Cordoned { node: name(), why: why.clone() });
        }
        let mut positions = Vec::with_capacity(grant.devices.len());
        for &device in &grant.devices {
            let Some(position) = self.position(node, device) else {
                if strict {
                    return Err(AllocationConflict::NoSuchDevice { node: name(), device });
                }
                continue;
            };
            let holders = &self.used[node].devices[position];
            let held: u32 = holders.iter().map(|(_, share)| *share).sum();
            let twice = positions.contains(&position).then_some(job);
            let full =
                (held + grant.share > WHOLE_DEVICE).then(|| holders.first().map(|(by, _)| *by)).flatten();
            if let (Check::Everything | Check::Holders, Some(by)) = (check, full.or(twice)) {
                return Err(AllocationConflict::DeviceHeld { node: name(), device, by });
            }
            if strict && !self.nodes[node].devices[position].usable() {
                return Err(AllocationConflict::DeviceFailed { node: name(), device });
            }
            let others = self.nodes[node].foreign.iter().find(|hold| hold.devices.contains(&device));
            if let (true, Some(hold)) = (strict, others) {
                return Err(AllocationConflict::DeviceForeign { node: name(), device, by: hold.job.clone() });
            }
            positions.push(position);
        }
        let capacity = &self.nodes[node].capacity;
        let used = &mut self.used[node];
        if strict
            && grant.cpus.milli > 0
            && used.milli_cpus.saturating_add(grant.cpus.milli) > capacity.cpus.milli
        {
            return Err(AllocationConflict::TooFewCpus { node: name(), asked: grant.cpus });
        }
        if strict && grant.memory.0 > 0 && used.bytes.saturating_add(grant.memory.0) > capacity.memory.0 {
            return Err(AllocationConflict::TooLittleMemory { node: name(), asked: grant.memory });
        }
        for position in positions {
            used.devices[position].push((job, grant.share));
        }
        used.milli_cpus = used.milli_cpus.saturating_add(grant.cpus.milli);
        used.bytes = used.bytes.saturating_add(grant.memory.0);
        Ok(())
    }

    fn free_one(&mut self, job: JobId, grant: &Grant) {
        let Some(&node) = self.ordinals.get(&grant.node) else { return };
        for &device in &grant.devices {
            let Some(position) = self.position(node, device) else { continue };
            let holders = &mut self.used[node].devices[position];
            if let Some(at) = holders.iter().position(|holder| *holder == (job, grant.share)) {
                holders.remove(at);
            }
        }
        let used = &mut self.used[node];
        used.milli_cpus = used.milli_cpus.saturating_sub(grant.cpus.milli);
        used.bytes = used.bytes.saturating_sub(grant.memory.0);
    }

    fn position(&self, node: usize, device: u32) -> Option<usize> {
        self.nodes[node].devices.iter().position(|candidate| candidate.index == device)
    }
}

/// Nodes of eight devices, for tests.
#[cfg(test)]
pub(crate) fn test_nodes(count: u32) -> Vec<Node> {
    use danlu_types::{Device, DeviceKind, Health, NodeCapacity, Topology, Wiring};

    let device = |index| Device {
        index,
        kind: DeviceKind::Nvidia,
        model: "A100".to_owned(),
        memory: Bytes(80 << 30),
        island: 0,
        health: Health::Ok,
        wiring: Wiring::default(),
    };
    let node = |number| Node {
        name: NodeName(format!("n{number}")),
        architecture: "x86_64".to_owned(),
        capacity: NodeCapacity { cpus: Cpus::whole(64), memory: Bytes(256 << 30) },
        devices: (0..8).map(device).collect(),
        labels: BTreeMap::new(),
        cordoned: None,
        address: String::new(),
        topology: Topology::default(),
        simulated: true,
        foreign: Vec::new(),
    };
    (0..count).map(node).collect()
}
