//! The second half of a preemption: whoever others were stopped for gets what they leave.

use std::collections::BTreeSet;
use std::sync::Arc;

use danlu_types::JobId;

use super::pass::Pass;
use super::queue::{JobClass, QueueKey};
use super::reserve::PendingStart;
use super::usage::ResourceVector;
use super::wait::Blocker;
use super::workspaces::WorkspaceIndex;
use crate::fleet::Placement;

impl Pass<'_> {
    /// Jobs for which others are being stopped, or were, come first, and keep what those have left already.
    pub(super) fn claims(&mut self) {
        let scheduler = &*self.scheduler;
        let claimants: BTreeSet<JobId> =
            scheduler.running.claims().map(|(job, _)| job).chain(scheduler.queue.owed()).collect();
        let mut claimants: Vec<(_, Arc<JobClass>)> = claimants
            .into_iter()
            .filter_map(|job| scheduler.queue.get(job).filter(|waiting| waiting.not_before.is_none()))
            .map(|waiting| (waiting.place, waiting.class.clone()))
            .collect();
        claimants.sort_unstable_by_key(|(place, _)| *place);
        for (QueueKey { job, .. }, class) in claimants {
            if let Ok(shape) = self.within_quota(&class, class.shape)
                && let Some(placement) = self.place(&class, shape)
            {
                self.start(&class, job, &placement);
                continue;
            }
            let victims: Vec<JobId> = self.scheduler.running.victims_of(job).collect();
            if let Some(placement) = self.place_without(&class, &victims) {
                self.settle_claim(&class, job, &placement);
            }
        }
    }

    /// Where the job would go when these have ended.
    fn place_without(&mut self, class: &JobClass, victims: &[JobId]) -> Option<Placement> {
        if victims.is_empty() {
            return None;
        }
        let mark = self.scheduler.fleet.mark();
        for victim in victims {
            self.let_go(*victim);
        }
        let shape = self.within_quota(class, class.shape).ok();
        let placement = shape.and_then(|shape| self.place(class, shape));
        for victim in victims {
            self.book_again(*victim);
        }
        self.scheduler.fleet.undo(mark);
        placement
    }

    /// Keeps for a job what is free already of what it will get when its victims have ended.
    pub(super) fn settle_claim(&mut self, class: &Arc<JobClass>, job: JobId, placement: &Placement) {
        let withheld = self.scheduler.fleet.withhold(placement);
        let Some(entry) = self.entry_of(class, job, &ResourceVector::of_placement(placement)) else { return };
        self.promises.push(Arc::new(PendingStart {
            job,
            from: None,
            until: self.end_expected_of(job, self.now),
            placement: placement.clone(),
            withheld,
            entry: entry.clone(),
        }));
        self.use_firm(class, &entry.usage);
        self.enter(entry);
        self.settled.insert(job);
        self.scheduler.findings.verdicts.insert(class.clone(), Blocker::Preempting);
    }

    /// Tries what would be without a running job.
    pub(super) fn let_go(&mut self, job: JobId) {
        let scheduler = &mut *self.scheduler;
        if let Some(running) = scheduler.running.get(job) {
            scheduler.fleet.free(&running.placement);
            scheduler.accounts.remove(running.account, &running.owner, &running.usage, running.preemptible);
        }
    }

    /// Puts it back.
    pub(super) fn take_again(&mut self, job: JobId) {
        if let Some(running) = self.scheduler.running.get(job) {
            self.scheduler.fleet.allocate(&running.placement);
        }
        self.book_again(job);
    }

    /// Puts back its use, where the fleet is put back otherwise.
    pub(super) fn book_again(&mut self, job: JobId) {
        let scheduler = &mut *self.scheduler;
        if let Some(running) = scheduler.running.get(job) {
            scheduler.accounts.add(running.account, &running.owner, &running.usage, running.preemptible);
        }
    }

    /// What of a workspace's use is being given back.
    pub(super) fn leaving(&self, account: WorkspaceIndex) -> ResourceVector {
        self.leaving.get(&account).copied().unwrap_or_default()
    }
}
