//! Who has to give way.

use std::collections::{BTreeMap, BTreeSet};

use danlu_core::Job;
use danlu_sched::{KindSet, NodeId, Shape};
use danlu_types::{JobId, Span};
use jiff::SignedDuration;

use super::Pass;
use super::quota::{Use, narrowed};

/// Whom a job may take.
struct Search<'a> {
    job: &'a Job,
    shape: Shape,
    takes_back: bool,
    pushes_out_own: bool,
}

impl Pass<'_> {
    /// Chooses victims for a job that could not start, if it may take from others: what its workspace is guaranteed
    /// before what its priority gives it.
    pub(super) fn preempt(&mut self, job: &Job, wished: &Shape) -> bool {
        let pushes = |asked: &Use| self.may_push_out_own(job, asked);
        let takes_back = narrowed(wished, |asked, _| self.may_take_back(job, &asked));
        let pushes_only = narrowed(wished, |asked, _| pushes(&asked) && !self.may_take_back(job, &asked));
        let pushes_too = !narrowed(&takes_back, |asked, _| pushes(&asked)).alternatives.is_empty();
        let with =
            |shape: Shape, takes_back, pushes_out_own| Search { job, shape, takes_back, pushes_out_own };
        let searches = [
            with(takes_back.clone(), true, pushes_too),
            with(pushes_only.clone(), false, true),
            with(wished.clone(), false, false),
        ];
        for search in searches {
            let is_tried = !search.takes_back
                && ((search.shape == takes_back) || (!search.pushes_out_own && search.shape == pushes_only));
            if search.shape.alternatives.is_empty() || is_tried {
                continue;
            }
            let mut trial = self.clone();
            if let Some(victims) = trial.victims_for(&search) {
                trial.gone.clone_from(&victims);
                let shape = trial.within_quota(job, &search.shape);
                let parts = trial.place(job, &shape).unwrap();
                self.said.preemptions.extend(victims.iter().map(|victim| (*victim, job.id)));
                self.victims.extend(victims);
                self.claim(job, parts);
                return true;
            }
        }
        false
    }

    /// Who may be taken now: preemptible, not stopping, past the minimum run time; of other workspaces whoever borrows,
    /// of its own whoever has a smaller priority.
    fn may_take(&self, search: &Search<'_>, victim: &Job) -> bool {
        let Some(attempt) = victim.active() else { return false };
        let minimum: SignedDuration =
            self.sharing.minimum_run_time.max(Span::from_seconds(1)).to_duration().try_into().unwrap();
        let is_open = victim.spec.preemptible && attempt.stop.is_none() && !self.victims.contains(&victim.id);
        // Who ends by itself in the time it would be given to stop is left alone.
        let soon = self.now + victim.spec.grace.to_duration();
        let ends_soon = victim.spec.max_time.is_some() && self.expected_end(victim) <= soon;
        let borrows = || self.borrows_with(&victim.spec.workspace, self.held(victim).main(), 0);
        is_open
            && !ends_soon
            && !self.gone.contains(&victim.id)
            && attempt.placed_at + minimum <= self.now
            && if victim.spec.workspace == search.job.spec.workspace {
                let (theirs, own) = (victim.spec.priority, search.job.spec.priority);
                theirs < own || (search.pushes_out_own && theirs == own && borrows())
            } else {
                search.takes_back && borrows()
            }
    }

    /// Whoever borrows gives back no more than that: without the largest of its victims it would still borrow.
    fn is_fair(&self, search: &Search<'_>, more: &[JobId]) -> bool {
        let mut then = self.clone();
        then.gone.extend(more);
        let is_by_right = |job: &Job| {
            job.spec.workspace != search.job.spec.workspace || job.spec.priority == search.job.spec.priority
        };
        then.gone.iter().map(|job| &self.jobs[job]).filter(|job| is_by_right(job)).all(|job| {
            let of = self.held(job).main();
            let alike = |other: &&Job| {
                other.spec.workspace == job.spec.workspace
                    && self.held(other).main() == of
                    && is_by_right(other)
            };
            let victims = then.gone.iter().map(|job| &self.jobs[job]).filter(alike);
            let largest = victims.map(|job| self.held(job).0[of]).max().unwrap_or(0);
            then.borrows_with(&job.spec.workspace, of, largest)
        })
    }

    fn held(&self, job: &Job) -> Use {
        let running = self.running();
        let (_, parts) = running.iter().find(|(other, _)| other.id == job.id).unwrap();
        Use::of(parts, self.nodes)
    }

    /// What would be lost with it.
    fn work(&self, job: JobId) -> u128 {
        let held = self.held(&self.jobs[&job]);
        let attempt = self.jobs[&job].active().unwrap();
        let ran = self.now.duration_since(attempt.saved_at.unwrap_or(attempt.placed_at)).as_millis();
        // And a minute to start again.
        u128::from(held.0[held.main()]) * (u128::try_from(ran).unwrap() + 60_000)
    }

    /// Lets the cheapest go until the job fits, and takes those back without whom it fits too.
    fn victims_for(&mut self, search: &Search<'_>) -> Option<BTreeSet<JobId>> {
        let candidates: Vec<JobId> =
            self.jobs.values().filter(|job| self.may_take(search, job)).map(|job| job.id).collect();
        if !self.relieve_quota(search, &candidates) {
            return None;
        }
        while !self.has_room(search) {
            let before = self.gone.len();
            for (_, _, _, victims) in self.prices(search, &candidates) {
                let is_new = victims.iter().all(|victim| !self.gone.contains(victim));
                if is_new && self.is_fair(search, &victims) && !self.has_room(search) {
                    self.gone.extend(victims);
                }
            }
            if self.gone.len() == before {
                return None;
            }
        }
        let mut dearest: Vec<(u128, JobId)> = self.gone.iter().map(|job| (self.work(*job), *job)).collect();
        dearest.sort_unstable();
        for (_, job) in dearest.into_iter().rev() {
            self.gone.remove(&job);
            if !self.has_room(search) {
                self.gone.insert(job);
            }
        }
        (!self.gone.is_empty()).then(|| self.gone.clone())
    }

    /// Where a limit is in the way, those of its workspace (or person) go first that use most.
    fn relieve_quota(&mut self, search: &Search<'_>, candidates: &[JobId]) -> bool {
        while self.within_quota(search.job, &search.shape).alternatives.is_empty() {
            let (of, by_user) = self.first_refusal(search.job, &search.shape).unwrap();
            let helps = |victim: &&JobId| {
                let victim = &self.jobs[*victim];
                let is_own = victim.spec.workspace == search.job.spec.workspace;
                let is_user = !by_user || victim.owner == search.job.owner;
                !self.gone.contains(&victim.id) && is_own && is_user && self.held(victim).0[of] > 0
            };
            let most = |victim: &&JobId| {
                (std::cmp::Reverse(self.held(&self.jobs[*victim]).0[of]), self.work(**victim), **victim)
            };
            let Some(victim) = candidates.iter().filter(helps).min_by_key(most) else { return false };
            self.gone.insert(*victim);
        }
        true
    }

    fn has_room(&self, search: &Search<'_>) -> bool {
        self.place(search.job, &self.within_quota(search.job, &search.shape)).is_some()
    }

    /// For each node the fewest whose end leaves room for one worker more there, and of those who lose least.
    fn prices(&self, search: &Search<'_>, candidates: &[JobId]) -> Vec<(usize, u128, NodeId, Vec<JobId>)> {
        let mut by_node: BTreeMap<NodeId, BTreeSet<JobId>> = BTreeMap::new();
        for (job, parts) in self.running() {
            let is_open = candidates.contains(&job.id) && !self.gone.contains(&job.id);
            for part in parts.into_iter().filter(|_| is_open) {
                by_node.entry(part.node).or_default().insert(job.id);
            }
        }
        let avoid = self.avoided(search.job);
        let mut prices = Vec::new();
        for (node, jobs) in by_node.into_iter().filter(|(node, _)| !avoid.contains(node)) {
            let mut jobs: Vec<(u128, JobId)> = jobs.into_iter().map(|job| (self.work(job), job)).collect();
            jobs.sort_unstable();
            let sets = (1u32..1 << jobs.len()).map(|mask| {
                let set = (0..jobs.len()).filter(|at| mask & (1 << at) != 0).map(|at| jobs[at]);
                set.collect::<Vec<_>>()
            });
            let before = self.room_without(search, node, &[]);
            let numbers = |set: &[(u128, JobId)]| set.iter().map(|(_, job)| *job).collect::<Vec<_>>();
            let fair = sets.filter(|set| self.is_fair(search, &numbers(set)));
            let enough = fair.filter(|set| self.room_without(search, node, set) > before);
            let cost = |set: &Vec<(u128, JobId)>| (set.len(), set.iter().map(|(work, _)| work).sum::<u128>());
            if let Some(set) = enough.min_by_key(|set| (cost(set), set.clone())) {
                let (count, work) = cost(&set);
                prices.push((count, work, node, set.into_iter().map(|(_, job)| job).collect()));
            }
        }
        prices.sort();
        prices
    }

    fn room_without(&self, search: &Search<'_>, node: NodeId, set: &[(u128, JobId)]) -> u32 {
        let mut trial = self.clone();
        trial.gone.extend(set.iter().map(|(_, job)| *job));
        let mut fleet = trial.fleet();
        let shape = fleet.shape(&search.shape);
        fleet.room_on(shape, node, KindSet::ALL)
    }
}
