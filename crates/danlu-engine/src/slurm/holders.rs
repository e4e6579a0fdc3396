//! Jobs of other people on the same cluster: two questions for all of them, with each inventory.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::PoisonError;

use danlu_core::slurm::{
    HoldingJob, PLACES_FORMAT, allocation_folder_name, keep_listed, order_of_name, parse_holders,
};
use danlu_types::JobId;

use super::SlurmEngine;
use super::folders::{Folders, read_order};

#[derive(Debug, Default)]
pub(super) struct Holders {
    /// As Slurm last said it.
    jobs: Vec<HoldingJob>,
    /// Whether a job is ours, for those that were looked at: files need not be read again.
    ours: BTreeMap<u64, bool>,
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
        let known = self.holders.lock().unwrap_or_else(PoisonError::into_inner).ours.clone();
        let sorted = self.blocking(move |folders, _| Ok(without_ours(found, known, folders))).await;
        let mut holders = self.holders.lock().unwrap_or_else(PoisonError::into_inner);
        if let Ok((jobs, ours)) = sorted {
            *holders = Holders { jobs, ours };
        }
        holders.jobs.clone()
    }
}

fn without_ours(
    found: Vec<HoldingJob>,
    mut known: BTreeMap<u64, bool>,
    folders: &Folders,
) -> (Vec<HoldingJob>, BTreeMap<u64, bool>) {
    let present: BTreeSet<u64> = found.iter().map(|job| job.id).collect();
    known.retain(|id, _| present.contains(id));
    let mut others = Vec::new();
    for job in found {
        let is_ours = known.get(&job.id).copied().map_or_else(|| folders.is_ours(&job.name), Ok);
        // What cannot be told now is looked at again: nothing of ours is to count twice.
        if let Ok(is_ours) = is_ours {
            known.insert(job.id, is_ours);
            if !is_ours {
                others.push(job);
            }
        }
    }
    (others, known)
}

impl Folders {
    /// Whether an order of ours has this name. Other servers name theirs alike, but never the same.
    fn is_ours(&self, name: &str) -> io::Result<bool> {
        let Some((job, attempt, part)) = order_of_name(name) else { return Ok(false) };
        let folder = self.layout.job_folder(JobId(job)).join(allocation_folder_name(attempt, part));
        Ok(read_order(&folder)?.is_some_and(|order| order.name == name))
    }
}
