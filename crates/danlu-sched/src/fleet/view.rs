//! One alternative of one shape against all slots: how many workers each has room for, and how good it is for one.
//!
//! Kept between questions: only slots that changed since are looked at again, and how good they are only when somebody
//! wants to be placed. Invariant: after [`View::refresh`] the totals are the sums of the rooms, and each room is that of
//! the slot's present content; after [`View::appraise`] no slot is better than its score.

use super::board::Need;
use super::layout::{Layout, Slot};
use super::state::{ChangeCursor, FleetState};
use super::value::{MoveBound, Moves, Value, print_of};
use crate::shape::{DeviceAsk, Shape};

#[derive(Debug, Clone)]
pub(crate) struct View {
    pub(crate) need: Need,
    milli_cpus: i64,
    bytes: i64,
    /// Stands for what a worker takes.
    print: u64,
    accepted: Vec<bool>,
    /// By slot.
    pub(crate) rooms: Vec<u32>,
    pub(crate) scores: Vec<i32>,
    /// What each slot was counted with.
    versions: Vec<u64>,
    /// The same of what it was before: most changes are trials that are undone, again and again.
    before: Vec<(u64, u32)>,
    /// Room on each model, or on everything where no device is asked for: a gang runs on one of them.
    pub(crate) pools: Vec<u64>,
    /// Room on each model within each rack.
    pub(crate) bunches: Vec<u64>,
    moves: Vec<Moves>,
    model_prices: Vec<i32>,
    /// The best score of each `RUN` slots, and whether it has to be looked for again.
    peaks: Vec<(i32, bool)>,
    /// When it was last asked about, as its fleet counts.
    pub(crate) asked: u64,
    /// Slots whose moves nobody asked for since they changed.
    unseen: Vec<usize>,
    levels: Vec<u16>,
    follower: ChangeCursor,
    epoch: Option<u64>,
    round: u64,
}

/// Worse than every score: there is no room.
pub(crate) const NO_ROOM: i32 = i32::MIN;

/// Slots whose best is remembered together: about the root of the number of slots in a large cluster.
const RUN: usize = 64;

/// A version that no node has.
const NEVER: u64 = u64::MAX;

impl View {
    pub(crate) fn new(layout: &Layout, shape: &Shape, ask: &DeviceAsk) -> Self {
        let slots = layout.slots.len();
        let by_processors = ask.count.is_none();
        let signed = |amount: u64| i64::try_from(amount).unwrap_or(i64::MAX).min(1 << 60);
        let need = Need::new(ask.count, shape.workers);
        View {
            need,
            print: print_of(need, shape.cpus, shape.memory),
            milli_cpus: signed(shape.cpus.milli),
            bytes: signed(shape.memory.0),
            accepted: layout.slots.iter().map(|slot| layout.accepts(slot, shape, ask)).collect(),
            rooms: vec![0; slots],
            scores: vec![NO_ROOM; slots],
            versions: vec![NEVER; slots],
            before: vec![(NEVER, 0); slots],
            pools: vec![0; if by_processors { 1 } else { layout.models.len() }],
            bunches: vec![0; if by_processors { layout.racks } else { layout.bunches }],
            peaks: vec![(NO_ROOM, true); slots.div_ceil(RUN)],
            model_prices: Vec::new(),
            moves: vec![Moves::NO_ROOM; slots],
            asked: 0,
            unseen: Vec::new(),
            levels: Vec::new(),
            follower: ChangeCursor::default(),
            epoch: None,
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

    /// Counts again the rooms of what changed.
    pub(crate) fn refresh(&mut self, layout: &Layout, state: &FleetState) {
        let mut follower = std::mem::take(&mut self.follower);
        match follower.catch_up(state) {
            Some(nodes) if nodes.len() < layout.nodes.len() => {
                for &node in nodes {
                    for slot in layout.of_node[node as usize].clone() {
                        self.count(layout, state, slot);
                    }
                }
            }
            _ => {
                for slot in 0..layout.slots.len() {
                    self.count(layout, state, slot);
                }
            }
        }
        self.follower = follower;
    }

    fn count(&mut self, layout: &Layout, state: &FleetState, at: usize) {
        let slot = &layout.slots[at];
        let version = state.versions[slot.node];
        if !self.accepted[at] || self.versions[at] == version {
            return;
        }
        let before = std::mem::replace(&mut self.before[at], (self.versions[at], self.rooms[at]));
        self.versions[at] = version;
        let room = if before.0 == version {
            before.1
        } else {
            let mut levels = std::mem::take(&mut self.levels);
            state.levels(layout, slot, &mut levels);
            let room = self.room(slot, &levels, state.milli_cpus[slot.node], state.bytes[slot.node]);
            self.levels = levels;
            room
        };
        let (pool, bunch) = (self.pool(slot), self.bunch(layout, slot));
        for total in [&mut self.pools[pool], &mut self.bunches[bunch]] {
            *total = *total - u64::from(self.rooms[at]) + u64::from(room);
        }
        self.rooms[at] = room;
        if room == 0 {
            self.moves[at] = Moves::NO_ROOM;
            self.set_score(at, NO_ROOM);
        } else if self.moves[at].known != MoveBound::Unseen {
            self.moves[at] = Moves::UNSEEN;
            self.unseen.push(at);
        }
    }

    /// Says of every slot at least how good it is at most. Rooms are up to date.
    pub(crate) fn appraise(&mut self, layout: &Layout, state: &FleetState, value: &mut Value) {
        value.reprice(layout, state);
        let anew = self.epoch != Some(value.epoch);
        if anew || self.round != value.round {
            self.round = value.round;
            // The last is for slots without devices.
            let models = (0..layout.models.len()).map(Some).chain([None]);
            self.model_prices = models.map(|model| value.model_price(model, self.need)).collect();
            self.epoch = Some(value.epoch);
            for run in 0..self.peaks.len() {
                if self.peaks[run] == (NO_ROOM, false) {
                    continue;
                }
                for at in RUN * run..(RUN * (run + 1)).min(layout.slots.len()) {
                    match self.moves[at].known {
                        MoveBound::NoRoom | MoveBound::Unseen => {}
                        _ if anew => self.appraise_slot(layout, state, value, at),
                        _ => self.reckon(layout, value, at),
                    }
                }
            }
        }
        let mut unseen = std::mem::take(&mut self.unseen);
        for at in unseen.drain(..) {
            if self.rooms[at] > 0 {
                self.appraise_slot(layout, state, value, at);
            }
        }
        self.unseen = unseen;
    }

    fn appraise_slot(&mut self, layout: &Layout, state: &FleetState, value: &mut Value, at: usize) {
        value.update(layout, state, at);
        self.moves[at] = value.appraise((&layout.slots[at], at), state, self.print);
        self.reckon(layout, value, at);
    }

    /// Works out exactly what is only known to be at most so good. Says whether there was anything to do.
    pub(crate) fn settle(
        &mut self,
        layout: &Layout,
        state: &FleetState,
        value: &mut Value,
        at: usize,
    ) -> bool {
        if self.moves[at].known != MoveBound::AtMost {
            return false;
        }
        let asker = (self.print, self.need, self.milli_cpus, self.bytes);
        self.moves[at] = value.settle((&layout.slots[at], at), state, asker);
        self.reckon(layout, value, at);
        true
    }

    /// The score of what is known of a slot with room, at present prices.
    fn reckon(&mut self, layout: &Layout, value: &Value, at: usize) {
        let price = self.model_prices[layout.model_of[at]];
        self.set_score(at, value.score(&self.moves[at], price).max(NO_ROOM + 1));
    }

    fn set_score(&mut self, at: usize, score: i32) {
        if self.scores[at] != score {
            self.scores[at] = score;
            self.peaks[at / RUN].1 = true;
        }
    }

    /// The slot with the best score of all; of equals the first. Most slots need not be settled for it: what is at most
    /// so good cannot win against what is better.
    pub(crate) fn best(&mut self, layout: &Layout, state: &FleetState, value: &mut Value) -> Option<usize> {
        loop {
            for (peak, scores) in
                self.peaks.iter_mut().zip(self.scores.chunks(RUN)).filter(|(peak, _)| peak.1)
            {
                *peak = (scores.iter().copied().max().unwrap_or(NO_ROOM), false);
            }
            let best = self.peaks.iter().map(|(score, _)| *score).max().filter(|score| *score != NO_ROOM)?;
            let run = RUN * self.peaks.iter().position(|(score, _)| *score == best)?;
            let slots = run..(run + RUN).min(self.scores.len());
            let first = slots.clone().find(|&at| self.scores[at] == best)?;
            if self.moves[first].known != MoveBound::AtMost {
                return Some(first);
            }
            // Neighbours are often alike: those that seem as good are settled in the same go.
            for at in slots.filter(|&at| at >= first) {
                if self.scores[at] == best {
                    self.settle(layout, state, value, at);
                }
            }
        }
    }

    /// The level of the device in use on which a share should go, if not on an idle one. The slot is settled.
    pub(crate) fn used_level(&self, value: &Value, at: usize) -> Option<u16> {
        value.used_level(&self.moves[at])
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

    /// What so many workers need at least beyond what is free of a slot; nothing if none could be there.
    pub(crate) fn lacks(
        &self,
        layout: &Layout,
        state: &FleetState,
        at: usize,
        workers: u32,
    ) -> Option<[i64; 3]> {
        let slot = &layout.slots[at];
        if !slot.open || !self.accepted[at] {
            return None;
        }
        let mut levels = Vec::new();
        state.levels(layout, slot, &mut levels);
        let milli = i64::from(self.need.devices) * i64::from(self.need.share);
        let free = levels.into_iter().map(i64::from).sum();
        let lacks = |each: i64, free: i64| match each {
            ..=0 => 0,
            _ => each.saturating_mul(i64::from(workers)).saturating_sub(free),
        };
        Some([
            lacks(milli, free),
            lacks(self.milli_cpus, state.milli_cpus[slot.node]),
            lacks(self.bytes, state.bytes[slot.node]),
        ])
    }

    /// Whether a slot is of a kind this shape may be on at all, idle or not.
    pub(crate) fn accepts(&self, slot: usize) -> bool {
        self.accepted[slot]
    }
}
