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
mod mix;
mod moves;
mod price;
mod rollout;
mod sample;
mod tier;

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use self::brief::{Briefs, Content, fingerprint, level_print};
use self::mix::Mix;
pub(crate) use self::moves::{Known, Moves};
use self::moves::{Move, NO_WAY, NOTHING_BROKEN, Patterns};
use self::price::{Demand, Prices, Sums};
use self::sample::{CPU_UNIT, LANES, MEMORY_UNIT, Sample, Smallest, Step, mixed, units};
use self::tier::{TIERS, Tiers};
use super::board::{Board, Need};
use super::layout::{Layout, Slot};
use super::state::State;
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
/// Amounts are rounded down so that contents repeat: half a core, 2 GiB.
const CPU_GRAIN: u64 = 1000;
const MEMORY_GRAIN: u64 = 4 << 30;
/// Contents remembered at most, about 40 MB; then all are forgotten.
const MOST_REMEMBERED: usize = 1 << 20;
/// Any number; another one draws another sample.
const SEED: u64 = 2023;

#[derive(Debug, Clone)]
pub(crate) struct Value {
    mix: Mix,
    sample: Sample,
    /// The sample as each model sees it.
    steps: Vec<Vec<Step>>,
    smallest: Vec<Smallest>,
    next_sample: u64,
    /// Counts samples and choices of tiers: moves that were worked out with others are worth nothing.
    pub(crate) epoch: u64,
    left_overs: ByPrint<i32>,
    pub(crate) briefs: Briefs,
    tiers: Tiers,
    next_tiers: u64,
    large_shapes: u64,
    demand: Demand,
    next_demand: u64,
    /// How many arrivals there were when we last looked.
    learned: u64,
    sums: Sums,
    prices: Prices,
    priced_at: Option<u64>,
    /// Counts changes of prices.
    pub(crate) round: u64,
    patterns: Patterns,
    levels: Vec<u16>,
}

impl Value {
    pub(crate) fn new(layout: &Layout) -> Self {
        Value {
            mix: Mix::default(),
            sample: Sample::default(),
            steps: Vec::new(),
            smallest: Vec::new(),
            next_sample: FIRST_SAMPLE,
            epoch: 0,
            left_overs: ByPrint::default(),
            briefs: Briefs::new(layout),
            tiers: Tiers::default(),
            next_tiers: 1,
            large_shapes: 0,
            demand: Demand::default(),
            next_demand: 0,
            learned: 0,
            sums: Sums::default(),
            prices: Prices::default(),
            priced_at: None,
            round: 0,
            patterns: Patterns::default(),
            levels: Vec::new(),
        }
    }

    pub(crate) fn add_shape(&mut self, layout: &Layout, shape: &Shape) {
        self.mix.add_shape(layout, shape);
    }

    pub(crate) fn learn(&mut self, shape: usize, workers: u32) {
        self.mix.learn(shape, workers);
    }

    /// Takes over what was learned elsewhere; `shape` says what others' shapes are called here.
    pub(crate) fn learn_from(&mut self, other: &Value, shape: impl Fn(usize) -> usize) {
        self.mix.learn_from(&other.mix, shape);
    }

    /// Follows what was learned and what changed. To be called before anything is asked. Nothing happens when somebody
    /// arrives, so that what is known depends on who arrived and not in which order, unless somebody was placed between.
    pub(crate) fn reprice(&mut self, layout: &Layout, state: &State) {
        let is_known = self.learned == self.mix.seen;
        if is_known && self.priced_at == Some(state.moment()) {
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

    fn catch_up(&mut self, layout: &Layout, state: &State) {
        let Mix { seen, seen_large, large_shapes, .. } = self.mix;
        let is_large = seen_large >= self.next_tiers || large_shapes != self.large_shapes;
        if seen >= self.next_sample {
            let growth = if seen < LATE { EARLY_GROWTH } else { LATE_GROWTH };
            self.next_sample = (seen * growth).div_ceil(10);
            self.sample = Sample::draw(&self.mix, SEED);
            let models = 0..layout.models.len();
            self.steps = models.clone().map(|model| self.sample.seen_by(&self.mix, model)).collect();
            self.smallest = models.map(|model| Smallest::of(&self.sample, &self.mix, model)).collect();
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
        if !self.has_sample() { score } else { score.div_euclid(GRAIN * LANES_I32) }
    }

    /// Brings what is known of a slot up to date.
    pub(crate) fn update(&mut self, layout: &Layout, state: &State, at: usize) {
        self.briefs.of(layout, state, &self.tiers, at);
    }

    /// The ways to put one worker on a slot that has room for it; its brief is up to date.
    pub(crate) fn moves(
        &mut self,
        slot: (&Slot, usize),
        state: &State,
        need: Need,
        each: (i64, i64),
    ) -> Moves {
        let (slot, at) = slot;
        let Some(model) = slot.model else {
            return Moves::exactly(None, Some(Move { gain: 0, pattern: NOTHING_BROKEN }));
        };
        if !self.has_sample() {
            return self.tightest(at, need);
        }
        let now = Content {
            slot,
            print: self.briefs.known(at).print,
            milli_cpus: state.milli_cpus[slot.node],
            bytes: state.bytes[slot.node],
        };
        let rest = Content { milli_cpus: now.milli_cpus - each.0, bytes: now.bytes - each.1, ..now };
        let before = self.left_over_now(model, at, now);
        let used = self.on_used_device(model, at, rest, before, need);
        let idle = self.on_idle_devices(model, at, rest, before, need);
        Moves::exactly(used, idle)
    }

    /// A way at least as good as all of [`Value::moves`], at a fraction of the work: nothing can gain more than there is
    /// left over, and breaking up no block costs nothing.
    pub(crate) fn most_gain(&mut self, (slot, at): (&Slot, usize), state: &State) -> Moves {
        let gain = match slot.model {
            Some(model) if self.has_sample() => {
                let print = self.briefs.known(at).print;
                let (milli_cpus, bytes) = (state.milli_cpus[slot.node], state.bytes[slot.node]);
                self.left_over_now(model, at, Content { slot, print, milli_cpus, bytes })
            }
            _ => 1,
        };
        Moves::at_most(gain)
    }

    /// What is expected to be left over of a slot as it is.
    fn left_over_now(&mut self, model: usize, at: usize, now: Content<'_>) -> i32 {
        if let Some(known) = self.briefs.known(at).left_over {
            return known;
        }
        let left_over = self.left_over(model, at, now, &[]);
        self.briefs.known_mut(at).left_over = Some(left_over);
        left_over
    }

    fn on_used_device(
        &mut self,
        model: usize,
        at: usize,
        rest: Content<'_>,
        before: i32,
        need: Need,
    ) -> Option<(Move, u16)> {
        if !need.is_share() || !rest.slot.board.accepts(need) {
            return None;
        }
        let mut best: Option<(i32, u16)> = None;
        for device in 0..rest.slot.positions.len() {
            let levels = self.briefs.levels(at);
            let level = levels[device];
            if level < need.share || level == 1000 || levels[..device].contains(&level) {
                continue;
            }
            let device = u8::try_from(device).unwrap_or(u8::MAX);
            let after = self.without(at, rest, &[device], need.share);
            let gain = before - self.left_over(model, at, after, &[(device, need.share)]);
            if best.is_none_or(|(other, _)| gain > other) {
                best = Some((gain, level));
            }
        }
        let (gain, level) = best?;
        let pattern = self.broken(at, rest, &[]);
        Some((Move { gain, pattern }, level))
    }

    fn on_idle_devices(
        &mut self,
        model: usize,
        at: usize,
        rest: Content<'_>,
        before: i32,
        need: Need,
    ) -> Option<Move> {
        let idle = self.briefs.known(at).idle;
        if need.devices > idle {
            return None;
        }
        let mut few = [0; rollout::MOST_DEVICES];
        let picked: &[u8] = if rest.slot.board == Board::Any && need.devices as usize <= few.len() {
            // Which ones makes no difference to what is left.
            let devices = (0..=u8::MAX).zip(self.briefs.levels(at)).filter(|(_, level)| **level == 1000);
            let mut count = 0;
            for ((device, _), place) in devices.zip(&mut few).take(need.devices as usize) {
                *place = device;
                count += 1;
            }
            &few[..count]
        } else {
            &rest.slot.board.pick(self.briefs.levels(at), &rest.slot.islands, need)?
        };
        let after = self.without(at, rest, picked, need.share);
        let mut taken = [(0, 0); rollout::MOST_DEVICES];
        let gain = if picked.len() <= taken.len() {
            for (taken, device) in taken.iter_mut().zip(picked) {
                *taken = (*device, need.share);
            }
            before - self.left_over(model, at, after, &taken[..picked.len()])
        } else {
            0
        };
        let pattern = self.broken(at, rest, picked);
        Some(Move { gain, pattern })
    }

    /// The content with this much taken of these devices.
    fn without<'a>(&self, at: usize, content: Content<'a>, devices: &[u8], share: u16) -> Content<'a> {
        let levels = self.briefs.levels(at);
        let print = if content.slot.board == Board::Any {
            devices.iter().fold(content.print, |print, &device| {
                let level = levels[usize::from(device)];
                print.wrapping_sub(level_print(level)).wrapping_add(level_print(level - share))
            })
        } else {
            let mut after = levels.to_vec();
            devices.iter().for_each(|&device| after[usize::from(device)] -= share);
            fingerprint(content.slot.board, &after)
        };
        Content { print, ..content }
    }

    /// The pattern of blocks that are gone when these devices are not idle any more and only this much is left besides.
    fn broken(&mut self, at: usize, rest: Content<'_>, devices: &[u8]) -> u16 {
        let brief = self.briefs.known(at);
        let mut broken = brief.blocks;
        if broken != [0; TIERS] {
            let idle = brief.idle - u32::try_from(devices.len()).unwrap_or(0);
            let mut levels = self.briefs.levels(at);
            let mut after;
            if rest.slot.board != Board::Any {
                after = levels.to_vec();
                devices.iter().for_each(|&device| after[usize::from(device)] = 0);
                levels = &after;
            }
            for (broken, tier) in broken.iter_mut().zip(&self.tiers.0).filter(|(before, _)| **before > 0) {
                *broken -= tier.room(rest.slot, levels, idle, rest.milli_cpus, rest.bytes);
            }
        }
        self.patterns.number(broken, &self.tiers, &self.prices.block)
    }

    /// Thousandths of devices left, expected, summed over the lanes, once these shares of devices were taken.
    fn left_over(&mut self, model: usize, at: usize, content: Content<'_>, taken: &[(u8, u16)]) -> i32 {
        let cpus = u64::try_from(content.milli_cpus).unwrap_or(0) / CPU_GRAIN;
        let memory = u64::try_from(content.bytes).unwrap_or(0) / MEMORY_GRAIN;
        let key = content.print.wrapping_add(mixed((cpus << 40) ^ (memory << 16) ^ model as u64));
        if let Some(&known) = self.left_overs.get(&key) {
            return known;
        }
        let (cpus, memory) = (cpus * CPU_GRAIN, memory * MEMORY_GRAIN);
        let mut levels = std::mem::take(&mut self.levels);
        levels.clear();
        levels.extend_from_slice(self.briefs.levels(at));
        for &(device, share) in taken {
            levels[usize::from(device)] -= share;
        }
        let largest = levels.iter().copied().max().unwrap_or(0);
        let left_over = if !self.smallest[model].any_fits(largest, cpus, memory) {
            LANES_I32 * levels.iter().map(|&level| i32::from(level)).sum::<i32>()
        } else if content.slot.board == Board::Any {
            levels.retain(|&level| level > 0);
            let (cpus, memory) = (units(cpus, CPU_UNIT), units(memory, MEMORY_UNIT));
            let few = levels.len().min(rollout::MOST_DEVICES);
            rollout::left_over(&self.steps[model], &levels[..few], cpus, memory)
        } else {
            let on = (content.slot.board, model);
            rollout::left_over_by_rules(on, (&self.sample, &self.mix), &levels, (cpus, memory))
        };
        self.levels = levels;
        if self.left_overs.len() >= MOST_REMEMBERED {
            self.left_overs.clear();
        }
        self.left_overs.insert(key, left_over);
        left_over
    }

    /// Before anything is known: where the least is left, and on the device with the least.
    fn tightest(&self, at: usize, need: Need) -> Moves {
        let levels = self.briefs.levels(at);
        let free = i32::try_from(self.briefs.known(at).free).unwrap_or(i32::MAX / 4);
        let fitting = levels.iter().filter(|level| **level >= need.share && **level < 1000);
        let level = fitting.min().copied().filter(|_| need.is_share());
        let idle = self.briefs.known(at).idle >= need.devices;
        let on = |gain: i32| Move { gain, pattern: NOTHING_BROKEN };
        Moves::exactly(level.map(|level| (on(1 - free), level)), idle.then(|| on(-free)))
    }

    /// Everything that is only kept to save time.
    #[cfg(test)]
    pub(crate) fn forget_caches(&mut self) {
        self.left_overs.clear();
        self.briefs.forget();
    }
}

const LANES_I32: i32 = 32;
const _: () = assert!(LANES_I32 as usize == LANES);

/// Maps whose keys are prints, which are spread over all bits already.
pub(crate) type ByPrint<T> = HashMap<u64, T, BuildHasherDefault<Identity>>;

/// Hashes a print to itself.
#[derive(Debug, Clone, Default)]
pub(crate) struct Identity(u64);

impl Hasher for Identity {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {}

    fn write_u64(&mut self, number: u64) {
        self.0 = number;
    }
}
