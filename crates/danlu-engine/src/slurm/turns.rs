//! One at a time for each job: whoever hangs holds up nobody but its own job.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use danlu_types::JobId;
use tokio::sync::OwnedMutexGuard;

type Lock = Arc<tokio::sync::Mutex<()>>;

/// Holds a lock for each job that somebody does something about now, and no others.
#[derive(Debug, Default)]
pub(super) struct JobTurns(Mutex<BTreeMap<JobId, Lock>>);

/// The job's turn, or the wait for it; given back when it is dropped.
#[derive(Debug)]
pub(super) struct Turn<'a> {
    turns: &'a JobTurns,
    job: JobId,
    lock: Option<Lock>,
    held: Option<OwnedMutexGuard<()>>,
}

impl JobTurns {
    pub(super) async fn take(&self, job: JobId) -> Turn<'_> {
        let lock = Arc::clone(self.lock().entry(job).or_default());
        let mut turn = Turn { turns: self, job, lock: Some(Arc::clone(&lock)), held: None };
        turn.held = Some(lock.lock_owned().await);
        turn
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<JobId, Lock>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        // Locks are taken from the map, and given back here, only by who has the map.
        let mut locks = self.turns.lock();
        drop((self.held.take(), self.lock.take()));
        if locks.get(&self.job).is_some_and(|lock| Arc::strong_count(lock) == 1) {
            locks.remove(&self.job);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    #[tokio::test]
    async fn each_job_has_its_own_turn_and_leaves_nothing() {
        let turns = JobTurns::default();
        let first = turns.take(JobId(1)).await;
        drop(turns.take(JobId(65)).await);
        let mut second = Box::pin(turns.take(JobId(1)));
        assert!(timeout(Duration::ZERO, &mut second).await.is_err(), "two at once");
        drop(first);
        drop(second.await);
        let third = turns.take(JobId(1)).await;
        let mut given_up = Box::pin(turns.take(JobId(1)));
        assert!(timeout(Duration::ZERO, &mut given_up).await.is_err());
        drop(given_up);
        drop(third);
        assert!(turns.lock().is_empty());
    }
}
