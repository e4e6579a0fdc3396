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

use danlu_types::{JobId, Span};
use jiff::Timestamp;

use super::Preemption;
use super::accounts::{AccountId, OverQuota, Right};
use super::pass::Pass;
use super::queue::{Class, Place};
use super::running::{Running, after};
use super::usage::{Resource, Usage};
use crate::fleet::{KindSet, NodeId, Placement, ShapeId, Wish};

/// A search looks at every preemptible job; all searches of a pass together look at so many. Who is left out has a turn
/// in a later pass.
pub(super) const MOST_LOOKS: usize = 64_000;
/// Even where no minimum run time is set: two that could take from each other must not do so without end at one moment.
const LEAST_RUN_TIME: Span = Span::from_seconds(1);
/// Of so many jobs on a node all combinations are tried.
const FEW: usize = 8;

/// What a job may take, and on whose account.
#[derive(Debug)]
struct Search<'a> {
    class: &'a Arc<Class>,
    place: Place,
    /// The part of its wishes it may take others' room for.
    shape: ShapeId,
    right: Option<Right>,
}

/// A job and the work that would be lost with it.
type Victim = (u128, JobId);

/// What room for one worker more on a node costs.
#[derive(Debug)]
struct Price {
    work: u128,
    node: NodeId,
    victims: Vec<JobId>,
}

impl Pass<'_> {
    /// Finds victims for a job that could not start, if it may take from others.
    pub(super) fn preempt_for(&mut self, class: &Arc<Class>, place: Place, kinds: KindSet) -> bool {
        if self.looks_left == 0 || self.scheduler.running.preemptible().next().is_none() {
            return false;
        }
        let wished = self.wished(class, kinds);
        let taking_back = self.with_right(class, wished, &[Right::TakeBack, Right::TakeBackAndPushOutOwn]);
        let pushing_out = self.with_right(class, wished, &[Right::PushOutOwn]);
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
        self.looks_left = self.looks_left.saturating_sub(candidates.len());
        if candidates.is_empty() {
            return false;
        }
        let mark = self.scheduler.fleet.mark();
        let mut victims = BTreeSet::new();
        let placement = if self.choose(search, &candidates, &mut victims) {
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
        let own = search.class.account;
        self.scheduler.running.preemptible().any(|(account, priority)| {
            if account == own {
                priority < search.place.priority.0 || search.right.is_some_and(Right::pushes_out_own)
            } else {
                search.right.is_some_and(Right::takes_back)
            }
        })
    }

    /// Jobs that may be taken now, in the order of their numbers.
    fn candidates(&mut self, search: &Search<'_>) -> Vec<JobId> {
        let scheduler = &*self.scheduler;
        let mut earliest: Option<Timestamp> = None;
        let mut candidates = Vec::new();
        for (job, running) in scheduler.running.iter() {
            let is_leaving = running.stopping.is_some() || self.victims.contains(&job);
            if !running.preemptible || is_leaving || !self.may_take(search, running) {
                continue;
            }
            let minimum = after(running.placed_at, scheduler.sharing.minimum_run_time.max(LEAST_RUN_TIME));
            let from = minimum.max(running.until_worth_stopping(self.now));
            if from > self.now {
                earliest = earliest.into_iter().chain([from]).min();
            } else {
                candidates.push(job);
            }
        }
        self.plan.next_wake = self.plan.next_wake.into_iter().chain(earliest).min();
        candidates
    }

    fn may_take(&self, search: &Search<'_>, running: &Running) -> bool {
        let priority = search.place.priority.0;
        let borrowed = || {
            let leaving = self.leaving(running.account);
            self.scheduler.accounts.borrows(running.account, running.usage.main_resource(), &leaving)
        };
        if running.account == search.class.account {
            let pushes = search.right.is_some_and(Right::pushes_out_own);
            // Its own borrower gives way to a job that cannot borrow.
            return running.priority < priority || (pushes && running.priority == priority && borrowed());
        }
        search.right.is_some_and(Right::takes_back) && borrowed()
    }

    /// Whether everybody still gives back no more than is borrowed, with `more` beside those that were let go: without the
    /// largest of its victims, a workspace would still borrow.
    fn is_fair(&self, search: &Search<'_>, gone: &BTreeSet<JobId>, more: &[JobId]) -> bool {
        let mut given: BTreeMap<(AccountId, Resource), (Usage, u64)> = BTreeMap::new();
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
            let mut has_found = false;
            for price in self.prices(search, candidates, victims) {
                let is_new = price.victims.iter().all(|victim| !victims.contains(victim));
                if !is_new || !self.is_fair(search, victims, &price.victims) {
                    continue;
                }
                for victim in &price.victims {
                    self.let_go(*victim);
                }
                victims.extend(price.victims);
                has_found = true;
                if self.room_for(search).is_some() {
                    return true;
                }
            }
            if !has_found {
                return false;
            }
        }
        true
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

    /// What one worker more costs on each node where it can be had, the cheapest first.
    fn prices(&mut self, search: &Search<'_>, candidates: &[JobId], victims: &BTreeSet<JobId>) -> Vec<Price> {
        let mut by_node: BTreeMap<NodeId, Vec<JobId>> = BTreeMap::new();
        for job in candidates.iter().filter(|job| !victims.contains(job)) {
            let Some(running) = self.scheduler.running.get(*job) else { continue };
            for part in &running.placement.parts {
                let jobs = by_node.entry(part.node).or_default();
                if jobs.last() != Some(job) {
                    jobs.push(*job);
                }
            }
        }
        let nodes = by_node.into_iter().filter(|(node, _)| !search.class.avoid.contains(node));
        let mut prices: Vec<Price> =
            nodes.filter_map(|(node, jobs)| self.price(search, victims, node, &jobs)).collect();
        prices.sort_by_key(|price| (price.victims.len(), price.work, price.node));
        prices
    }

    /// The fewest of a node's jobs whose end leaves room for one worker more there, and of those the cheapest: those that
    /// hold most first, then without those that turn out not to matter, then in cheaper combinations.
    fn price(
        &mut self,
        search: &Search<'_>,
        gone: &BTreeSet<JobId>,
        node: NodeId,
        jobs: &[JobId],
    ) -> Option<Price> {
        let before = self.scheduler.fleet.room_on(search.shape, node, KindSet::ALL);
        let jobs = self.largest_first(node, jobs);
        let mut taken: Vec<Victim> = Vec::new();
        for victim in &jobs {
            taken.push(*victim);
            if !self.is_fair(search, gone, &numbers(&taken)) {
                taken.pop();
            } else if self.room_without(search, node, &taken) > before {
                break;
            }
        }
        if taken.is_empty() || self.room_without(search, node, &taken) <= before {
            return None;
        }
        taken.sort_unstable();
        for position in (0..taken.len()).rev() {
            let mut fewer = taken.clone();
            fewer.remove(position);
            if !fewer.is_empty() && self.room_without(search, node, &fewer) > before {
                taken = fewer;
            }
        }
        if jobs.len() <= FEW {
            let mut cheaper = combinations(&jobs, taken.len());
            cheaper.retain(|victims| (work_of(victims), victims) < (work_of(&taken), &taken));
            cheaper.sort_by_cached_key(|victims| (work_of(victims), victims.clone()));
            let found = cheaper.into_iter().find(|victims| {
                self.is_fair(search, gone, &numbers(victims))
                    && self.room_without(search, node, victims) > before
            });
            taken = found.unwrap_or(taken);
        }
        Some(Price { work: work_of(&taken), node, victims: numbers(&taken) })
    }

    /// By how much they hold of a node; of equals those first that lose least.
    fn largest_first(&self, node: NodeId, jobs: &[JobId]) -> Vec<Victim> {
        let held = |running: &Running| {
            let here = running.placement.parts.iter().filter(|part| part.node == node);
            here.map(|part| part.devices.len() * usize::from(part.share)).sum::<usize>()
        };
        let running = |job: &JobId| self.scheduler.running.get(*job).map(|running| (running, *job));
        let mut jobs: Vec<(std::cmp::Reverse<usize>, Victim)> = jobs
            .iter()
            .filter_map(running)
            .map(|(running, job)| (std::cmp::Reverse(held(running)), (running.work_at_stake(self.now), job)))
            .collect();
        jobs.sort_unstable();
        jobs.into_iter().map(|(_, victim)| victim).collect()
    }

    fn room_without(&mut self, search: &Search<'_>, node: NodeId, victims: &[Victim]) -> u32 {
        let scheduler = &mut *self.scheduler;
        let mark = scheduler.fleet.mark();
        for (_, job) in victims {
            if let Some(running) = scheduler.running.get(*job) {
                scheduler.fleet.give_back(&running.placement);
            }
        }
        let room = scheduler.fleet.room_on(search.shape, node, KindSet::ALL);
        scheduler.fleet.undo(mark);
        room
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
        let wish = Wish { avoid: &search.class.avoid, kinds: KindSet::ALL };
        self.scheduler.fleet.fits(shape, &wish).then_some(shape)
    }
}

impl Right {
    fn takes_back(self) -> bool {
        matches!(self, Right::TakeBack | Right::TakeBackAndPushOutOwn)
    }

    fn pushes_out_own(self) -> bool {
        matches!(self, Right::PushOutOwn | Right::TakeBackAndPushOutOwn)
    }
}

fn numbers(victims: &[Victim]) -> Vec<JobId> {
    victims.iter().map(|(_, job)| *job).collect()
}

fn work_of(victims: &[Victim]) -> u128 {
    victims.iter().map(|(work, _)| work).sum()
}

/// All ways to choose so many, each in order.
fn combinations<T: Copy + Ord>(items: &[T], count: usize) -> Vec<Vec<T>> {
    let mut items = items.to_vec();
    items.sort_unstable();
    let masks = (0u32..1 << items.len()).filter(|mask| mask.count_ones() as usize == count);
    let chosen = |mask: u32| {
        let positions = (0..items.len()).filter(move |position| mask & (1 << position) != 0);
        positions.map(|position| items[position]).collect()
    };
    masks.map(chosen).collect()
}
