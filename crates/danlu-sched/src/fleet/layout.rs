//! The inventory as ordinals: nodes, models, racks, and *slots*.
//!
//! A slot is what placement chooses between: the devices of one model on one node, with the node's processors and
//! memory. A node without devices is one slot without a model; a node with several models is several slots, of which the
//! first also stands for the node where no device is asked for. Nothing here changes while an inventory lasts.

use std::collections::BTreeMap;
use std::ops::Range;

use danlu_types::{DeviceKind, ForeignHold, Node, NodeName};

use super::board::Board;
use super::{NodeId, WorkerPlacement};
use crate::shape::{DeviceAsk, Shape};

/// Positions on a node are bytes; no machine has as many devices. What lies beyond is never given out.
const MOST_DEVICES: usize = 256;

#[derive(Debug, Clone)]
pub(crate) struct Layout {
    pub(crate) nodes: Vec<Node>,
    pub(crate) ordinals: BTreeMap<NodeName, u32>,
    pub(crate) models: Vec<Model>,
    pub(crate) slots: Vec<Slot>,
    /// The model of each slot; one beyond the last where there is none.
    pub(crate) model_of: Vec<usize>,
    /// The slots of each node; never empty.
    pub(crate) of_node: Vec<Range<usize>>,
    /// Where each node's devices start in arrays over all devices.
    pub(crate) first_device: Vec<usize>,
    pub(crate) devices: usize,
    /// Each node's rack; a node that is in none is its own.
    pub(crate) rack: Vec<usize>,
    pub(crate) racks: usize,
    /// Whether any node says which rack it is in.
    pub(crate) has_racks: bool,
    /// Number of distinct pairs of model and rack.
    pub(crate) bunches: usize,
    /// The nodes of which jobs hold something that are none of ours.
    shared: Vec<NodeId>,
}

/// A kind and model of device that some node has; its ordinal is the order of the names, so that it does not depend on
/// the order of the nodes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Model {
    pub(crate) kind: DeviceKind,
    pub(crate) name: String,
}

#[derive(Debug, Clone)]
pub(crate) struct Slot {
    pub(crate) node: usize,
    pub(crate) model: Option<usize>,
    pub(crate) board: Board,
    /// Positions of its devices on the node, in the order of the devices' numbers.
    pub(crate) positions: Vec<u8>,
    /// The island of each of them.
    pub(crate) islands: Vec<u32>,
    /// Whether it may be given to new jobs, each of them.
    pub(crate) usable: Vec<bool>,
    /// Whether new jobs may start on the node.
    pub(crate) open: bool,
    /// Whether it stands for its node where no device is asked for.
    pub(crate) first: bool,
    /// The pair of model and rack it belongs to.
    pub(crate) bunch: usize,
}

impl Layout {
    pub(crate) fn new(nodes: &[Node]) -> Self {
        let mut models: Vec<Model> = nodes.iter().flat_map(Model::all_of).collect();
        models.sort_unstable();
        models.dedup();
        let mut layout = Layout {
            nodes: nodes.to_vec(),
            ordinals: nodes.iter().zip(0..).map(|(node, ordinal)| (node.name.clone(), ordinal)).collect(),
            models,
            slots: Vec::with_capacity(nodes.len()),
            model_of: Vec::new(),
            of_node: Vec::with_capacity(nodes.len()),
            first_device: Vec::with_capacity(nodes.len()),
            devices: 0,
            rack: Vec::with_capacity(nodes.len()),
            racks: 0,
            has_racks: nodes.iter().any(|node| node.labels.contains_key("rack")),
            bunches: 0,
            shared: Vec::new(),
        };
        let mut racks = BTreeMap::new();
        let mut bunches = BTreeMap::new();
        for (ordinal, node) in nodes.iter().enumerate() {
            if !node.foreign.is_empty() {
                layout.shared.push(NodeId::new(ordinal));
            }
            let known =
                node.labels.get("rack").map(|name| *racks.entry(name.clone()).or_insert(layout.racks));
            let rack = known.unwrap_or(layout.racks);
            layout.racks = layout.racks.max(rack + 1);
            layout.rack.push(rack);
            layout.first_device.push(layout.devices);
            layout.devices += node.devices.len().min(MOST_DEVICES);
            let first = layout.slots.len();
            layout.add_slots(ordinal, node);
            layout.of_node.push(first..layout.slots.len());
            for slot in &mut layout.slots[first..] {
                slot.bunch = *bunches.entry((slot.model, rack)).or_insert(layout.bunches);
                layout.bunches = layout.bunches.max(slot.bunch + 1);
            }
        }
        layout.model_of = layout.slots.iter().map(|slot| slot.model.unwrap_or(layout.models.len())).collect();
        layout
    }

    /// What jobs hold that are none of ours.
    pub(crate) fn foreign(&self) -> impl Iterator<Item = (&ForeignHold, WorkerPlacement)> {
        self.shared.iter().flat_map(move |node| {
            self.nodes[node.ordinal()].foreign.iter().map(move |hold| {
                let position = |index: &u32| self.position(node.ordinal(), *index);
                let part = WorkerPlacement {
                    node: *node,
                    devices: hold.devices.iter().filter_map(position).collect(),
                    share: 1000,
                    milli_cpus: hold.cpus.milli,
                    bytes: hold.memory.0,
                };
                (hold, part)
            })
        })
    }

    fn add_slots(&mut self, ordinal: usize, node: &Node) {
        let mut own: Vec<Model> = Model::all_of(node).collect();
        own.sort_unstable();
        own.dedup();
        let slot = |model: Option<usize>, board, positions: Vec<u8>, first| {
            let device = |position: &u8| &node.devices[usize::from(*position)];
            Slot {
                node: ordinal,
                model,
                board,
                islands: positions.iter().map(|position| device(position).island).collect(),
                usable: positions.iter().map(|position| device(position).usable()).collect(),
                positions,
                open: node.cordoned.is_none(),
                first,
                bunch: 0,
            }
        };
        if own.is_empty() {
            self.slots.push(slot(None, Board::Any, Vec::new(), true));
        }
        for (at, model) in own.iter().enumerate() {
            let of_model = |position: &u8| model.is_of(&node.devices[usize::from(*position)]);
            let mut positions: Vec<u8> = (0..=u8::MAX).take(node.devices.len()).filter(of_model).collect();
            positions.sort_by_key(|position| node.devices[usize::from(*position)].index);
            let board = Board::of(model.kind, &model.name, positions.len());
            self.slots.push(slot(self.models.binary_search(model).ok(), board, positions, at == 0));
        }
    }

    pub(crate) fn devices_by_model(&self) -> Vec<u64> {
        let mut devices = vec![0; self.models.len()];
        for slot in &self.slots {
            if let Some(model) = slot.model {
                devices[model] += slot.positions.len() as u64;
            }
        }
        devices
    }

    /// Whether a worker of this shape could be on this slot, as far as that never changes; `ask` is one of its
    /// alternatives.
    pub(crate) fn accepts(&self, slot: &Slot, shape: &Shape, ask: &DeviceAsk) -> bool {
        let node = &self.nodes[slot.node];
        let devices = match (ask.count.is_none(), slot.model) {
            (true, _) => slot.first,
            (false, None) => false,
            (false, Some(model)) => ask.accepts(self.models[model].kind, &self.models[model].name),
        };
        devices
            && shape.architecture.as_deref().is_none_or(|wanted| wanted == node.architecture)
            && shape.labels.iter().all(|(name, value)| node.labels.get(name) == Some(value))
    }

    pub(crate) fn kind_of(&self, model: usize) -> DeviceKind {
        self.models[model].kind
    }

    pub(crate) fn position(&self, node: usize, index: u32) -> Option<u8> {
        let devices = self.nodes[node].devices.iter().take(MOST_DEVICES);
        devices.zip(0..=u8::MAX).find(|(device, _)| device.index == index).map(|(_, position)| position)
    }
}

impl Model {
    fn all_of(node: &Node) -> impl Iterator<Item = Model> {
        let devices = node.devices.iter().take(MOST_DEVICES);
        devices.map(|device| Model { kind: device.kind, name: device.model.clone() })
    }

    fn is_of(&self, device: &danlu_types::Device) -> bool {
        self.kind == device.kind && self.name == device.model
    }
}
