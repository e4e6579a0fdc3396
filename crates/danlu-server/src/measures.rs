//! What this server has counted since it was started, for those who watch it (`GET /metrics`).

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// How often something happened. Order between counts does not matter to whoever reads them.
#[derive(Debug, Default)]
pub(crate) struct Count(AtomicU64);

impl Count {
    pub(crate) fn add(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// How often something was done, and how long that took in all.
#[derive(Debug, Default)]
pub(crate) struct Timing {
    count: Count,
    microseconds: Count,
}

impl Timing {
    pub(crate) fn add(&self, took: Duration) {
        self.count.add(1);
        self.microseconds.add(u64::try_from(took.as_micros()).unwrap_or(u64::MAX));
    }

    pub(crate) fn count(&self) -> u64 {
        self.count.get()
    }

    pub(crate) fn time(&self) -> Duration {
        Duration::from_micros(self.microseconds.get())
    }
}

#[derive(Debug, Default)]
pub(crate) struct Measures {
    pub(crate) passes: Timing,
    pub(crate) commits: Timing,
    pub(crate) failed_commits: Count,
    pub(crate) forgotten_jobs: Count,
    /// Looks at all workers that came to nothing.
    pub(crate) failed_observations: Count,
}
