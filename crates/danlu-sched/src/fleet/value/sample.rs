//! A fixed sample of what may arrive next: sequences of workers drawn from the mix.

use super::super::board::Need;
use super::mix::{Arrival, Mix};

/// Sequences, one per lane.
pub(crate) const LANES: usize = 32;
/// Workers in each. Shorter ones do not fill a node of eight devices with shares, longer ones cost more than they tell.
pub(crate) const STEPS: usize = 24;

/// Devices are told apart by the low bits of their level, so that the smallest fitting one is found by one minimum.
pub(crate) const LEVEL_SHIFT: u32 = 5;
/// Quantities are rounded so that all fit 16 bits: tenths of a core, and 256 MiB.
pub(crate) const CPU_UNIT: u64 = 100;
pub(crate) const MEMORY_UNIT: u64 = 256 << 20;

pub(crate) type Lanes = [i16; LANES];

/// One worker of each sequence, as a node with one model sees them.
#[derive(Debug, Clone)]
pub(crate) struct Step {
    pub(crate) cpus: Lanes,
    pub(crate) memory: Lanes,
    /// What it takes of one device, shifted; 0 where it takes none, and where it takes several.
    pub(crate) level: Lanes,
    /// How many whole devices it takes, where it is more than one.
    pub(crate) several: Lanes,
    pub(crate) any_several: bool,
}

/// The sequences as ordinals of arrivals.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sample {
    pub(crate) drawn: Vec<[u32; LANES]>,
}

impl Sample {
    pub(crate) fn draw(mix: &Mix, seed: u64) -> Self {
        let mut order: Vec<usize> = (0..mix.arrivals.len()).filter(|&at| mix.arrivals[at].weight > 0).collect();
        // Neighbours are alike, so that even steps through the order miss no kind of worker.
        order.sort_by_key(|&at| {
            let arrival = &mix.arrivals[at];
            (arrival.need.devices, arrival.need.share, arrival.milli_cpus, arrival.bytes, arrival.models.clone(), at)
        });
        let draws = STEPS * LANES;
        let mut random = Random(seed);
        let offset = 0.5;
        let mut drawn: Vec<u32> = Vec::with_capacity(draws);
        let (mut at, mut before) = (0, 0.0);
        for draw in 0..draws {
            let quantile = (draw as f64 + offset) / draws as f64 * mix.total() as f64;
            while at + 1 < order.len() && before + mix.arrivals[order[at]].weight as f64 <= quantile {
                before += mix.arrivals[order[at]].weight as f64;
                at += 1;
            }
            drawn.push(order.get(at).map_or(0, |&arrival| u32::try_from(arrival).unwrap_or(0)));
        }
        let mode = super::tune::tune("mode", 1.0) as u32;
        if mode == 0 {
            random.shuffle(&mut drawn);
            return Sample { drawn: drawn.chunks_exact(LANES).map(|step| step.try_into().expect("a chunk has as many")).collect() };
        }
        // Each step has one worker of each stratum.
        let mut sample = vec![[0; LANES]; STEPS];
        for stratum in drawn.chunks_exact_mut(STEPS) {
            random.shuffle(stratum);
        }
        let mut turn: Vec<usize> = (0..LANES).collect();
        random.shuffle(&mut turn);
        let mut place: Vec<usize> = (0..LANES).collect();
        random.shuffle(&mut place);
        for (at, step) in sample.iter_mut().enumerate() {
            for lane in 0..LANES {
                let stratum = if mode == 2 { place[lane ^ turn[at]] } else { lane };
                step[lane] = drawn[stratum * STEPS + at];
            }
            if mode == 1 {
                random.shuffle(step);
            }
        }
        Sample { drawn: sample }
    }

    /// The sequences as a node sees whose devices are of this model.
    pub(crate) fn steps(&self, mix: &Mix, model: usize) -> Vec<Step> {
        let step = |drawn: &[u32; LANES]| {
            let mut step =
                Step { cpus: [0; LANES], memory: [0; LANES], level: [0; LANES], several: [0; LANES], any_several: false };
            for (lane, &arrival) in drawn.iter().enumerate() {
                let arrival = &mix.arrivals[arrival as usize];
                step.set(lane, arrival, model);
            }
            step.any_several = step.several.iter().any(|&several| several > 0);
            step
        };
        self.drawn.iter().map(step).collect()
    }
}

impl Step {
    fn set(&mut self, lane: usize, arrival: &Arrival, model: usize) {
        let Need { devices, share, .. } = arrival.need;
        let rounded_up = |amount: u64, unit: u64| i16::try_from(amount.div_ceil(unit)).unwrap_or(i16::MAX);
        self.cpus[lane] = rounded_up(arrival.milli_cpus, CPU_UNIT);
        self.memory[lane] = rounded_up(arrival.bytes, MEMORY_UNIT);
        match devices {
            0 => {}
            _ if !arrival.models.get(model).is_some_and(|takes| *takes) => self.cpus[lane] = i16::MAX,
            1 => self.level[lane] = i16::try_from(share).unwrap_or(1000) << LEVEL_SHIFT,
            several => self.several[lane] = i16::try_from(several).unwrap_or(i16::MAX),
        }
    }
}

/// The stream of `SplitMix64`.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mixed(self.0)
    }

    fn below(&mut self, bound: usize) -> usize {
        let wide = u128::from(self.next()) * bound as u128;
        usize::try_from(wide >> 64).unwrap_or(0)
    }

    fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}

/// Spreads close numbers over all 64 bits: the finaliser of `SplitMix64`.
pub(crate) fn mixed(number: u64) -> u64 {
    let mut mixed = number;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}
