//! The shape of a cluster as ordinals and bit sets.
//!
//! The dense unit is the *island*: at most 64 devices of one model on one node, whose free ones are the bits of one
//! word. What is free in a whole cluster is then three flat arrays ([`Free`]), so that planning on a scratch copy costs
//! three memory copies. A hardware island of more than 64 devices counts as several.

use std::ops::Range;

use danlu_types::device::glob_matches;
use danlu_types::{Device, DeviceKind, DeviceRequest, Node};

#[derive(Debug, Clone, Default)]
pub(crate) struct Layout {
    pub(crate) models: Vec<Model>,
    pub(crate) nodes: Vec<Slot>,
    pub(crate) islands: Vec<Island>,
}

/// A kind and model of device that some node has; its ordinal is the order of first appearance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Model {
    pub(crate) kind: DeviceKind,
    pub(crate) name: String,
}

#[derive(Debug, Clone)]
pub(crate) struct Slot {
    pub(crate) islands: Range<usize>,
    /// For each device in the node's own order: its island and its bit there.
    pub(crate) bits: Vec<(usize, u32)>,
}

#[derive(Debug, Clone)]
pub(crate) struct Island {
    pub(crate) model: usize,
    /// The hardware's number of it, unique only together with the model on its node.
    number: u32,
    /// Indices of the devices on their node, by bit.
    pub(crate) devices: Vec<u32>,
}

/// What is free. Amounts are signed: a node that came back smaller than what is held of it has less than nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Free {
    pub(crate) islands: Vec<u64>,
    pub(crate) milli_cpus: Vec<i64>,
    pub(crate) bytes: Vec<i64>,
}

impl Layout {
    pub(crate) fn new(nodes: &[Node]) -> Self {
        let mut layout = Layout::default();
        for node in nodes {
            let first = layout.islands.len();
            let bits = node.devices.iter().map(|device| layout.add_device(first, device)).collect();
            layout.nodes.push(Slot { islands: first..layout.islands.len(), bits });
        }
        layout
    }

    fn add_device(&mut self, first_island: usize, device: &Device) -> (usize, u32) {
        let model = self.model_ordinal(device);
        let room = |island: &Island| {
            island.model == model && island.number == device.island && island.devices.len() < 64
        };
        let known = self.islands[first_island..].iter().position(room);
        let island = known.map_or(self.islands.len(), |position| first_island + position);
        if known.is_none() {
            self.islands.push(Island { model, number: device.island, devices: Vec::new() });
        }
        let devices = &mut self.islands[island].devices;
        devices.push(device.index);
        (island, u32::try_from(devices.len() - 1).expect("an island has at most 64 devices"))
    }

    fn model_ordinal(&mut self, device: &Device) -> usize {
        let same = |model: &Model| model.kind == device.kind && model.name == device.model;
        self.models.iter().position(same).unwrap_or_else(|| {
            self.models.push(Model { kind: device.kind, name: device.model.clone() });
            self.models.len() - 1
        })
    }

    /// Everything there is; of devices only those that pass.
    pub(crate) fn all(&self, nodes: &[Node], pass: impl Fn(&Device) -> bool) -> Free {
        let mut free = Free {
            islands: vec![0; self.islands.len()],
            milli_cpus: nodes.iter().map(|node| signed(node.capacity.cpus.milli)).collect(),
            bytes: nodes.iter().map(|node| signed(node.capacity.memory.0)).collect(),
        };
        for (node, slot) in nodes.iter().zip(&self.nodes) {
            for (device, (island, bit)) in node.devices.iter().zip(&slot.bits) {
                if pass(device) {
                    free.islands[*island] |= 1 << bit;
                }
            }
        }
        free
    }

    /// Ordinals of the models that a request accepts.
    pub(crate) fn accepted(&self, request: &DeviceRequest) -> Vec<usize> {
        let accepts = |model: &Model| {
            request.kind.is_none_or(|kind| kind == model.kind)
                && request.model.as_deref().is_none_or(|pattern| glob_matches(pattern, &model.name))
        };
        (0..self.models.len()).filter(|&model| accepts(&self.models[model])).collect()
    }

    /// Free devices of one node; of one model only, if one is given.
    pub(crate) fn free_on(&self, free: &Free, node: usize, model: Option<usize>) -> u32 {
        let islands = self.nodes[node].islands.clone();
        let counts = |island: &usize| model.is_none_or(|model| self.islands[*island].model == model);
        islands.filter(counts).map(|island| free.islands[island].count_ones()).sum()
    }

    /// Free devices of one model in the whole cluster.
    pub(crate) fn free_of(&self, free: &Free, model: usize) -> u32 {
        let of_model = self.islands.iter().zip(&free.islands).filter(|(island, _)| island.model == model);
        of_model.map(|(_, bits)| bits.count_ones()).sum()
    }
}

/// Amounts are far below this in any real cluster (`danlu_types` refuses larger requests), so that sums cannot wrap.
pub(crate) fn signed(amount: u64) -> i64 {
    i64::try_from(amount).unwrap_or(i64::MAX).min(1 << 60)
}
