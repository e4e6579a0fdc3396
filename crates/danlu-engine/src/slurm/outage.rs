//! That Slurm does not answer, since when, and what its programs say of it.

use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;

/// Set by any program that could not reach the controller, cleared by any that could.
#[derive(Debug, Default)]
pub(super) struct Outage(Mutex<Option<(Timestamp, String)>>);

impl Outage {
    pub(super) fn note(&self, said: String) {
        let mut outage = self.lock();
        let since = outage.as_ref().map_or_else(Timestamp::now, |(since, _)| *since);
        *outage = Some((since, said));
    }

    pub(super) fn clear(&self) {
        *self.lock() = None;
    }

    pub(super) fn sentence(&self) -> Option<String> {
        let outage = self.lock();
        let (since, said) = outage.as_ref()?;
        Some(format!("Slurm has not answered since {since:.0}: {said}"))
    }

    fn lock(&self) -> MutexGuard<'_, Option<(Timestamp, String)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
