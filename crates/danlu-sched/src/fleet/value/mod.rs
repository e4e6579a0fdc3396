//! What a slot is worth to those who may come: EFD, "expected fill difference".

mod mix;
mod price;
mod rollout;
mod sample;
mod tune;

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use self::mix::Mix;
use self::price::{Blocks, Prices, Sums, TIERS, Tiers};
use self::sample::{CPU_UNIT, LANES, MEMORY_UNIT, Sample, Step, mixed};
use self::tune::tune;
use super::board::Need;
use super::layout::{Layout, Slot};
use super::state::State;
use crate::shape::Shape;

#[derive(Debug, Clone, Default)]
pub(crate) struct Value {
    mix: Mix,
    full: Option<Mix>,
    sample: Sample,
    /// By model.
    steps: Vec<Vec<Step>>,
    tiers: Tiers,
    tiers_of: u64,
    memo: HashMap<u64, i32, BuildHasherDefault<Identity>>,
    /// Counts samples: what was computed with another one is worth nothing.
    pub(crate) epoch: u64,
    next_sample: u64,
    sums: Sums,
    prices: Prices,
    /// Counts prices.
    pub(crate) round: u64,
    priced_at: u64,
    prints: Vec<u64>,
    cq: u64,
    mq: u64,
    q: i32,
    pub(crate) rollouts: u64,
    pub(crate) lookups: u64,
}

/// What a slot is before something is put on it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Content<'a> {
    pub(crate) slot: &'a Slot,
    pub(crate) levels: &'a [u16],
    pub(crate) milli_cpus: i64,
    pub(crate) bytes: i64,
}

/// One way to put a worker on a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Move {
    /// By how much less is expected to be left over in the end, in thousandths summed over the lanes.
    pub(crate) gain: i32,
    /// Blocks that it breaks up.
    pub(crate) blocks: Blocks,
}

/// The ways worth considering: the best on a device in use, and one on idle devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Moves {
    pub(crate) used: Option<(Move, u8)>,
    pub(crate) idle: Option<Move>,
}

const FIRST_SAMPLE: u64 = 32;
const REPRICE: u64 = 64;

impl Value {
    pub(crate) fn add_shape(&mut self, layout: &Layout, shape: &Shape) {
        self.mix.add_shape(layout, shape);
    }

    pub(crate) fn learn(&mut self, layout: &Layout, shape: usize, workers: u32) {
        self.mix.learn(shape, workers);
        if self.next_sample == 0 {
            self.next_sample = tune("first", FIRST_SAMPLE as f64) as u64;
            self.q = (tune("q", 20.0) * LANES as f64) as i32;
            self.cq = tune("cq", 500.0) as u64;
            self.mq = (tune("mq", 2.0) * 1024.0) as u64 * (1 << 20);
            self.prints = (0..=1000).map(|level| if level == 0 { 0 } else { mixed(level << 17) }).collect();
        }
        if self.mix.seen < self.next_sample {
            return;
        }
        self.next_sample = (self.mix.seen as f64 * tune("grow", 2.0)) as u64;
        self.sample = Sample::draw(&self.mix, tune("seed", 20231113.0) as u64);
        self.steps = (0..layout.models.len()).map(|model| self.sample.steps(&self.mix, model)).collect();
        self.memo.clear();
        self.epoch += 1;
        self.priced_at = 0;
    }

    pub(crate) fn forget(&mut self, keep_price: bool, keep_v: bool) {
        if keep_price { self.full = Some(self.mix.clone()); }
        self.mix.forget();
        self.next_sample = if keep_v { u64::MAX } else { 32 };
    }

    /// Looks at prices again if it is time to.
    pub(crate) fn reprice(&mut self, layout: &Layout, state: &State) {
        let due = state.moment() / (if self.mix.seen < 512 { tune("rp", 8.0) as u64 } else { REPRICE }) + 1;
        if self.priced_at != due {
            self.priced_at = due;
            if self.tiers_of != self.epoch {
                self.tiers_of = self.epoch;
                self.tiers = Tiers::choose(layout, state, &self.mix);
                self.sums.invalidate();
            }
            self.sums.refresh(layout, state, &self.tiers);
            let prices = self.sums.prices(layout, self.full.as_ref().unwrap_or(&self.mix), &self.tiers);
            if prices != self.prices {
                self.prices = prices;
                self.round += 1;
            }
        }
    }

    /// Larger is better.
    pub(crate) fn score(&self, slot: &Slot, need: Need, step: &Move) -> i32 {
        let Some(model) = slot.model else { return step.gain };
        let milli = (need.devices * u32::from(need.share)) as i64;
        let model_price = (i64::from(self.prices.model[model]) * milli / 1000) as i32;
        let broken = self.tiers.cost(&step.blocks, &self.prices);
        if self.epoch == 0 { return step.gain - model_price; }
        (step.gain - model_price - broken).div_euclid(self.q)
    }

    /// The ways to put one worker here, for whom there is room.
    pub(crate) fn moves(&mut self, content: Content<'_>, need: Need, milli_cpus: i64, bytes: i64) -> Moves {
        if self.epoch == 0 {
            return first_fit(content, need);
        }
        let Content { slot, levels, .. } = content;
        if slot.model.is_none() {
            return Moves { used: None, idle: Some(Move::default()) };
        }
        let rest = Content { milli_cpus: content.milli_cpus - milli_cpus, bytes: content.bytes - bytes, ..content };
        let print = self.fingerprint(levels);
        let before = self.left_over(content, print, Taken::NOTHING);
        let idle = levels.iter().filter(|&&level| level == 1000).count() as u32;
        let blocks = self.tiers.limited(slot.model.unwrap_or(0), idle, content.milli_cpus, content.bytes);
        let lost = |value: &Self, idle: u32| {
            let mut left = value.tiers.limited(slot.model.unwrap_or(0), idle, rest.milli_cpus, rest.bytes);
            for (left, before) in left.iter_mut().zip(blocks) {
                *left = before - *left;
            }
            left
        };
        let mut moves = Moves::default();
        if need.is_share() {
            let mut best = i32::MIN;
            let mut chosen = None;
            for (at, &level) in levels.iter().enumerate() {
                if level < need.share || level == 1000 || levels[..at].contains(&level) {
                    continue;
                }
                let after = print.wrapping_sub(self.prints[usize::from(level)]).wrapping_add(self.prints[usize::from(level - need.share)]);
                let gain = before - self.left_over(rest, after, Taken { level, share: need.share, devices: 1 });
                if gain > best {
                    best = gain;
                    chosen = Some(at);
                }
            }
            if let Some(at) = chosen {
                moves.used = Some((Move { gain: best, blocks: lost(self, idle) }, u8::try_from(at).unwrap_or(0)));
            }
        }
        if need.devices <= idle {
            let taken = Taken { level: 1000, share: need.share, devices: need.devices };
            let change = self.prints[usize::from(1000 - need.share)].wrapping_sub(self.prints[1000]);
            let after = print.wrapping_add(change.wrapping_mul(u64::from(need.devices)));
            let gain = before - self.left_over(rest, after, taken);
            moves.idle = Some(Move { gain, blocks: lost(self, idle - need.devices) });
        }
        moves
    }

    /// Thousandths of devices left, expected, summed over the lanes.
    fn left_over(&mut self, content: Content<'_>, print: u64, mut taken: Taken) -> i32 {
        let Content { slot, levels, milli_cpus, bytes } = content;
        let Some(model) = slot.model else { return 0 };
        self.lookups += 1;
        let cpus = milli_cpus.max(0) as u64 / self.cq;
        let memory = bytes.max(0) as u64 / self.mq;
        let key = print.wrapping_add(mixed((cpus << 40) ^ (memory << 20) ^ (model as u64)));
        if let Some(&known) = self.memo.get(&key) {
            return known;
        }
        self.rollouts += 1;
        let units = |amount: u64, unit: u64| {
            i16::try_from(amount / unit).unwrap_or(i16::MAX).min(i16::MAX - 1)
        };
        let mut open = [0_u16; rollout::MOST_DEVICES];
        let mut count = 0;
        for &level in levels {
            let mut level = level;
            if level == taken.level && taken.devices > 0 {
                taken.devices -= 1;
                level -= taken.share;
            }
            if level > 0 && count < open.len() {
                open[count] = level;
                count += 1;
            }
        }
        let left = rollout::left_over(&self.steps[model], &open[..count], units(cpus * self.cq, CPU_UNIT), units(memory * self.mq, MEMORY_UNIT));
        self.memo.insert(key, left);
        left
    }

    /// A number for what devices hold; they may be swapped.
    fn fingerprint(&self, levels: &[u16]) -> u64 {
        levels.iter().fold(0, |sum: u64, &level| sum.wrapping_add(self.prints[usize::from(level)]))
    }
}

#[derive(Debug, Clone, Copy)]
struct Taken {
    level: u16,
    share: u16,
    devices: u32,
}

impl Taken {
    const NOTHING: Taken = Taken { level: 0, share: 0, devices: 0 };
}

fn first_fit(content: Content<'_>, need: Need) -> Moves {
    let left: i32 = content.levels.iter().map(|&level| i32::from(level)).sum();
    let tightest = content.levels.iter().zip(0..=u8::MAX).filter(|(level, _)| **level >= need.share && **level < 1000).min();
    let used = match tightest {
        Some((_, at)) if need.is_share() => Some((Move { gain: 1 - left, blocks: [0; TIERS] }, at)),
        _ => None,
    };
    let idle = need.devices == 0 || content.levels.contains(&1000);
    Moves { used, idle: idle.then_some(Move { gain: -left, blocks: [0; TIERS] }) }
}

/// Keys are spread over all bits already.
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
