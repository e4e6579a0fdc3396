//! What there is, in sums and in the engine's own names.

use danlu_core::Grant;
use danlu_types::api::Supply;
use danlu_types::{Bytes, Cpus, Device, DeviceKind, Node};

use super::layout::{Layout, Slot};
use super::view::View;
use super::{Fleet, NodeId, Placement, WorkerPlacement};
use crate::shape::{DeviceAsk, Shape};

/// Amounts over all nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Totals {
    /// Thousandths of devices, by [`DeviceKind`].
    pub devices_milli: [u64; DeviceKind::ALL.len()],
    pub milli_cpus: u64,
    pub bytes: u64,
}

impl Totals {
    pub fn devices(&self, kind: DeviceKind) -> u64 {
        self.devices_milli[kind as usize]
    }
}

impl Fleet {
    /// Everything the nodes have, whether it works and takes jobs or not.
    pub fn capacity(&self) -> Totals {
        self.totals(|_| true, |_| true)
    }

    /// What works and takes jobs, whether it is held or not.
    pub fn in_service(&self) -> Totals {
        self.totals(|node| node.cordoned.is_none(), Device::usable)
    }

    fn totals(&self, has_node: impl Fn(&Node) -> bool, has_device: impl Fn(&Device) -> bool) -> Totals {
        let mut totals = Totals::default();
        for node in self.layout.nodes.iter().filter(|node| has_node(node)) {
            totals.milli_cpus += node.capacity.cpus.milli;
            totals.bytes = totals.bytes.saturating_add(node.capacity.memory.0);
            for device in node.devices.iter().filter(|device| has_device(device)) {
                totals.devices_milli[device.kind as usize] += 1000;
            }
        }
        totals
    }

    /// What new jobs could take now.
    pub fn free_totals(&self) -> Totals {
        let mut totals = Totals::default();
        let mut levels = Vec::new();
        for slot in self.layout.slots.iter().filter(|slot| slot.open) {
            if slot.first {
                totals.milli_cpus += u64::try_from(self.state.milli_cpus[slot.node]).unwrap_or(0);
                totals.bytes += u64::try_from(self.state.bytes[slot.node]).unwrap_or(0);
            }
            if let Some(model) = slot.model {
                self.state.levels(&self.layout, slot, &mut levels);
                let left: u64 = levels.iter().map(|&level| u64::from(level)).sum();
                totals.devices_milli[self.layout.kind_of(model) as usize] += left;
            }
        }
        totals
    }

    /// What there is of each model that would do; processor cores where no device is asked for.
    pub fn supply(&self, ask: &DeviceAsk) -> Vec<Supply> {
        if ask.count.is_none() {
            return vec![self.cores()];
        }
        let accepted =
            |model: &usize| ask.accepts(self.layout.models[*model].kind, &self.layout.models[*model].name);
        (0..self.layout.models.len()).filter(accepted).map(|model| self.devices_of(model)).collect()
    }

    fn devices_of(&self, model: usize) -> Supply {
        let mut supply = nothing();
        supply.kind = Some(self.layout.models[model].kind);
        supply.model = Some(self.layout.models[model].name.clone());
        let mut levels = Vec::new();
        for slot in self.layout.slots.iter().filter(|slot| slot.model == Some(model)) {
            let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
            supply.total += count(slot.positions.len());
            if slot.open {
                supply.usable += count(slot.usable.iter().filter(|usable| **usable).count());
            }
            self.state.levels(&self.layout, slot, &mut levels);
            let idle = count(levels.iter().filter(|&&level| level == 1000).count());
            supply.free += idle;
            supply.most_on_one_node = supply.most_on_one_node.max(idle);
        }
        supply
    }

    fn cores(&self) -> Supply {
        let mut supply = nothing();
        let cores = |milli: u64| u32::try_from(milli / 1000).unwrap_or(u32::MAX);
        for (ordinal, node) in self.layout.nodes.iter().enumerate() {
            supply.total += cores(node.capacity.cpus.milli);
            if node.cordoned.is_none() {
                let free = cores(u64::try_from(self.state.milli_cpus[ordinal]).unwrap_or(0));
                supply.usable += cores(node.capacity.cpus.milli);
                supply.free += free;
                supply.most_on_one_node = supply.most_on_one_node.max(free);
            }
        }
        supply
    }

    /// In names of nodes and numbers of devices, as the engine has them.
    pub fn grants(&self, placement: &Placement) -> Vec<Grant> {
        let grant = |part: &WorkerPlacement| {
            let node = &self.layout.nodes[part.node.ordinal()];
            let index = |position: &u8| node.devices[usize::from(*position)].index;
            let mut devices: Vec<u32> = part.devices.iter().map(index).collect();
            devices.sort_unstable();
            Grant {
                node: node.name.clone(),
                devices,
                share: u32::from(part.share),
                cpus: Cpus { milli: part.milli_cpus },
                memory: Bytes(part.bytes),
            }
        };
        placement.parts.iter().map(grant).collect()
    }

    /// Whether all of it is free.
    pub(crate) fn has(&self, placement: &Placement) -> bool {
        placement.parts.iter().all(|part| self.state.has(&self.layout, part))
    }

    /// The other way round. Parts on nodes that are gone are left out, and so are devices that are gone.
    pub fn placement(&self, grants: &[Grant]) -> Placement {
        let part = |grant: &Grant| {
            let node = *self.layout.ordinals.get(&grant.node)?;
            let position = |index: &u32| self.layout.position(node as usize, *index);
            let mut devices: Vec<u8> = grant.devices.iter().filter_map(position).collect();
            devices.sort_unstable();
            Some(WorkerPlacement {
                node: NodeId(node),
                devices,
                share: u16::try_from(grant.share).unwrap_or(1000),
                milli_cpus: grant.cpus.milli,
                bytes: grant.memory.0,
            })
        };
        let parts: Vec<WorkerPlacement> = grants.iter().filter_map(part).collect();
        let kind = parts.iter().find_map(|part| {
            let position = usize::from(*part.devices.first()?);
            Some(self.layout.nodes[part.node.ordinal()].devices[position].kind)
        });
        Placement { alternative: 0, kind, parts }
    }

    pub(super) fn fits_when_all_is_well(&self, shape: &Shape) -> bool {
        shape.alternatives.iter().any(|ask| fits_when_all_is_well(&self.layout, shape, ask))
    }
}

/// Boards of devices that a shape accepts and that could never give it as many: for refusing it with a reason.
impl Fleet {
    pub fn boards(&self, ask: &DeviceAsk) -> Vec<(super::Board, usize)> {
        let accepted = |slot: &&Slot| {
            slot.model.is_some_and(|model| {
                ask.accepts(self.layout.models[model].kind, &self.layout.models[model].name)
            })
        };
        let slots = self.layout.slots.iter().filter(accepted);
        let mut boards: Vec<_> = slots.map(|slot| (slot.board, slot.positions.len())).collect();
        boards.sort_unstable();
        boards.dedup();
        boards
    }
}

fn fits_when_all_is_well(layout: &Layout, shape: &Shape, ask: &DeviceAsk) -> bool {
    let view = View::new(layout, shape, ask);
    let mut pools = vec![0_u64; view.pools.len()];
    let mut bunches = vec![0_u64; view.bunches.len()];
    for (_, slot) in layout.slots.iter().enumerate().filter(|(at, _)| view.accepts(*at)) {
        let capacity = &layout.nodes[slot.node].capacity;
        let amount = |amount: u64| i64::try_from(amount).unwrap_or(i64::MAX);
        let well = Slot { open: true, ..slot.clone() };
        let levels = vec![1000; slot.positions.len()];
        let room = view.room(&well, &levels, amount(capacity.cpus.milli), amount(capacity.memory.0));
        pools[view.pool(slot)] += u64::from(room);
        bunches[view.bunch(layout, slot)] += u64::from(room);
    }
    let rooms = if shape.same_rack && shape.workers > 1 { bunches } else { pools };
    rooms.into_iter().any(|room| room >= u64::from(shape.workers))
}

fn nothing() -> Supply {
    Supply { kind: None, model: None, total: 0, usable: 0, free: 0, most_on_one_node: 0, reserved: 0 }
}
