//! What room for one worker more costs on each node: whose end it takes, the cheapest first.
//!
//! To know a node's price its jobs are let go in many combinations. But at least how many it takes, and what those lose at
//! least, follows from amounts alone; so nodes are priced in the order of that, and only as far as somebody asks.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use danlu_types::JobId;

use super::pass::Pass;
use super::preempt::Search;
use super::running::Running;
use crate::fleet::{KindSet, NodeId};

/// Of so many jobs on a node all combinations are tried.
const FEW: usize = 8;

/// A job and the work that would be lost with it.
type Victim = (u128, JobId);

/// What room for one worker more on a node costs, the cheapest first.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Price {
    count: usize,
    work: u128,
    node: NodeId,
    known: Known,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Known {
    /// It costs at least so much; these could be let go there.
    AtLeast(Vec<JobId>),
    /// Whose end it takes.
    Exactly(Vec<JobId>),
}

/// All nodes where somebody could be let go.
#[derive(Debug)]
pub(super) struct EvictionPrices(BinaryHeap<Reverse<Price>>);

impl Pass<'_> {
    /// Where room might be had without these candidates.
    pub(super) fn prices(
        &mut self,
        search: &Search<'_>,
        candidates: &[JobId],
        gone: &BTreeSet<JobId>,
    ) -> EvictionPrices {
        let mut by_node: Vec<(NodeId, JobId)> = Vec::new();
        for job in candidates.iter().filter(|job| !gone.contains(job)) {
            let Some(running) = self.scheduler.running.get(*job) else { continue };
            let nodes = running.placement.parts.iter().map(|part| part.node);
            by_node.extend(nodes.filter(|node| !search.class.avoid.contains(node)).map(|node| (node, *job)));
        }
        by_node.sort_unstable();
        by_node.dedup();
        let prices = by_node.chunk_by(|one, other| one.0 == other.0).filter_map(|jobs| {
            let (node, jobs) = (jobs[0].0, jobs.iter().map(|(_, job)| *job).collect::<Vec<_>>());
            let (count, work) = self.least_price(search, node, &jobs)?;
            Some(Reverse(Price { count, work, node, known: Known::AtLeast(jobs) }))
        });
        EvictionPrices(prices.collect())
    }

    /// The next cheapest, with those let go again that were gone before: whose end each takes.
    pub(super) fn next_price(
        &mut self,
        search: &Search<'_>,
        gone: &BTreeSet<JobId>,
        prices: &mut EvictionPrices,
    ) -> Option<Vec<JobId>> {
        loop {
            let Reverse(Price { node, known, .. }) = prices.0.pop()?;
            match known {
                Known::Exactly(victims) => return Some(victims),
                Known::AtLeast(jobs) => {
                    let price = self.price(search, gone, node, &jobs);
                    prices.0.extend(price.map(Reverse));
                }
            }
        }
    }

    /// How many it takes at least, and what those lose at least; nothing where there cannot be room.
    fn least_price(&mut self, search: &Search<'_>, node: NodeId, jobs: &[JobId]) -> Option<(usize, u128)> {
        let running = &self.scheduler.running;
        let held = |job: &JobId| running.get(*job).map(|running| (held_on(running, node), running));
        let held: Vec<([i64; 3], &Running)> = jobs.iter().filter_map(held).collect();
        let mut works: Vec<u128> = held.iter().map(|(_, running)| running.work_at_stake(self.now)).collect();
        let mut amounts: [Vec<i64>; 3] =
            std::array::from_fn(|of| held.iter().map(|(amounts, _)| amounts[of]).collect());
        for amounts in &mut amounts {
            amounts.sort_unstable_by(|one, other| other.cmp(one));
        }
        let fewest = |lacks: [i64; 3]| {
            let each =
                lacks.into_iter().zip(&amounts).map(|(lacks, amounts)| fewest_that_sum(lacks, amounts));
            each.collect::<Option<Vec<usize>>>()?.into_iter().max()
        };
        let lacks = self.scheduler.fleet.lacks_for_one_more(search.shape, node);
        let count = lacks.into_iter().filter_map(fewest).min()?.max(1);
        works.sort_unstable();
        Some((count, works.iter().take(count).sum()))
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
        let known = Known::Exactly(numbers(&taken));
        Some(Price { count: taken.len(), work: work_of(&taken), node, known })
    }

    /// By how much they hold of a node; of equals those first that lose least.
    fn largest_first(&self, node: NodeId, jobs: &[JobId]) -> Vec<Victim> {
        let running = |job: &JobId| self.scheduler.running.get(*job).map(|running| (running, *job));
        let mut jobs: Vec<(Reverse<i64>, Victim)> = jobs
            .iter()
            .filter_map(running)
            .map(|(running, job)| {
                (Reverse(held_on(running, node)[0]), (running.work_at_stake(self.now), job))
            })
            .collect();
        jobs.sort_unstable();
        jobs.into_iter().map(|(_, victim)| victim).collect()
    }

    fn room_without(&mut self, search: &Search<'_>, node: NodeId, victims: &[Victim]) -> u32 {
        let scheduler = &mut *self.scheduler;
        let mark = scheduler.fleet.mark();
        for (_, job) in victims {
            if let Some(running) = scheduler.running.get(*job) {
                scheduler.fleet.free(&running.placement);
            }
        }
        let room = scheduler.fleet.room_on(search.shape, node, KindSet::ALL);
        scheduler.fleet.undo(mark);
        room
    }
}

/// What a job holds of a node: thousandths of devices and CPUs, and bytes.
fn held_on(running: &Running, node: NodeId) -> [i64; 3] {
    let signed = |amount: u64| i64::try_from(amount).unwrap_or(i64::MAX);
    let here = running.placement.parts.iter().filter(|part| part.node == node);
    here.fold([0; 3], |[devices, milli_cpus, bytes]: [i64; 3], part| {
        let more = part.devices.len() as u64 * u64::from(part.share);
        [
            devices.saturating_add(signed(more)),
            milli_cpus.saturating_add(signed(part.milli_cpus)),
            bytes.saturating_add(signed(part.bytes)),
        ]
    })
}

/// How many of these, the largest first, make up for what is lacking.
fn fewest_that_sum(lacking: i64, amounts: &[i64]) -> Option<usize> {
    let mut left = lacking;
    let mut sums = amounts.iter().map(|amount| {
        left = left.saturating_sub(*amount);
        left
    });
    if lacking <= 0 { Some(0) } else { sums.position(|left| left <= 0).map(|position| position + 1) }
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
