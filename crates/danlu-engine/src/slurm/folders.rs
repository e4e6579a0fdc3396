//! The files of workers and their allocations: what was accepted, ordered, submitted and claimed. Everything here blocks.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use danlu_core::job::WorkerEnd;
use danlu_core::launch::{
    ActualAllocation, GIVEN_FILE, GivenPlace, LAUNCH_FILE, LaunchFile, LauncherState, LauncherStatus,
    RunLayout, SECRETS_FILE, SECRETS_FOLDER, STOP_FILE, StopOrder, UnixUser,
};
use danlu_slurm::{
    ALLOCATION_FILE, AllocationRequest, CLAIM_FILE, CLAIMANT_FILE, ORDER_FILE, SUBMITTED_FILE,
};
use danlu_types::{WorkerId, WorkerIndex};

use super::frozen::Awaited;
use crate::files;

/// The engine's own word on a worker whose launcher gave none: a [`LauncherState::Ended`].
const VERDICT_FILE: &str = "verdict.json";

#[derive(Debug)]
pub(super) struct AllocationFolders {
    pub(super) layout: RunLayout,
    identity: Option<String>,
    pub(super) awaited: Awaited,
    /// Shared by workers that fall together: one thread at a time decides about a worker.
    guards: [Mutex<()>; 64],
}

/// How a worker is reached.
#[derive(Debug)]
pub(super) struct Reach {
    pub(super) phase: Option<LauncherState>,
    pub(super) job: Option<u64>,
    pub(super) node: Option<String>,
    pub(super) run: PathBuf,
    pub(super) order: Option<AllocationRequest>,
}

/// What Slurm is to be told after an order was written.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Call {
    /// Nothing of the job is wanted any more: away with it unless it has begun.
    Cancel { job: u64, user: Option<UnixUser> },
    /// Nothing of the job is wanted any more, though it has begun.
    End { job: u64, user: Option<UnixUser> },
    /// Its launchers are to look for orders.
    Wake {
        job: u64,
        is_new: bool,
        /// It has one launcher, which is its script and no step.
        is_script: bool,
    },
}

impl AllocationFolders {
    pub(super) fn new(layout: RunLayout, identity: Option<String>) -> Self {
        let guards = std::array::from_fn(|_| Mutex::default());
        AllocationFolders { layout, identity, awaited: Awaited::default(), guards }
    }

    pub(super) fn identity(&self) -> Option<&str> {
        self.identity.as_deref()
    }

    /// Whether this very data folder submitted an order, so that its job may be cancelled. A copy has all orders of the original,
    /// which may be in use. Those from before orders named their folder count as somebody else's: nothing tells whose they are,
    /// a job that runs on costs time and one that is cancelled is lost.
    pub(super) fn is_own(&self, order: &AllocationRequest) -> bool {
        self.identity.is_some() && order.identity == self.identity
    }

    pub(super) fn guard(&self, worker: WorkerId) -> MutexGuard<'_, ()> {
        let place = worker.job.0.wrapping_mul(31).wrapping_add(u64::from(worker.worker.0));
        let index = usize::try_from(place % self.guards.len() as u64).unwrap_or_default();
        self.guards[index].lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn run(&self, worker: WorkerId) -> PathBuf {
        self.layout.run_folder(worker)
    }

    pub(super) fn marker(&self, worker: WorkerId) -> PathBuf {
        self.layout.live_folder().join(worker.to_string())
    }

    /// Writes down what is to run, once. The marker comes after the launch file: whoever finds it finds what to launch.
    pub(super) fn accept(&self, launch: &LaunchFile) -> io::Result<()> {
        let worker = launch.worker;
        let _guard = self.guard(worker);
        let run = self.run(worker);
        if launch.folders.run != run {
            let text = "its launch file names a run folder outside the engine's data folder";
            return Err(io::Error::new(ErrorKind::InvalidInput, text));
        }
        if self.marker(worker).try_exists()? {
            return Ok(());
        }
        files::make_folder(&run)?;
        if self.status(worker)?.is_some() || self.verdict(worker)?.is_some() {
            let text = "its run folder was used and released before";
            return Err(io::Error::new(ErrorKind::AlreadyExists, text));
        }
        files::replace(&run, LAUNCH_FILE, &serde_json::to_vec(launch)?)?;
        files::make_folder(&self.layout.live_folder())?;
        files::mark(&run.join(LAUNCH_FILE), &self.marker(worker))?;
        let values: Vec<&str> = launch.secrets.iter().map(|secret| secret.value.as_str()).collect();
        if !values.is_empty() {
            files::replace(&run, SECRETS_FILE, &serde_json::to_vec(&values)?)?;
        }
        Ok(())
    }

    pub(super) fn launch_file(&self, worker: WorkerId) -> io::Result<Option<LaunchFile>> {
        files::read(&self.run(worker).join(LAUNCH_FILE))
    }

    /// Where the worker is, if that was for Slurm to say and it has.
    pub(super) fn given_place(&self, worker: WorkerId) -> io::Result<Option<GivenPlace>> {
        let given: Option<ActualAllocation> = files::read(&self.run(worker).join(GIVEN_FILE))?;
        Ok(given.and_then(|given| given.place))
    }

    /// The worker's node, as planned until it is known.
    pub(super) fn node(&self, worker: WorkerId) -> io::Result<Option<String>> {
        if let Some(place) = self.given_place(worker)? {
            return Ok(Some(place.node.0));
        }
        Ok(self.launch_file(worker)?.map(|launch| launch.node.0))
    }

    /// What the launcher last said, if that can be understood and is about this worker.
    pub(super) fn status(&self, worker: WorkerId) -> io::Result<Option<LauncherStatus>> {
        files::read_status(&self.run(worker), worker)
    }

    pub(super) fn verdict(&self, worker: WorkerId) -> io::Result<Option<LauncherState>> {
        files::read(&self.run(worker).join(VERDICT_FILE))
    }

    pub(super) fn give_verdict(&self, worker: WorkerId, verdict: &LauncherState) -> io::Result<()> {
        files::replace(&self.run(worker), VERDICT_FILE, &serde_json::to_vec(verdict)?)
    }

    pub(super) fn is_told_to_stop(&self, worker: WorkerId) -> io::Result<bool> {
        Ok(files::read::<StopOrder>(&self.run(worker).join(STOP_FILE))?.is_some())
    }

    /// The folder of the worker's allocation, once the gang was complete.
    pub(super) fn allocation(&self, worker: WorkerId) -> io::Result<Option<PathBuf>> {
        let name = files::read_bytes(&self.run(worker).join(ALLOCATION_FILE))?;
        let name = name.and_then(|name| String::from_utf8(name).ok()).filter(|name| !name.contains('/'));
        Ok(name.map(|name| self.layout.job_folder(worker.job).join(name)))
    }

    /// The number of the job that runs an allocation, or will: the one that came first counts, if one came.
    pub(super) fn job_of(folder: &Path) -> io::Result<Option<u64>> {
        match number(&folder.join(CLAIMANT_FILE))? {
            Some(claimed) => Ok(Some(claimed)),
            None => number(&folder.join(SUBMITTED_FILE)),
        }
    }

    /// Whether it is known which job has begun.
    pub(super) fn has_claimant(folder: &Path) -> io::Result<bool> {
        Ok(number(&folder.join(CLAIMANT_FILE))?.is_some())
    }

    pub(super) fn is_claimed(folder: &Path) -> io::Result<bool> {
        folder.join(CLAIM_FILE).try_exists()
    }

    /// Writes an order to end a worker. A worker whose gang was not complete is never submitted once one lies there.
    pub(super) fn order(&self, worker: WorkerId, order: &StopOrder) -> io::Result<Option<Call>> {
        let _guard = self.guard(worker);
        let status = self.status(worker)?;
        // One that Slurm has stopped has not ended for us before we have told it to, or know why.
        let has_ended = status.is_some_and(|status| match status.phase {
            LauncherState::Ended { exit, .. } => exit != WorkerEnd::Stopped,
            LauncherState::Preparing | LauncherState::Running { .. } => false,
        });
        if has_ended || self.verdict(worker)?.is_some() || !self.marker(worker).try_exists()? {
            return Ok(None);
        }
        let run = self.run(worker);
        let standing: Option<StopOrder> = files::read(&run.join(STOP_FILE))?;
        let is_new = standing.is_none_or(|standing| order.grace < standing.grace);
        if is_new {
            files::replace(&run, STOP_FILE, &serde_json::to_vec(order)?)?;
        }
        let Some(folder) = self.allocation(worker)? else { return Ok(None) };
        let Some(job) = Self::job_of(&folder)? else { return Ok(None) };
        let ordered = read_order(&folder)?;
        if Self::is_claimed(&folder)? {
            let is_script = ordered.is_some_and(|ordered| ordered.workers.len() == 1);
            return Ok(Some(Call::Wake { job, is_new, is_script }));
        }
        // It starts, finds the order to stop, and ends.
        let Some(ordered) = ordered.filter(|ordered| self.is_own(ordered)) else { return Ok(None) };
        let user = ordered.user;
        // As long as one of the gang is still wanted, the others see their orders when they start.
        let all = self.gang(worker)?.into_iter().map(|other| self.is_told_to_stop(other));
        let all: io::Result<Vec<bool>> = all.collect();
        Ok(all?.into_iter().all(|told| told).then_some(Call::Cancel { job, user }))
    }

    /// The workers of a worker's attempt.
    pub(super) fn gang(&self, worker: WorkerId) -> io::Result<Vec<WorkerId>> {
        let count = self.launch_file(worker)?.map_or(1, |launch| launch.gang.workers);
        Ok((0..count).map(|index| WorkerId { worker: WorkerIndex(index), ..worker }).collect())
    }

    pub(super) fn reach(&self, worker: WorkerId) -> io::Result<Option<Reach>> {
        if !self.marker(worker).try_exists()? {
            return Ok(None);
        }
        let (job, order) = match self.allocation(worker)? {
            Some(folder) => (Self::job_of(&folder)?, read_order(&folder)?),
            None => (None, None),
        };
        Ok(Some(Reach {
            phase: self.status(worker)?.map(|status| status.phase),
            job,
            node: self.node(worker)?,
            run: self.run(worker),
            order,
        }))
    }

    /// What a launcher would have removed at its end, or on its way up.
    pub(super) fn forget_secrets(&self, worker: WorkerId) -> io::Result<()> {
        let run = self.run(worker);
        files::remove(&run.join(SECRETS_FILE))?;
        files::remove_secrets(&run.join(SECRETS_FOLDER), worker)
    }
}

fn number(path: &Path) -> io::Result<Option<u64>> {
    let text = files::read_bytes(path)?;
    Ok(text.and_then(|text| String::from_utf8(text).ok()?.trim().parse().ok()))
}

/// The order that lies there. One that cannot be read is no reason to make another: it may have been submitted.
pub(super) fn read_order(folder: &Path) -> io::Result<Option<AllocationRequest>> {
    match fs::read(folder.join(ORDER_FILE)) {
        Ok(bytes) => Ok(Some(serde_json::from_slice(&bytes)?)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

pub(super) fn submitted(folder: &Path) -> io::Result<Option<u64>> {
    number(&folder.join(SUBMITTED_FILE))
}
