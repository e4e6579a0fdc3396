//! Clusters that place workers themselves.

use std::collections::{BTreeMap, BTreeSet};

use danlu_core::job::WorkerLocation;
use danlu_core::launch::LaunchFile;
use danlu_types::{Device, Node, NodeName, WorkerId};

use super::state::SimState;

/// What nobody has of a node.
struct Free<'a> {
    node: &'a Node,
    devices: Vec<&'a Device>,
    milli_cpus: u64,
}

impl Free<'_> {
    /// The devices of a worker that fits, which are then taken.
    fn take(&mut self, launch: &LaunchFile) -> Option<Vec<Device>> {
        let model = launch.devices.first().map(|device| &device.model);
        let like = |device: &&&Device| model == Some(&device.model);
        let own: Vec<Device> =
            self.devices.iter().filter(like).take(launch.devices.len()).map(|it| (*it).clone()).collect();
        let left = self.milli_cpus.checked_sub(launch.limits.cpus.milli)?;
        if own.len() < launch.devices.len() || launch.unsuitable.contains(&self.node.name) {
            return None;
        }
        self.milli_cpus = left;
        self.devices.retain(|device| !own.iter().any(|taken| taken.index == device.index));
        Some(own)
    }
}

impl SimState {
    pub(super) fn whereabouts(&self, worker: WorkerId) -> Option<WorkerLocation> {
        let found = self.workers.get(&worker).filter(|found| !found.is_preparing())?;
        let devices = found.launch.devices.iter().map(|device| device.index).collect();
        Some(WorkerLocation { node: found.launch.node.clone(), devices })
    }

    /// Gives a gang its places; false where there is no room for all of it. The last node comes first.
    pub(super) fn put_gang(&mut self, gang: &[WorkerId]) -> bool {
        let mut free = self.free();
        let mut places: Vec<(WorkerId, NodeName, Vec<Device>)> = Vec::new();
        for worker in gang {
            let Some(launch) = self.workers.get(worker).map(|found| &found.launch) else { return false };
            let taken =
                free.iter_mut().rev().find_map(|free| Some((free.node.name.clone(), free.take(launch)?)));
            let Some((node, devices)) = taken else { return false };
            places.push((*worker, node, devices));
        }
        for (worker, node, devices) in places {
            if let Some(found) = self.workers.get_mut(&worker) {
                (found.launch.node, found.launch.devices) = (node, devices);
            }
        }
        true
    }

    fn free<'a>(&'a self) -> Vec<Free<'a>> {
        let holders: BTreeSet<WorkerId> = self.processes.values().map(|process| process.worker).collect();
        let mut held: BTreeMap<&NodeName, Vec<&LaunchFile>> = BTreeMap::new();
        for launch in holders.iter().filter_map(|worker| self.workers.get(worker)).map(|it| &it.launch) {
            held.entry(&launch.node).or_default().push(launch);
        }
        let free = |node: &'a Node| {
            let here = held.get(&node.name).map_or(&[][..], Vec::as_slice);
            let is_free = |device: &&Device| {
                !here.iter().any(|launch| launch.devices.iter().any(|it| it.index == device.index))
            };
            let taken: u64 = here.iter().map(|launch| launch.limits.cpus.milli).sum();
            Free {
                node,
                devices: node.devices.iter().filter(is_free).collect(),
                milli_cpus: node.capacity.cpus.milli.saturating_sub(taken),
            }
        };
        self.nodes.iter().filter(|node| !self.away.contains(&node.name)).map(free).collect()
    }
}
