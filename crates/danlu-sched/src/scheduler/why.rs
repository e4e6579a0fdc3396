//! The reason for which one job waits, with its numbers, drawn from what the last pass found.

use danlu_core::{Job, JobLifecycle};
use danlu_types::JobId;
use danlu_types::reason::QuotaResource;

use super::queue::{JobClass, QueuedJob};
use super::quota_filter::kinds_of;
use super::usage::ResourceVector;
use super::wait::Blocker;
use super::workspaces::OverQuota;
use super::{Scheduler, WaitReason};
use crate::fleet::{KindSet, PlacementConstraints, ShapeId, Shortage};

impl Scheduler {
    /// Why a queued job did not start in the last pass; `None` if it is not queued here.
    pub fn wait_reason(&mut self, job: JobId) -> Option<WaitReason> {
        let waiting = self.queue.get(job)?.clone();
        Some(self.reason_of(job, &waiting))
    }

    /// Whether a job stands in the queue here.
    pub fn is_waiting(&self, job: &Job) -> bool {
        matches!(job.life, JobLifecycle::Queued { .. }) && self.queue.get(job.id).is_some()
    }

    pub(super) fn reason_of(&mut self, job: JobId, waiting: &QueuedJob) -> WaitReason {
        if waiting.not_before.is_some() {
            return WaitReason::BackOff;
        }
        if self.running.has_claim(job) {
            let victims = self.running.claims().find(|(claimant, _)| *claimant == job);
            let victims = victims.map(|(_, victims)| victims.iter().copied().collect()).unwrap_or_default();
            return WaitReason::Preempting { victims };
        }
        if !self.is_possible(waiting.class.shape) {
            let nodes = self.cordoned_for(waiting);
            return if nodes.is_empty() {
                WaitReason::NoSuchDevices
            } else {
                WaitReason::NodesCordoned { nodes }
            };
        }
        match self.findings.verdicts.get(&waiting.class).copied() {
            Some(Blocker::Behind { head }) if head != job => WaitReason::BehindOthers { head },
            Some(Blocker::Reserved { for_job }) if for_job != job => WaitReason::Reserved { for_job },
            Some(Blocker::OverQuota(over)) => self.over_quota(waiting, over),
            Some(Blocker::NoRoom { shape }) => self.no_room(waiting, shape),
            Some(_) => self.shortage(waiting, waiting.class.shape),
            None => self.no_room(waiting, waiting.class.shape),
        }
    }

    fn no_room(&mut self, waiting: &QueuedJob, shape: ShapeId) -> WaitReason {
        let reason = self.shortage(waiting, shape);
        if reason != WaitReason::NotYetConsidered {
            return reason;
        }
        // Nothing is missing but what is kept for somebody.
        let for_job = self.kept_from(waiting, shape);
        for_job.map_or(reason, |for_job| WaitReason::Reserved { for_job })
    }

    fn shortage(&mut self, waiting: &QueuedJob, shape: ShapeId) -> WaitReason {
        let wish = PlacementConstraints { avoid: &waiting.class.avoid, kinds: KindSet::ALL };
        let shortage = self.fleet.shortage(shape, &wish);
        if let (Some(node), Some(until)) = (&waiting.blamed, waiting.avoid_until)
            && shortage != Shortage::Nothing
            && self.fleet.fits(shape, &PlacementConstraints::NONE)
        {
            return WaitReason::KeepsAway { node: node.clone(), until };
        }
        match shortage {
            Shortage::Devices { free, most_on_one_node } => {
                WaitReason::DevicesBusy { free, most_on_one_node }
            }
            Shortage::Cpus { most_on_one_node } => WaitReason::CpusBusy { most_on_one_node },
            Shortage::Memory { most_on_one_node } => WaitReason::MemoryBusy { most_on_one_node },
            Shortage::Nothing => WaitReason::NotYetConsidered,
        }
    }

    fn over_quota(&self, waiting: &QueuedJob, over: OverQuota) -> WaitReason {
        let account = self.accounts.get(waiting.class.account);
        match over {
            OverQuota::Workspace(resource) => WaitReason::WorkspaceLimit {
                resource,
                asked: self.asked_of(&waiting.class, resource),
                used: amount(resource, account.used.get(resource)),
                limit: amount(resource, account.limit.get(resource).unwrap_or(0)),
            },
            OverQuota::User(resource) => {
                let used = self.accounts.used_by(waiting.class.account, &waiting.owner);
                WaitReason::UserLimit {
                    resource,
                    asked: self.asked_of(&waiting.class, resource),
                    used: amount(resource, used.get(resource)),
                    limit: amount(resource, account.per_user.get(resource).unwrap_or(0)),
                }
            }
            OverQuota::Guaranteed(resource) => {
                WaitReason::GuaranteedToOthers { resource, lends: self.accounts.lends() }
            }
        }
    }

    /// How much of a resource a job of a class asks for, by the first of its alternatives that asks for any.
    fn asked_of(&self, class: &JobClass, resource: QuotaResource) -> String {
        let shape = self.fleet.shape_of(class.shape);
        let every = shape.alternatives.iter().flat_map(|ask| kinds_of(ask).map(move |kind| (ask, kind)));
        let asked = every.map(|(ask, kind)| ResourceVector::of_gang(shape, ask, kind).get(resource));
        amount(resource, asked.filter(|asked| *asked > 0).min().unwrap_or(0))
    }

    /// What a job of a class would take of what quotas speak of, on the first devices it names.
    pub(super) fn usual_use(&self, class: &JobClass) -> ResourceVector {
        let shape = self.fleet.shape_of(class.shape);
        shape.alternatives.first().map_or_else(ResourceVector::default, |ask| {
            let kind = if ask.count.is_none() {
                None
            } else {
                ask.kind.or_else(|| self.fleet.kinds().first().copied())
            };
            ResourceVector::of_gang(shape, ask, kind)
        })
    }
}

/// An amount as people write it: "8", "1.5", "64Gi".
pub(super) fn amount(resource: QuotaResource, amount: u64) -> String {
    match resource {
        QuotaResource::Memory => danlu_types::Bytes(amount).to_string(),
        QuotaResource::Nvidia | QuotaResource::Ascend | QuotaResource::Cpus => {
            danlu_types::Cpus { milli: amount }.to_string()
        }
    }
}
