//! One pass: who starts now, in which order, and who has to give way.
//!
//! Workspaces take turns, the one with the smallest share first, each with its own line of jobs. A job that may not
//! start heads its line; what that means for those behind it is the workspace's policy. Everything a pass does to the
//! books (places taken, quotas used) is undone at its end.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::sync::Arc;

use danlu_types::{DeviceKind, HeadOfLine, JobId};
use jiff::{SignedDuration, Timestamp};

use super::accounts::{AccountId, OverQuota, Share};
use super::queue::{Class, Place};
use super::reserve::Reserved;
use super::running::after;
use super::usage::Usage;
use super::wait::Verdict;
use super::{Plan, Preemption, Scheduler, Start};
use crate::fleet::{KindSet, Placement, Wish};

/// Under `balance`, one more of those behind the head may be tried for each such time that the head has waited.
const BALANCE_STEP: SignedDuration = SignedDuration::from_mins(5);

/// Device kinds a job may run on, or the processors: who has none in common does not stand in each other's way.
pub(super) type Pools = u8;
const CPU_ONLY: Pools = 1 << DeviceKind::ALL.len();

#[derive(Debug)]
pub(super) struct Pass<'s> {
    pub(super) scheduler: &'s mut Scheduler,
    pub(super) now: Timestamp,
    pub(super) plan: Plan,
    /// What the pass added to accounts, to be taken out again.
    entries: Vec<Entry>,
    lines: BTreeMap<AccountId, Line>,
    /// Jobs that this pass is done with.
    settled: BTreeSet<JobId>,
    pub(super) reserved: Vec<Reserved>,
    /// Victims chosen in this pass.
    pub(super) victims: BTreeSet<JobId>,
    /// How many more times this pass may look for victims.
    pub(super) searches_left: u32,
}

#[derive(Debug, Clone)]
struct Entry {
    account: AccountId,
    owner: Arc<str>,
    usage: Usage,
    preemptible: bool,
    added: bool,
}

/// A workspace's jobs that may be tried, and the first that could not start.
#[derive(Debug, Default)]
struct Line {
    open: BTreeSet<(Place, Arc<Class>)>,
    heads: Vec<Head>,
    /// How many were tried behind a head.
    tried: u32,
}

#[derive(Debug)]
struct Head {
    job: JobId,
    pools: Pools,
    since: Timestamp,
}

/// Which jobs a sweep looks at.
#[derive(Debug, Clone, Copy)]
enum Sweep {
    Everybody,
    /// Those that should end before a reservation begins, on what is kept for it.
    EndingBy(Timestamp),
}

enum Outcome {
    Started,
    Blocked(Verdict),
}

impl Scheduler {
    /// Decides what to do now. Nothing is changed by it that a second call would notice.
    pub fn plan(&mut self, now: Timestamp) -> Plan {
        self.queue.wake(now);
        self.running.put_off_overdue(now);
        self.verdicts.clear();
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
        Pass {
            scheduler,
            now,
            plan: Plan::default(),
            entries: Vec::new(),
            lines: BTreeMap::new(),
            settled: BTreeSet::new(),
            reserved: Vec::new(),
            victims: BTreeSet::new(),
            searches_left: super::preempt::MOST_SEARCHES,
        }
    }

    /// Jobs for which others are being stopped come first, and keep what those have left already.
    fn claims(&mut self) {
        let claims: Vec<(JobId, Vec<JobId>)> = self
            .scheduler
            .running
            .claims()
            .map(|(job, victims)| (job, victims.iter().copied().collect()))
            .collect();
        for (job, victims) in claims {
            let Some(waiting) = self.scheduler.queue.get(job).filter(|waiting| waiting.not_before.is_none())
            else {
                continue;
            };
            let (class, place) = (waiting.class.clone(), waiting.place);
            let Ok(kinds) = self.kinds_within_quota(&class, place.1) else { continue };
            if let Some(placement) = self.place(&class, kinds) {
                self.start(&class, place.1, &placement);
                continue;
            }
            let mark = self.scheduler.fleet.mark();
            for victim in &victims {
                if let Some(running) = self.scheduler.running.get(*victim) {
                    self.scheduler.fleet.give_back(&running.placement);
                }
            }
            let placement = self.place(&class, kinds);
            self.scheduler.fleet.undo(mark);
            if let Some(placement) = placement {
                self.settle_claim(&class, job, &placement);
            }
        }
    }

    /// Keeps for a job what is free already of what it will get when its victims have ended.
    pub(super) fn settle_claim(&mut self, class: &Arc<Class>, job: JobId, placement: &Placement) {
        self.scheduler.fleet.withhold(placement);
        self.count(class, job, &Usage::of_placement(placement), true);
        self.settled.insert(job);
        self.scheduler.verdicts.insert(class.clone(), Verdict::Preempting);
    }

    fn sweep(&mut self, sweep: Sweep) {
        self.open_lines(sweep);
        let accounts: Vec<AccountId> = self.lines.keys().copied().collect();
        let mut turns: BinaryHeap<Reverse<(Share, Place, AccountId)>> =
            accounts.into_iter().filter_map(|account| self.turn(account)).map(Reverse).collect();
        while let Some(Reverse((_, _, account))) = turns.pop() {
            let Some(line) = self.lines.get_mut(&account) else { continue };
            let Some((place, class)) = line.open.pop_first() else { continue };
            let next = if self.settled.contains(&place.1) {
                self.scheduler.queue.after(&class, place)
            } else {
                match self.consider(account, &class, place, sweep) {
                    Outcome::Started => self.scheduler.queue.after(&class, place),
                    Outcome::Blocked(verdict) => {
                        self.scheduler.verdicts.insert(class.clone(), verdict);
                        None
                    }
                }
            };
            if let (Some(next), Some(line)) = (next, self.lines.get_mut(&account)) {
                line.open.insert((next, class));
            }
            turns.extend(self.turn(account).map(Reverse));
        }
    }

    fn turn(&self, account: AccountId) -> Option<(Share, Place, AccountId)> {
        let (place, _) = self.lines.get(&account)?.open.first()?;
        Some((self.scheduler.accounts.share(account), *place, account))
    }

    /// Classes that have room, and of those without the first of each line: it may become the head.
    fn open_lines(&mut self, sweep: Sweep) {
        let scheduler = &mut *self.scheduler;
        let mut blocked: BTreeMap<(AccountId, Pools), (Place, Arc<Class>)> = BTreeMap::new();
        let first_sweep = matches!(sweep, Sweep::Everybody);
        for (class, place) in scheduler.queue.classes() {
            if let Sweep::EndingBy(at) = sweep
                && after(self.now, class.most()) > at
            {
                continue;
            }
            let wish = Wish { avoid: &class.avoid, kinds: KindSet::ALL };
            if scheduler.fleet.fits(class.shape, &wish) {
                self.lines.entry(class.account).or_default().open.insert((place, class.clone()));
            } else if first_sweep {
                let pools = pools_of(&scheduler.fleet, class);
                let first = blocked.entry((class.account, pools)).or_insert_with(|| (place, class.clone()));
                if place < first.0 {
                    *first = (place, class.clone());
                }
            }
        }
        for ((account, _), first) in blocked {
            self.lines.entry(account).or_default().open.insert(first);
        }
    }

    fn consider(&mut self, account: AccountId, class: &Arc<Class>, place: Place, sweep: Sweep) -> Outcome {
        let pools = pools_of(&self.scheduler.fleet, class);
        let policy = self.scheduler.accounts.get(account).head_of_line;
        if let Some(verdict) = self.held_up_by_head(account, pools, policy) {
            return Outcome::Blocked(verdict);
        }
        let kinds = match self.kinds_within_quota(class, place.1) {
            Ok(kinds) => kinds,
            Err(over) => {
                if !matches!(over, OverQuota::User(_)) {
                    self.head(account, class, place, pools, policy, sweep);
                }
                return Outcome::Blocked(Verdict::OverQuota(over));
            }
        };
        if let Sweep::Everybody = sweep
            && let Some(head) = self.would_delay(account, class)
        {
            return Outcome::Blocked(Verdict::Reserved { for_job: head });
        }
        if let Some(placement) = self.place(class, kinds) {
            self.start(class, place.1, &placement);
            return Outcome::Started;
        }
        if matches!(sweep, Sweep::EndingBy(_)) {
            return Outcome::Blocked(Verdict::NoRoom);
        }
        if let Some(verdict) = self.preempt_for(class, place, kinds) {
            return Outcome::Blocked(verdict);
        }
        let first = self.reserved.first().map(|reserved| reserved.job);
        let verdict = match first {
            Some(for_job) if self.fits_without_reservations(class, kinds) => Verdict::Reserved { for_job },
            _ => Verdict::NoRoom,
        };
        self.head(account, class, place, pools, policy, sweep);
        Outcome::Blocked(verdict)
    }

    /// Whether the head of its line keeps a job from being tried.
    fn held_up_by_head(&mut self, account: AccountId, pools: Pools, policy: HeadOfLine) -> Option<Verdict> {
        let line = self.lines.get_mut(&account)?;
        let head = line.heads.iter().find(|head| head.pools & pools != 0)?;
        let job = head.job;
        match policy {
            HeadOfLine::Backfill | HeadOfLine::Skip => None,
            HeadOfLine::Strict => Some(Verdict::Behind { head: job }),
            HeadOfLine::Balance => {
                let steps = self.now.duration_since(head.since).as_millis() / BALANCE_STEP.as_millis();
                if i128::from(line.tried) < steps {
                    line.tried += 1;
                    return None;
                }
                let wider = BALANCE_STEP * i32::try_from(steps + 1).unwrap_or(i32::MAX);
                let next = head.since.saturating_add(wider).unwrap_or(Timestamp::MAX);
                self.plan.next_wake = self.plan.next_wake.into_iter().chain([next]).min();
                Some(Verdict::Behind { head: job })
            }
        }
    }

    /// The job could not start: it becomes the head of its line, unless there is one.
    fn head(
        &mut self,
        account: AccountId,
        class: &Arc<Class>,
        place: Place,
        pools: Pools,
        policy: HeadOfLine,
        sweep: Sweep,
    ) {
        let line = self.lines.entry(account).or_default();
        if matches!(sweep, Sweep::EndingBy(_)) || line.heads.iter().any(|head| head.pools & pools != 0) {
            return;
        }
        if !self.scheduler.is_possible(class.shape) {
            return;
        }
        let since = self.scheduler.queue.get(place.1).map_or(self.now, |waiting| waiting.since);
        // A head that has its devices and waits for processors keeps jobs without devices from taking them.
        let pools = match policy {
            HeadOfLine::Strict | HeadOfLine::Balance if self.scheduler.fleet.devices_fit(class.shape) => {
                pools | CPU_ONLY
            }
            _ => pools,
        };
        line.heads.push(Head { job: place.1, pools, since });
        if policy == HeadOfLine::Backfill {
            self.reserve(account, class, place, pools);
        }
    }

    /// The device kinds on which quotas let the job start.
    pub(super) fn kinds_within_quota(&self, class: &Class, job: JobId) -> Result<KindSet, OverQuota> {
        let scheduler = &*self.scheduler;
        let shape = scheduler.fleet.shape_of(class.shape);
        let owner = scheduler.queue.get(job).map_or("", |waiting| &*waiting.owner);
        let check = |usage: &Usage| scheduler.accounts.check(class.account, owner, usage, class.preemptible);
        let mut kinds = KindSet::NONE;
        let mut refused = None;
        for ask in &shape.alternatives {
            if ask.count.is_none() {
                check(&Usage::of_gang(shape, ask, None))?;
                return Ok(KindSet::ALL);
            }
            for kind in DeviceKind::ALL.into_iter().filter(|kind| ask.kind.is_none_or(|asked| asked == *kind))
            {
                match check(&Usage::of_gang(shape, ask, Some(kind))) {
                    Ok(()) => kinds = kinds.with(kind),
                    Err(over) => refused = refused.or(Some(over)),
                }
            }
        }
        match refused {
            Some(over) if kinds == KindSet::NONE => Err(over),
            _ => Ok(kinds),
        }
    }

    pub(super) fn place(&mut self, class: &Class, kinds: KindSet) -> Option<Placement> {
        self.scheduler.fleet.place(class.shape, &Wish { avoid: &class.avoid, kinds })
    }

    fn start(&mut self, class: &Arc<Class>, job: JobId, placement: &Placement) {
        let usage = Usage::of_placement(placement);
        self.count(class, job, &usage, true);
        self.use_spare(class, &usage);
        self.settled.insert(job);
        self.plan.starts.push(Start { job, grants: self.scheduler.fleet.grants(placement) });
    }

    /// Adds a waiting job's use to its account for the rest of the pass.
    fn count(&mut self, class: &Class, job: JobId, usage: &Usage, added: bool) {
        let Some(waiting) = self.scheduler.queue.get(job) else { return };
        let (owner, preemptible) = (waiting.owner.clone(), class.preemptible);
        self.enter(Entry { account: class.account, owner, usage: *usage, preemptible, added });
    }

    /// Takes a victim's use out of its account for the rest of the pass.
    pub(super) fn discount(&mut self, victim: JobId) {
        let Some(running) = self.scheduler.running.get(victim) else { return };
        let entry = Entry {
            account: running.account,
            owner: running.owner.clone(),
            usage: running.usage,
            preemptible: running.preemptible,
            added: false,
        };
        self.enter(entry);
    }

    fn enter(&mut self, entry: Entry) {
        book(self.scheduler, &entry, entry.added);
        self.entries.push(entry);
    }

    pub(super) fn preempted(
        &mut self,
        class: &Arc<Class>,
        place: Place,
        victims: &[JobId],
        placement: &Placement,
    ) {
        for &victim in victims {
            self.plan.preemptions.push(Preemption { victim, for_job: place.1 });
            self.victims.insert(victim);
            self.discount(victim);
        }
        self.settle_claim(class, place.1, placement);
    }

    /// What is kept for heads may be used by those who should have ended by then.
    fn fill_reservations(&mut self) {
        for position in 0..self.reserved.len() {
            let Reserved { at, withheld, .. } = &self.reserved[position];
            if withheld.parts.is_empty() {
                continue;
            }
            let (at, withheld) = (*at, withheld.clone());
            self.lines.clear();
            self.scheduler.fleet.give_back(&withheld);
            self.sweep(Sweep::EndingBy(at));
            self.scheduler.fleet.withhold(&withheld);
        }
    }

    fn finish(mut self) -> Plan {
        for entry in std::mem::take(&mut self.entries).into_iter().rev() {
            book(self.scheduler, &entry, !entry.added);
        }
        self.keep_reservations();
        let wakes = [self.scheduler.queue.next_wake(), self.plan.next_wake];
        self.plan.next_wake = wakes.into_iter().flatten().min();
        self.plan
    }
}

fn book(scheduler: &mut Scheduler, entry: &Entry, add: bool) {
    let Entry { account, owner, usage, preemptible, .. } = entry;
    if add {
        scheduler.accounts.add(*account, owner, usage, *preemptible);
    } else {
        scheduler.accounts.remove(*account, owner, usage, *preemptible);
    }
}

pub(super) fn pools_of(fleet: &crate::fleet::Fleet, class: &Class) -> Pools {
    let mut pools = 0;
    for ask in &fleet.shape_of(class.shape).alternatives {
        for (position, kind) in DeviceKind::ALL.into_iter().enumerate() {
            if !ask.count.is_none() && ask.kind.is_none_or(|asked| asked == kind) {
                pools |= 1 << position;
            }
        }
    }
    if pools == 0 { CPU_ONLY } else { pools }
}
