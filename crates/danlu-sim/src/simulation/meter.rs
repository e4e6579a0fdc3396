//! What is held, what is free and how much waits, counted as it changes.
//!
//! Nothing here is proportional to jobs or nodes per moment: nodes are counted by how many free devices they have, and
//! waiting jobs by how many devices each of their workers asks for.

use std::collections::BTreeMap;

use danlu_core::Grant;
use danlu_types::device::WHOLE_DEVICE;
use danlu_types::{JobSpec, Node, NodeName};
use jiff::Timestamp;
use serde::Serialize;

/// What capacity is counted in: devices, or processor cores where there are no devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    Devices,
    Cpus,
}

impl Unit {
    pub fn as_str(self) -> &'static str {
        match self {
            Unit::Devices => "devices",
            Unit::Cpus => "cores",
        }
    }

    /// Of one worker, in thousandths.
    pub(crate) fn held(self, grant: &Grant) -> u64 {
        match self {
            Unit::Devices => grant.devices.len() as u64 * u64::from(grant.share),
            Unit::Cpus => grant.cpus.milli,
        }
    }
}

/// The state of the cluster from one moment to the next change. Amounts in thousandths of the unit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Point {
    pub(crate) at: Timestamp,
    pub(crate) held: u64,
    /// What works and is there.
    pub(crate) capacity: u64,
    /// Jobs that wait for devices.
    pub(crate) queued: u64,
    /// The part of the free devices that lies on nodes with fewer free devices than one worker of the median waiting
    /// job asks for; `None` when nothing waits for devices or none is free.
    pub(crate) fragmented: Option<f64>,
}

#[derive(Debug)]
pub(crate) struct Meter {
    unit: Unit,
    ordinals: BTreeMap<NodeName, usize>,
    nodes: Vec<NodeState>,
    /// By number of free whole devices: how many nodes have so many.
    nodes_with_free: Vec<u64>,
    /// By number of devices for each worker: how many jobs wait for so many.
    waiting_for: Vec<u64>,
    held: u64,
    capacity: u64,
    queued: u64,
    points: Vec<Point>,
}

#[derive(Debug)]
struct NodeState {
    /// By position; the index on the node beside it.
    devices: Vec<DeviceState>,
    milli_cpus: u64,
    here: bool,
}

#[derive(Debug)]
struct DeviceState {
    index: u32,
    held: u32,
    usable: bool,
}

impl NodeState {
    fn free(&self) -> usize {
        let free = self.devices.iter().filter(|device| device.usable && device.held == 0).count();
        if self.here { free } else { 0 }
    }

    fn capacity(&self, unit: Unit) -> u64 {
        match unit {
            _ if !self.here => 0,
            Unit::Devices => {
                self.devices.iter().filter(|device| device.usable).count() as u64 * u64::from(WHOLE_DEVICE)
            }
            Unit::Cpus => self.milli_cpus,
        }
    }
}

impl Meter {
    pub(crate) fn new(nodes: &[Node]) -> Self {
        let any_device = nodes.iter().any(|node| !node.devices.is_empty());
        let most = nodes.iter().map(|node| node.devices.len()).max().unwrap_or(0);
        let mut meter = Meter {
            unit: if any_device { Unit::Devices } else { Unit::Cpus },
            ordinals: nodes.iter().enumerate().map(|(ordinal, node)| (node.name.clone(), ordinal)).collect(),
            nodes: Vec::with_capacity(nodes.len()),
            nodes_with_free: vec![0; most + 1],
            waiting_for: vec![0; most + 1],
            held: 0,
            capacity: 0,
            queued: 0,
            points: Vec::new(),
        };
        for node in nodes {
            let devices = node.devices.iter().map(|device| DeviceState {
                index: device.index,
                held: 0,
                usable: device.usable(),
            });
            let state =
                NodeState { devices: devices.collect(), milli_cpus: node.capacity.cpus.milli, here: true };
            meter.nodes_with_free[state.free()] += 1;
            meter.capacity += state.capacity(meter.unit);
            meter.nodes.push(state);
        }
        meter
    }

    pub(crate) fn unit(&self) -> Unit {
        self.unit
    }

    pub(crate) fn ordinal(&self, node: &NodeName) -> Option<usize> {
        self.ordinals.get(node).copied()
    }

    pub(crate) fn take(&mut self, grant: &Grant) {
        self.held += self.unit.held(grant);
        self.change(&grant.node, |node| {
            for device in node.devices.iter_mut().filter(|device| grant.devices.contains(&device.index)) {
                device.held += grant.share;
            }
        });
    }

    pub(crate) fn give_back(&mut self, grant: &Grant) {
        self.held -= self.unit.held(grant);
        self.change(&grant.node, |node| {
            for device in node.devices.iter_mut().filter(|device| grant.devices.contains(&device.index)) {
                device.held -= grant.share;
            }
        });
    }

    /// The node as it is now, and whether it is there.
    pub(crate) fn node_changed(&mut self, node: &Node, here: bool) {
        self.change(&node.name, |state| {
            state.here = here;
            for (state, device) in state.devices.iter_mut().zip(&node.devices) {
                state.usable = device.usable();
            }
        });
    }

    pub(crate) fn queued(&mut self, spec: &JobSpec) {
        self.queued += 1;
        if let Some(count) = self.waiting_for.get_mut(devices_per_worker(spec)) {
            *count += 1;
        }
    }

    pub(crate) fn left_queue(&mut self, spec: &JobSpec) {
        self.queued -= 1;
        if let Some(count) = self.waiting_for.get_mut(devices_per_worker(spec)) {
            *count -= 1;
        }
    }

    /// Writes down how things are from `now` on.
    pub(crate) fn mark(&mut self, now: Timestamp) {
        let (held, capacity, queued) = (self.held, self.capacity, self.queued);
        let point = Point { at: now, held, capacity, queued, fragmented: self.fragmented() };
        match self.points.last_mut() {
            Some(last) if last.at == now => *last = point,
            _ => self.points.push(point),
        }
    }

    pub(crate) fn points(&self) -> &[Point] {
        &self.points
    }

    fn change(&mut self, name: &NodeName, change: impl FnOnce(&mut NodeState)) {
        let Some(&ordinal) = self.ordinals.get(name) else { return };
        let node = &mut self.nodes[ordinal];
        let (free, capacity) = (node.free(), node.capacity(self.unit));
        change(node);
        self.nodes_with_free[free] -= 1;
        self.nodes_with_free[node.free()] += 1;
        self.capacity = self.capacity - capacity + node.capacity(self.unit);
    }

    fn fragmented(&self) -> Option<f64> {
        let waiting: u64 = self.waiting_for.iter().skip(1).sum();
        let mut before = 0;
        let median = self.waiting_for.iter().enumerate().skip(1).find(|(_, count)| {
            before += **count;
            before * 2 >= waiting
        });
        let asked = median.filter(|_| waiting > 0)?.0;
        let free = |from: usize, to: usize| -> u64 {
            self.nodes_with_free[from..to].iter().zip(from as u64..).map(|(nodes, free)| nodes * free).sum()
        };
        let all = free(0, self.nodes_with_free.len());
        (all > 0).then(|| free(0, asked) as f64 / all as f64)
    }
}

/// What the job would like most.
fn devices_per_worker(spec: &JobSpec) -> usize {
    spec.alternatives().first().map_or(0, |request| request.count.devices() as usize)
}

#[cfg(test)]
mod tests {
    use danlu_types::{Bytes, Cpus, Device, DeviceKind, Health, NodeCapacity, Topology, Wiring};

    use super::*;

    fn node(name: &str) -> Node {
        let device = |index| Device {
            index,
            kind: DeviceKind::Nvidia,
            model: "A100".to_owned(),
            memory: Bytes(1),
            island: 0,
            health: Health::Ok,
            wiring: Wiring::default(),
        };
        Node {
            name: NodeName(name.to_owned()),
            architecture: "x86_64".to_owned(),
            capacity: NodeCapacity { cpus: Cpus::whole(8), memory: Bytes(1) },
            devices: (0..8).map(device).collect(),
            labels: BTreeMap::new(),
            cordoned: None,
            address: String::new(),
            topology: Topology::default(),
            simulated: true,
            foreign: Vec::new(),
        }
    }

    fn grant(node: &str, devices: u32) -> Grant {
        let (cpus, memory) = (Cpus::whole(1), Bytes(0));
        Grant { node: NodeName(node.to_owned()), devices: (0..devices).collect(), share: 1000, cpus, memory }
    }

    #[test]
    fn free_devices_are_fragmented_where_the_median_waiting_worker_does_not_fit() {
        let mut meter = Meter::new(&[node("a"), node("b")]);
        meter.take(&grant("a", 6));
        meter.take(&grant("b", 2));
        let spec = JobSpec { devices: "4".parse().unwrap(), ..JobSpec::of_command("true") };
        assert_eq!(meter.fragmented(), None, "nothing waits");
        meter.queued(&spec);
        // 2 free on `a`, too few for 4; 6 free on `b`.
        assert_eq!(meter.fragmented(), Some(0.25));
        meter.node_changed(&node("b"), false);
        assert_eq!(meter.fragmented(), Some(1.0));
        assert_eq!(meter.capacity, 8000);
        meter.left_queue(&spec);
        assert_eq!(meter.fragmented(), None);
    }

    #[test]
    fn a_share_of_a_device_is_held_but_the_device_is_not_free() {
        let mut meter = Meter::new(&[node("a")]);
        let half = Grant { share: 500, ..grant("a", 1) };
        meter.take(&half);
        assert_eq!((meter.held, meter.nodes_with_free[7]), (500, 1));
        meter.give_back(&half);
        assert_eq!((meter.held, meter.nodes_with_free[8]), (0, 1));
    }
}
