//! What running programs say of themselves, and the engine of workers that do not run yet, by job. Kept in memory only:
//! after a restart the next look finds it again.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use danlu_core::report::{Report, progress};
use danlu_types::{AttemptNumber, JobId, ProgressView, WorkerId, WorkerIndex};

/// Of the attempt that was seen last, what each worker said.
type ByJob = HashMap<JobId, (AttemptNumber, BTreeMap<WorkerIndex, Report>)>;

#[derive(Debug, Default)]
pub(crate) struct Reports {
    jobs: Mutex<ByJob>,
    remarks: Mutex<BTreeMap<WorkerId, String>>,
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

    /// What the engine says of a worker that is preparing, or that it says nothing any more.
    pub(crate) fn remark(&self, worker: WorkerId, remark: Option<String>) {
        let mut remarks = self.remarks.lock().unwrap_or_else(PoisonError::into_inner);
        match remark {
            Some(remark) => drop(remarks.insert(worker, remark)),
            None => drop(remarks.remove(&worker)),
        }
    }

    /// What the engine says the job's attempt waits for: of the first worker that does.
    pub(crate) fn remark_on(&self, job: JobId, attempt: AttemptNumber) -> Option<String> {
        let remarks = self.remarks.lock().unwrap_or_else(PoisonError::into_inner);
        let first = WorkerId { job, attempt, worker: WorkerIndex(0) };
        let (found, remark) = remarks.range(first..).next()?;
        (found.job == job && found.attempt == attempt).then(|| remark.clone())
    }

    pub(crate) fn keep(&self, is_live: impl Fn(JobId) -> bool) {
        self.lock().retain(|job, _| is_live(*job));
        let mut remarks = self.remarks.lock().unwrap_or_else(PoisonError::into_inner);
        remarks.retain(|worker, _| is_live(worker.job));
    }

    fn lock(&self) -> MutexGuard<'_, ByJob> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
