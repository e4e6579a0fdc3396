//! Jobs whose rows cannot be read: one row's damage is one job's trouble.
//!
//! Such a job is left out of lists and of what a server starts with, and is named to whoever asks for it or for the state of
//! the store. Nothing here repairs or deletes it: a person may have a back-up.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use danlu_core::Job;
use danlu_types::JobId;

use crate::StoreError;

#[derive(Debug, Default)]
pub(crate) struct Unreadable {
    jobs: Mutex<BTreeMap<JobId, String>>,
}

impl Unreadable {
    /// The job that was read, or nothing where its row is damaged. All other errors are the caller's.
    pub(crate) fn noting(&self, read: Result<Job, StoreError>) -> Result<Option<Job>, StoreError> {
        match read {
            Ok(job) => {
                // It may have been repaired.
                self.lock().remove(&job.id);
                Ok(Some(job))
            }
            Err(StoreError::Corrupt { id, source }) => {
                self.lock().insert(id, source.to_string());
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    pub(crate) fn forget(&self, ids: &[JobId]) {
        let mut jobs = self.lock();
        jobs.retain(|id, _| !ids.contains(id));
    }

    /// Those that were met since the store was opened, with what is wrong.
    pub(crate) fn all(&self) -> Vec<(JobId, String)> {
        self.lock().iter().map(|(id, error)| (*id, error.clone())).collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<JobId, String>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
