//! Blocks: devices on one slot that somebody will want together, with the processors and memory to use them.
//!
//! Small jobs on many nodes leave no room for large ones. So whoever breaks up the last blocks of a kind pays for it. Kinds
//! of blocks (*tiers*) are chosen from what arrived: for each size the least that such workers need besides, the 75th
//! percentile of it, and those that are scarcest, which may be few workers that only few nodes can hold at all. One tier
//! alone is not enough: blocks that most need are not protected by what the most demanding few of them need.

use super::super::board::{Board, Need};
use super::super::layout::{Layout, Slot};
use super::super::state::FleetState;
use super::mix::{Arrival, BLOCK_SIZES, Mix};

/// Kinds of each size: one for the least demanding, one for most, and the two scarcest.
const TIERS_PER_SIZE: usize = 4;
pub(crate) const TIERS: usize = TIERS_PER_SIZE * BLOCK_SIZES.len();

/// How many blocks of each kind.
pub(crate) type Blocks = [i8; TIERS];

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Tier {
    /// In `BLOCK_SIZES`.
    size: usize,
    pub(crate) devices: u32,
    milli_cpus: i64,
    bytes: i64,
    /// Whether those who take it take each model; any when absent.
    models: Option<Vec<bool>>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Tiers(pub(crate) Vec<Tier>);

impl Tiers {
    pub(crate) fn choose(layout: &Layout, state: &FleetState, mix: &Mix) -> Self {
        let mut tiers = Vec::new();
        for (size, &devices) in BLOCK_SIZES.iter().enumerate() {
            let arrivals: Vec<&Arrival> =
                mix.known().filter(|arrival| arrival.block() == Some(size)).collect();
            if arrivals.is_empty() {
                continue;
            }
            for percent in [0, 75] {
                tiers.push(Tier {
                    size,
                    devices,
                    milli_cpus: percentile(percent, &arrivals, |arrival| arrival.milli_cpus),
                    bytes: percentile(percent, &arrivals, |arrival| arrival.bytes),
                    models: None,
                });
            }
            let mut scarce: Vec<(f64, Tier)> = arrivals
                .iter()
                .map(|arrival| {
                    let tier = Tier::of(arrival, size);
                    let wanted: u64 =
                        arrivals.iter().filter(|other| tier.serves(other)).map(|other| other.weight).sum();
                    // A kind of which there is none at all ranks first, and among those what is wanted most.
                    (wanted as f64 / tier.count_all(layout, state).max(0.5), tier)
                })
                .collect();
            // Ties by what they are, not by who came first.
            scarce.sort_by(|(one, tier), (other, against)| {
                other.total_cmp(one).then_with(|| tier.cmp(against))
            });
            scarce.dedup_by(|(_, one), (_, other)| one == other);
            tiers.extend(scarce.into_iter().map(|(_, tier)| tier).take(TIERS_PER_SIZE - 2));
        }
        Tiers(tiers)
    }

    /// How many blocks of each kind a slot could give.
    pub(crate) fn blocks(
        &self,
        slot: &Slot,
        levels: &[u16],
        idle: u32,
        milli_cpus: i64,
        bytes: i64,
    ) -> Blocks {
        let mut blocks = [0; TIERS];
        for (count, tier) in blocks.iter_mut().zip(&self.0) {
            *count = tier.room(slot, levels, idle, milli_cpus, bytes);
        }
        blocks
    }

    /// What it costs to break up these blocks: of each size the dearest kind.
    pub(crate) fn cost(&self, broken: &Blocks, prices: &[i32; TIERS]) -> i32 {
        let mut costs = [0; BLOCK_SIZES.len()];
        for ((tier, &count), price) in self.0.iter().zip(broken).zip(prices) {
            costs[tier.size] = costs[tier.size].max(i32::from(count) * price);
        }
        costs.iter().sum()
    }
}

impl Tier {
    fn of(arrival: &Arrival, size: usize) -> Self {
        Tier {
            size,
            devices: arrival.need.devices,
            milli_cpus: i64::try_from(arrival.milli_cpus).unwrap_or(i64::MAX),
            bytes: i64::try_from(arrival.bytes).unwrap_or(i64::MAX),
            models: Some(arrival.models.clone()),
        }
    }

    pub(crate) fn room(&self, slot: &Slot, levels: &[u16], idle: u32, milli_cpus: i64, bytes: i64) -> i8 {
        let takes = |model: usize| self.models.as_ref().is_none_or(|models| models[model]);
        if idle < self.devices || !slot.model.is_some_and(takes) {
            return 0;
        }
        let room = match slot.board {
            Board::Any => idle / self.devices,
            board => board.room(levels, Need { devices: self.devices, share: 1000, alone: false }),
        };
        let by = |free: i64, each: i64| if each > 0 { (free / each).max(0) } else { i64::MAX };
        let room = i64::from(room).min(by(milli_cpus, self.milli_cpus)).min(by(bytes, self.bytes));
        i8::try_from(room).unwrap_or(i8::MAX)
    }

    /// Whether a worker needs such blocks: at least as large, and nothing that is not one.
    pub(crate) fn serves(&self, arrival: &Arrival) -> bool {
        let at_least = |amount: u64, least: i64| i64::try_from(amount).unwrap_or(i64::MAX) >= least;
        let Some(models) = &self.models else { return arrival.block() == Some(self.size) };
        arrival.block() == Some(self.size)
            && arrival.need.devices >= self.devices
            && at_least(arrival.milli_cpus, self.milli_cpus)
            && at_least(arrival.bytes, self.bytes)
            && arrival.models.iter().zip(models).all(|(theirs, ours)| !theirs || *ours)
    }

    fn count_all(&self, layout: &Layout, state: &FleetState) -> f64 {
        let mut levels = Vec::new();
        let count = |slot: &Slot| {
            state.levels(layout, slot, &mut levels);
            let idle = idle(&levels);
            f64::from(self.room(slot, &levels, idle, state.milli_cpus[slot.node], state.bytes[slot.node]))
        };
        layout.slots.iter().map(count).sum()
    }
}

pub(crate) fn idle(levels: &[u16]) -> u32 {
    levels.iter().map(|&level| u32::from(level == 1000)).sum()
}

fn percentile(percent: u64, arrivals: &[&Arrival], amount: impl Fn(&Arrival) -> u64) -> i64 {
    let mut amounts: Vec<(u64, u64)> =
        arrivals.iter().map(|arrival| (amount(arrival), arrival.weight)).collect();
    amounts.sort_unstable();
    let total: u64 = amounts.iter().map(|(_, weight)| weight).sum();
    let mut below = 0;
    let reaches = amounts.iter().find(|(_, weight)| {
        below += weight;
        100 * below >= percent * total
    });
    reaches.map_or(0, |(amount, _)| i64::try_from(*amount).unwrap_or(i64::MAX))
}
