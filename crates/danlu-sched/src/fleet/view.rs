//! One alternative of one shape against all slots: how many workers each has room for, and how good it is for one.
//!
//! Kept between questions: only slots that changed since are looked at again. Invariant: after [`View::refresh`] the
//! totals are the sums of the rooms, and each room is that of the slot's present content.

use super::board::Need;
use super::layout::{Layout, Slot};
use super::state::State;
use crate::shape::{DeviceAsk, Shape};

#[derive(Debug, Clone)]
pub(crate) struct View {
    pub(crate) need: Need,
    milli_cpus: i64,
    bytes: i64,
    accepted: Vec<bool>,
    /// By slot.
    pub(crate) rooms: Vec<u32>,
    pub(crate) scores: Vec<i32>,
    versions: Vec<u64>,
    /// Room on each model, or on everything where no device is asked for: a gang runs on one of them.
    pub(crate) pools: Vec<u64>,
    /// Room on each model within each rack.
    pub(crate) bunches: Vec<u64>,
    moment: u64,
    fresh: bool,
}

/// Worse than every score: there is no room.
pub(crate) const NO_ROOM: i32 = i32::MIN;

impl View {
    pub(crate) fn new(layout: &Layout, shape: &Shape, ask: &DeviceAsk) -> Self {
        let slots = layout.slots.len();
        let by_processors = ask.count.is_none();
        let signed = |amount: u64| i64::try_from(amount).unwrap_or(i64::MAX).min(1 << 60);
        View {
            need: Need::new(ask.count, shape.workers),
            milli_cpus: signed(shape.cpus.milli),
            bytes: signed(shape.memory.0),
            accepted: layout.slots.iter().map(|slot| layout.accepts(slot, shape, ask)).collect(),
            rooms: vec![0; slots],
            scores: vec![NO_ROOM; slots],
            versions: vec![0; slots],
            pools: vec![0; if by_processors { 1 } else { layout.models.len() }],
            bunches: vec![0; if by_processors { layout.racks } else { layout.bunches }],
            moment: 0,
            fresh: true,
        }
    }

    /// Which entry of `pools` a slot counts for.
    pub(crate) fn pool(&self, slot: &Slot) -> usize {
        if self.need.devices == 0 { 0 } else { slot.model.unwrap_or(0) }
    }

    /// Which entry of `bunches` a slot counts for.
    pub(crate) fn bunch(&self, layout: &Layout, slot: &Slot) -> usize {
        if self.need.devices == 0 { layout.rack[slot.node] } else { slot.bunch }
    }

    /// Looks again at what changed.
    pub(crate) fn refresh(&mut self, layout: &Layout, state: &State) {
        let moment = state.moment();
        if self.moment == moment && !self.fresh {
            return;
        }
        match state.changed_since(self.moment) {
            Some(nodes) if !self.fresh && nodes.len() < layout.nodes.len() => {
                for &node in nodes {
                    for slot in layout.of_node[node as usize].clone() {
                        self.look(layout, state, slot);
                    }
                }
            }
            _ => {
                for slot in 0..layout.slots.len() {
                    self.look(layout, state, slot);
                }
            }
        }
        self.moment = moment;
        self.fresh = false;
    }

    fn look(&mut self, layout: &Layout, state: &State, at: usize) {
        let slot = &layout.slots[at];
        let version = state.versions[slot.node];
        if !self.accepted[at] || (self.versions[at] == version && !self.fresh) {
            return;
        }
        self.versions[at] = version;
        let mut levels = Vec::new();
        state.levels(layout, slot, &mut levels);
        let room = self.room(slot, &levels, state.milli_cpus[slot.node], state.bytes[slot.node]);
        let (pool, bunch) = (self.pool(slot), self.bunch(layout, slot));
        for total in [&mut self.pools[pool], &mut self.bunches[bunch]] {
            *total = *total - u64::from(self.rooms[at]) + u64::from(room);
        }
        self.rooms[at] = room;
        let left: i32 = levels.iter().map(|&level| i32::from(level)).sum();
        self.scores[at] = if room == 0 { NO_ROOM } else { -left };
    }

    /// How many workers of this shape a slot with this content has room for.
    pub(crate) fn room(&self, slot: &Slot, levels: &[u16], milli_cpus: i64, bytes: i64) -> u32 {
        if !slot.open {
            return 0;
        }
        let by_amount = |free: i64, each: i64| match each {
            ..=0 => u32::MAX,
            _ => u32::try_from((free / each).max(0)).unwrap_or(u32::MAX),
        };
        slot.board
            .room(levels, self.need)
            .min(by_amount(milli_cpus, self.milli_cpus))
            .min(by_amount(bytes, self.bytes))
    }

    /// Whether a slot is of a kind this shape may be on at all, idle or not.
    pub(crate) fn accepts(&self, slot: usize) -> bool {
        self.accepted[slot]
    }
}
