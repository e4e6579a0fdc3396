//! Nodes and shapes in few words, and a plain recount of what a fleet should know.

use std::collections::BTreeMap;

use danlu_sched::{DeviceAsk, Fleet, Placement, Shape};
use danlu_types::{
    Bytes, Cpus, Device, DeviceCount, DeviceKind, DeviceRequest, Health, Node, NodeCapacity, NodeName,
    Topology, Wiring,
};

/// `node("a", "ascend:910B3:8")`: 64 cores and 512 GiB, islands of four.
pub(crate) fn node(name: &str, devices: &str) -> Node {
    let request: DeviceRequest = devices.parse().unwrap();
    let device = |index| Device {
        index,
        kind: request.kind.unwrap_or(DeviceKind::Nvidia),
        model: request.model.clone().unwrap_or_else(|| "A100".to_owned()),
        memory: Bytes(64 << 30),
        island: index / 4,
        health: Health::Ok,
        wiring: Wiring::default(),
    };
    Node {
        name: NodeName(name.to_owned()),
        architecture: "x86_64".to_owned(),
        capacity: NodeCapacity { cpus: Cpus::whole(64), memory: Bytes(512 << 30) },
        devices: (0..request.count.devices()).map(device).collect(),
        labels: BTreeMap::new(),
        cordoned: None,
        address: "127.0.0.1".to_owned(),
        topology: Topology::default(),
        simulated: true,
        foreign: Vec::new(),
    }
}

pub(crate) fn labelled(mut node: Node, name: &str, value: &str) -> Node {
    node.labels.insert(name.to_owned(), value.to_owned());
    node
}

/// One core and 1 GiB for each worker.
pub(crate) fn shape(workers: u32, devices: &str) -> Shape {
    Shape {
        workers,
        alternatives: devices.split(" or ").map(|text| DeviceAsk::of(&text.parse().unwrap())).collect(),
        cpus: Cpus::whole(1),
        memory: Bytes(1 << 30),
        architecture: None,
        labels: BTreeMap::new(),
        same_rack: false,
    }
}

/// `a[0 1] b[0 1]`, with `a[0/500]` for half a device.
pub(crate) fn shown(fleet: &Fleet, placement: Option<&Placement>) -> String {
    let Some(placement) = placement else { return "no room".to_owned() };
    let shown = |grant: danlu_core::Grant| {
        let devices: Vec<String> = grant.devices.iter().map(u32::to_string).collect();
        let share = if grant.share == 1000 { String::new() } else { format!("/{}", grant.share) };
        format!("{}[{}{share}]", grant.node, devices.join(" "))
    };
    fleet.grants(placement).into_iter().map(shown).collect::<Vec<_>>().join(" ")
}

/// What is left of a fleet's nodes, counted from what was handed out.
pub(crate) struct Recount {
    nodes: Vec<Node>,
    left: Vec<Vec<i64>>,
    milli_cpus: Vec<i64>,
    bytes: Vec<i64>,
}

impl Recount {
    pub(crate) fn new(nodes: &[Node], placements: &[Placement]) -> Self {
        let mut recount = Recount {
            nodes: nodes.to_vec(),
            left: nodes.iter().map(|node| vec![1000; node.devices.len()]).collect(),
            milli_cpus: nodes.iter().map(|node| i64::try_from(node.capacity.cpus.milli).unwrap()).collect(),
            bytes: nodes.iter().map(|node| i64::try_from(node.capacity.memory.0).unwrap()).collect(),
        };
        for part in placements.iter().flat_map(|placement| &placement.parts) {
            let node = part.node.ordinal();
            recount.milli_cpus[node] -= i64::try_from(part.milli_cpus).unwrap();
            recount.bytes[node] -= i64::try_from(part.bytes).unwrap();
            for &device in &part.devices {
                recount.left[node][usize::from(device)] -= i64::from(part.share);
            }
        }
        recount
    }

    pub(crate) fn is_within_capacity(&self) -> bool {
        let amounts = self.milli_cpus.iter().chain(&self.bytes).chain(self.left.iter().flatten());
        amounts.into_iter().all(|amount| *amount >= 0)
    }

    /// Room for workers on boards without rules, the slow way: one worker after the other wherever there is room.
    pub(crate) fn room(&self, shape: &Shape) -> u32 {
        let models = |ask: &DeviceAsk| {
            let all = self.nodes.iter().flat_map(|node| &node.devices);
            let mut models: Vec<Option<String>> = all
                .filter(|device| ask.accepts(device.kind, &device.model))
                .map(|device| Some(device.model.clone()))
                .collect();
            models.sort_unstable();
            models.dedup();
            if ask.count == DeviceCount::default() { vec![None] } else { models }
        };
        let rooms = shape.alternatives.iter().flat_map(|ask| {
            let of_model = |model: Option<String>| {
                (0..self.nodes.len()).map(|node| self.room_on(node, shape, ask, model.as_deref())).sum()
            };
            models(ask).into_iter().map(of_model).collect::<Vec<u32>>()
        });
        rooms.max().unwrap_or(0)
    }

    fn room_on(&self, at: usize, shape: &Shape, ask: &DeviceAsk, model: Option<&str>) -> u32 {
        let node = &self.nodes[at];
        if node.cordoned.is_some()
            || shape.labels.iter().any(|(name, value)| node.labels.get(name) != Some(value))
        {
            return 0;
        }
        let usable = |position: &usize| {
            let device = &node.devices[*position];
            device.usable() && Some(device.model.as_str()) == model
        };
        let mut left: Vec<i64> =
            (0..node.devices.len()).filter(usable).map(|position| self.left[at][position]).collect();
        let (mut cpus, mut bytes) = (self.milli_cpus[at], self.bytes[at]);
        for room in 0.. {
            cpus -= i64::try_from(shape.cpus.milli).unwrap();
            bytes -= i64::try_from(shape.memory.0).unwrap();
            for _ in 0..ask.count.devices() {
                let share = i64::from(ask.count.share());
                let whole = |left: &&mut i64| if share == 1000 { **left == 1000 } else { **left >= share };
                let Some(device) = left.iter_mut().find(whole) else { return room };
                *device -= share;
            }
            if cpus < 0 || bytes < 0 {
                return room;
            }
        }
        0
    }
}
