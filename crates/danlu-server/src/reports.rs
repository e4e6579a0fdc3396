//! What running programs say of themselves, by job. Kept in memory only: after a restart the next look finds it again.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use danlu_core::report::{Report, progress};
use danlu_types::{AttemptNumber, JobId, ProgressView, WorkerId, WorkerIndex};

#[derive(Debug, Default)]
pub(crate) struct Reports {
    jobs: Mutex<HashMap<JobId, (AttemptNumber, BTreeMap<WorkerIndex, Report>)>>,
}

impl Reports {
    pub(crate) fn take(&self, worker: WorkerId, report: Report) {
        let mut jobs = self.lock();
        let (attempt, workers) = jobs.entry(worker.job).or_insert((worker.attempt, BTreeMap::new()));
        if *attempt != worker.attempt {
            (*attempt, *workers) = (worker.attempt, BTreeMap::new());
        }
        workers.insert(worker.worker, report);
    }

    /// How far the job's live attempt is, if it says.
    pub(crate) fn of(&self, job: JobId, attempt: AttemptNumber) -> Option<ProgressView> {
        let jobs = self.lock();
        let (found, workers) = jobs.get(&job)?;
        (*found == attempt).then(|| progress(&workers.values().cloned().collect::<Vec<_>>()))
    }

    pub(crate) fn keep(&self, is_live: impl Fn(JobId) -> bool) {
        self.lock().retain(|job, _| is_live(*job));
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<JobId, (AttemptNumber, BTreeMap<WorkerIndex, Report>)>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
