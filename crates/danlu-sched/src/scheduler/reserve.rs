//! Start times kept for the heads of lines.
//!
//! A reservation is a placement at the time at which running jobs, ending as expected, leave room for it. What is free
//! of it already is withheld from those who would still run then. It is a promise about expectations, not about the
//! world: a job that outlives its estimate moves it.

use std::sync::Arc;

use danlu_types::JobId;
use jiff::{SignedDuration, Timestamp};

use super::accounts::AccountId;
use super::pass::{Pass, Pools};
use super::queue::{Class, Place};
use super::running::after;
use super::usage::{Resource, Usage};
use super::{Reservation, Running};
use crate::fleet::{KindSet, Placement, Wish};

/// A workspace and the kinds of devices its head waits for.
pub(super) type LineKey = (AccountId, Pools);

/// A reservation as it is kept from pass to pass.
#[derive(Debug, Clone)]
pub(super) struct Kept {
    job: JobId,
    at: Timestamp,
    computed_at: Timestamp,
    placement: Placement,
    spare: Spare,
}

/// A reservation in a pass.
#[derive(Debug)]
pub(super) struct Reserved {
    pub(super) job: JobId,
    pub(super) at: Timestamp,
    /// What is taken out of the fleet for it.
    pub(super) withheld: Placement,
    key: LineKey,
    kept: Kept,
    spare: Spare,
}

/// When a job fits, where, and who has to end for it.
#[derive(Debug)]
pub(super) struct Opening {
    pub(super) at: Timestamp,
    placement: Placement,
    spare: Spare,
    pub(super) ended: Vec<JobId>,
}

/// What its workspace's limit will leave beside the head when it starts; `None` where there is no limit.
type Spare = [Option<u64>; Resource::ALL.len()];

/// Heads that get a reservation in one pass; further back there is nothing left to reserve.
const MOST_RESERVATIONS: usize = 32;
/// A reservation is computed anew after this time, or an eighth of the time to its start, if that is longer.
const FRESH_FOR: SignedDuration = SignedDuration::from_secs(30);

impl Kept {
    pub(super) fn is_for(&self, job: JobId) -> bool {
        self.job == job
    }

    pub(super) fn at(&self) -> Timestamp {
        self.at
    }

    pub(super) fn placement(&self) -> &Placement {
        &self.placement
    }
}

impl Pass<'_> {
    /// Finds out when the head can start, and keeps what it needs.
    pub(super) fn reserve(&mut self, account: AccountId, class: &Arc<Class>, place: Place, pools: Pools) {
        if self.reserved.len() >= MOST_RESERVATIONS {
            return;
        }
        let (key, job) = ((account, pools), place.1);
        let has_limit = !self.scheduler.accounts.get(account).limit.is_empty();
        let known = self.scheduler.kept.get(&key).filter(|kept| {
            // What a limit leaves changes with every start of the workspace.
            !has_limit && kept.job == job && self.now < kept.at && self.is_fresh(kept)
        });
        let Some(kept) = known.cloned().or_else(|| self.keep(class, job)) else { return };
        let withheld = self.scheduler.fleet.withhold(&kept.placement);
        let (at, spare) = (kept.at, kept.spare);
        self.reserved.push(Reserved { job, at, withheld, key, kept, spare });
    }

    fn is_fresh(&self, kept: &Kept) -> bool {
        let lead = kept.at.duration_since(kept.computed_at) / 8;
        self.now.duration_since(kept.computed_at) < lead.max(FRESH_FOR)
    }

    fn keep(&mut self, class: &Class, job: JobId) -> Option<Kept> {
        let ends: Vec<(Timestamp, JobId)> =
            self.scheduler.running.by_end().map(|(end, job, _)| (end, job)).collect();
        let Opening { at, placement, spare, .. } = self.opening(class, job, &ends)?;
        Some(Kept { job, at, computed_at: self.now, placement, spare })
    }

    /// Lets running jobs end, in the order and at the times given, until the job fits.
    pub(super) fn opening(
        &mut self,
        class: &Class,
        job: JobId,
        ends: &[(Timestamp, JobId)],
    ) -> Option<Opening> {
        let mark = self.scheduler.fleet.mark();
        let mut ended: Vec<JobId> = Vec::new();
        let mut ends = ends.iter();
        let mut at = self.now;
        let found = loop {
            if let Ok(kinds) = self.kinds_within_quota(class, job)
                && let Some(placement) = self.place(class, kinds)
            {
                break Some(placement);
            }
            let Some(&(end, next)) = ends.next() else { break None };
            let Some(running) = self.scheduler.running.get(next) else { continue };
            if self.victims.contains(&next) {
                continue;
            }
            at = end.max(self.now);
            self.scheduler.fleet.give_back(&running.placement);
            let Running { account, owner, usage, preemptible, .. } = running;
            self.scheduler.accounts.remove(*account, owner, usage, *preemptible);
            ended.push(next);
        };
        let found = found.map(|placement| (self.spare_beside(class, &placement), placement));
        self.scheduler.fleet.undo(mark);
        for job in &ended {
            if let Some(Running { account, owner, usage, preemptible, .. }) = self.scheduler.running.get(*job)
            {
                self.scheduler.accounts.add(*account, owner, usage, *preemptible);
            }
        }
        let (spare, placement) = found?;
        Some(Opening { at, placement, spare, ended })
    }

    fn spare_beside(&self, class: &Class, placement: &Placement) -> Spare {
        let account = self.scheduler.accounts.get(class.account);
        let after = account.used.plus(&Usage::of_placement(placement));
        Resource::ALL
            .map(|resource| account.limit.get(resource).map(|most| most.saturating_sub(after.get(resource))))
    }

    /// Whether a job would use up what its workspace's limit has to leave to the head: whose, if so.
    pub(super) fn would_delay(&self, account: AccountId, class: &Class) -> Option<JobId> {
        let end = after(self.now, class.most());
        let shape = self.scheduler.fleet.shape_of(class.shape);
        let own = self.reserved.iter().filter(|reserved| reserved.key.0 == account && end > reserved.at);
        own.filter(|reserved| {
            shape.alternatives.iter().all(|ask| {
                let kinds = danlu_types::DeviceKind::ALL.into_iter();
                let mut kinds = kinds.filter(|kind| ask.kind.is_none_or(|asked| asked == *kind)).map(Some);
                let exceeds = |kind| {
                    let usage = Usage::of_gang(shape, ask, kind);
                    Resource::ALL.into_iter().any(|resource| {
                        usage.get(resource) > 0
                            && reserved.spare[resource as usize]
                                .is_some_and(|spare| usage.get(resource) > spare)
                    })
                };
                if ask.count.is_none() { exceeds(None) } else { kinds.all(exceeds) }
            })
        })
        .map(|reserved| reserved.job)
        .next()
    }

    /// A job that starts and will still run when a head of its workspace should, uses up what that leaves.
    pub(super) fn use_spare(&mut self, class: &Class, usage: &Usage) {
        let end = after(self.now, class.most());
        let own = self.reserved.iter_mut();
        for reserved in own.filter(|reserved| reserved.key.0 == class.account && end > reserved.at) {
            for resource in Resource::ALL {
                if let Some(spare) = &mut reserved.spare[resource as usize] {
                    *spare = spare.saturating_sub(usage.get(resource));
                }
            }
        }
    }

    /// Whether only what is kept for heads is missing.
    pub(super) fn fits_without_reservations(&mut self, class: &Class, kinds: KindSet) -> bool {
        let mark = self.scheduler.fleet.mark();
        for reserved in &self.reserved {
            self.scheduler.fleet.give_back(&reserved.withheld);
        }
        let fits = self.scheduler.fleet.fits(class.shape, &Wish { avoid: &class.avoid, kinds });
        self.scheduler.fleet.undo(mark);
        fits
    }

    pub(super) fn keep_reservations(&mut self) {
        self.scheduler.kept.clear();
        for Reserved { job, at, key, kept, .. } in std::mem::take(&mut self.reserved) {
            let grants = self.scheduler.fleet.grants(&kept.placement);
            self.plan.reservations.push(Reservation { job, at, grants });
            self.scheduler.kept.insert(key, kept);
        }
    }
}
