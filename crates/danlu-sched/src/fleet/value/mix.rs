//! What tends to arrive: a distribution over kinds of workers, learned from arrivals.

use danlu_types::DeviceKind;

use super::super::board::Need;
use super::super::layout::Layout;
use crate::shape::Shape;

/// Sizes of blocks of devices that are worth keeping whole.
pub(crate) const BLOCKS: [u32; 4] = [2, 4, 8, 16];

/// One kind of worker.
#[derive(Debug, Clone)]
pub(crate) struct Arrival {
    pub(crate) weight: u64,
    pub(crate) milli_cpus: u64,
    pub(crate) bytes: u64,
    pub(crate) need: Need,
    /// By model; nothing where no device is asked for.
    pub(crate) models: Vec<bool>,
}

/// Weights are counted in these parts of one arrival, so that halving keeps what is rare.
const ONE: u64 = 16;
/// Arrivals after which the past counts half: long enough to know rare shapes, short enough to follow a new mix.
const MEMORY: u64 = 1 << 15;

#[derive(Debug, Clone, Default)]
pub(crate) struct Mix {
    /// By shape.
    pub(crate) arrivals: Vec<Arrival>,
    total: u64,
    /// Gangs that arrived so far.
    pub(crate) seen: u64,
}

impl Mix {
    pub(crate) fn add_shape(&mut self, layout: &Layout, shape: &Shape) {
        let ask = &shape.alternatives[0];
        let need = Need::new(ask.count, shape.workers);
        let accepts = |model: &super::super::layout::Model| need.devices > 0 && ask.accepts(model.kind, &model.name);
        self.arrivals.push(Arrival {
            weight: 0,
            milli_cpus: shape.cpus.milli,
            bytes: shape.memory.0,
            need,
            models: layout.models.iter().map(accepts).collect(),
        });
    }

    pub(crate) fn learn(&mut self, shape: usize, workers: u32) {
        // A large gang is one decision of one person; it should not drown what everybody else asks for.
        let weight = ONE * u64::from(workers.clamp(1, 64));
        self.arrivals[shape].weight += weight;
        self.total += weight;
        self.seen += 1;
        if self.total > ONE * MEMORY {
            self.total = 0;
            for arrival in &mut self.arrivals {
                arrival.weight /= 2;
                self.total += arrival.weight;
            }
        }
    }

    pub(crate) fn forget(&mut self) {
        for a in &mut self.arrivals { a.weight = 0; }
        self.total = 0;
        self.seen = 0;
    }

    pub(crate) fn total(&self) -> u64 {
        self.total
    }
}

impl Arrival {
    pub(crate) fn milli(&self) -> u64 {
        u64::from(self.need.devices) * u64::from(self.need.share)
    }

    /// The smallest block that holds its devices; nothing for a single one.
    pub(crate) fn block(&self) -> Option<usize> {
        BLOCKS.iter().position(|&size| self.need.devices <= size).filter(|_| self.need.devices > 1)
    }

    pub(crate) fn takes_kind(&self, layout: &Layout, kind: DeviceKind) -> bool {
        self.models.iter().zip(&layout.models).any(|(takes, model)| *takes && model.kind == kind)
    }
}
