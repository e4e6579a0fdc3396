//! The scheduler's rules once more, as plainly as they can be written and without a thought for speed.
//!
//! Every job is looked at by itself, nothing is kept from one question to the next, and what is free is found by building
//! a fleet anew from who holds what. Only where a gang goes on given nodes is left to [`Fleet`]. The policy `balance` is
//! left out: it counts whom it tries, and here everybody is tried.

mod future;
mod preemption;
mod quota;

use std::collections::{BTreeMap, BTreeSet};

use danlu_core::job::{AttemptEnd, QueueCause};
use danlu_core::{FailureCause, Grant, Job, JobLifecycle};
use danlu_sched::{Fleet, KindSet, NodeId, Placement, PlacementConstraints, Shape, WorkerPlacement};
use danlu_types::{DeviceKind, HeadOfLine, JobId, Node, Sharing, Workspace};
use jiff::{SignedDuration, Timestamp};

use self::future::{estimate, length};
use self::quota::{FirmUse, Use, narrowed, pools};

/// Starts with their grants, and who is stopped for whom.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Said {
    pub(crate) starts: Vec<(JobId, Vec<Grant>)>,
    pub(crate) preemptions: Vec<(JobId, JobId)>,
}

pub(crate) fn reference_plan(
    nodes: &[Node],
    sharing: &Sharing,
    jobs: &BTreeMap<JobId, Job>,
    now: Timestamp,
) -> Said {
    let mut pass = Pass {
        nodes,
        sharing,
        jobs,
        now,
        gone: BTreeSet::new(),
        others_left: None,
        holds: Vec::new(),
        lifted: BTreeSet::new(),
        victims: BTreeSet::new(),
        settled: BTreeSet::new(),
        heads: Vec::new(),
        said: Said::default(),
    };
    pass.claims();
    pass.sweep(None);
    // What is kept for a head may be used by those who should have ended by then.
    for at in 0..pass.holds.len() {
        if let Some(reservation) = pass.holds[at].reservation {
            pass.lifted.insert(pass.holds[at].job);
            pass.sweep(Some(reservation));
            pass.lifted.clear();
            let kept = pass.holds[at].withheld.clone();
            pass.holds[at].withheld = Vec::new();
            pass.holds[at].withheld = pass.fleet().withhold(&placement_of(kept)).parts;
        }
    }
    pass.said
}

#[derive(Clone)]
struct Pass<'a> {
    nodes: &'a [Node],
    sharing: &'a Sharing,
    jobs: &'a BTreeMap<JobId, Job>,
    now: Timestamp,
    /// Running jobs that are taken to have ended.
    gone: BTreeSet<JobId>,
    /// By when those of others are taken to have ended that should have.
    others_left: Option<Timestamp>,
    /// What starts now, what others are stopped for, and what is kept for heads, in the order in which it came up.
    holds: Vec<Hold>,
    /// Heads that keep nothing for the moment.
    lifted: BTreeSet<JobId>,
    victims: BTreeSet<JobId>,
    settled: BTreeSet<JobId>,
    heads: Vec<(String, Vec<Pool>)>,
    said: Said,
}

/// Something a job holds, or will.
#[derive(Clone)]
struct Hold {
    job: JobId,
    /// When it begins, for a reservation.
    reservation: Option<Timestamp>,
    until: Timestamp,
    parts: Vec<WorkerPlacement>,
    /// Whether its use counts against quotas: a reservation's does not before it begins.
    counts: bool,
    usage: Use,
    /// What of it is taken out of the fleet, part for part.
    withheld: Vec<WorkerPlacement>,
    /// What its workspace's limit leaves beside it.
    spare: [Option<u64>; 4],
    /// Who will use what firmly when it begins, itself included.
    firm: Vec<FirmUse>,
    is_entitled: bool,
}

/// Devices of a kind, or processors only.
type Pool = Option<DeviceKind>;

enum Outcome {
    Settled,
    Blocked,
}

impl<'a> Pass<'a> {
    /// Jobs for which others are being stopped, or were, come first, and keep what those have left already.
    fn claims(&mut self) {
        let stops_for = |victim: &Job, claimant: &Job| {
            match &victim.life {
            JobLifecycle::Active(attempt) => attempt.stop.as_ref().is_some_and(|stop| {
                matches!(stop.why, danlu_core::job::StopCause::Preempted { for_job } if for_job == claimant.id)
            }),
            JobLifecycle::Queued { since, why: QueueCause::Preempted { for_job, .. } } => {
                *for_job == claimant.id && queued_since(claimant) <= *since
            }
            _ => false,
        }
        };
        for claimant in self.queue() {
            let makers: Vec<&Job> = self.jobs.values().filter(|job| stops_for(job, claimant)).collect();
            if makers.is_empty() {
                continue;
            }
            let mut then = self.clone();
            if let Some(parts) =
                then.place(claimant, &self.within_quota(claimant, &Shape::of(&claimant.spec)))
            {
                self.start(claimant, parts);
                continue;
            }
            then.gone.extend(makers.iter().filter(|job| job.active().is_some()).map(|job| job.id));
            let shape = then.within_quota(claimant, &Shape::of(&claimant.spec));
            if let Some(parts) = then.place(claimant, &shape).filter(|_| !then.gone.is_empty()) {
                self.claim(claimant, parts);
            }
        }
    }

    /// The workspace with the smallest share goes first, with its first job; and so on until everybody had a turn.
    fn sweep(&mut self, ending_by: Option<Timestamp>) {
        let mut waiting: Vec<&Job> = self.queue();
        waiting.retain(|job| !self.settled.contains(&job.id));
        waiting.retain(|job| ending_by.is_none_or(|at| self.now + length(job) <= at));
        while let Some(at) = self.whose_turn(&waiting) {
            let job = waiting.remove(at);
            if let Outcome::Settled = self.consider(job, ending_by.is_some()) {
                self.settled.insert(job.id);
            }
        }
    }

    fn whose_turn(&self, waiting: &[&Job]) -> Option<usize> {
        let is_first = |at: &usize| {
            let workspace = &waiting[*at].spec.workspace;
            waiting[..*at].iter().all(|ahead| ahead.spec.workspace != *workspace)
        };
        let key = |at: &usize| (self.share(&waiting[*at].spec.workspace), self.place_in_line(waiting[*at]));
        let firsts = (0..waiting.len()).filter(is_first);
        firsts.min_by(|one, other| {
            let ((one, place), (other, other_place)) = (key(one), key(other));
            one.total_cmp(&other).then(place.cmp(&other_place))
        })
    }

    fn consider(&mut self, job: &Job, only_fills: bool) -> Outcome {
        let policy = self.workspace(&job.spec.workspace).head_of_line;
        let shape = Shape::of(&job.spec);
        let mut open = pools(&shape);
        if policy == HeadOfLine::Strict {
            let closed: Vec<Pool> = self.closed(job);
            open.retain(|pool| !closed.contains(pool));
        }
        if open.is_empty() {
            return Outcome::Blocked;
        }
        let wished = narrowed(&shape, |_, pool| open.contains(&pool));
        let within = self.within_quota(job, &wished);
        let beside_own = narrowed(&within, |usage, _| !self.delays_own_head(job, &usage));
        let allowed = self.beside_firm_heads(job, &beside_own, self.now);
        if let Some(parts) = self.place(job, &allowed) {
            self.start(job, parts);
            return Outcome::Settled;
        }
        if only_fills {
            return Outcome::Blocked;
        }
        // A job within its workspace's guarantee need not wait for what is kept for others that are not.
        let is_in_the_way =
            |hold: &Hold| hold.reservation.is_some() && !hold.is_entitled && !self.is_own(job, hold);
        let in_the_way: Vec<JobId> =
            self.holds.iter().filter(|hold| is_in_the_way(hold)).map(|hold| hold.job).collect();
        let entitled = narrowed(&allowed, |usage, _| self.may_take_back(job, &usage));
        self.lifted.extend(&in_the_way);
        let parts = self.place(job, &entitled);
        self.lifted.clear();
        if let Some(parts) = parts.filter(|_| !in_the_way.is_empty()) {
            self.start(job, parts);
            for head in in_the_way {
                let at = self.holds.iter().position(|hold| hold.job == head).unwrap();
                let kept = std::mem::take(&mut self.holds[at].withheld);
                self.holds[at].withheld = self.fleet().withhold(&placement_of(kept)).parts;
            }
            return Outcome::Settled;
        }
        let is_reserved = !within.alternatives.is_empty() && allowed.alternatives.is_empty();
        if !is_reserved && self.preempt(job, &wished) {
            return Outcome::Settled;
        }
        let possible = narrowed(&wished, |usage, _| self.could_ever_have(job, &usage));
        let possible = if possible.alternatives.is_empty() { &wished } else { &possible };
        let is_over_user = self.first_refusal(job, possible).is_some_and(|(_, is_user)| is_user);
        let is_held_by_own = !within.alternatives.is_empty() && beside_own.alternatives.is_empty();
        let keeps_nobody_waiting = is_held_by_own || (within.alternatives.is_empty() && is_over_user);
        if !keeps_nobody_waiting {
            self.become_head(job, policy);
        }
        Outcome::Blocked
    }

    fn become_head(&mut self, job: &Job, policy: HeadOfLine) {
        let shape = Shape::of(&job.spec);
        let closed = self.closed(job);
        let mut own: Vec<Pool> = pools(&shape).into_iter().filter(|pool| !closed.contains(pool)).collect();
        let mut idle = Fleet::new(self.nodes);
        // What nodes and rules will never allow keeps nobody waiting.
        let bounded = narrowed(&shape, |usage, _| self.could_ever_have(job, &usage));
        let id = idle.shape(&bounded);
        if own.is_empty() || !idle.could_fit_when_idle(id, &[]) {
            return;
        }
        if policy == HeadOfLine::Strict {
            let mut fleet = self.fleet();
            let id = fleet.shape(&shape);
            // Its devices are there and it waits for processors: nobody else may have them.
            own.extend(fleet.devices_fit(id).then_some(None));
        }
        self.heads.push((job.spec.workspace.clone(), own));
        if policy == HeadOfLine::Backfill {
            self.reserve(job);
        }
    }

    fn closed(&self, job: &Job) -> Vec<Pool> {
        let own = self.heads.iter().filter(|(workspace, _)| *workspace == job.spec.workspace);
        own.flat_map(|(_, pools)| pools.clone()).collect()
    }

    fn start(&mut self, job: &Job, parts: Vec<WorkerPlacement>) {
        let usage = Use::of(&parts, self.nodes);
        let end = self.now + length(job);
        for hold in self.holds.iter_mut().filter(|hold| hold.reservation.is_some_and(|at| end > at)) {
            if self.jobs[&hold.job].spec.workspace == job.spec.workspace {
                hold.spare =
                    std::array::from_fn(|of| hold.spare[of].map(|left| left.saturating_sub(usage.0[of])));
            }
        }
        // A head that starts after all needs its reservation no more.
        for hold in self.holds.iter_mut().filter(|hold| hold.job == job.id) {
            (hold.reservation, hold.parts, hold.withheld) = (None, Vec::new(), Vec::new());
        }
        let grants = Fleet::new(self.nodes).grants(&placement_of(parts.clone()));
        self.said.starts.push((job.id, grants));
        self.hold(job, None, parts.clone(), parts);
    }

    /// Keeps what is free already of what a job will get when its victims have ended.
    fn claim(&mut self, job: &Job, parts: Vec<WorkerPlacement>) {
        let withheld = self.fleet().withhold(&placement_of(parts.clone())).parts;
        self.hold(job, None, parts, withheld);
    }

    fn hold(
        &mut self,
        job: &Job,
        reservation: Option<Timestamp>,
        parts: Vec<WorkerPlacement>,
        withheld: Vec<WorkerPlacement>,
    ) {
        if reservation.is_none() {
            self.settled.insert(job.id);
        }
        let until = reservation.unwrap_or(self.now) + estimate(job);
        let usage = Use::of(&parts, self.nodes);
        if reservation.is_none() {
            let end = self.now + length(job);
            for head in self.holds.iter_mut().filter(|hold| hold.reservation.is_some_and(|at| end > at)) {
                head.firm.push((job.id, usage));
            }
        }
        let (spare, firm, is_entitled) = ([None; 4], Vec::new(), false);
        let (job, counts) = (job.id, reservation.is_none());
        self.holds.push(Hold {
            job,
            reservation,
            until,
            parts,
            counts,
            usage,
            withheld,
            spare,
            firm,
            is_entitled,
        });
    }

    /// What is left of the nodes by those who hold, and will hold, something of them.
    fn fleet(&self) -> Fleet {
        let mut fleet = Fleet::new(&self.nodes_then());
        fleet.expect_nothing();
        for (job, parts) in self.running() {
            if !self.gone.contains(&job.id) {
                fleet.allocate(&placement_of(parts));
            }
        }
        let is_lifted = |hold: &&Hold| hold.reservation.is_some() && self.lifted.contains(&hold.job);
        for hold in self.holds.iter().filter(|hold| !is_lifted(hold)) {
            fleet.allocate(&placement_of(hold.withheld.clone()));
        }
        fleet
    }

    fn place(&self, job: &Job, shape: &Shape) -> Option<Vec<WorkerPlacement>> {
        let mut fleet = self.fleet();
        let avoid = self.avoided(job);
        let shape = (!shape.alternatives.is_empty()).then(|| fleet.shape(shape))?;
        Some(fleet.place(shape, &PlacementConstraints { avoid: &avoid, kinds: KindSet::ALL })?.parts)
    }

    /// The node that failed the last attempt, for ten minutes, if another would do.
    fn avoided(&self, job: &Job) -> Vec<NodeId> {
        let Some(AttemptEnd::Failed { worker, failure }) = job.past.last().map(|past| &past.verdict) else {
            return Vec::new();
        };
        let since = queued_since(job);
        let is_over = self.now < since || self.now >= since + SignedDuration::from_mins(10);
        if is_over || failure.cause == FailureCause::Exit {
            return Vec::new();
        }
        let worker = &job.past.last().unwrap().attempt.workers[worker.0 as usize];
        let mut fleet = Fleet::new(self.nodes);
        let avoid: Vec<NodeId> = fleet.node(&worker.grant.node).into_iter().collect();
        let shape = fleet.shape(&Shape::of(&job.spec));
        if fleet.could_fit_when_idle(shape, &avoid) { avoid } else { Vec::new() }
    }

    /// Jobs that wait and do not back off, in order.
    fn queue(&self) -> Vec<&'a Job> {
        let backs_off = |job: &Job| match job.life {
            JobLifecycle::Queued { since, why: QueueCause::Retry { not_before, .. } } => {
                since <= self.now && self.now < not_before
            }
            _ => false,
        };
        let is_queued = |job: &&Job| matches!(job.life, JobLifecycle::Queued { .. });
        let mut queue: Vec<&Job> =
            self.jobs.values().filter(is_queued).filter(|job| !backs_off(job)).collect();
        queue.sort_by_key(|job| self.place_in_line(job));
        queue
    }

    /// Larger priority first; then earlier submission, put off by its own length where that is known and the workspace does
    /// not insist on the order.
    fn place_in_line(&self, job: &Job) -> (std::cmp::Reverse<u8>, Timestamp, JobId) {
        let in_order = self.workspace(&job.spec.workspace).head_of_line == HeadOfLine::Strict;
        let handicap =
            if in_order || job.spec.max_time.is_none() { SignedDuration::ZERO } else { estimate(job) };
        (std::cmp::Reverse(job.spec.priority()), job.submitted_at + handicap, job.id)
    }

    fn running(&self) -> Vec<(&'a Job, Vec<WorkerPlacement>)> {
        let fleet = Fleet::new(self.nodes);
        let held = |job: &Job| -> Option<Vec<WorkerPlacement>> {
            let grants: Vec<Grant> =
                job.active()?.workers.iter().map(|worker| worker.grant.clone()).collect();
            Some(fleet.placement(&grants).parts)
        };
        self.jobs.values().filter_map(|job| Some((job, held(job)?))).collect()
    }

    fn workspace(&self, name: &str) -> Workspace {
        self.sharing.workspaces.get(name).cloned().unwrap_or_default()
    }

    fn is_own(&self, job: &Job, hold: &Hold) -> bool {
        self.jobs[&hold.job].spec.workspace == job.spec.workspace
    }
}

fn placement_of(parts: Vec<WorkerPlacement>) -> Placement {
    Placement { alternative: 0, kind: None, parts }
}

fn queued_since(job: &Job) -> Timestamp {
    match job.life {
        JobLifecycle::Queued { since, .. } => since,
        _ => job.submitted_at,
    }
}
