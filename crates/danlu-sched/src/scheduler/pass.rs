//! One pass: who starts now, in which order, and who has to give way.
//!
//! Workspaces take turns, the one with the smallest share first, each with its own line of jobs. A job that may not
//! start heads its line; what that means for those behind it is the workspace's policy. Everything a pass does to the
//! books (places taken, quotas used) is undone at its end.

use std::cell::OnceCell;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::sync::Arc;

use danlu_types::{HeadOfLine, JobId};
use jiff::Timestamp;

use super::future::Departures;
use super::preempt::Searches;
use super::queue::{JobClass, Pools, QueueKey};
use super::quota_filter::QuotaBlocker;
use super::reserve::{PendingStart, Reserved};
use super::running::after;
use super::usage::ResourceVector;
use super::wait::Blocker;
use super::workspace_queue::{Candidate, Rooms, WorkspaceQueue};
use super::workspaces::{OverQuota, PreemptionRight, Share, WorkspaceIndex};
use super::{JobStart, Plan, Scheduler};
use crate::fleet::{KindSet, Placement, PlacementConstraints, ShapeId};

#[derive(Debug)]
pub(super) struct Pass<'s> {
    pub(super) scheduler: &'s mut Scheduler,
    pub(super) now: Timestamp,
    pub(super) plan: Plan,
    /// What the pass added to accounts, to be taken out again.
    entries: Vec<UsageEntry>,
    pub(super) lines: BTreeMap<WorkspaceIndex, WorkspaceQueue>,
    /// Jobs that this pass is done with.
    pub(super) settled: BTreeSet<JobId>,
    pub(super) reserved: Vec<Reserved>,
    /// What starts in this pass, or will when others have ended: nobody runs there yet.
    pub(super) promises: Vec<Arc<PendingStart>>,
    /// Victims chosen in this pass.
    pub(super) victims: BTreeSet<JobId>,
    /// By workspace, what those hold that have been told to end.
    pub(super) leaving: BTreeMap<WorkspaceIndex, ResourceVector>,
    /// Jobs count as victims that may be stopped by then: now, unless it is only asked what will be.
    pub(super) takes_until: Timestamp,
    /// How many more running jobs this pass may look at in search of victims.
    pub(super) looks_left: usize,
    pub(super) searches: Searches,
    /// What was found out about jobs alike to a class but for their lengths. Room only shrinks in the course of the first
    /// sweep, so that it holds for the rest of it; but where somebody could be made to give way, only for others as
    /// important and until something else is decided.
    blocked: BTreeMap<Alike, (Blocker, u64)>,
    /// Where there was room when the sweep began.
    pub(super) rooms: Rooms,
    /// Once somebody has asked.
    pub(super) departures: OnceCell<Departures>,
}

/// What those have in common who differ in length only: their workspace, as what they may start, which lines they may head,
/// whether they are preemptible, and, if anybody is, what they wish for, whose they are and how important.
type Alike = (WorkspaceIndex, ShapeId, Pools, bool, Option<(ShapeId, u8, Option<Arc<str>>)>);

/// A job's use of its workspace's quota.
#[derive(Debug, Clone)]
pub(super) struct UsageEntry {
    pub(super) account: WorkspaceIndex,
    pub(super) owner: Arc<str>,
    pub(super) usage: ResourceVector,
    pub(super) preemptible: bool,
}

/// Which jobs a sweep looks at.
#[derive(Debug, Clone, Copy)]
enum Sweep {
    Everybody,
    /// Those that should end before a reservation begins, on what is kept for it.
    EndingBy(Timestamp),
}

enum PassDecision {
    /// It starts, or will when others have ended.
    Settled,
    Blocked(Blocker),
}

impl Scheduler {
    /// Decides what to do now. Nothing is changed by it that a second call would notice.
    pub fn plan(&mut self, now: Timestamp) -> Plan {
        self.queue.wake(now);
        self.put_off_overdue(now);
        self.findings.verdicts.clear();
        if self.reserves_anew {
            self.kept.clear();
        }
        let mark = self.fleet.mark();
        let mut pass = Pass::new(self, now);
        pass.claims();
        pass.sweep(Sweep::Everybody);
        pass.fill_reservations();
        let plan = pass.finish();
        self.fleet.undo(mark);
        plan
    }
}

impl<'s> Pass<'s> {
    pub(super) fn new(scheduler: &'s mut Scheduler, now: Timestamp) -> Self {
        let mut leaving: BTreeMap<WorkspaceIndex, ResourceVector> = BTreeMap::new();
        for (_, running) in scheduler.running.stopping() {
            leaving.entry(running.account).or_default().add(&running.usage);
        }
        Pass {
            scheduler,
            now,
            plan: Plan::default(),
            entries: Vec::new(),
            lines: BTreeMap::new(),
            settled: BTreeSet::new(),
            reserved: Vec::new(),
            promises: Vec::new(),
            victims: BTreeSet::new(),
            leaving,
            takes_until: now,
            looks_left: super::preempt::MOST_LOOKS,
            searches: Searches::default(),
            blocked: BTreeMap::new(),
            rooms: Rooms::default(),
            departures: OnceCell::new(),
        }
    }

    fn sweep(&mut self, sweep: Sweep) {
        self.open_lines(sweep);
        let accounts: Vec<WorkspaceIndex> = self.lines.keys().copied().collect();
        let mut turns: BinaryHeap<Reverse<(Share, QueueKey, WorkspaceIndex)>> =
            accounts.into_iter().filter_map(|account| self.turn(account)).map(Reverse).collect();
        while let Some(Reverse((_, _, account))) = turns.pop() {
            let Some(line) = self.lines.get_mut(&account) else { continue };
            let Some(candidate) = line.open.pop_first() else { continue };
            let Candidate { place, class, had_room } = &candidate;
            let is_settled = self.settled.contains(&place.job);
            let outcome = if is_settled { PassDecision::Settled } else { self.consider(&candidate, sweep) };
            match outcome {
                PassDecision::Settled => {
                    let next = self.scheduler.queue.after(class, *place);
                    let next =
                        next.map(|place| Candidate { place, class: class.clone(), had_room: *had_room });
                    if let Some(line) = self.lines.get_mut(&account) {
                        line.open.extend(next);
                    }
                }
                PassDecision::Blocked(verdict) => {
                    if let Sweep::Everybody = sweep {
                        self.scheduler.findings.verdicts.insert(class.clone(), verdict);
                    }
                }
            }
            if !candidate.had_room {
                self.open_hopeless(account);
            }
            turns.extend(self.turn(account).map(Reverse));
        }
    }

    fn turn(&self, account: WorkspaceIndex) -> Option<(Share, QueueKey, WorkspaceIndex)> {
        let Candidate { place, .. } = self.lines.get(&account)?.open.first()?;
        Some((self.scheduler.accounts.share(account), *place, account))
    }

    /// The first of each class; in the second sweep only where there is room.
    fn open_lines(&mut self, sweep: Sweep) {
        let Scheduler { fleet, queue, running, accounts, .. } = &mut *self.scheduler;
        let nobody_gives_way = running.preemptible().next().is_none();
        let ends_by = match sweep {
            Sweep::Everybody => None,
            Sweep::EndingBy(at) => Some(longest_until(self.now, at)),
        };
        self.rooms = Rooms::default();
        for (account, firsts) in queue.firsts() {
            let policy = accounts.get(account).head_of_line;
            let passes_heads = matches!(policy, HeadOfLine::Backfill | HeadOfLine::Skip);
            let line = self.lines.entry(account).or_default();
            for (&place, first) in firsts {
                if ends_by.is_some_and(|longest| longest.is_none_or(|longest| first.length > longest)) {
                    continue;
                }
                let had_room = if first.is_wary {
                    fleet.fits(
                        first.shape,
                        &PlacementConstraints { avoid: &first.class.avoid, kinds: KindSet::ALL },
                    )
                } else {
                    self.rooms.look(fleet, first.shape)
                };
                if !had_room && ends_by.is_some() {
                    continue;
                }
                if !had_room && nobody_gives_way && passes_heads && !first.is_wary {
                    line.add_hopeless(place, first);
                } else {
                    line.open.insert(Candidate { place, class: first.class.clone(), had_room });
                }
            }
        }
        let accounts: Vec<WorkspaceIndex> = self.lines.keys().copied().collect();
        for account in accounts {
            self.open_hopeless(account);
        }
    }

    fn consider(&mut self, candidate: &Candidate, sweep: Sweep) -> PassDecision {
        let Candidate { place, class, .. } = candidate;
        let (account, job) = (class.account, place.job);
        let pools = class.pools;
        let policy = self.scheduler.accounts.get(account).head_of_line;
        let kinds = match self.open_kinds(account, pools, policy) {
            Ok(kinds) => kinds,
            Err(verdict) => return PassDecision::Blocked(verdict),
        };
        let allowed = self.allowed(class, kinds);
        let is_ordinary =
            matches!(sweep, Sweep::Everybody) && class.avoid.is_empty() && !self.scheduler.searches_anew;
        let nobody_gives_way = self.scheduler.running.preemptible().next().is_none();
        let moment = if nobody_gives_way { 0 } else { self.searches.moment() };
        let passes_heads = matches!(policy, HeadOfLine::Backfill | HeadOfLine::Skip);
        let alike = allowed.ok().filter(|_| is_ordinary && (nobody_gives_way || passes_heads)).map(|shape| {
            let of_whom = (!nobody_gives_way).then(|| (class.shape, place.priority.0, class.user.clone()));
            (account, shape, pools, class.preemptible, of_whom)
        });
        if let Some(&(verdict, at)) = alike.as_ref().and_then(|alike| self.blocked.get(alike))
            && at == moment
        {
            return PassDecision::Blocked(verdict);
        }
        if let Ok(shape) = allowed
            && let Some(placement) = self.place(class, shape)
        {
            self.start(class, job, &placement);
            return PassDecision::Settled;
        }
        if matches!(sweep, Sweep::EndingBy(_)) {
            return PassDecision::Blocked(Blocker::NoRoom { shape: class.shape });
        }
        if let Ok(shape) = allowed
            && let Some(placement) = self.place_before_borrowers(class, shape)
        {
            self.start(class, job, &placement);
            return PassDecision::Settled;
        }
        let is_reserved = matches!(allowed, Err(QuotaBlocker::Reserved { .. }));
        let is_firmly_reserved = matches!(allowed, Err(QuotaBlocker::FirmlyReserved { .. }));
        if !is_reserved && !is_firmly_reserved && self.preempt_for(class, *place, kinds) {
            return PassDecision::Settled;
        }
        let verdict = match allowed {
            Err(refusal) => refusal.verdict(),
            Ok(shape) => Blocker::NoRoom { shape },
        };
        // One whose owner has enough keeps nobody else waiting, and neither does one that is held up by its head.
        if !is_reserved && !matches!(allowed, Err(QuotaBlocker::Quota(OverQuota::User(_)))) {
            self.head(account, class, *place, pools, policy);
        }
        if let Some(alike) = alike {
            self.blocked.insert(alike, (verdict, moment));
        }
        PassDecision::Blocked(verdict)
    }

    pub(super) fn place(&mut self, class: &JobClass, shape: ShapeId) -> Option<Placement> {
        self.scheduler.fleet.place(shape, &PlacementConstraints { avoid: &class.avoid, kinds: KindSet::ALL })
    }

    /// A job within its workspace's guarantee need not wait for what is kept for others that are not.
    fn place_before_borrowers(&mut self, class: &JobClass, shape: ShapeId) -> Option<Placement> {
        let is_in_the_way = |reserved: &Reserved| !reserved.is_entitled && !reserved.is_of(class.account);
        if !self.reserved.iter().any(is_in_the_way) {
            return None;
        }
        let rights = [PreemptionRight::TakeBack, PreemptionRight::TakeBackAndPushOutOwn];
        let shape = self.with_right(class, shape, &rights)?;
        for reserved in self.reserved.iter().filter(|reserved| is_in_the_way(reserved)) {
            self.scheduler.fleet.free(&reserved.withheld);
        }
        let placement = self.place(class, shape);
        for reserved in self.reserved.iter_mut().filter(|reserved| is_in_the_way(reserved)) {
            reserved.withheld = self.scheduler.fleet.withhold(&reserved.withheld);
        }
        placement
    }

    pub(super) fn start(&mut self, class: &Arc<JobClass>, job: JobId, placement: &Placement) {
        let usage = ResourceVector::of_placement(placement);
        let Some(entry) = self.entry_of(class, job, &usage) else { return };
        self.promises.push(Arc::new(PendingStart {
            job,
            from: None,
            until: self.end_expected_of(job, self.now),
            placement: placement.clone(),
            withheld: placement.clone(),
            entry: entry.clone(),
        }));
        self.enter(entry);
        self.use_spare(class, &usage);
        self.use_firm(class, &usage);
        self.drop_reservation(job);
        self.settled.insert(job);
        let seen = self.scheduler.queue.get(job).map_or(0, |waiting| waiting.generation);
        self.plan.starts.push(JobStart { job, grants: self.scheduler.fleet.grants(placement), seen });
    }

    pub(super) fn entry_of(
        &self,
        class: &JobClass,
        job: JobId,
        usage: &ResourceVector,
    ) -> Option<UsageEntry> {
        let owner = self.scheduler.queue.get(job)?.owner.clone();
        Some(UsageEntry { account: class.account, owner, usage: *usage, preemptible: class.preemptible })
    }

    /// What the pass has added to accounts.
    pub(super) fn entries(&self) -> &[UsageEntry] {
        &self.entries
    }

    /// Adds a job's use to its account for the rest of the pass.
    pub(super) fn enter(&mut self, entry: UsageEntry) {
        self.scheduler.enter(&entry);
        self.searches.forget();
        self.entries.push(entry);
    }

    /// What is kept for heads may be used by those who should have ended by then.
    fn fill_reservations(&mut self) {
        for position in 0..self.reserved.len() {
            let at = self.reserved[position].at;
            let withheld = std::mem::take(&mut self.reserved[position].withheld.parts);
            let withheld = Placement { parts: withheld, ..self.reserved[position].withheld };
            if !withheld.has_anything() {
                continue;
            }
            self.lines.values_mut().for_each(WorkspaceQueue::clear);
            self.scheduler.fleet.free(&withheld);
            self.sweep(Sweep::EndingBy(at));
            if !self.settled.contains(&self.reserved[position].job) {
                self.reserved[position].withheld = self.scheduler.fleet.withhold(&withheld);
            }
        }
    }

    pub(super) fn finish(mut self) -> Plan {
        for entry in std::mem::take(&mut self.entries).into_iter().rev() {
            self.scheduler.strike(&entry);
        }
        self.keep_reservations();
        let wakes = [self.scheduler.queue.next_wake(), self.plan.next_wake];
        self.plan.next_wake = wakes.into_iter().flatten().min();
        self.plan
    }
}

/// The longest class whose jobs should end by a time if they started now.
fn longest_until(now: Timestamp, at: Timestamp) -> Option<u8> {
    (0..=JobClass::LONGEST).rev().find(|length| after(now, JobClass::span_of(*length)) <= at)
}

impl Scheduler {
    /// Expects those later that should have ended and have not.
    pub(super) fn put_off_overdue(&mut self, now: Timestamp) {
        for (before, job) in self.running.put_off_overdue(now) {
            let Some(mut running) = self.running.get(job).cloned() else { continue };
            self.firm_joins(&running);
            running.expected_end = before;
            self.firm_leaves(&running);
        }
    }

    pub(super) fn enter(&mut self, entry: &UsageEntry) {
        self.accounts.add(entry.account, &entry.owner, &entry.usage, entry.preemptible);
    }

    pub(super) fn strike(&mut self, entry: &UsageEntry) {
        self.accounts.remove(entry.account, &entry.owner, &entry.usage, entry.preemptible);
    }
}

impl Placement {
    fn has_anything(&self) -> bool {
        self.parts.iter().any(|part| !part.devices.is_empty() || part.milli_cpus > 0 || part.bytes > 0)
    }
}
