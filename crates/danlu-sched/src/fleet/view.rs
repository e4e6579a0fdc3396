//! One alternative of one shape against all slots: how many workers each has room for, and how good it is for one.
//!
//! Kept between questions: only slots that changed since are looked at again. Invariant: after [`View::refresh`] the
//! totals are the sums of the rooms, and each room is that of the slot's present content.

use super::board::Need;
use super::layout::{Layout, Slot};
use super::state::State;
use super::value::{Known, Moves, Value};
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
    model_prices: Vec<i32>,
    /// The best score of each `RUN` slots, and whether it has to be looked for again.
    peaks: Vec<(i32, bool)>,
    moment: u64,
    epoch: Option<u64>,
    round: u64,
}

/// Worse than every score: there is no room.
pub(crate) const NO_ROOM: i32 = i32::MIN;

/// Slots whose best is remembered together: about the root of the number of slots in a large cluster.
const RUN: usize = 64;

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
            peaks: vec![(NO_ROOM, true); slots.div_ceil(RUN)],
            model_prices: Vec::new(),
            moves: vec![Moves::NO_ROOM; slots],
            moment: 0,
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

    /// Looks again at what changed.
    pub(crate) fn refresh(&mut self, layout: &Layout, state: &State, value: &mut Value) {
        value.reprice(layout, state);
        let everything = self.epoch != Some(value.epoch);
        if everything {
            self.epoch = Some(value.epoch);
            self.set_prices(layout, value);
        }
        let moment = state.moment();
        if self.moment != moment || everything {
            match state.changed_since(self.moment) {
                Some(nodes) if !everything && nodes.len() < layout.nodes.len() => {
                    for &node in nodes {
                        for slot in layout.of_node[node as usize].clone() {
                            self.look(layout, state, value, slot, false);
                        }
                    }
                }
                _ => {
                    for slot in 0..layout.slots.len() {
                        self.look(layout, state, value, slot, everything);
                    }
                }
            }
            self.moment = moment;
        }
        if self.round != value.round {
            self.set_prices(layout, value);
            for slot in 0..layout.slots.len() {
                self.reckon(layout, value, slot);
            }
        }
    }

    fn set_prices(&mut self, layout: &Layout, value: &Value) {
        self.round = value.round;
        // The last is for slots without devices.
        let models = (0..layout.models.len()).map(Some).chain([None]);
        self.model_prices = models.map(|model| value.model_price(model, self.need)).collect();
    }

    fn look(&mut self, layout: &Layout, state: &State, value: &mut Value, at: usize, anew: bool) {
        let slot = &layout.slots[at];
        let version = state.versions[slot.node];
        if !self.accepted[at] || (self.versions[at] == version && !anew) {
            return;
        }
        self.versions[at] = version;
        value.update(layout, state, at);
        let (milli_cpus, bytes) = (state.milli_cpus[slot.node], state.bytes[slot.node]);
        let room = self.room(slot, value.briefs.levels(at), milli_cpus, bytes);
        let (pool, bunch) = (self.pool(slot), self.bunch(layout, slot));
        for total in [&mut self.pools[pool], &mut self.bunches[bunch]] {
            *total = *total - u64::from(self.rooms[at]) + u64::from(room);
        }
        self.rooms[at] = room;
        self.moves[at] = if room > 0 { value.most_gain((slot, at), state) } else { Moves::NO_ROOM };
        self.reckon(layout, value, at);
    }

    /// Works out exactly what is only known to be at most so good. Says whether there was anything to do.
    pub(crate) fn settle(&mut self, layout: &Layout, state: &State, value: &mut Value, at: usize) -> bool {
        if self.moves[at].known != Known::AtMost {
            return false;
        }
        let slot = (&layout.slots[at], at);
        self.moves[at] = value.moves(slot, state, self.need, (self.milli_cpus, self.bytes));
        self.reckon(layout, value, at);
        true
    }

    /// The score of what is known of a slot, at present prices.
    fn reckon(&mut self, layout: &Layout, value: &Value, at: usize) {
        let moves = &self.moves[at];
        let score = match moves.known {
            Known::NoRoom => NO_ROOM,
            _ => value.score(moves, self.model_prices[layout.model_of[at]]).max(NO_ROOM + 1),
        };
        if self.scores[at] != score {
            self.scores[at] = score;
            self.peaks[at / RUN].1 = true;
        }
    }

    /// The slot with the best score of all; of equals the first. Most slots need not be settled for it: what is at most
    /// so good cannot win against what is better.
    pub(crate) fn best(&mut self, layout: &Layout, state: &State, value: &mut Value) -> Option<usize> {
        loop {
            let best = self.first_best()?;
            if !self.settle(layout, state, value, best) {
                return Some(best);
            }
        }
    }

    fn first_best(&mut self) -> Option<usize> {
        for (peak, scores) in self.peaks.iter_mut().zip(self.scores.chunks(RUN)).filter(|(peak, _)| peak.1) {
            *peak = (scores.iter().copied().max().unwrap_or(NO_ROOM), false);
        }
        let best = self.peaks.iter().map(|(score, _)| *score).max().filter(|score| *score != NO_ROOM)?;
        let run = self.peaks.iter().position(|(score, _)| *score == best)?;
        let scores = &self.scores[run * RUN..];
        scores.iter().position(|score| *score == best).map(|at| run * RUN + at)
    }

    /// The device in use on which a share should go, if not on an idle one. The slot is settled.
    pub(crate) fn used_device(&self, value: &Value, at: usize) -> Option<u8> {
        value.used_device(&self.moves[at])
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
