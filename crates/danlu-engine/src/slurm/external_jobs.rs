//! Jobs of other people on the same cluster: two questions for all of them, with each inventory.
//!
//! What a data folder submitted that this one is a copy of is of other people, too.
//!
//! And jobs of ours that Slurm runs although nothing of them is wanted any more: a node that lost its processes together with its
//! daemon is not missed for minutes. They are cancelled, and till then nothing is planned with what they hold. The same goes for
//! those that wait in its queue: one that was submitted twice, or that Slurm had forgotten for a while, may be held there.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use danlu_slurm::{
    AllocationRequest, HoldingJob, PLACES_FORMAT, allocation_folder_name, keep_listed, order_of_name,
    parse_holders, parse_waiting,
};
use danlu_types::JobId;

use super::SlurmEngine;
use super::folders::{AllocationFolders, Call, read_order};

/// Slurm needs a moment to see that a job has ended.
const LEAVES_WITHIN: Duration = Duration::from_secs(20);

#[derive(Debug, Default)]
pub(super) struct ExternalJobs {
    /// As Slurm last said it.
    jobs: Vec<HoldingJob>,
    /// The orders of those that are ours, for those that were looked at: files need not be read again.
    ours: BTreeMap<u64, Option<Arc<AllocationRequest>>>,
    /// Since when nothing is wanted any more of jobs of ours.
    left: BTreeMap<u64, Instant>,
}

impl SlurmEngine {
    /// Those that hold something and are not ours. Where Slurm does not answer, those that it last named.
    pub(super) async fn jobs_of_others(&self) -> Vec<HoldingJob> {
        let arguments = ["--all", "--details", "show", "job"].map(str::to_owned);
        // In a zone that needs no looking up: the answer has none.
        let asked = self.programs.in_utc().ask("list the jobs of others", "scontrol", &arguments).await;
        let Ok(text) = asked else {
            return self.holders.lock().unwrap_or_else(PoisonError::into_inner).jobs.clone();
        };
        let places = ["--all".to_owned(), "--noheader".to_owned(), format!("--format={PLACES_FORMAT}")];
        let places = self.programs.ask("list who has which nodes", "squeue", &places).await;
        let Ok(places) = places else {
            return self.holders.lock().unwrap_or_else(PoisonError::into_inner).jobs.clone();
        };
        let found = keep_listed(parse_holders(&text), &places);
        let waiting = parse_waiting(&text);
        let before = {
            let holders = self.holders.lock().unwrap_or_else(PoisonError::into_inner);
            ExternalJobs { jobs: Vec::new(), ours: holders.ours.clone(), left: holders.left.clone() }
        };
        let sorted = self.blocking(move |folders, _| Ok(before.sorted(found, waiting, folders))).await;
        let (jobs, overdue) = {
            let mut holders = self.holders.lock().unwrap_or_else(PoisonError::into_inner);
            if let Ok(sorted) = sorted {
                *holders = sorted;
            }
            (holders.jobs.clone(), holders.overdue())
        };
        for (job, order) in overdue {
            self.cancel_leftover(job, &order).await;
        }
        jobs
    }

    async fn cancel_leftover(&self, job: u64, order: &AllocationRequest) {
        // By Slurm's own look at names, which users cannot write records into.
        if !matches!(self.find(order).await, Ok(Some(found)) if found == job) {
            return;
        }
        tracing::warn!(
            "Slurm still has its job {job} (`{}`), of which nothing is left: it is cancelled",
            order.name
        );
        // One that hangs is not waited for: the inventory is, by all that is planned.
        if let Err(error) = self.call(Call::End { job, user: order.user.clone() }).await {
            tracing::warn!("could not cancel Slurm's job {job}: {error}");
        }
    }
}

impl ExternalJobs {
    /// Those of an answer, by whose they are.
    fn sorted(
        mut self,
        found: Vec<HoldingJob>,
        waiting: Vec<(u64, String)>,
        folders: &AllocationFolders,
    ) -> Self {
        let present = found.iter().map(|job| job.id).chain(waiting.iter().map(|(id, _)| *id));
        let present: BTreeSet<u64> = present.collect();
        self.ours.retain(|id, _| present.contains(id));
        self.left.retain(|id, _| present.contains(id));
        for job in found {
            let known = self.ours.get(&job.id).cloned();
            let order =
                known.map_or_else(|| folders.order_of(&job.name).map(|order| order.map(Arc::new)), Ok);
            // What cannot be told now is looked at again: nothing of ours is to count twice.
            let Ok(order) = order else { continue };
            let is_wanted = order.as_deref().is_some_and(|order| folders.is_wanted(order).unwrap_or(true));
            self.ours.insert(job.id, order.clone());
            let is_own = order.as_deref().is_some_and(|order| folders.is_own(order));
            if is_wanted {
                self.left.remove(&job.id);
            } else if !is_own
                || self.left.entry(job.id).or_insert_with(Instant::now).elapsed() > LEAVES_WITHIN
            {
                self.jobs.push(job);
            }
        }
        for (id, name) in waiting {
            let Ok(Some(order)) = folders.order_of(&name) else { continue };
            if folders.is_own(&order) && !folders.is_wanted(&order).unwrap_or(true) {
                self.left.entry(id).or_insert_with(Instant::now);
                self.ours.insert(id, Some(Arc::new(order)));
            } else {
                self.left.remove(&id);
            }
        }
        self
    }

    /// Jobs of ours that should have left.
    fn overdue(&self) -> Vec<(u64, Arc<AllocationRequest>)> {
        let overdue = self.left.iter().filter(|(_, since)| since.elapsed() > LEAVES_WITHIN);
        overdue.filter_map(|(id, _)| Some((*id, self.ours.get(id)?.clone()?))).collect()
    }
}

impl AllocationFolders {
    /// The order of ours that has this name. Other servers name theirs alike, but never the same.
    fn order_of(&self, name: &str) -> io::Result<Option<AllocationRequest>> {
        let Some((job, attempt, part)) = order_of_name(name) else { return Ok(None) };
        let folder = self.layout.job_folder(JobId(job)).join(allocation_folder_name(attempt, part));
        Ok(read_order(&folder)?.filter(|order| order.name == name))
    }

    /// Whether any of its workers is not released, but for those that were told to end and have never said anything.
    fn is_wanted(&self, order: &AllocationRequest) -> io::Result<bool> {
        for ordered in &order.workers {
            let worker = ordered.worker;
            let never_began =
                || Ok::<_, io::Error>(self.is_told_to_stop(worker)? && self.status(worker)?.is_none());
            if self.marker(worker).try_exists()? && !never_began()? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
