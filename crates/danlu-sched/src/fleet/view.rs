//! One alternative of one shape against all slots: how many workers each has room for, and how good it is for one.
//!
//! Kept between questions: only slots that changed since are looked at again. Invariant: after [`View::refresh`] the
//! totals are the sums of the rooms, and each room is that of the slot's present content.

use super::board::Need;
use super::layout::{Layout, Slot};
use super::state::State;
use super::value::{Content, Moves, Value};
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
    moves: Vec<Moves>,
    levels: Vec<u16>,
    moment: u64,
    fresh: bool,
    epoch: u64,
    round: u64,
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
            levels: Vec::new(),
            moves: vec![Moves::default(); slots],
            moment: 0,
            fresh: true,
            epoch: 0,
            round: 0,
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
    pub(crate) fn refresh(&mut self, layout: &Layout, state: &State, value: &mut Value) {
        value.reprice(layout, state);
        let moment = state.moment();
        self.fresh |= self.epoch != value.epoch;
        self.epoch = value.epoch;
        let reprice = self.round != value.round;
        self.round = value.round;
        if self.moment != moment || self.fresh {
            match state.changed_since(self.moment) {
                Some(nodes) if !self.fresh && nodes.len() < layout.nodes.len() => {
                    for &node in nodes {
                        for slot in layout.of_node[node as usize].clone() {
                            self.look(layout, state, value, slot);
                        }
                    }
                }
                _ => {
                    for slot in 0..layout.slots.len() {
                        self.look(layout, state, value, slot);
                    }
                }
            }
            self.moment = moment;
        }
        if reprice && !self.fresh {
            for slot in 0..layout.slots.len() {
                self.reckon(layout, value, slot);
            }
        }
        self.fresh = false;
    }

    fn look(&mut self, layout: &Layout, state: &State, value: &mut Value, at: usize) {
        let slot = &layout.slots[at];
        let version = state.versions[slot.node];
        if !self.accepted[at] || (self.versions[at] == version && !self.fresh) {
            return;
        }
        self.versions[at] = version;
        let mut levels = std::mem::take(&mut self.levels);
        state.levels(layout, slot, &mut levels);
        let room = self.room(slot, &levels, state.milli_cpus[slot.node], state.bytes[slot.node]);
        let (pool, bunch) = (self.pool(slot), self.bunch(layout, slot));
        for total in [&mut self.pools[pool], &mut self.bunches[bunch]] {
            *total = *total - u64::from(self.rooms[at]) + u64::from(room);
        }
        self.rooms[at] = room;
        if room > 0 {
            let content = Content { slot, levels: &levels, milli_cpus: state.milli_cpus[slot.node], bytes: state.bytes[slot.node] };
            self.moves[at] = value.moves(content, self.need, self.milli_cpus, self.bytes);
        }
        self.levels = levels;
        self.reckon(layout, value, at);
    }

    fn reckon(&mut self, layout: &Layout, value: &Value, at: usize) {
        let slot = &layout.slots[at];
        if self.rooms[at] == 0 {
            self.scores[at] = NO_ROOM;
            return;
        }
        let moves = &self.moves[at];
        let used = moves.used.map(|(step, _)| value.score(slot, self.need, &step));
        let idle = moves.idle.map(|step| value.score(slot, self.need, &step));
        self.scores[at] = used.max(idle).unwrap_or(NO_ROOM + 1);
    }

    /// The device in use on which a share should go, if not on an idle one.
    pub(crate) fn used_device(&self, layout: &Layout, value: &Value, at: usize) -> Option<u8> {
        let slot = &layout.slots[at];
        let (step, device) = self.moves[at].used?;
        let idle = self.moves[at].idle.map(|step| value.score(slot, self.need, &step));
        (Some(value.score(slot, self.need, &step)) >= idle).then_some(device)
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
