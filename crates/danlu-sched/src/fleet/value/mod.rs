//! What a slot is worth to those who may come: EFD, "expected fill difference", our own policy (ADR 5).
//!
//! A sample of sequences of workers is drawn from what arrived so far. The *left-over* of a slot is what would be left of
//! its devices, on average, after it alone was offered such a sequence. To put a worker on a slot *gains* the difference of
//! the left-over before and after: a good place is one where the worker takes what nobody else would have used. From the
//! gain the prices of scarce models and of broken blocks are taken off; the best score wins.
//!
//! Everything is whole numbers, so that scores are the same on every machine. Invariant: caches change nothing but the
//! time it takes ([`Value::forget_caches`] and the test that calls it).

mod brief;
mod gain;
mod mix;
mod moves;
mod price;
mod rollout;
mod sample;
mod tier;

use std::collections::{BTreeSet, HashMap};
use std::hash::{BuildHasherDefault, Hasher};

use self::brief::Briefs;
pub(crate) use self::gain::print_of;
use self::mix::Mix;
use self::moves::{Move, NO_WAY, Patterns};
pub(crate) use self::moves::{MoveBound, Moves};
use self::price::{Demand, ScarcityPrices, Sums};
pub(crate) use self::sample::mixed;
use self::sample::{ArrivalSample, LANES, SampleStep, Smallest};
use self::tier::Tiers;
use super::board::{Board, Need};
use super::layout::{Layout, Slot};
use super::state::FleetState;
use crate::shape::Shape;

/// Arrivals before the first sample; until then the tightest slot is taken.
const FIRST_SAMPLE: u64 = 8;
/// A new sample whenever this many times (in tenths) as many arrivals are known: what is learned last matters less and
/// less, and a new sample costs more the more nodes differ.
const EARLY_GROWTH: u64 = 20;
const LATE_GROWTH: u64 = 40;
/// The same for workers that take several devices and the kinds of blocks they need. They are few and each matters, so
/// that a shape that was never seen before counts at once.
const LARGE_GROWTH: u64 = 20;
const LATE: u64 = 500;
/// The same, in hundredths, for the shares from which prices are computed.
const DEMAND_GROWTH: u64 = 106;
/// Scores closer than this, in thousandths of a device, count as equal; then the first slot is taken, which keeps later
/// ones whole. Finer scores spread workers by noise.
const GRAIN: i32 = 20;
/// Amounts are rounded down so that contents repeat; on the openb traces this costs nothing against a quarter of it.
const CPU_GRAIN: u64 = 2000;
const MEMORY_GRAIN: u64 = 8 << 30;
/// Contents remembered at most, about 40 MB; then all are forgotten.
const MOST_REMEMBERED: usize = 1 << 20;
/// Any number; another one draws another sample.
const SEED: u64 = 2023;

#[derive(Debug, Clone)]
pub(crate) struct Value {
    mix: Mix,
    /// By model.
    samples: Vec<ArrivalSample>,
    /// Each as a node sees it.
    steps: Vec<Vec<SampleStep>>,
    smallest: Vec<Smallest>,
    next_sample: u64,
    /// Counts samples and choices of tiers: moves that were worked out with others are worth nothing.
    pub(crate) epoch: u64,
    /// By what is left of a slot.
    left_overs: ByPrint<i32>,
    /// By what a slot is and what a worker takes: many slots are alike, many become what others were, and many shapes
    /// differ only in what they accept.
    settled: ByPrint<Moves>,
    pub(crate) briefs: Briefs,
    tiers: Tiers,
    next_tiers: u64,
    large_shapes: u64,
    demand: Demand,
    next_demand: u64,
    /// How many arrivals there were when we last looked.
    learned: u64,
    sums: Sums,
    prices: ScarcityPrices,
    priced_at: Option<u64>,
    /// Nothing is expected and nothing has a price: the tightest slot is taken.
    expects_nothing: bool,
    /// Counts changes of prices.
    pub(crate) round: u64,
    patterns: Patterns,
    levels: Vec<u16>,
}

impl Value {
    pub(crate) fn new(layout: &Layout) -> Self {
        Value {
            mix: Mix::default(),
            samples: Vec::new(),
            steps: Vec::new(),
            smallest: Vec::new(),
            next_sample: FIRST_SAMPLE,
            epoch: 0,
            left_overs: ByPrint::default(),
            settled: ByPrint::default(),
            briefs: Briefs::new(layout),
            tiers: Tiers::default(),
            next_tiers: 1,
            large_shapes: 0,
            demand: Demand::default(),
            next_demand: 0,
            learned: 0,
            sums: Sums::default(),
            prices: ScarcityPrices::default(),
            priced_at: None,
            expects_nothing: false,
            round: 0,
            patterns: Patterns::default(),
            levels: Vec::new(),
        }
    }

    pub(crate) fn put_shape(&mut self, at: usize, layout: &Layout, shape: &Shape) {
        self.mix.put_shape(at, layout, shape);
    }

    pub(crate) fn forget_shape(&mut self, at: usize) {
        self.mix.forget_shape(at);
    }

    /// How much of a shape arrived, the past counting less.
    pub(crate) fn weight(&self, at: usize) -> u64 {
        self.mix.arrivals[at].weight
    }

    /// Shapes that are in a sample.
    pub(crate) fn drawn(&self) -> BTreeSet<usize> {
        self.samples.iter().flat_map(|sample| sample.steps.iter().flatten()).copied().collect()
    }

    pub(crate) fn expect_nothing(&mut self) {
        self.expects_nothing = true;
    }

    pub(crate) fn learn(&mut self, shape: usize, workers: u32) {
        if !self.expects_nothing {
            self.mix.learn(shape, workers);
        }
    }

    /// Takes over what was learned elsewhere; `shape` says what others' shapes are called here.
    pub(crate) fn learn_from(&mut self, other: &Value, shape: impl Fn(usize) -> usize) {
        self.mix.learn_from(&other.mix, shape);
        self.expects_nothing |= other.expects_nothing;
    }

    /// Follows what was learned and what changed. To be called before anything is asked. Nothing happens when somebody
    /// arrives, so that what is known depends on who arrived and not in which order, unless somebody was placed between.
    pub(crate) fn reprice(&mut self, layout: &Layout, state: &FleetState) {
        let is_known = self.learned == self.mix.seen;
        if self.expects_nothing || is_known && self.priced_at == Some(state.moment()) {
            return;
        }
        self.priced_at = Some(state.moment());
        if !is_known {
            self.learned = self.mix.seen;
            self.catch_up(layout, state);
        }
        self.sums.refresh(layout, state, &mut self.briefs, &self.tiers);
        let prices = self.sums.prices(&self.demand, &self.tiers);
        if prices != self.prices {
            self.prices = prices;
            self.round += 1;
            self.patterns.reprice(&self.tiers, &self.prices.block);
        }
    }

    fn catch_up(&mut self, layout: &Layout, state: &FleetState) {
        let Mix { seen, seen_large, large_shapes, .. } = self.mix;
        let is_large = seen_large >= self.next_tiers || large_shapes != self.large_shapes;
        if seen >= self.next_sample {
            let growth = if seen < LATE { EARLY_GROWTH } else { LATE_GROWTH };
            self.next_sample = (seen * growth).div_ceil(10);
            let devices = layout.devices_by_model();
            let models = 0..layout.models.len();
            self.samples =
                models.clone().map(|model| ArrivalSample::draw(&self.mix, model, &devices, SEED)).collect();
            let samples = || models.clone().zip(&self.samples);
            self.steps = samples().map(|(model, sample)| sample.seen_by(&self.mix, model)).collect();
            self.smallest = samples().map(|(model, sample)| Smallest::of(sample, &self.mix, model)).collect();
            self.left_overs.clear();
        } else if !is_large {
            if seen >= self.next_demand {
                self.next_demand = (seen * DEMAND_GROWTH).div_ceil(100);
                self.demand = Demand::of(&self.mix, &self.tiers);
            }
            return;
        }
        if is_large {
            self.next_tiers = (seen_large * LARGE_GROWTH).div_ceil(10);
            self.large_shapes = large_shapes;
        }
        self.epoch += 1;
        self.settled.clear();
        self.tiers = Tiers::choose(layout, state, &self.mix);
        self.demand = Demand::of(&self.mix, &self.tiers);
        self.briefs.forget();
        self.sums.forget();
        self.patterns = Patterns::default();
    }

    /// Whether enough is known to expect anything.
    fn has_sample(&self) -> bool {
        !self.steps.is_empty()
    }

    /// What a worker with this need pays for being on this model.
    pub(crate) fn model_price(&self, model: Option<usize>, need: Need) -> i32 {
        let Some(price) = model.and_then(|model| self.prices.model.get(model)) else { return 0 };
        let milli = i64::from(need.devices) * i64::from(need.share);
        i32::try_from(i64::from(*price) * milli / 1000).unwrap_or(i32::MAX / 4)
    }

    /// Larger is better; worse than every other where there is no way.
    pub(crate) fn score(&self, moves: &Moves, model_price: i32) -> i32 {
        self.score_of(moves.used(), model_price).max(self.score_of(moves.idle(), model_price))
    }

    /// The level of the device in use on which a share should go, if not on an idle one.
    pub(crate) fn used_level(&self, moves: &Moves) -> Option<u16> {
        // Both are on the same model, so that its price makes no difference.
        let (used, idle) = (self.score_of(moves.used(), 0), self.score_of(moves.idle(), 0));
        (moves.used() != NO_WAY && used >= idle).then_some(moves.level)
    }

    fn score_of(&self, step: Move, model_price: i32) -> i32 {
        if step.gain == NO_WAY.gain {
            return NO_WAY.gain;
        }
        let score = step.gain - model_price - self.patterns.cost(step.pattern);
        if self.has_sample() { score.div_euclid(GRAIN * LANES_I32) } else { score }
    }

    /// Brings what is known of a slot up to date.
    pub(crate) fn update(&mut self, layout: &Layout, state: &FleetState, at: usize) {
        self.briefs.of(layout, state, &self.tiers, at);
    }
}

const LANES_I32: i32 = 32;
const _: () = assert!(LANES_I32 as usize == LANES);

/// Maps whose keys are prints, which are spread over all bits already.
type ByPrint<T> = HashMap<u64, T, BuildHasherDefault<IdentityHasher>>;

/// Hashes a print to itself.
#[derive(Debug, Clone, Default)]
pub(crate) struct IdentityHasher(u64);

impl Hasher for IdentityHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {}

    fn write_u64(&mut self, number: u64) {
        self.0 = number;
    }
}
