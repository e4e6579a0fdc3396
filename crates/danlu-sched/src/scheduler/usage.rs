//! Amounts of everything that is shared out, as one small vector.

use danlu_types::reason::QuotaResource;
use danlu_types::{Amounts, DeviceKind};

use crate::fleet::Placement;
use crate::shape::{DeviceAsk, Shape};

/// Devices and CPUs in thousandths, memory in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ResourceVector([u64; QuotaResource::ALL.len()]);

/// The same with gaps: what a limit does not speak of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Ceiling([Option<u64>; QuotaResource::ALL.len()]);

impl ResourceVector {
    /// What a whole gang takes on devices of `kind`, of as many as its alternative asks for.
    pub(crate) fn of_gang(shape: &Shape, ask: &DeviceAsk, kind: Option<DeviceKind>) -> Self {
        let workers = u64::from(shape.workers);
        let mut usage = ResourceVector::default();
        if let Some(kind) = kind {
            usage.0[QuotaResource::of(kind) as usize] = workers.saturating_mul(u64::from(ask.count.milli()));
        }
        usage.0[QuotaResource::Cpus as usize] = workers.saturating_mul(shape.cpus.milli);
        usage.0[QuotaResource::Memory as usize] = workers.saturating_mul(shape.memory.0);
        usage
    }

    pub(crate) fn of_placement(placement: &Placement) -> Self {
        let mut usage = ResourceVector::default();
        for part in &placement.parts {
            if let Some(kind) = placement.kind {
                usage.0[QuotaResource::of(kind) as usize] +=
                    part.devices.len() as u64 * u64::from(part.share);
            }
            usage.0[QuotaResource::Cpus as usize] += part.milli_cpus;
            usage.0[QuotaResource::Memory as usize] += part.bytes;
        }
        usage
    }

    pub(crate) fn of_amounts(amounts: &Amounts) -> Self {
        ResourceVector(Ceiling::of(amounts).0.map(|amount| amount.unwrap_or(0)))
    }

    pub(crate) fn new(devices: [u64; DeviceKind::ALL.len()], milli_cpus: u64, bytes: u64) -> Self {
        let mut usage = ResourceVector::default();
        for (kind, milli) in DeviceKind::ALL.into_iter().zip(devices) {
            usage.0[QuotaResource::of(kind) as usize] = milli;
        }
        usage.0[QuotaResource::Cpus as usize] = milli_cpus;
        usage.0[QuotaResource::Memory as usize] = bytes;
        usage
    }

    pub(crate) fn get(&self, resource: QuotaResource) -> u64 {
        self.0[resource as usize]
    }

    pub(crate) fn add(&mut self, other: &ResourceVector) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            *mine = mine.saturating_add(theirs);
        }
    }

    pub(crate) fn remove(&mut self, other: &ResourceVector) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            *mine = mine.saturating_sub(theirs);
        }
    }

    pub(crate) fn plus(mut self, other: &ResourceVector) -> ResourceVector {
        self.add(other);
        self
    }

    pub(crate) fn minus(mut self, other: &ResourceVector) -> ResourceVector {
        self.remove(other);
        self
    }

    pub(crate) fn max(self, other: &ResourceVector) -> ResourceVector {
        let mut larger = self;
        for (mine, theirs) in larger.0.iter_mut().zip(other.0) {
            *mine = (*mine).max(theirs);
        }
        larger
    }

    pub(crate) fn is_zero(&self) -> bool {
        self.0.iter().all(|amount| *amount == 0)
    }

    /// The device kind it takes, or CPUs where it takes none: what the job is about.
    pub(crate) fn main_resource(&self) -> QuotaResource {
        QuotaResource::ALL.into_iter().find(|resource| self.get(*resource) > 0).unwrap_or(QuotaResource::Cpus)
    }
}

impl Ceiling {
    pub(crate) fn of(amounts: &Amounts) -> Self {
        let mut ceiling = Ceiling::default();
        ceiling.0[QuotaResource::Nvidia as usize] = amounts.nvidia.map(|count| u64::from(count.milli()));
        ceiling.0[QuotaResource::Ascend as usize] = amounts.ascend.map(|count| u64::from(count.milli()));
        ceiling.0[QuotaResource::Cpus as usize] = amounts.cpus.map(|cpus| cpus.milli);
        ceiling.0[QuotaResource::Memory as usize] = amounts.memory.map(|memory| memory.0);
        ceiling
    }

    pub(crate) fn get(&self, resource: QuotaResource) -> Option<u64> {
        self.0[resource as usize]
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.iter().all(Option::is_none)
    }

    /// The first resource of which `usage` is more than this allows; what is not asked for cannot be too much.
    pub(crate) fn exceeded_by(
        &self,
        usage: &ResourceVector,
        asked: &ResourceVector,
    ) -> Option<QuotaResource> {
        QuotaResource::ALL.into_iter().find(|resource| {
            asked.get(*resource) > 0 && self.get(*resource).is_some_and(|most| usage.get(*resource) > most)
        })
    }
}
