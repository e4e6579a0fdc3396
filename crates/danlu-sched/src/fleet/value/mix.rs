//! What tends to arrive: a distribution over kinds of workers, learned from arrivals.

use super::super::board::Need;
use super::super::layout::{Layout, Model};
use crate::shape::{DeviceAsk, Shape};

/// Sizes of blocks of devices that are worth keeping whole.
pub(crate) const BLOCK_SIZES: [u32; 4] = [2, 4, 8, 16];

/// Weights are counted in these parts of one arrival, so that halving keeps what is rare.
pub(crate) const ONE_ARRIVAL: u64 = 16;
/// Arrivals after which the past counts half: long enough to know rare shapes, short enough to follow a new mix.
const MEMORY: u64 = 1 << 15;
/// A gang counts for each of its workers, but a huge one should not drown what everybody else asks for.
const MOST_WORKERS: u32 = 64;

#[derive(Debug, Clone, Default)]
pub(crate) struct Mix {
    /// By shape.
    pub(crate) arrivals: Vec<Arrival>,
    pub(crate) total: u64,
    /// Gangs that arrived so far.
    pub(crate) seen: u64,
    /// Of them those whose workers take several devices.
    pub(crate) seen_large: u64,
    /// How many shapes these were.
    pub(crate) large_shapes: u64,
}

/// One kind of worker.
#[derive(Debug, Clone)]
pub(crate) struct Arrival {
    pub(crate) weight: u64,
    pub(crate) milli_cpus: u64,
    pub(crate) bytes: u64,
    pub(crate) need: Need,
    /// Whether it takes each model; none where it asks for no device.
    pub(crate) models: Vec<bool>,
}

impl Mix {
    /// New shapes have the next number, or that of one that was forgotten. Of several alternatives the preferred one
    /// counts.
    pub(crate) fn put_shape(&mut self, at: usize, layout: &Layout, shape: &Shape) {
        let none = DeviceAsk::none();
        let ask = shape.alternatives.first().unwrap_or(&none);
        let need = Need::new(ask.count, shape.workers);
        let takes = |model: &Model| need.devices > 0 && ask.accepts(model.kind, &model.name);
        let arrival = Arrival {
            weight: 0,
            milli_cpus: shape.cpus.milli,
            bytes: shape.memory.0,
            need,
            models: layout.models.iter().map(takes).collect(),
        };
        match self.arrivals.get_mut(at) {
            Some(vacant) => *vacant = arrival,
            None => self.arrivals.push(arrival),
        }
    }

    pub(crate) fn forget_shape(&mut self, at: usize) {
        self.total -= std::mem::take(&mut self.arrivals[at].weight);
    }

    pub(crate) fn learn(&mut self, shape: usize, workers: u32) {
        let weight = ONE_ARRIVAL * u64::from(workers.clamp(1, MOST_WORKERS));
        if self.arrivals[shape].block().is_some() {
            self.seen_large += 1;
            self.large_shapes += u64::from(self.arrivals[shape].weight == 0);
        }
        self.arrivals[shape].weight += weight;
        self.total += weight;
        self.seen += 1;
        if self.total > ONE_ARRIVAL * MEMORY {
            self.total = 0;
            for arrival in &mut self.arrivals {
                arrival.weight /= 2;
                self.total += arrival.weight;
            }
        }
    }

    pub(crate) fn learn_from(&mut self, other: &Mix, shape: impl Fn(usize) -> usize) {
        for (at, arrival) in other.arrivals.iter().enumerate().filter(|(_, arrival)| arrival.weight > 0) {
            self.arrivals[shape(at)].weight += arrival.weight;
            self.total += arrival.weight;
        }
        self.seen += other.seen;
        self.seen_large += other.seen_large;
        self.large_shapes += other.large_shapes;
    }

    /// Those that were seen.
    pub(crate) fn known(&self) -> impl Iterator<Item = &Arrival> {
        self.arrivals.iter().filter(|arrival| arrival.weight > 0)
    }
}

impl Arrival {
    /// Thousandths of devices that one worker takes.
    pub(crate) fn milli(&self) -> u32 {
        self.need.devices * u32::from(self.need.share)
    }

    /// The smallest block that holds its devices, in `BLOCK_SIZES`; nothing for a single one.
    pub(crate) fn block(&self) -> Option<usize> {
        BLOCK_SIZES.iter().position(|&size| self.need.devices <= size).filter(|_| self.need.devices > 1)
    }

    pub(crate) fn takes(&self, model: usize) -> bool {
        self.models.get(model).is_some_and(|takes| *takes)
    }
}
