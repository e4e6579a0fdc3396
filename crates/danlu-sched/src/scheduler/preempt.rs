//! Who has to give way: the fewest jobs that make room, and of those the ones that lose the least work.
//!
//! A job may take from others in two ways. A workspace that uses less than it is guaranteed takes back what others
//! borrow; and within a workspace, a larger priority goes before a smaller one. Only preemptible jobs are taken, and
//! only after they have run for the minimum time. Whoever borrows gives back no more than that: a workspace that has come
//! down to its guarantee is left alone. And so is a job that should end by itself within the grace it would be given.
//!
//! The search goes node by node: for each, the fewest jobs whose end leaves room for one worker more. Of these the
//! cheapest nodes are put together until the gang fits, and whoever turns out to be spared is left alone. That is exact
//! for a job that runs on one node, as far as devices are interchangeable there and no more than eight jobs are.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use danlu_types::reason::QuotaResource;
use danlu_types::{JobId, Span};
use jiff::Timestamp;

use super::Preemption;
use super::pass::Pass;
use super::price::EvictionPrices;
use super::queue::{JobClass, QueueKey};
use super::running::{Running, after};
use super::usage::ResourceVector;
use super::workspaces::{OverQuota, PreemptionRight, WorkspaceIndex};
use crate::fleet::{KindSet, NodeId, Placement, PlacementConstraints, ShapeId};

/// A search looks at every preemptible job; all searches of a pass together look at so many. Who is left out has a turn
/// in a later pass.
pub(super) const MOST_LOOKS: usize = 64_000;
/// Even where no minimum run time is set: two that could take from each other must not do so without end at one moment.
const LEAST_RUN_TIME: Span = Span::from_seconds(1);

/// What a job may take, and on whose account.
#[derive(Debug)]
pub(super) struct Search<'a> {
    pub(super) class: &'a Arc<JobClass>,
    place: QueueKey,
    /// The part of its wishes it may take others' room for.
    pub(super) shape: ShapeId,
    right: Option<PreemptionRight>,
}

/// What searches of this pass found, as long as nothing has been decided since.
#[derive(Debug, Default)]
pub(super) struct Searches {
    /// Counts decisions.
    moment: u64,
    /// Who may be taken, by whom, of which priority, with which right.
    candidates: BTreeMap<(WorkspaceIndex, u8, Option<PreemptionRight>), Arc<[JobId]>>,
    /// Who found nobody to take.
    failed: BTreeSet<SearchKey>,
}

/// What tells one search from another.
type SearchKey = (WorkspaceIndex, u8, Option<PreemptionRight>, ShapeId, bool, Option<Arc<str>>, Vec<NodeId>);

impl Searches {
    /// Something was started, or is kept for somebody: nothing that was found need hold any more.
    pub(super) fn forget(&mut self) {
        *self = Searches { moment: self.moment + 1, ..Searches::default() };
    }

    /// Another one after each decision.
    pub(super) fn moment(&self) -> u64 {
        self.moment
    }
}

impl Search<'_> {
    /// Whether anybody of a workspace and priority could be one who may be taken.
    fn may_take_of(&self, (account, priority): (WorkspaceIndex, u8)) -> bool {
        if account == self.class.account {
            priority < self.place.priority.0 || self.right.is_some_and(PreemptionRight::pushes_out_own)
        } else {
            self.right.is_some_and(PreemptionRight::takes_back)
        }
    }

    fn asker(&self) -> SearchKey {
        let JobClass { account, preemptible, user, avoid, .. } = &**self.class;
        let priority = self.place.priority.0;
        (*account, priority, self.right, self.shape, *preemptible, user.clone(), avoid.clone())
    }
}

impl Pass<'_> {
    /// Finds victims for a job that could not start, if it may take from others.
    pub(super) fn preempt_for(&mut self, class: &Arc<JobClass>, place: QueueKey, kinds: KindSet) -> bool {
        if self.looks_left == 0 || self.scheduler.running.preemptible().next().is_none() {
            return false;
        }
        let wished = self.wished(class, kinds);
        let taking_back = self.with_right(
            class,
            wished,
            &[PreemptionRight::TakeBack, PreemptionRight::TakeBackAndPushOutOwn],
        );
        let pushing_out = self.with_right(class, wished, &[PreemptionRight::PushOutOwn]);
        let mut tried: Vec<ShapeId> = Vec::new();
        for shape in taking_back.into_iter().chain(pushing_out).chain([wished]) {
            if !tried.contains(&shape) {
                tried.push(shape);
                let is_mere_wish = taking_back != Some(shape) && pushing_out != Some(shape);
                let right = if is_mere_wish { None } else { self.widest_right(class, shape) };
                if self.search(&Search { class, place, shape, right }) {
                    return true;
                }
            }
        }
        false
    }

    fn search(&mut self, search: &Search<'_>) -> bool {
        if self.looks_left == 0 || !self.may_find_anybody(search) {
            return false;
        }
        let candidates = self.candidates(search);
        if candidates.is_empty() || self.searches.failed.contains(&search.asker()) {
            return false;
        }
        self.looks_left = self.looks_left.saturating_sub(candidates.len());
        let has_found = self.search_among(search, &candidates);
        if !has_found {
            self.searches.failed.insert(search.asker());
        }
        has_found
    }

    fn search_among(&mut self, search: &Search<'_>, candidates: &[JobId]) -> bool {
        let mark = self.scheduler.fleet.mark();
        let mut victims = BTreeSet::new();
        let placement = if self.choose(search, candidates, &mut victims) {
            self.spare_the_needless(search, &mut victims);
            self.room_for(search).and_then(|shape| self.place(search.class, shape))
        } else {
            None
        };
        for victim in &victims {
            self.book_again(*victim);
        }
        self.scheduler.fleet.undo(mark);
        let Some(placement) = placement.filter(|_| !victims.is_empty()) else { return false };
        self.preempt(search, &victims, &placement);
        true
    }

    fn preempt(&mut self, search: &Search<'_>, victims: &BTreeSet<JobId>, placement: &Placement) {
        for &victim in victims {
            self.plan.preemptions.push(Preemption { victim, for_job: search.place.job });
            self.victims.insert(victim);
            if let Some(running) = self.scheduler.running.get(victim) {
                self.leaving.entry(running.account).or_default().add(&running.usage);
            }
        }
        self.settle_claim(search.class, search.place.job, placement);
    }

    /// Whether anybody is there who may be taken, at little cost.
    fn may_find_anybody(&self, search: &Search<'_>) -> bool {
        self.scheduler.running.preemptible().any(|group| search.may_take_of(group))
    }

    /// Jobs that may be taken now.
    fn candidates(&mut self, search: &Search<'_>) -> Arc<[JobId]> {
        let key = (search.class.account, search.place.priority.0, search.right);
        if self.scheduler.searches_anew {
            self.searches.forget();
        }
        if let Some(known) = self.searches.candidates.get(&key) {
            return known.clone();
        }
        let scheduler = &*self.scheduler;
        let mut earliest: Option<Timestamp> = None;
        let mut candidates = Vec::new();
        let groups = scheduler.running.preemptible().filter(|group| search.may_take_of(*group));
        for (job, running) in groups.flat_map(|group| scheduler.running.preemptible_of(group)) {
            if self.victims.contains(&job) || !self.may_take(search, running) {
                continue;
            }
            let minimum = after(running.placed_at, scheduler.sharing.minimum_run_time.max(LEAST_RUN_TIME));
            let from = minimum.max(running.until_worth_stopping(self.now));
            if from > self.takes_until {
                earliest = earliest.into_iter().chain([from]).min();
            } else {
                candidates.push(job);
            }
        }
        self.plan.next_wake = self.plan.next_wake.into_iter().chain(earliest).min();
        let candidates: Arc<[JobId]> = candidates.into();
        self.searches.candidates.insert(key, candidates.clone());
        candidates
    }

    fn may_take(&self, search: &Search<'_>, running: &Running) -> bool {
        let priority = search.place.priority.0;
        let borrowed = || {
            let leaving = self.leaving(running.account);
            self.scheduler.accounts.borrows(running.account, running.usage.main_resource(), &leaving)
        };
        if running.account == search.class.account {
            let pushes = search.right.is_some_and(PreemptionRight::pushes_out_own);
            // Its own borrower gives way to a job that cannot borrow.
            return running.priority < priority || (pushes && running.priority == priority && borrowed());
        }
        search.right.is_some_and(PreemptionRight::takes_back) && borrowed()
    }

    /// Whether everybody still gives back no more than is borrowed, with `more` beside those that were let go: without the
    /// largest of its victims, a workspace would still borrow.
    pub(super) fn is_fair(&self, search: &Search<'_>, gone: &BTreeSet<JobId>, more: &[JobId]) -> bool {
        let mut given: BTreeMap<(WorkspaceIndex, QuotaResource), (ResourceVector, u64)> = BTreeMap::new();
        let additional = more.iter().map(|job| (job, true));
        for (job, is_more) in gone.iter().map(|job| (job, false)).chain(additional) {
            let Some(running) = self.scheduler.running.get(*job) else { continue };
            let by_priority =
                running.account == search.class.account && running.priority < search.place.priority.0;
            let resource = running.usage.main_resource();
            let (sum, largest) = given.entry((running.account, resource)).or_default();
            if is_more {
                sum.add(&running.usage);
            }
            if !by_priority {
                *largest = (*largest).max(running.usage.get(resource));
            }
        }
        given.into_iter().all(|((account, resource), (sum, largest))| {
            let leaving = self.leaving(account).plus(&sum);
            largest == 0 || self.scheduler.accounts.borrows_with(account, resource, &leaving, largest)
        })
    }

    /// Lets jobs go until the gang fits, the cheapest first. They are let go only for the moment.
    fn choose(&mut self, search: &Search<'_>, candidates: &[JobId], victims: &mut BTreeSet<JobId>) -> bool {
        if !self.relieve_quota(search, candidates, victims) {
            return false;
        }
        while self.room_for(search).is_none() {
            let gone = victims.clone();
            let mut prices = self.prices(search, candidates, &gone);
            // Each makes room for one at least, so that more are seldom needed.
            let mut wanted = self.workers_without_room(search);
            loop {
                let cheapest = self.cheapest(search, &gone, victims, &mut prices, wanted);
                if cheapest.is_empty() {
                    break;
                }
                wanted *= 2;
                for more in cheapest {
                    let is_new = more.iter().all(|victim| !victims.contains(victim));
                    if !is_new || !self.is_fair(search, victims, &more) {
                        continue;
                    }
                    for victim in &more {
                        self.let_go(*victim);
                    }
                    victims.extend(more);
                    if self.room_for(search).is_some() {
                        return true;
                    }
                }
            }
            if *victims == gone {
                return false;
            }
        }
        true
    }

    /// The next so many prices. All are those of the moment when no more than `gone` had been let go.
    fn cheapest(
        &mut self,
        search: &Search<'_>,
        gone: &BTreeSet<JobId>,
        victims: &BTreeSet<JobId>,
        prices: &mut EvictionPrices,
        wanted: usize,
    ) -> Vec<Vec<JobId>> {
        victims.difference(gone).for_each(|victim| self.take_again(*victim));
        let next = std::iter::from_fn(|| self.next_price(search, gone, prices));
        let cheapest = next.take(wanted).collect();
        victims.difference(gone).for_each(|victim| self.let_go(*victim));
        cheapest
    }

    fn workers_without_room(&mut self, search: &Search<'_>) -> usize {
        let wish = PlacementConstraints { avoid: &search.class.avoid, kinds: KindSet::ALL };
        let fleet = &mut self.scheduler.fleet;
        let (workers, room) = (fleet.shape_of(search.shape).workers, fleet.room(search.shape, &wish));
        workers.saturating_sub(room).max(1) as usize
    }

    /// Where a quota is in the way, its own workspace has to make room in that: those who use most of it first.
    fn relieve_quota(
        &mut self,
        search: &Search<'_>,
        candidates: &[JobId],
        victims: &mut BTreeSet<JobId>,
    ) -> bool {
        while let Err(over) = self.within_quota(search.class, search.shape) {
            let (resource, is_user) = match over {
                OverQuota::Workspace(resource) | OverQuota::Guaranteed(resource) => (resource, false),
                OverQuota::User(resource) => (resource, true),
            };
            let Some(waiting) = self.scheduler.queue.get(search.place.job) else { return false };
            let helps = |running: &Running| {
                running.account == search.class.account
                    && running.usage.get(resource) > 0
                    && (!is_user || running.owner == waiting.owner)
            };
            let running = &self.scheduler.running;
            let open = candidates.iter().filter(|job| !victims.contains(job));
            let helpers =
                open.filter_map(|job| running.get(*job).filter(|running| helps(running)).map(|r| (job, r)));
            let best = helpers.min_by_key(|(job, running)| {
                (std::cmp::Reverse(running.usage.get(resource)), running.work_at_stake(self.now), **job)
            });
            let Some((&victim, _)) = best else { return false };
            self.let_go(victim);
            victims.insert(victim);
        }
        true
    }

    /// Leaves those alone without whom it works too, the dearest first.
    fn spare_the_needless(&mut self, search: &Search<'_>, victims: &mut BTreeSet<JobId>) {
        let running = &self.scheduler.running;
        let work = |job: &JobId| running.get(*job).map(|running| running.work_at_stake(self.now));
        let mut by_work: Vec<(Option<u128>, JobId)> = victims.iter().map(|job| (work(job), *job)).collect();
        by_work.sort_unstable();
        for (_, job) in by_work.into_iter().rev() {
            self.take_again(job);
            if self.room_for(search).is_some() {
                victims.remove(&job);
            } else {
                self.let_go(job);
            }
        }
    }

    /// What the job could start as, were those gone that have been let go.
    fn room_for(&mut self, search: &Search<'_>) -> Option<ShapeId> {
        let shape = self.within_quota(search.class, search.shape).ok()?;
        let wish = PlacementConstraints { avoid: &search.class.avoid, kinds: KindSet::ALL };
        self.scheduler.fleet.fits(shape, &wish).then_some(shape)
    }
}

impl PreemptionRight {
    fn takes_back(self) -> bool {
        matches!(self, PreemptionRight::TakeBack | PreemptionRight::TakeBackAndPushOutOwn)
    }

    fn pushes_out_own(self) -> bool {
        matches!(self, PreemptionRight::PushOutOwn | PreemptionRight::TakeBackAndPushOutOwn)
    }
}
