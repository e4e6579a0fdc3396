//! Start times kept for the heads of lines.
//!
//! A reservation is a placement at the time at which running jobs, ending as expected, leave room for it. What is free
//! of it already is withheld from those who would still run then. It is a promise about expectations, not about the
//! world: a job that outlives its estimate moves it.

use std::collections::BTreeSet;
use std::sync::Arc;

use danlu_types::JobId;
use danlu_types::reason::QuotaResource;
use jiff::{SignedDuration, Timestamp};

use super::future::{Future, departures};
use super::non_reclaimable::NonReclaimableAt;
use super::pass::{Pass, UsageEntry};
use super::queue::{JobClass, Pools, QueueKey, QueuedJob};
use super::quota_filter::{QuotaBlocker, exceeds, narrowed};
use super::running::SHORTEST;
use super::running::{Ends, after};
use super::usage::ResourceVector;
use super::workspaces::WorkspaceIndex;
use super::{Reservation, Scheduler};
use crate::fleet::{KindSet, Placement, PlacementConstraints, ShapeId, WorkerPlacement};

/// A workspace and the kinds of devices its head waits for.
pub(super) type QueueSlot = (WorkspaceIndex, Pools);

/// A reservation as it is kept from pass to pass.
#[derive(Debug, Clone)]
pub(super) struct CachedReservation {
    job: JobId,
    at: Timestamp,
    computed_at: Timestamp,
    placement: Placement,
    spare: Spare,
    /// Who of those that run now uses what firmly then.
    pub(super) firm: Option<Arc<NonReclaimableAt>>,
    /// What its workspace used when it was computed.
    used: ResourceVector,
}

/// A reservation in a pass.
#[derive(Debug)]
pub(super) struct Reserved {
    pub(super) job: JobId,
    pub(super) at: Timestamp,
    /// What is taken out of the fleet for it: part for part of its placement, what of that is free.
    pub(super) withheld: Placement,
    /// Whether its workspace's guarantee covers it.
    pub(super) is_entitled: bool,
    key: QueueSlot,
    kept: CachedReservation,
    spare: Spare,
    firm: Option<Arc<NonReclaimableAt>>,
    pub(super) entry: UsageEntry,
}

/// Something that will be held although nobody runs there yet.
#[derive(Debug, Clone)]
pub(super) struct PendingStart {
    pub(super) job: JobId,
    /// When it begins; it counts against quotas already if it has begun.
    pub(super) from: Option<Timestamp>,
    pub(super) until: Timestamp,
    pub(super) placement: Placement,
    /// What of the placement is taken out of the fleet, part for part.
    pub(super) withheld: Placement,
    pub(super) entry: UsageEntry,
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
type Spare = [Option<u64>; QuotaResource::ALL.len()];

/// Heads that get a reservation in one pass; further back there is nothing left to reserve.
const MOST_RESERVATIONS: usize = 32;
/// A reservation is computed anew after this time, or an eighth of the time to its start, if that is longer.
const FRESH_FOR: SignedDuration = SignedDuration::from_secs(30);

impl CachedReservation {
    pub(super) fn job(&self) -> JobId {
        self.job
    }

    pub(super) fn at(&self) -> Timestamp {
        self.at
    }

    pub(super) fn placement(&self) -> &Placement {
        &self.placement
    }
}

impl PendingStart {
    /// Whether everything is taken out of the fleet for it.
    pub(super) fn is_whole(&self) -> bool {
        self.withheld == self.placement
    }
}

impl Reserved {
    pub(super) fn is_of(&self, account: WorkspaceIndex) -> bool {
        self.key.0 == account
    }

    /// Whether so much use would leave its workspace's limit too little for it.
    pub(super) fn is_delayed_by(&self, usage: &ResourceVector) -> bool {
        exceeds(usage, &self.spare)
    }
}

impl Scheduler {
    /// For whom is kept what a job would need, if that is what it lacks.
    pub(super) fn kept_from(&mut self, waiting: &QueuedJob, shape: ShapeId) -> Option<JobId> {
        let job = waiting.place.job;
        let still_waits =
            |(for_job, _): &&(JobId, Placement)| *for_job != job && self.queue.get(*for_job).is_some();
        let kept: Vec<(JobId, Placement)> =
            self.findings.withheld.iter().filter(still_waits).cloned().collect();
        let wish = PlacementConstraints { avoid: &waiting.class.avoid, kinds: KindSet::ALL };
        let mark = self.fleet.mark();
        let withheld: Vec<(JobId, Placement)> =
            kept.iter().map(|(for_job, placement)| (*for_job, self.fleet.withhold(placement))).collect();
        let found = if self.fleet.fits(shape, &wish) {
            None
        } else {
            withheld.into_iter().find_map(|(for_job, withheld)| {
                self.fleet.free(&withheld);
                self.fleet.fits(shape, &wish).then_some(for_job)
            })
        };
        self.fleet.undo(mark);
        found
    }
}

impl Pass<'_> {
    /// Finds out when the head can start, and keeps what it needs.
    pub(super) fn reserve(
        &mut self,
        account: WorkspaceIndex,
        class: &Arc<JobClass>,
        place: QueueKey,
        pools: Pools,
    ) {
        if self.reserved.len() >= MOST_RESERVATIONS {
            return;
        }
        let (key, job) = ((account, pools), place.job);
        let books = self.scheduler.accounts.get(account);
        let known = self.scheduler.kept.get(&key).filter(|kept| {
            // What a limit leaves changes with every start of the workspace.
            (books.limit.is_empty() || books.used == kept.used)
                && kept.job == job
                && self.now < kept.at
                && self.is_fresh(kept)
                && self.is_undisturbed(kept)
        });
        let known = known.map(|kept| (kept.clone(), self.firm_in_pass(kept)));
        let known = known.filter(|(_, firm)| self.leaves_room_for_head(firm.as_deref()));
        let Some((kept, firm)) = known.or_else(|| self.keep(class, job)) else { return };
        let Some(entry) = self.entry_of(class, job, &ResourceVector::of_placement(&kept.placement)) else {
            return;
        };
        let is_entitled = self.widest_right(class, class.shape).is_some();
        let withheld = self.scheduler.fleet.withhold(&kept.placement);
        self.searches.forget();
        let (at, spare) = (kept.at, kept.spare);
        self.reserved.push(Reserved { job, at, withheld, is_entitled, key, kept, spare, firm, entry });
    }

    fn is_fresh(&self, kept: &CachedReservation) -> bool {
        let lead = kept.at.duration_since(kept.computed_at) / 8;
        self.now.duration_since(kept.computed_at) < lead.max(FRESH_FOR)
    }

    /// Whether nobody who comes before it will be on any of its nodes then: as far as this pass knows, the others were
    /// there when it was computed.
    fn is_undisturbed(&self, kept: &CachedReservation) -> bool {
        let takes = |placement: &Placement, until: Timestamp| {
            let is_there =
                |part: &WorkerPlacement| kept.placement.parts.iter().any(|own| own.node == part.node);
            until > kept.at && placement.parts.iter().any(is_there)
        };
        let promises = self.promises.iter().map(|promise| (&promise.placement, promise.until));
        let reserved = self
            .reserved
            .iter()
            .map(|reserved| (&reserved.kept.placement, self.end_expected_of(reserved.job, reserved.at)));
        !promises.chain(reserved).any(|(placement, until)| takes(placement, until))
    }

    fn keep(
        &mut self,
        class: &JobClass,
        job: JobId,
    ) -> Option<(CachedReservation, Option<Arc<NonReclaimableAt>>)> {
        let Opening { at, placement, spare, .. } = self.opening(class, Ends::as_expected())?;
        let used = self.scheduler.accounts.get(class.account).used;
        let firm = self.firm_at(class, &ResourceVector::of_placement(&placement), at).map(Arc::new);
        let kept = CachedReservation { job, at, computed_at: self.now, placement, spare, firm, used };
        let firm = self.firm_in_pass(&kept);
        Some((kept, firm))
    }

    /// Lets running jobs end, in the order and at the times given, until the job fits beside those who come before it.
    pub(super) fn opening(&mut self, class: &JobClass, mut ends: Ends) -> Option<Opening> {
        let mark = self.scheduler.fleet.mark();
        let departures = self.departures.get_or_init(|| departures(&self.scheduler.fleet, self.now));
        let mut future = Future::new(self.promises(), Arc::clone(departures));
        for victim in self.victims.clone() {
            self.let_go(victim);
            future.collect(&mut self.scheduler.fleet, None);
        }
        let mut ended: Vec<JobId> = Vec::new();
        let mut next_end = ends.next(&self.scheduler.running, &self.victims);
        let graces = self.victims.iter().filter_map(|victim| self.scheduler.running.get(*victim));
        let mut at = graces.map(|victim| after(self.now, victim.grace)).fold(self.now, Timestamp::max);
        let found = loop {
            if let Ok(shape) = self.within_quota(class, class.shape)
                && let Ok(shape) = self.beside_firm_heads(class, shape, at)
                && let Some(placement) = self.place(class, shape)
            {
                break Some(placement);
            }
            match future.next() {
                Some(time) if next_end.is_none_or(|(end, _)| time < end) => {
                    at = time.max(at);
                    future.step(self.scheduler);
                }
                _ => {
                    let Some((end, next)) = next_end else { break None };
                    next_end = ends.next(&self.scheduler.running, &self.victims);
                    at = end.max(at);
                    self.let_go(next);
                    ended.push(next);
                    let placement = self.scheduler.running.get(next).map(|running| &running.placement);
                    future.collect(&mut self.scheduler.fleet, placement);
                }
            }
        };
        let found = found.map(|placement| {
            (self.spare_beside(class, &ResourceVector::of_placement(&placement)), placement)
        });
        self.scheduler.fleet.undo(mark);
        future.undo(self.scheduler);
        for job in self.victims.clone().into_iter().chain(ended.iter().copied()) {
            self.book_again(job);
        }
        let (spare, placement) = found?;
        Some(Opening { at, placement, spare, ended })
    }

    /// What comes before a job that is looked at now: what starts in this pass, what others are stopped for, and heads
    /// that were reserved for before.
    fn promises(&self) -> Vec<Arc<PendingStart>> {
        let promise = |reserved: &Reserved| PendingStart {
            job: reserved.job,
            from: Some(reserved.at),
            until: self.end_expected_of(reserved.job, reserved.at),
            placement: reserved.kept.placement.clone(),
            withheld: reserved.withheld.clone(),
            entry: reserved.entry.clone(),
        };
        let reserved = self.reserved.iter().map(|reserved| Arc::new(promise(reserved)));
        self.promises.iter().cloned().chain(reserved).collect()
    }

    /// When a waiting job should end that starts at a given time.
    pub(super) fn end_expected_of(&self, job: JobId, start: Timestamp) -> Timestamp {
        let waiting = self.scheduler.queue.get(job);
        waiting.map_or(start, |waiting| after(start, waiting.estimate.most.max(SHORTEST)))
    }

    fn spare_beside(&self, class: &JobClass, usage: &ResourceVector) -> Spare {
        let account = self.scheduler.accounts.get(class.account);
        let after = account.used.plus(usage);
        QuotaResource::ALL
            .map(|resource| account.limit.get(resource).map(|most| most.saturating_sub(after.get(resource))))
    }

    /// A job that starts and will still run when a head of its workspace should, uses up what that leaves.
    pub(super) fn use_spare(&mut self, class: &JobClass, usage: &ResourceVector) {
        let end = after(self.now, class.expected());
        let own = self.reserved.iter_mut();
        for reserved in own.filter(|reserved| reserved.key.0 == class.account && end > reserved.at) {
            for resource in QuotaResource::ALL {
                if let Some(spare) = &mut reserved.spare[resource as usize] {
                    *spare = spare.saturating_sub(usage.get(resource));
                }
            }
        }
    }

    /// The part of a shape that, started at a time, leaves earlier heads what they need of what is guaranteed to nobody.
    pub(super) fn beside_firm_heads(
        &mut self,
        class: &JobClass,
        shape: ShapeId,
        at: Timestamp,
    ) -> Result<ShapeId, QuotaBlocker> {
        let end = after(at, class.expected());
        let Scheduler { fleet, accounts, .. } = &mut *self.scheduler;
        let later = self.reserved.iter().filter(|reserved| at <= reserved.at && reserved.at < end);
        let firm = later.filter_map(|reserved| Some((reserved.job, reserved.firm.as_deref()?)));
        narrowed(fleet, shape, KindSet::ALL, |usage| {
            let mut firm = firm.clone();
            match firm.find(|(_, then)| accounts.delays(then, class.account, usage, class.preemptible)) {
                Some((for_job, _)) => Err(QuotaBlocker::FirmlyReserved { for_job }),
                None => Ok(()),
            }
        })
    }

    /// The same for what others than heads use firmly, from now on.
    pub(super) fn use_firm(&mut self, class: &JobClass, usage: &ResourceVector) {
        let end = after(self.now, class.expected());
        for reserved in self.reserved.iter_mut().filter(|reserved| end > reserved.at) {
            if let Some(then) = &mut reserved.firm {
                let then = Arc::make_mut(then);
                self.scheduler.accounts.add_firm(then, class.account, usage, class.preemptible);
            }
        }
    }

    /// A head that starts after all, on what is kept for another, needs its own reservation no more.
    pub(super) fn drop_reservation(&mut self, job: JobId) {
        for reserved in self.reserved.iter_mut().filter(|reserved| reserved.job == job) {
            self.scheduler.fleet.free(&reserved.withheld);
            reserved.withheld.parts.clear();
        }
    }

    /// Those of heads that started after all are kept too, so that planning again finds the same.
    pub(super) fn keep_reservations(&mut self) {
        self.scheduler.kept.clear();
        // One that has its devices and waits for its quota only keeps them as well.
        let started: BTreeSet<JobId> = self.plan.starts.iter().map(|start| start.job).collect();
        let claims = self.promises.iter().filter(|promise| !started.contains(&promise.job));
        self.scheduler.findings.withheld = claims.map(|claim| (claim.job, claim.withheld.clone())).collect();
        for Reserved { job, at, key, kept, withheld, .. } in std::mem::take(&mut self.reserved) {
            self.scheduler.findings.withheld.push((job, withheld));
            if !self.settled.contains(&job) {
                let mut grants = self.scheduler.fleet.grants(&kept.placement);
                // Which worker gets which is decided when it starts; until then the order says nothing, and depends on the past.
                grants.sort_by(|one, other| (&one.node, &one.devices).cmp(&(&other.node, &other.devices)));
                self.plan.reservations.push(Reservation { job, at, grants });
            }
            self.scheduler.kept.insert(key, kept);
        }
    }
}
