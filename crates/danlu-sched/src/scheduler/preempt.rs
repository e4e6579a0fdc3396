//! Who has to give way: the smallest set of jobs that makes room, and of those the one that loses the least work.
//!
//! A job may take from others in two ways. A workspace that uses less than it is guaranteed takes back what others
//! borrow; and within a workspace, a larger priority goes before a smaller one. Only preemptible jobs are taken, and
//! only after they have run for the minimum time. The smallest set is found node by node, which is exact for a job that
//! runs on one node; for a gang the cheapest nodes are put together and whoever turns out to be spared is left alone.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use danlu_types::JobId;
use jiff::Timestamp;

use super::pass::Pass;
use super::queue::{Class, Place};
use super::running::{Running, after};
use super::usage::Usage;
use super::wait::Verdict;
use crate::fleet::{KindSet, NodeId, Placement};

/// A search looks at every preemptible job; a pass makes at most so many. Those left out have their turn in the next.
pub(super) const MOST_SEARCHES: u32 = 16;

/// What room for one or more workers on a node costs.
#[derive(Debug)]
struct Price {
    victims: Vec<JobId>,
    work: u128,
    room: u32,
}

impl Pass<'_> {
    /// Finds victims for a job that found no room, if it may take from others.
    pub(super) fn preempt_for(
        &mut self,
        class: &Arc<Class>,
        place: Place,
        kinds: KindSet,
    ) -> Option<Verdict> {
        if self.scheduler.running.preemptible == 0 || self.searches_left == 0 {
            return None;
        }
        let candidates = self.candidates(class, place)?;
        self.searches_left -= 1;
        let mut victims = self.choose(class, kinds, &candidates)?;
        let placement = self.spare_the_needless(class, kinds, &mut victims)?;
        let victims: Vec<JobId> = victims.into_iter().collect();
        self.preempted(class, place, &victims, &placement);
        Some(Verdict::Preempting)
    }

    /// Jobs that may be taken, by node; `None` if there are none.
    fn candidates(&mut self, class: &Class, place: Place) -> Option<BTreeMap<NodeId, Vec<JobId>>> {
        let scheduler = &*self.scheduler;
        let shape = scheduler.fleet.shape_of(class.shape);
        let asked = shape.alternatives.first().map(|ask| {
            let kind =
                if ask.count.is_none() { None } else { ask.kind.or(Some(danlu_types::DeviceKind::Nvidia)) };
            Usage::of_gang(shape, ask, kind)
        })?;
        let entitled = scheduler.accounts.lends()
            && scheduler.accounts.is_entitled(class.account, &asked, class.preemptible);
        let priority = place.0.0;
        let mut earliest: Option<Timestamp> = None;
        let mut by_node: BTreeMap<NodeId, Vec<JobId>> = BTreeMap::new();
        for (job, running) in scheduler.running.iter() {
            if !running.preemptible || running.stopping.is_some() || self.victims.contains(&job) {
                continue;
            }
            if !self.may_take(class, priority, entitled, running) {
                continue;
            }
            let from = after(running.placed_at, scheduler.sharing.minimum_run_time);
            if from > self.now {
                earliest = earliest.into_iter().chain([from]).min();
                continue;
            }
            let nodes: BTreeSet<NodeId> = running.placement.parts.iter().map(|part| part.node).collect();
            for node in nodes {
                by_node.entry(node).or_default().push(job);
            }
        }
        self.plan.next_wake = self.plan.next_wake.into_iter().chain(earliest).min();
        (!by_node.is_empty()).then_some(by_node)
    }

    fn may_take(&self, class: &Class, priority: u8, entitled: bool, running: &Running) -> bool {
        let accounts = &self.scheduler.accounts;
        let borrowed = || accounts.borrows(running.account, running.usage.main_resource());
        if running.account == class.account {
            // Its own borrower gives way to a job that cannot borrow.
            return running.priority < priority || (entitled && !class.preemptible && borrowed());
        }
        entitled && borrowed()
    }

    /// The cheapest nodes that together make room for the gang.
    fn choose(
        &mut self,
        class: &Class,
        kinds: KindSet,
        candidates: &BTreeMap<NodeId, Vec<JobId>>,
    ) -> Option<BTreeSet<JobId>> {
        let mut prices: Vec<(usize, u128, NodeId, Price)> = Vec::new();
        for (&node, jobs) in candidates.iter().filter(|(node, _)| !class.avoid.contains(node)) {
            if let Some(price) = self.price(class, kinds, node, jobs) {
                prices.push((price.victims.len(), price.work, node, price));
            }
        }
        prices.sort_by_key(|(count, work, node, _)| (*count, *work, *node));
        let wanted = self.scheduler.fleet.shape_of(class.shape).workers;
        let mut room =
            self.scheduler.fleet.room(class.shape, &crate::fleet::Wish { avoid: &class.avoid, kinds });
        let mut victims = BTreeSet::new();
        for (_, _, _, price) in prices {
            if room >= wanted {
                break;
            }
            room = room.saturating_add(price.room);
            victims.extend(price.victims);
        }
        (room >= wanted && !victims.is_empty()).then_some(victims)
    }

    /// What room for one more worker on this node costs: jobs that lose little first, and then without those that turn
    /// out not to matter.
    fn price(&mut self, class: &Class, kinds: KindSet, node: NodeId, jobs: &[JobId]) -> Option<Price> {
        let fleet = &mut self.scheduler.fleet;
        let running = &self.scheduler.running;
        let before = fleet.room_on(class.shape, node, kinds);
        let mut by_work: Vec<(u128, JobId)> =
            jobs.iter().filter_map(|job| Some((running.get(*job)?.work_at_stake(self.now), *job))).collect();
        by_work.sort_unstable();
        let mark = fleet.mark();
        let mut taken: Vec<(u128, JobId)> = Vec::new();
        let mut room = before;
        for (work, job) in by_work {
            if room > before {
                break;
            }
            if let Some(running) = running.get(job) {
                fleet.give_back(&running.placement);
                taken.push((work, job));
                room = fleet.room_on(class.shape, node, kinds);
            }
        }
        if room > before {
            for position in (0..taken.len().saturating_sub(1)).rev() {
                let Some(running) = running.get(taken[position].1) else { continue };
                fleet.take(&running.placement);
                if fleet.room_on(class.shape, node, kinds) > before {
                    taken.remove(position);
                } else {
                    fleet.give_back(&running.placement);
                }
            }
        }
        fleet.undo(mark);
        let work = taken.iter().map(|(work, _)| work).sum();
        let victims = taken.into_iter().map(|(_, job)| job).collect();
        (room > before).then_some(Price { victims, work, room: room - before })
    }

    /// Leaves those alone without whom it works too, the dearest first, and says where the job would go.
    fn spare_the_needless(
        &mut self,
        class: &Class,
        kinds: KindSet,
        victims: &mut BTreeSet<JobId>,
    ) -> Option<Placement> {
        let mut by_work: Vec<(u128, JobId)> = victims
            .iter()
            .filter_map(|job| Some((self.scheduler.running.get(*job)?.work_at_stake(self.now), *job)))
            .collect();
        by_work.sort_unstable();
        let mark = self.scheduler.fleet.mark();
        for job in &*victims {
            if let Some(running) = self.scheduler.running.get(*job) {
                self.scheduler.fleet.give_back(&running.placement);
            }
        }
        let wish = crate::fleet::Wish { avoid: &class.avoid, kinds };
        for (_, job) in by_work.into_iter().rev() {
            let Some(running) = self.scheduler.running.get(job) else { continue };
            self.scheduler.fleet.take(&running.placement);
            if self.scheduler.fleet.fits(class.shape, &wish) {
                victims.remove(&job);
            } else {
                self.scheduler.fleet.give_back(&running.placement);
            }
        }
        let placement = self.place(class, kinds);
        self.scheduler.fleet.undo(mark);
        placement
    }
}
