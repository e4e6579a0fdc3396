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

/// Kinds of blocks that are counted, at most.
pub(crate) const TIERS: usize = 12;
/// How many kinds of each size.
const TIERS_PER_SIZE: usize = 3;

pub(crate) type Blocks = [i16; TIERS];

/// Prices in the unit of gains: thousandths of a device, summed over the lanes of the sample.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Prices {
    /// By model, for a whole device.
    pub(crate) model: Vec<i32>,
    /// By tier, for each block that is broken up.
    pub(crate) block: [i32; TIERS],
}

/// A kind of block: devices on one slot together with what those who take them need besides.
#[derive(Debug, Clone)]
pub(crate) struct Tier {
    /// In `BLOCKS`.
    size: usize,
    devices: u32,
    milli_cpus: i64,
    bytes: i64,
    /// By model; any when absent.
    models: Option<Vec<bool>>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Tiers(Vec<Tier>);

/// Running sums over the slots.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sums {
    /// By slot.
    free: Vec<u32>,
    blocks: Vec<Blocks>,
    versions: Vec<u64>,
    /// By model.
    free_of_model: Vec<u64>,
    blocks_in_all: [u64; TIERS],
    moment: u64,
    valid: bool,
}

impl Tiers {
    /// For each size the 75th percentile of what arrived, and the kinds that are scarcest.
    pub(crate) fn choose(layout: &Layout, state: &State, mix: &Mix) -> Self {
        let mut tiers = Vec::new();
        for size in 0..BLOCKS.len() {
            let of_size: Vec<&Arrival> =
                mix.arrivals.iter().filter(|arrival| arrival.weight > 0 && arrival.block() == Some(size)).collect();
            if of_size.is_empty() {
                continue;
            }
            tiers.push(Tier {
                size,
                devices: BLOCKS[size],
                milli_cpus: percentile_75(&of_size, |arrival| arrival.milli_cpus),
                bytes: percentile_75(&of_size, |arrival| arrival.bytes),
                models: None,
            });
            if tune("tiers", 1.0) == 0.0 { continue; }
            let mut kinds: Vec<(f64, Tier)> = Vec::new();
            for arrival in &of_size {
                let tier = Tier {
                    size,
                    devices: arrival.need.devices,
                    milli_cpus: i64::try_from(arrival.milli_cpus).unwrap_or(i64::MAX),
                    bytes: i64::try_from(arrival.bytes).unwrap_or(i64::MAX),
                    models: Some(arrival.models.clone()),
                };
                let wanted: u64 = of_size.iter().filter(|other| tier.covers(other)).map(|other| other.weight).sum();
                let mut levels = Vec::new();
                let there: f64 = layout.slots.iter().map(|slot| {
                    state.levels(layout, slot, &mut levels);
                    f64::from(tier.room(slot, &levels, state.milli_cpus[slot.node], state.bytes[slot.node]))
                }).sum();
                kinds.push((wanted as f64 / there.max(0.5), tier));
            }
            kinds.sort_by(|(one, _), (other, _)| other.total_cmp(one));
            tiers.extend(kinds.into_iter().map(|(_, tier)| tier).take(TIERS_PER_SIZE - 1));
        }
        Tiers(tiers)
    }

    /// How many blocks of each kind a slot could give.
    pub(crate) fn blocks(&self, slot: &Slot, levels: &[u16], milli_cpus: i64, bytes: i64) -> Blocks {
        let mut blocks = [0; TIERS];
        for (count, tier) in blocks.iter_mut().zip(&self.0) {
            *count = tier.room(slot, levels, milli_cpus, bytes);
        }
        blocks
    }

    /// The same for a board without rules, of which only the number of idle devices counts.
    pub(crate) fn limited(&self, model: usize, idle: u32, milli_cpus: i64, bytes: i64) -> Blocks {
        let mut blocks = [0; TIERS];
        for (count, tier) in blocks.iter_mut().zip(&self.0) {
            if idle >= tier.devices && tier.models.as_ref().is_none_or(|models| models[model]) {
                *count = tier.limited(idle / tier.devices, milli_cpus, bytes);
            }
        }
        blocks
    }

    /// What it costs to break up these blocks: the dearest kind of each size.
    pub(crate) fn cost(&self, blocks: &Blocks, prices: &Prices) -> i32 {
        let mut costs = [0; BLOCKS.len()];
        for ((tier, &count), price) in self.0.iter().zip(blocks).zip(&prices.block) {
            let cost = &mut costs[tier.size];
            *cost = (*cost).max(i32::from(count) * price);
        }
        costs.iter().sum()
    }
}

impl Tier {
    fn room(&self, slot: &Slot, levels: &[u16], milli_cpus: i64, bytes: i64) -> i16 {
        let Some(model) = slot.model.filter(|&model| self.models.as_ref().is_none_or(|models| models[model])) else {
            return 0;
        };
        let _ = model;
        let rooms = slot.board.room(levels, Need { devices: self.devices, share: 1000, alone: false });
        self.limited(rooms, milli_cpus, bytes)
    }

    fn limited(&self, room: u32, milli_cpus: i64, bytes: i64) -> i16 {
        if room == 0 {
            return 0;
        }
        let by = |free: i64, each: i64| if each > 0 { (free / each).max(0) } else { i64::MAX };
        let room = i64::from(room).min(by(milli_cpus, self.milli_cpus)).min(by(bytes, self.bytes));
        i16::try_from(room).unwrap_or(i16::MAX)
    }

    /// Whether whoever takes such a worker's place needs at least this much.
    fn covers(&self, other: &Arrival) -> bool {
        let Some(models) = &self.models else { return other.block() == Some(self.size) };
        other.block() == Some(self.size)
            && other.need.devices >= self.devices
            && i64::try_from(other.milli_cpus).unwrap_or(i64::MAX) >= self.milli_cpus
            && i64::try_from(other.bytes).unwrap_or(i64::MAX) >= self.bytes
            && other.models.iter().zip(models).all(|(theirs, ours)| !theirs || *ours)
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
    pub(crate) fn refresh(&mut self, layout: &Layout, state: &State, tiers: &Tiers) {
        let mut levels = Vec::new();
        let changed = state.changed_since(self.moment).filter(|_| self.valid);
        self.moment = state.moment();
        if let Some(nodes) = changed {
            for &node in nodes {
                for at in layout.of_node[node as usize].clone() {
                    self.count(layout, state, tiers, at, &mut levels);
                }
            }
            return;
        }
        self.valid = true;
        self.free = vec![0; layout.slots.len()];
        self.blocks = vec![[0; TIERS]; layout.slots.len()];
        self.versions = vec![u64::MAX; layout.slots.len()];
        self.free_of_model = vec![0; layout.models.len()];
        self.blocks_in_all = [0; TIERS];
        for at in 0..layout.slots.len() {
            self.count(layout, state, tiers, at, &mut levels);
        }
    }

    fn count(&mut self, layout: &Layout, state: &State, tiers: &Tiers, at: usize, levels: &mut Vec<u16>) {
        let slot: &Slot = &layout.slots[at];
        let (Some(model), version) = (slot.model, state.versions[slot.node]) else { return };
        if self.versions[at] == version {
            return;
        }
        self.versions[at] = version;
        state.levels(layout, slot, levels);
        let free = levels.iter().map(|&level| u32::from(level)).sum();
        let blocks = tiers.blocks(slot, levels, state.milli_cpus[slot.node], state.bytes[slot.node]);
        self.free_of_model[model] = self.free_of_model[model] + u64::from(free) - u64::from(self.free[at]);
        for (sum, (new, old)) in
            self.blocks_in_all.iter_mut().zip(blocks.iter().zip(self.blocks[at].iter()))
        {
            *sum = (*sum).wrapping_add_signed(i64::from(*new) - i64::from(*old));
        }
        self.free[at] = free;
        self.blocks[at] = blocks;
    }

    pub(crate) fn prices(&self, layout: &Layout, mix: &Mix, tiers: &Tiers) -> Prices {
        let models = layout.models.len();
        let mut prices = Prices { model: vec![0; models], block: [0; TIERS] };
        let asked: f64 = mix.arrivals.iter().map(|arrival| arrival.weight as f64 * arrival.milli() as f64).sum();
        if asked <= 0.0 {
            return prices;
        }
        let prior = tune("prior", 4.0) * 16.0;
        let known = mix.total() as f64 / (mix.total() as f64 + prior);
        let alone = (1.0 - known) / models as f64;
        let free: f64 = self.free_of_model.iter().map(|&free| free as f64).sum();
        let mut load = vec![0.0; models];
        let mut wanted = [0.0; TIERS];
        for arrival in mix.arrivals.iter().filter(|arrival| arrival.weight > 0 && arrival.need.devices > 0) {
            let share = known * arrival.weight as f64 * arrival.milli() as f64 / asked;
            let accepted: f64 =
                self.free_of_model.iter().zip(&arrival.models).filter(|(_, takes)| **takes).map(|(&free, _)| free as f64).sum();
            for (load, _) in load.iter_mut().zip(&arrival.models).filter(|(_, takes)| **takes) {
                *load += share * free / accepted.max(1.0);
            }
            for (wanted, tier) in wanted.iter_mut().zip(&tiers.0).filter(|(_, tier)| tier.covers(arrival)) {
                *wanted += share * free / (1000.0 * f64::from(tier.devices));
            }
        }
        for (load, &own) in load.iter_mut().zip(&self.free_of_model) {
            *load += alone * free / (own as f64).max(1.0);
        }
        let (kp, kb, pb) = (tune("kp", 1.0), tune("kb", 0.3), tune("pb", 3.0));
        let rounded = |price: f64| (price * tune("grain", 64.0)).round() / tune("grain", 64.0);
        for model in 0..models {
            prices.model[model] = (rounded(kp * load[model].min(tune("cap", 4.0))) * 1000.0 * LANES as f64) as i32;
        }
        for (at, tier) in tiers.0.iter().enumerate() {
            let there = self.blocks_in_all[at];
            let scarce = if there > 0 { (wanted[at] / there as f64).min(1.0) } else { 1.0 };
            let scarce = if wanted[at] > 0.0 { scarce.powf(pb) } else { 0.0 };
            prices.block[at] = (rounded(kb * scarce) * f64::from(tier.devices) * 1000.0 * LANES as f64) as i32;
        }
        prices
    }
}
