//! Launchers that live and do nothing: telling of them, ending them, and waiting for those that only Slurm has lost.
//!
//! Invariant: a worker that is killed has ended only when Slurm says that its job is over. Until then its processes may live, and
//! another attempt would run beside them.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use danlu_core::job::WorkerEnd;
use danlu_core::launch::STATUS_FILE;
use danlu_core::sample::SAMPLES_FILE;
use danlu_core::synced_files::{CONTACT_FILE, LAUNCHER_ENDED_FILE};
use danlu_slurm::SlurmJobState;
use danlu_types::WorkerId;

use super::folders::{AllocationFolders, Call, read_order};
use super::poll::{LastReport, Watch};
use crate::{ObservedState, files};

/// As what a worker is to be told that was killed although nobody had ordered it to stop: a [`WorkerEnd`].
const KILLED_FILE: &str = "killed.json";
/// NFS shows what another machine wrote within a minute, unless a site has changed that.
const LONGEST_AWAITED: Duration = Duration::from_secs(90);
/// A sidecar that lives and reaches the server asks for news every 20 seconds, or 15 seconds after it could not.
const LONGEST_UNHEARD: Duration = Duration::from_mins(1);

/// Sizes and times of what a living launcher, or its sidecar, writes again and again. Times of a shared disk are another
/// machine's: they are only compared with each other.
pub(super) type Traces = [Option<(u64, SystemTime)>; 3];

/// Since when a last word is awaited that has to be on its way, and nothing else was written either.
#[derive(Debug, Default)]
pub(super) struct Awaited(Mutex<HashMap<WorkerId, (Instant, Traces)>>);

impl Awaited {
    /// Launchers that still write are waited for: Slurm may have lost the job, and they go on with it.
    pub(super) fn is_overdue(&self, worker: WorkerId, traces: Traces, now: Instant) -> bool {
        let mut awaited = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (since, before) = awaited.entry(worker).or_insert((now, traces));
        if *before != traces {
            (*since, *before) = (now, traces);
        }
        now.saturating_duration_since(*since) > LONGEST_AWAITED
    }

    pub(super) fn forget(&self, worker: WorkerId) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&worker);
    }
}

impl AllocationFolders {
    pub(super) fn traces(&self, worker: WorkerId) -> Traces {
        let run = self.run(worker);
        let trace = |name: &str| {
            let about = fs::symlink_metadata(run.join(name)).ok()?;
            Some((about.len(), about.modified().ok()?))
        };
        [STATUS_FILE, SAMPLES_FILE, CONTACT_FILE].map(trace)
    }

    /// Why a worker that has not ended has nobody to look after it.
    pub(super) fn silence(&self, worker: WorkerId) -> io::Result<Option<String>> {
        let run = self.run(worker);
        let Some(age) = files::long_silence(&run) else { return Ok(None) };
        // Its sidecar still brings what it has left.
        if run.join(LAUNCHER_ENDED_FILE).exists() {
            return Ok(None);
        }
        let Some(status) = self.status(worker)? else { return Ok(None) };
        let node = self.node(worker)?.unwrap_or_default();
        let (pid, minutes) = (status.launcher.pid, age.as_secs() / 60);
        Ok(Some(format!(
            "its launcher (process {pid} on {node}) has shown no sign of life for {minutes} minutes: it may be stopped or hang, \
             or what it writes does not arrive here"
        )))
    }

    /// For a launcher that does not do what it was told, or does not keep its worker's time limit: what has Slurm end the job. A job
    /// of somebody else's, of which this data folder is a copy, is left alone. `remote_since`: where sidecars tell of launchers,
    /// from when on they could.
    pub(super) fn kill(
        &self,
        worker: WorkerId,
        exit: &WorkerEnd,
        watch: &Watch,
        remote_since: Option<Instant>,
    ) -> io::Result<Option<Call>> {
        let _guard = self.guard(worker);
        if !matches!(self.look(worker, watch)?.seen, ObservedState::Preparing | ObservedState::Running { .. })
        {
            return Ok(None);
        }
        let Some(folder) = self.allocation(worker)? else { return Ok(None) };
        let Some(job) = Self::job_of(&folder)? else { return Ok(None) };
        match watch.hear(job, worker) {
            // Over already: what is awaited is only its verdict.
            word if word.is_final() => return Ok(None),
            // It could not keep its time limit, and does as soon as it goes on.
            LastReport::Listed(job)
                if job.state == SlurmJobState::Suspended && *exit != WorkerEnd::Stopped =>
            {
                return Ok(None);
            }
            _ => {}
        }
        if remote_since.is_some_and(|since| self.is_delivering(worker, since)) {
            return Ok(None);
        }
        let Some(order) = read_order(&folder)?.filter(|order| self.is_own(order)) else {
            tracing::warn!(
                worker.id = %worker,
                "Slurm's job {job} is not cancelled, whose launcher hangs: another data folder submitted it"
            );
            return Ok(None);
        };
        if *exit != WorkerEnd::Stopped || !self.is_told_to_stop(worker)? {
            files::replace(&self.run(worker), KILLED_FILE, &serde_json::to_vec(exit)?)?;
        }
        // All of the job: a gang that has lost a worker ends in any case. Slurm wakes what stands still, asks it to end, and kills
        // it after `KillWait`.
        Ok(Some(Call::End { job, user: order.user }))
    }

    /// Whether the launcher has ended and its sidecar, which is alive, still brings what it has left.
    fn is_delivering(&self, worker: WorkerId, since: Instant) -> bool {
        let run = self.run(worker);
        let contact = fs::symlink_metadata(run.join(CONTACT_FILE)).and_then(|about| about.modified());
        let unheard = contact.ok().and_then(|at| at.elapsed().ok()).unwrap_or_default();
        run.join(LAUNCHER_ENDED_FILE).exists() && unheard.min(since.elapsed()) < LONGEST_UNHEARD
    }

    pub(super) fn killed_as(&self, worker: WorkerId) -> io::Result<Option<WorkerEnd>> {
        files::read(&self.run(worker).join(KILLED_FILE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_launcher_that_still_writes_is_not_overdue() {
        let (awaited, worker) = (Awaited::default(), "7.1.0".parse().unwrap());
        let (begin, second) = (Instant::now(), Duration::from_secs);
        // Another machine's clock, far behind this one's.
        let wrote = |bytes: u64| [Some((bytes, SystemTime::UNIX_EPOCH + second(bytes))), None, None];
        assert!(!awaited.is_overdue(worker, wrote(1), begin));
        assert!(!awaited.is_overdue(worker, wrote(1), begin + second(89)));
        assert!(!awaited.is_overdue(worker, wrote(2), begin + second(91)), "it wrote meanwhile");
        assert!(!awaited.is_overdue(worker, wrote(2), begin + second(180)));
        assert!(awaited.is_overdue(worker, wrote(2), begin + second(182)), "and then no more");
        awaited.forget(worker);
        assert!(!awaited.is_overdue(worker, wrote(2), begin + second(200)));
    }
}
