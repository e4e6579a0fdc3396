//! Questions about what would be: without those who hold it, without one resource, with part of it kept back.

use std::collections::BTreeMap;

use danlu_types::{Bytes, Cpus, DeviceKind, NodeName};

use super::view::View;
use super::{Fleet, KindSet, NodeId, Placement, PlacementConstraints, ShapeId, WorkerPlacement};
use crate::shape::{DeviceAsk, Shape};

/// What keeps a shape from fitting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shortage {
    Devices {
        free: u32,
        most_on_one_node: u32,
    },
    /// The most that is free on one node which has the devices.
    Cpus {
        most_on_one_node: Cpus,
    },
    Memory {
        most_on_one_node: Bytes,
    },
    Nothing,
}

impl Fleet {
    pub fn node(&self, name: &NodeName) -> Option<NodeId> {
        self.layout.ordinals.get(name).map(|ordinal| NodeId(*ordinal))
    }

    /// Kinds of which there is a device.
    pub fn kinds(&self) -> Vec<DeviceKind> {
        let has = |kind: &DeviceKind| self.layout.models.iter().any(|model| model.kind == *kind);
        DeviceKind::ALL.into_iter().filter(has).collect()
    }

    /// Takes of a placement what is free now, and says what that was, part for part.
    pub fn withhold(&mut self, placement: &Placement) -> Placement {
        let mut withheld = Placement { parts: Vec::new(), ..*placement };
        for part in &placement.parts {
            let node = part.node.ordinal();
            let first = self.layout.first_device[node];
            let is_free =
                |position: &&u8| self.state.left[first + usize::from(**position)] >= i32::from(part.share);
            let devices: Vec<u8> = part.devices.iter().filter(is_free).copied().collect();
            let amount = |free: i64, asked: u64| asked.min(u64::try_from(free).unwrap_or(0));
            let part = WorkerPlacement {
                node: part.node,
                share: part.share,
                milli_cpus: amount(self.state.milli_cpus[node], part.milli_cpus),
                bytes: amount(self.state.bytes[node], part.bytes),
                devices,
            };
            self.take_part(&part);
            withheld.parts.push(part);
        }
        withheld
    }

    /// How many workers one node has room for now.
    pub fn room_on(&mut self, shape: ShapeId, node: NodeId, kinds: KindSet) -> u32 {
        let mut most = 0;
        for alternative in 0..self.shapes[shape.ordinal()].views.len() {
            self.refresh(shape, alternative);
            let view = self.view(shape, alternative);
            for at in self.layout.of_node[node.ordinal()].clone() {
                let slot = &self.layout.slots[at];
                let allowed = view.need.devices == 0
                    || slot.model.is_some_and(|model| kinds.contains(self.layout.kind_of(model)));
                if allowed && view.accepts(at) {
                    most = most.max(view.rooms[at]);
                }
            }
        }
        most
    }

    /// What one worker more than now would need of a node at least, beyond what is free there: thousandths of devices and
    /// CPUs, and bytes, for each way in which it could be there.
    pub fn lacks_for_one_more(&mut self, shape: ShapeId, node: NodeId) -> Vec<[i64; 3]> {
        let workers = self.room_on(shape, node, KindSet::ALL).saturating_add(1);
        let slots = self.layout.of_node[node.ordinal()].clone();
        let mut lacks = Vec::new();
        for view in &self.shapes[shape.ordinal()].views {
            match view {
                Some(view) => lacks.extend(
                    slots.clone().filter_map(|slot| view.lacks(&self.layout, &self.state, slot, workers)),
                ),
                // Forgotten for another: nothing is known of it.
                None => lacks.push([0; 3]),
            }
        }
        lacks
    }

    /// Whether the gang would fit what works now, if nobody held anything of it.
    pub fn could_fit_when_idle(&self, shape: ShapeId, avoid: &[NodeId]) -> bool {
        let shape = self.shape_of(shape);
        shape.alternatives.iter().any(|ask| self.fits_when_idle(shape, ask, avoid))
    }

    fn fits_when_idle(&self, shape: &Shape, ask: &DeviceAsk, avoid: &[NodeId]) -> bool {
        let layout = &self.layout;
        let view = View::new(layout, shape, ask);
        let is_bunched = shape.same_rack && shape.workers > 1;
        let mut rooms = vec![0_u64; view.pools.len().max(view.bunches.len())];
        let mut levels = Vec::new();
        for (_, slot) in layout.slots.iter().enumerate().filter(|(at, _)| view.accepts(*at)) {
            if avoid.iter().any(|avoided| avoided.ordinal() == slot.node) {
                continue;
            }
            let amount = |amount: u64| i64::try_from(amount).unwrap_or(i64::MAX);
            levels.clear();
            levels.extend(slot.usable.iter().map(|usable| if *usable { 1000 } else { 0 }));
            let capacity = &layout.nodes[slot.node].capacity;
            let room = view.room(slot, &levels, amount(capacity.cpus.milli), amount(capacity.memory.0));
            let at = if is_bunched { view.bunch(layout, slot) } else { view.pool(slot) };
            rooms[at] += u64::from(room);
            if rooms[at] >= u64::from(shape.workers) {
                return true;
            }
        }
        false
    }

    /// Whether the devices alone would fit now.
    pub fn devices_fit(&mut self, shape: ShapeId) -> bool {
        let bare = Shape { cpus: Cpus::default(), memory: Bytes::default(), ..self.shape_of(shape).clone() };
        let bare = self.shape(&bare);
        self.fits(bare, &PlacementConstraints::NONE)
    }

    /// What is missing: devices before CPUs before memory.
    pub fn shortage(&mut self, shape: ShapeId, wish: &PlacementConstraints<'_>) -> Shortage {
        if self.fits(shape, wish) {
            return Shortage::Nothing;
        }
        let asked = self.shape_of(shape).clone();
        let bare = Shape { cpus: Cpus::default(), memory: Bytes::default(), ..asked.clone() };
        let bare = self.shape(&bare);
        let has_devices = asked.alternatives.iter().any(|ask| !ask.count.is_none());
        if has_devices && !self.fits(bare, wish) {
            let supply: Vec<_> = asked.alternatives.iter().flat_map(|ask| self.supply(ask)).collect();
            let most = supply.iter().map(|supply| supply.most_on_one_node).max();
            let free = supply.iter().map(|supply| supply.free).sum();
            return Shortage::Devices { free, most_on_one_node: most.unwrap_or(0) };
        }
        let beside = Shape { memory: Bytes::default(), ..asked };
        let beside = self.shape(&beside);
        let amounts = |amounts: &[i64], fleet: &mut Fleet| {
            let nodes =
                (0..amounts.len()).filter(|node| fleet.room_on(bare, NodeId::new(*node), wish.kinds) > 0);
            let most = nodes.map(|node| amounts[node]).max().unwrap_or(0);
            u64::try_from(most).unwrap_or(0)
        };
        if self.fits(beside, wish) {
            let bytes = self.state.bytes.clone();
            Shortage::Memory { most_on_one_node: Bytes(amounts(&bytes, self)) }
        } else {
            let cpus = self.state.milli_cpus.clone();
            Shortage::Cpus { most_on_one_node: Cpus { milli: amounts(&cpus, self) } }
        }
    }

    /// Whether the gang would fit if nobody held anything, no device had failed and no node were cordoned.
    pub fn would_ever_fit(&self, shape: &Shape) -> bool {
        self.fits_when_all_is_well(shape)
    }

    /// Takes over what another fleet has learned of arrivals.
    pub fn learn_from(&mut self, other: &Fleet) {
        let ids: BTreeMap<usize, usize> =
            other.ids.iter().map(|(shape, id)| (id.ordinal(), self.shape(shape).ordinal())).collect();
        self.value.learn_from(&other.value, |shape| ids[&shape]);
    }
}
