//! Prices of what is scarce: models that many insist on, and blocks of devices that somebody will want together.
//!
//! Both are ratios of what is expected to be asked for to what there is: functions of running sums, and outside of
//! whatever is kept per shape and slot. They are rounded, so that most of the time nothing that was computed with them
//! changes.

use std::collections::BTreeMap;

use super::super::layout::Layout;
use super::super::state::{ChangeCursor, FleetState};
use super::brief::Briefs;
use super::mix::{Mix, ONE_ARRIVAL};
use super::sample::LANES;
use super::tier::{Blocks, TIERS, Tiers};

/// How much a block weighs against expected fill, and how sharply its price rises as blocks become scarce. Both from
/// trials on the openb traces: without the block price multi-device jobs lose up to 18 points, see ADR 5.
const BLOCK_WEIGHT: f64 = 0.45;
const BLOCK_SHARPNESS: i32 = 3;
/// No model is dearer than this many times the average: beyond, everything is better placed elsewhere anyway.
const HIGHEST_LOAD: f64 = 4.0;
/// Prices are rounded to parts of a device as small as this.
const GRAIN: f64 = 64.0;
/// Before much is known, every model is taken to have somebody who insists on it: as if that had been so many of the
/// arrivals, evenly over the models. What is broken up early cannot be mended later, and this costs nothing once known.
const PRIOR_ARRIVALS: f64 = 32.0;

/// In the unit of gains: thousandths of a device, summed over the lanes of the sample.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ScarcityPrices {
    /// By model, for a whole device.
    pub(crate) model: Vec<i32>,
    /// By tier, for each block that is broken up.
    pub(crate) block: [i32; TIERS],
}

/// Running sums over the slots.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sums {
    /// By slot: what it was counted with.
    counted: Vec<(u32, Blocks)>,
    /// By model.
    free: Vec<u64>,
    /// By tier.
    blocks: [i64; TIERS],
    follower: ChangeCursor,
}

impl Sums {
    pub(crate) fn forget(&mut self) {
        self.follower.forget();
    }

    /// Counts anew what changed.
    pub(crate) fn refresh(
        &mut self,
        layout: &Layout,
        state: &FleetState,
        briefs: &mut Briefs,
        tiers: &Tiers,
    ) {
        let mut follower = std::mem::take(&mut self.follower);
        let changed = follower.catch_up(state);
        if let Some(nodes) = changed {
            for &node in nodes {
                for at in layout.of_node[node as usize].clone() {
                    self.count(layout, state, briefs, tiers, at);
                }
            }
            self.follower = follower;
            return;
        }
        self.follower = follower;
        self.counted = vec![(0, [0; TIERS]); layout.slots.len()];
        self.free = vec![0; layout.models.len()];
        self.blocks = [0; TIERS];
        for at in 0..layout.slots.len() {
            self.count(layout, state, briefs, tiers, at);
        }
    }

    fn count(&mut self, layout: &Layout, state: &FleetState, briefs: &mut Briefs, tiers: &Tiers, at: usize) {
        let Some(model) = layout.slots[at].model else { return };
        let brief = briefs.of(layout, state, tiers, at);
        let (free, blocks) = &mut self.counted[at];
        self.free[model] = self.free[model] - u64::from(*free) + u64::from(brief.free);
        for ((sum, new), old) in self.blocks.iter_mut().zip(&brief.blocks).zip(blocks.iter()) {
            *sum += i64::from(*new) - i64::from(*old);
        }
        (*free, *blocks) = (brief.free, brief.blocks);
    }

    pub(crate) fn prices(&self, demand: &Demand, tiers: &Tiers) -> ScarcityPrices {
        let free: f64 = self.free.iter().map(|&free| free as f64).sum();
        // What will be asked of each model, against what there is of it: 1 where nobody is choosy.
        let insisting = (1.0 - demand.known) / self.free.len().max(1) as f64;
        let mut loads: Vec<f64> =
            self.free.iter().map(|&own| insisting * free / (own as f64).max(1.0)).collect();
        for (models, share) in &demand.by_models {
            let suits: f64 =
                self.free.iter().zip(models).filter(|(_, takes)| **takes).map(|(&free, _)| free as f64).sum();
            for (load, _) in loads.iter_mut().zip(models).filter(|(_, takes)| **takes) {
                *load += demand.known * share * free / suits.max(1.0);
            }
        }
        let mut block = [0; TIERS];
        for (at, tier) in tiers.0.iter().enumerate() {
            let wanted = demand.by_tier[at] * free / (1000.0 * f64::from(tier.devices));
            let scarcity = (wanted / (self.blocks[at] as f64).max(f64::MIN_POSITIVE)).min(1.0);
            block[at] = price(BLOCK_WEIGHT * scarcity.powi(BLOCK_SHARPNESS))
                * i32::try_from(tier.devices).unwrap_or(0);
        }
        ScarcityPrices { model: loads.iter().map(|load| price(load.min(HIGHEST_LOAD))).collect(), block }
    }
}

/// What will be asked for, as shares of all that is asked for in devices.
#[derive(Debug, Clone, Default)]
pub(crate) struct Demand {
    /// How much of it is known rather than assumed.
    known: f64,
    by_models: Vec<(Vec<bool>, f64)>,
    by_tier: [f64; TIERS],
}

impl Demand {
    /// Sums are whole numbers, so that the order in which shapes became known makes no difference.
    pub(crate) fn of(mix: &Mix, tiers: &Tiers) -> Self {
        let (mut asked, mut by_tier) = (0, [0; TIERS]);
        let mut by_models: BTreeMap<&Vec<bool>, u128> = BTreeMap::new();
        for arrival in mix.known().filter(|arrival| arrival.need.devices > 0) {
            let volume = u128::from(arrival.weight) * u128::from(arrival.milli());
            asked += volume;
            *by_models.entry(&arrival.models).or_default() += volume;
            for (wanted, _) in by_tier.iter_mut().zip(&tiers.0).filter(|(_, tier)| tier.serves(arrival)) {
                *wanted += volume;
            }
        }
        let share = |volume: u128| volume as f64 / asked.max(1) as f64;
        let arrivals = mix.total as f64 / ONE_ARRIVAL as f64;
        Demand {
            known: arrivals / (arrivals + PRIOR_ARRIVALS),
            by_models: by_models
                .into_iter()
                .map(|(models, volume)| (models.clone(), share(volume)))
                .collect(),
            by_tier: by_tier.map(share),
        }
    }
}

/// Of a whole device.
#[expect(clippy::cast_possible_truncation, reason = "at most four devices")]
fn price(devices: f64) -> i32 {
    ((devices * GRAIN).round() / GRAIN * 1000.0 * LANES as f64) as i32
}
