//! Prices of what is scarce: models that many ask for, and blocks of devices that belong together.
//!
//! Both are ratios of what is expected to be asked for to what there is, and change slowly: they are computed anew once
//! in a while from running sums, and stand outside of whatever is kept per shape and slot.

use super::super::board::{Board, Need};
use super::super::layout::{Layout, Slot};
use super::super::state::State;
use super::mix::{Arrival, BLOCKS, Mix};
use super::sample::LANES;
use super::tune::tune;

pub(crate) type Blocks = [i16; BLOCKS.len()];

/// Prices in the unit of gains: thousandths of a device, summed over the lanes of the sample.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Prices {
    /// By model, for a whole device.
    pub(crate) model: Vec<i32>,
    /// By model, for each block that is broken up.
    pub(crate) block: Vec<[i32; BLOCKS.len()]>,
}

/// What a typical worker that takes a block needs besides: below it the devices alone are of no use to it.
#[derive(Debug, Clone, Default)]
pub(crate) struct BlockNeeds {
    pub(crate) milli_cpus: [i64; BLOCKS.len()],
    pub(crate) bytes: [i64; BLOCKS.len()],
    /// Whether anybody asks for such blocks.
    pub(crate) asked: [bool; BLOCKS.len()],
}

/// Running sums over the slots.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sums {
    /// By slot.
    free: Vec<u32>,
    blocks: Vec<Blocks>,
    versions: Vec<u64>,
    /// By model.
    free_of_model: Vec<u64>,
    blocks_of_model: Vec<[u64; BLOCKS.len()]>,
    moment: u64,
    valid: bool,
}

impl BlockNeeds {
    /// The 75th percentile of what arrived: most of those workers can use a block that counts.
    pub(crate) fn of(mix: &Mix) -> Self {
        let mut needs = BlockNeeds::default();
        for block in 0..BLOCKS.len() {
            let of_block: Vec<&Arrival> =
                mix.arrivals.iter().filter(|arrival| arrival.weight > 0 && arrival.block() == Some(block)).collect();
            needs.asked[block] = !of_block.is_empty();
            needs.milli_cpus[block] = percentile_75(&of_block, |arrival| arrival.milli_cpus);
            needs.bytes[block] = percentile_75(&of_block, |arrival| arrival.bytes);
        }
        needs
    }

    /// How many blocks of each size a slot could give.
    pub(crate) fn blocks(&self, board: Board, levels: &[u16], milli_cpus: i64, bytes: i64) -> Blocks {
        let idle = levels.iter().filter(|&&level| level == 1000).count() as u32;
        let rooms = BLOCKS.map(|size| match board {
            Board::Any => idle / size,
            _ => board.room(levels, Need { devices: size, share: 1000, alone: false }),
        });
        self.limited(rooms, milli_cpus, bytes)
    }

    pub(crate) fn limited(&self, rooms: [u32; BLOCKS.len()], milli_cpus: i64, bytes: i64) -> Blocks {
        let mut blocks = [0; BLOCKS.len()];
        for (at, room) in rooms.into_iter().enumerate().filter(|(at, room)| self.asked[*at] && *room > 0) {
            let by = |free: i64, each: i64| if each > 0 { (free / each).max(0) } else { i64::MAX };
            let room = i64::from(room).min(by(milli_cpus, self.milli_cpus[at])).min(by(bytes, self.bytes[at]));
            blocks[at] = i16::try_from(room).unwrap_or(i16::MAX);
        }
        blocks
    }
}

fn percentile_75(arrivals: &[&Arrival], amount: impl Fn(&Arrival) -> u64) -> i64 {
    let mut amounts: Vec<(u64, u64)> = arrivals.iter().map(|arrival| (amount(arrival), arrival.weight)).collect();
    amounts.sort_unstable();
    let total: u64 = amounts.iter().map(|(_, weight)| weight).sum();
    let mut below = 0;
    for (amount, weight) in amounts {
        below += weight;
        if 4 * below >= 3 * total {
            return i64::try_from(amount).unwrap_or(i64::MAX);
        }
    }
    0
}

impl Sums {
    pub(crate) fn invalidate(&mut self) {
        self.valid = false;
    }

    /// Counts anew what changed.
    pub(crate) fn refresh(&mut self, layout: &Layout, state: &State, needs: &BlockNeeds) {
        let mut levels = Vec::new();
        let changed = state.changed_since(self.moment).filter(|_| self.valid);
        self.moment = state.moment();
        if let Some(nodes) = changed {
            for &node in nodes {
                for at in layout.of_node[node as usize].clone() {
                    self.count(layout, state, needs, at, &mut levels);
                }
            }
            return;
        }
        self.valid = true;
        self.free = vec![0; layout.slots.len()];
        self.blocks = vec![[0; BLOCKS.len()]; layout.slots.len()];
        self.versions = vec![u64::MAX; layout.slots.len()];
        self.free_of_model = vec![0; layout.models.len()];
        self.blocks_of_model = vec![[0; BLOCKS.len()]; layout.models.len()];
        for at in 0..layout.slots.len() {
            self.count(layout, state, needs, at, &mut levels);
        }
    }

    fn count(&mut self, layout: &Layout, state: &State, needs: &BlockNeeds, at: usize, levels: &mut Vec<u16>) {
        let slot: &Slot = &layout.slots[at];
        let (Some(model), version) = (slot.model, state.versions[slot.node]) else { return };
        if self.versions[at] == version {
            return;
        }
        self.versions[at] = version;
        state.levels(layout, slot, levels);
        let free = levels.iter().map(|&level| u32::from(level)).sum();
        let blocks = needs.blocks(slot.board, levels, state.milli_cpus[slot.node], state.bytes[slot.node]);
        self.free_of_model[model] = self.free_of_model[model] + u64::from(free) - u64::from(self.free[at]);
        for (sum, (new, old)) in
            self.blocks_of_model[model].iter_mut().zip(blocks.iter().zip(self.blocks[at].iter()))
        {
            *sum = (*sum).wrapping_add_signed(i64::from(*new) - i64::from(*old));
        }
        self.free[at] = free;
        self.blocks[at] = blocks;
    }

    pub(crate) fn prices(&self, layout: &Layout, mix: &Mix) -> Prices {
        let models = layout.models.len();
        let mut prices = Prices { model: vec![0; models], block: vec![[0; BLOCKS.len()]; models] };
        let asked: f64 = mix.arrivals.iter().map(|arrival| arrival.weight as f64 * arrival.milli() as f64).sum();
        if asked <= 0.0 {
            return prices;
        }
        let free: f64 = self.free_of_model.iter().map(|&free| free as f64).sum();
        let mut load = vec![0.0; models];
        let mut wanted = [0.0; BLOCKS.len()];
        for arrival in mix.arrivals.iter().filter(|arrival| arrival.weight > 0 && arrival.need.devices > 0) {
            let share = arrival.weight as f64 * arrival.milli() as f64 / asked;
            let accepted: f64 =
                self.free_of_model.iter().zip(&arrival.models).filter(|(_, takes)| **takes).map(|(&free, _)| free as f64).sum();
            for (load, _) in load.iter_mut().zip(&arrival.models).filter(|(_, takes)| **takes) {
                *load += share * free / accepted.max(1.0);
            }
            if let Some(block) = arrival.block() {
                wanted[block] += share * free / (1000.0 * f64::from(BLOCKS[block]));
            }
        }
        let mut there = [0_u64; BLOCKS.len()];
        for blocks in &self.blocks_of_model {
            for (sum, blocks) in there.iter_mut().zip(blocks) {
                *sum += blocks;
            }
        }
        let (kp, kb, pb) = (tune("kp", 1.0), tune("kb", 0.3), tune("pb", 3.0));
        for model in 0..models {
            let rounded = |price: f64| (price * tune("grain", 64.0)).round() / tune("grain", 64.0);
            prices.model[model] = (rounded(kp * load[model].min(tune("cap", 4.0))) * 1000.0 * LANES as f64) as i32;
            for block in 0..BLOCKS.len() {
                let scarce = if there[block] > 0 { (wanted[block] / there[block] as f64).min(1.0) } else { 1.0 };
                let scarce = if wanted[block] > 0.0 { scarce.powf(pb) } else { 0.0 };
                prices.block[model][block] = (rounded(kb * scarce) * f64::from(BLOCKS[block]) * 1000.0 * LANES as f64) as i32;
            }
        }
        prices
    }
}
