//! What running programs say of themselves, and the engine of workers that do not run yet, by job. Kept in memory only:
//! after a restart the next look finds it again.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use danlu_core::report::{ProgramReport, progress};
use danlu_slurm::QueueWait;
use danlu_types::{AttemptNumber, JobId, ProgressView, Reason, WorkerId, WorkerIndex};

/// Of the attempt that was seen last, what each worker said.
type ByJob = HashMap<JobId, (AttemptNumber, BTreeMap<WorkerIndex, ProgramReport>)>;

#[derive(Debug, Default)]
pub(crate) struct LiveReports {
    jobs: Mutex<ByJob>,
    remarks: Mutex<BTreeMap<WorkerId, Remark>>,
    /// Why workers could not be launched yet.
    troubles: Mutex<BTreeMap<WorkerId, String>>,
}

/// What the engine says of a worker.
#[derive(Debug)]
struct Remark {
    reason: Reason,
    wait: Option<QueueWait>,
    /// How many inventories it has waited through for the same.
    inventories: u32,
}

/// An attempt that waits in a queue of the engine's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Queued {
    pub(crate) wait: QueueWait,
    pub(crate) reason: Reason,
    /// How many inventories it has waited through for the same.
    pub(crate) inventories: u32,
}

impl LiveReports {
    pub(crate) fn take(&self, worker: WorkerId, report: ProgramReport) {
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
    pub(crate) fn remark(&self, worker: WorkerId, remark: Option<Reason>, wait: Option<QueueWait>) {
        let mut remarks = self.remarks.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(reason) = remark else { return drop(remarks.remove(&worker)) };
        let same = remarks.get(&worker).filter(|before| before.wait == wait);
        let inventories = same.map_or(0, |before| before.inventories);
        remarks.insert(worker, Remark { reason, wait, inventories });
    }

    /// An inventory was taken: whoever waits has waited through it.
    pub(crate) fn note_inventory(&self) {
        let mut remarks = self.remarks.lock().unwrap_or_else(PoisonError::into_inner);
        for remark in remarks.values_mut() {
            remark.inventories = remark.inventories.saturating_add(1);
        }
    }

    /// What the first worker of an attempt that waits in the engine's own queue waits for.
    pub(crate) fn queued(&self, job: JobId, attempt: AttemptNumber) -> Option<Queued> {
        let remarks = self.remarks.lock().unwrap_or_else(PoisonError::into_inner);
        let first = WorkerId { job, attempt, worker: WorkerIndex(0) };
        let own = remarks.range(first..).take_while(|(id, _)| id.job == job && id.attempt == attempt);
        let (_, remark) = own.into_iter().find(|(_, remark)| remark.wait.is_some())?;
        let Remark { reason, wait, inventories } = remark;
        Some(Queued { wait: (*wait)?, reason: reason.clone(), inventories: *inventories })
    }

    /// Why a worker could not be launched yet, or that it could.
    pub(crate) fn launch_trouble(&self, worker: WorkerId, trouble: Option<String>) {
        let mut troubles = self.troubles.lock().unwrap_or_else(PoisonError::into_inner);
        match trouble {
            Some(trouble) => drop(troubles.insert(worker, trouble)),
            None => drop(troubles.remove(&worker)),
        }
    }

    /// What the engine says the job's attempt waits for: of the first worker that does.
    pub(crate) fn remark_on(&self, job: JobId, attempt: AttemptNumber) -> Option<Reason> {
        let remarks = self.remarks.lock().unwrap_or_else(PoisonError::into_inner);
        let first = WorkerId { job, attempt, worker: WorkerIndex(0) };
        let is_own = |id: &WorkerId| id.job == job && id.attempt == attempt;
        remarks.range(first..).next().filter(|(id, _)| is_own(id)).map(|(_, remark)| remark.reason.clone())
    }

    /// Why an attempt could not be launched yet.
    pub(crate) fn launch_trouble_of(&self, job: JobId, attempt: AttemptNumber) -> Option<String> {
        let first = WorkerId { job, attempt, worker: WorkerIndex(0) };
        let is_own = |id: &WorkerId| id.job == job && id.attempt == attempt;
        let troubles = self.troubles.lock().unwrap_or_else(PoisonError::into_inner);
        troubles.range(first..).next().filter(|(id, _)| is_own(id)).map(|(_, trouble)| trouble.clone())
    }

    pub(crate) fn keep(&self, is_live: impl Fn(JobId) -> bool) {
        self.lock().retain(|job, _| is_live(*job));
        let mut remarks = self.remarks.lock().unwrap_or_else(PoisonError::into_inner);
        remarks.retain(|worker, _| is_live(worker.job));
        let mut troubles = self.troubles.lock().unwrap_or_else(PoisonError::into_inner);
        troubles.retain(|worker, _| is_live(worker.job));
    }

    fn lock(&self) -> MutexGuard<'_, ByJob> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
