//! Quotas, shares and guarantees, added up anew for every question.

use danlu_core::Job;
use danlu_sched::{DeviceAsk, Shape, WorkerPlacement};
use danlu_types::{Amounts, DeviceKind, JobId, Node};
use jiff::Timestamp;

use super::{Hold, Pass, Pool};

/// NVIDIA and Ascend devices and CPUs in thousandths, and bytes.
#[derive(Clone, Copy, Default)]
pub(super) struct Use(pub(super) [u64; 4]);

impl Use {
    pub(super) fn of(parts: &[WorkerPlacement], nodes: &[Node]) -> Self {
        let mut all = [0; 4];
        for part in parts {
            for device in &part.devices {
                let kind = nodes[part.node.ordinal()].devices[usize::from(*device)].kind;
                all[kind as usize] += u64::from(part.share);
            }
            all[2] += part.milli_cpus;
            all[3] += part.bytes;
        }
        Use(all)
    }

    fn of_gang(shape: &Shape, ask: &DeviceAsk, pool: Pool) -> Self {
        let mut all = [0, 0, shape.cpus.milli, shape.memory.0];
        if let Some(kind) = pool {
            all[kind as usize] = u64::from(ask.count.milli());
        }
        Use(all.map(|each| each * u64::from(shape.workers)))
    }

    /// What it is about: the first thing it takes.
    pub(super) fn main(&self) -> usize {
        (0..4).find(|of| self.0[*of] > 0).unwrap_or(2)
    }
}

/// A job and what it uses.
pub(super) type FirmUse = (JobId, Use);

fn amounts(amounts: &Amounts) -> [Option<u64>; 4] {
    [
        amounts.nvidia.map(|count| u64::from(count.milli())),
        amounts.ascend.map(|count| u64::from(count.milli())),
        amounts.cpus.map(|cpus| cpus.milli),
        amounts.memory.map(|memory| memory.0),
    ]
}

fn plus(one: [u64; 4], other: [u64; 4]) -> [u64; 4] {
    std::array::from_fn(|of| one[of] + other[of])
}

/// The first resource it asks for of which that would be too much.
fn first_over(asked: &Use, used: [u64; 4], limit: [Option<u64>; 4]) -> Option<usize> {
    (0..4).find(|of| asked.0[*of] > 0 && limit[*of].is_some_and(|most| used[*of] + asked.0[*of] > most))
}

impl Pass<'_> {
    /// What jobs use that run and are not gone, or are about to.
    fn used_by(&self, counts: impl Fn(&Job) -> bool) -> [u64; 4] {
        let running = self.running().into_iter().filter(|(job, _)| !self.gone.contains(&job.id));
        let running = running.map(|(job, parts)| (job, Use::of(&parts, self.nodes)));
        let begun = self.holds.iter().filter(|hold| hold.counts);
        let all = running.chain(begun.map(|hold| (&self.jobs[&hold.job], hold.usage)));
        all.filter(|(job, _)| counts(job)).fold([0; 4], |sum, (_, usage)| plus(sum, usage.0))
    }

    pub(super) fn used(&self, workspace: &str) -> [u64; 4] {
        self.used_by(|job| job.spec.workspace == workspace)
    }

    /// Use that cannot be taken back.
    fn firm(&self, workspace: &str) -> [u64; 4] {
        self.used_by(|job| job.spec.workspace == workspace && self.is_firm(job))
    }

    fn is_firm(&self, job: &Job) -> bool {
        !(self.sharing.lending && job.spec.preemptible)
    }

    pub(super) fn guaranteed(&self, workspace: &str) -> [u64; 4] {
        amounts(&self.workspace(workspace).guaranteed).map(|amount| amount.unwrap_or(0))
    }

    pub(super) fn limit(&self, workspace: &str) -> [Option<u64>; 4] {
        amounts(&self.workspace(workspace).limit)
    }

    fn capacity(&self) -> [u64; 4] {
        let mut all = [0; 4];
        for node in self.nodes {
            node.devices.iter().for_each(|device| all[device.kind as usize] += 1000);
            all[2] += node.capacity.cpus.milli;
            all[3] += node.capacity.memory.0;
        }
        all
    }

    /// What works and takes jobs.
    fn in_service(&self) -> [u64; 4] {
        let mut all = [0; 4];
        for node in self.nodes.iter().filter(|node| node.cordoned.is_none()) {
            let devices = node.devices.iter().filter(|device| device.usable());
            devices.for_each(|device| all[device.kind as usize] += 1000);
            all[2] += node.capacity.cpus.milli;
            all[3] += node.capacity.memory.0;
        }
        all
    }

    /// Those within their guarantee by how much of it they use, then borrowers by how much they borrow.
    pub(super) fn share(&self, workspace: &str) -> f64 {
        let (used, guaranteed, capacity) =
            (self.used(workspace), self.guaranteed(workspace), self.capacity());
        let has_none = guaranteed == [0; 4];
        let ratio = |part: u64, whole: u64| part as f64 / whole.max(1) as f64;
        let within = (0..4).filter(|of| guaranteed[*of] > 0).map(|of| ratio(used[of], guaranteed[of]));
        // CPUs and memory count where they are guaranteed, or where nothing is.
        let counts = |of: &usize| guaranteed[*of] > 0 || has_none || *of < 2;
        let beyond = (0..4).filter(counts).filter(|of| used[*of] > guaranteed[*of]);
        let beyond = beyond.map(|of| ratio(used[of] - guaranteed[of], capacity[of])).fold(0.0, f64::max);
        if beyond > 0.0 || has_none { 1.0 + beyond } else { within.fold(0.0, f64::max) }
    }

    /// What quotas leave of a job's wishes.
    pub(super) fn within_quota(&self, job: &Job, shape: &Shape) -> Shape {
        narrowed(shape, |asked, _| self.refusal(job, &asked).is_none())
    }

    /// What it is first refused for, and whether by a limit of its owner.
    pub(super) fn first_refusal(&self, job: &Job, shape: &Shape) -> Option<(usize, bool)> {
        let asks =
            shape.alternatives.iter().flat_map(|ask| kinds_of(ask).into_iter().map(move |pool| (ask, pool)));
        let mut refusals = asks.map(|(ask, pool)| self.refusal(job, &Use::of_gang(shape, ask, pool)));
        refusals.find_map(|refusal| refusal)
    }

    fn refusal(&self, job: &Job, asked: &Use) -> Option<(usize, bool)> {
        let workspace = &job.spec.workspace;
        let own = |other: &Job| other.owner == job.owner && other.spec.workspace == *workspace;
        let per_user = amounts(&self.workspace(workspace).per_user);
        let by_workspace = first_over(asked, self.used(workspace), self.limit(workspace));
        let by_user = || first_over(asked, self.used_by(own), per_user).map(|of| (of, true));
        let by_others = || self.guaranteed_to_others(job, asked).map(|of| (of, false));
        by_workspace.map(|of| (of, false)).or_else(by_user).or_else(by_others)
    }

    /// A job that cannot be made to give it back must leave to others what they are guaranteed.
    fn guaranteed_to_others(&self, job: &Job, asked: &Use) -> Option<usize> {
        self.lent_to_others(&job.spec.workspace, &self.all_firm(), asked).filter(|_| self.is_firm(job))
    }

    /// Of what, beside those who use it firmly, so much would leave others too little.
    fn lent_to_others(&self, workspace: &str, firm: &[FirmUse], asked: &Use) -> Option<usize> {
        let firm_of = |name: &str| {
            let own = firm.iter().filter(|(job, _)| self.jobs[job].spec.workspace == name);
            let own = own.filter(|(job, _)| self.is_firm(&self.jobs[job]));
            own.fold([0; 4], |sum, (_, usage)| plus(sum, usage.0))
        };
        let (own, own_firm) = (self.guaranteed(workspace), firm_of(workspace));
        let mut others: Vec<&String> = self.jobs.values().map(|job| &job.spec.workspace).collect();
        others.extend(self.sharing.workspaces.keys());
        others.sort_unstable();
        others.dedup();
        others.retain(|name| **name != *workspace);
        let capacity = self.in_service();
        (0..4).find(|&of| {
            let promised = |name: &&String| self.guaranteed(name)[of].max(firm_of(name)[of]);
            let theirs: u64 = others.iter().map(promised).sum();
            let idle = theirs > others.iter().map(|name| firm_of(name)[of]).sum();
            let firm = own_firm[of] + asked.0[of];
            asked.0[of] > 0 && idle && firm > own[of] && theirs + firm > capacity[of]
        })
    }

    /// Who uses what, or is about to.
    pub(super) fn all_firm(&self) -> Vec<FirmUse> {
        let running = self.running().into_iter().filter(|(job, _)| !self.gone.contains(&job.id));
        let running = running.map(|(job, parts)| (job.id, Use::of(&parts, self.nodes)));
        running
            .chain(self.holds.iter().filter(|hold| hold.counts).map(|hold| (hold.job, hold.usage)))
            .collect()
    }

    /// Who should use what at a later time.
    pub(super) fn firm_at(&self, at: Timestamp) -> Vec<FirmUse> {
        let stays = |job: &Job| self.expected_end(job) > at && !self.victims.contains(&job.id);
        let running = self.running().into_iter().filter(|(job, _)| stays(job));
        let running = running.map(|(job, parts)| (job.id, Use::of(&parts, self.nodes)));
        let is_there =
            |hold: &&Hold| hold.until > at && hold.reservation.map_or(hold.counts, |begin| begin < at);
        running.chain(self.holds.iter().filter(is_there).map(|hold| (hold.job, hold.usage))).collect()
    }

    /// What, started then, leaves heads that begin while it runs what they need of what is guaranteed to nobody.
    pub(super) fn beside_firm_heads(&self, job: &Job, shape: &Shape, at: Timestamp) -> Shape {
        let end = at + super::length(job);
        let begins_meanwhile = |begin: Timestamp| at <= begin && begin < end;
        let heads = || self.holds.iter().filter(|hold| hold.reservation.is_some_and(begins_meanwhile));
        narrowed(shape, |asked, _| !heads().any(|head| self.delays_firmly(job, &asked, head)))
    }

    /// Whether the head could not start if this ran beside it; but what a guarantee covers, others cannot keep.
    fn delays_firmly(&self, job: &Job, asked: &Use, head: &Hold) -> bool {
        let workspace = &job.spec.workspace;
        let (own, firm) = (self.guaranteed(workspace), self.firm(workspace));
        let is_covered = |of: usize| !self.is_own(job, head) && firm[of] + asked.0[of] <= own[of];
        let counts = |of: usize| asked.0[of] > 0 && !is_covered(of) && head.usage.0[of] > 0;
        let asked_of = |of: usize, usage: &Use| {
            Use(std::array::from_fn(|other| usage.0[other] * u64::from(other == of)))
        };
        let begins = &self.jobs[&head.job];
        self.is_firm(job)
            && self.is_firm(begins)
            && (0..4).filter(|of| counts(*of)).any(|of| {
                let mut beside: Vec<FirmUse> = head.firm.clone();
                beside.retain(|(other, _)| *other != head.job);
                beside.push((job.id, asked_of(of, asked)));
                self.lent_to_others(&begins.spec.workspace, &beside, &asked_of(of, &head.usage)).is_some()
            })
    }

    /// Whether limits, and what is guaranteed to others, could ever leave it so much.
    pub(super) fn could_ever_have(&self, job: &Job, asked: &Use) -> bool {
        let (own, capacity) = (self.guaranteed(&job.spec.workspace), self.capacity());
        let others = self.sharing.workspaces.keys().filter(|name| **name != job.spec.workspace);
        let lent = others.map(|name| self.guaranteed(name)).fold([0; 4], plus);
        let most = std::array::from_fn(|of| Some(capacity[of].saturating_sub(lent[of]).max(own[of])));
        let per_user = amounts(&self.workspace(&job.spec.workspace).per_user);
        first_over(asked, [0; 4], self.limit(&job.spec.workspace)).is_none()
            && first_over(asked, [0; 4], per_user).is_none()
            && (!self.is_firm(job) || first_over(asked, [0; 4], most).is_none())
    }

    /// Whether a job would use up what its workspace's limit has to leave to its head.
    pub(super) fn delays_own_head(&self, job: &Job, asked: &Use) -> bool {
        let end = self.now + super::length(job);
        let heads = self.holds.iter().filter(|hold| hold.reservation.is_some_and(|at| end > at));
        heads
            .filter(|hold| self.is_own(job, hold))
            .any(|hold| first_over(asked, [0; 4], hold.spare).is_some())
    }

    /// What of a workspace's use is being given back.
    fn leaving(&self, workspace: &str) -> [u64; 4] {
        let leaves = |job: &Job| {
            job.spec.workspace == workspace
                && (self.victims.contains(&job.id)
                    || job.active().is_some_and(|attempt| attempt.stop.is_some()))
        };
        let leaving = self.running().into_iter().filter(|(job, _)| leaves(job));
        leaving.fold([0; 4], |sum, (_, parts)| plus(sum, Use::of(&parts, self.nodes).0))
    }

    /// Whether it would use more than it is guaranteed, with so much more than it has.
    pub(super) fn borrows_with(&self, workspace: &str, of: usize, more: u64) -> bool {
        self.used(workspace)[of] + more > self.guaranteed(workspace)[of] + self.leaving(workspace)[of]
    }

    /// A workspace that uses less than it is guaranteed takes back what others borrow.
    pub(super) fn may_take_back(&self, job: &Job, asked: &Use) -> bool {
        let (used, of) = (self.used_for_guarantee(job), asked.main());
        let guaranteed = self.guaranteed(&job.spec.workspace)[of];
        self.has_right(job, asked) && (self.fits_guarantee(job, used, asked) || used[of] < guaranteed)
    }

    /// A job that cannot borrow pushes out its own workspace's borrowing.
    pub(super) fn may_push_out_own(&self, job: &Job, asked: &Use) -> bool {
        self.has_right(job, asked) && !self.fits_guarantee(job, self.used_for_guarantee(job), asked)
    }

    /// Whether the guarantee covers it, perhaps without what its own workspace borrows.
    pub(super) fn has_right(&self, job: &Job, asked: &Use) -> bool {
        let is_lent = self.sharing.lending && self.guaranteed(&job.spec.workspace)[asked.main()] > 0;
        let firm = self.firm(&job.spec.workspace);
        is_lent
            && (self.fits_guarantee(job, self.used_for_guarantee(job), asked)
                || (!job.spec.preemptible && self.fits_guarantee(job, firm, asked)))
    }

    fn used_for_guarantee(&self, job: &Job) -> [u64; 4] {
        let (used, leaving) = (self.used(&job.spec.workspace), self.leaving(&job.spec.workspace));
        let heads = self.holds.iter().filter(|hold| hold.reservation.is_some() && self.is_own(job, hold));
        let kept = heads.fold([0; 4], |sum, hold| plus(sum, Use::of(&hold.withheld, self.nodes).0));
        plus(std::array::from_fn(|of| used[of].saturating_sub(leaving[of])), kept)
    }

    fn fits_guarantee(&self, job: &Job, used: [u64; 4], asked: &Use) -> bool {
        let most = self.guaranteed(&job.spec.workspace).map(|amount| (amount > 0).then_some(amount));
        first_over(asked, used, most).is_none()
    }
}

/// The shape without those alternatives and kinds that are refused.
pub(super) fn narrowed(shape: &Shape, allows: impl Fn(Use, Pool) -> bool) -> Shape {
    let mut left = Vec::new();
    for ask in &shape.alternatives {
        let kinds = kinds_of(ask);
        let allowed: Vec<Pool> =
            kinds.iter().copied().filter(|pool| allows(Use::of_gang(shape, ask, *pool), *pool)).collect();
        if allowed == kinds {
            left.push(ask.clone());
        } else {
            left.extend(allowed.into_iter().map(|kind| DeviceAsk { kind, ..ask.clone() }));
        }
    }
    Shape { alternatives: left, ..shape.clone() }
}

pub(super) fn pools(shape: &Shape) -> Vec<Pool> {
    let mut pools: Vec<Pool> = shape.alternatives.iter().flat_map(kinds_of).collect();
    pools.sort_unstable();
    pools.dedup();
    pools
}

fn kinds_of(ask: &DeviceAsk) -> Vec<Pool> {
    match (ask.count.is_none(), ask.kind) {
        (true, _) => vec![None],
        (false, Some(kind)) => vec![Some(kind)],
        (false, None) => DeviceKind::ALL.map(Some).to_vec(),
    }
}
