//! Why one job waits, for people and programs: the reason, the numbers, who holds what it needs, when it should start,
//! and what would start it now.

use std::collections::{BTreeMap, BTreeSet};

use danlu_core::{Job, JobLifecycle};
use danlu_types::JobId;
use danlu_types::api::{Explanation, QuotaUse, Supply};
use danlu_types::reason::CordonedNode;
use jiff::Timestamp;

use super::queue::QueuedJob;
use super::why::amount;
use super::{Scheduler, WaitReason};
use crate::words;

/// What the scheduler does not know, and an explanation needs.
#[derive(Debug, Clone, Default)]
pub struct Circumstances {
    /// Other workspaces to which whoever asks could move the job.
    pub workspaces: Vec<String>,
    /// When running jobs will be done, going by the progress that they report.
    pub ends: BTreeMap<JobId, Timestamp>,
    /// Jobs that hold something here and do not run, because the engine's own queue keeps them back: nobody knows when they end.
    pub held: BTreeSet<JobId>,
}

impl Scheduler {
    /// The same for somebody who may submit to every workspace, where no job reports progress.
    pub fn explain(&mut self, job: &Job, now: Timestamp) -> Explanation {
        let workspaces = self.sharing.workspaces.keys().cloned().collect();
        self.explain_with(job, now, &Circumstances { workspaces, ..Circumstances::default() })
    }

    /// Explains a job, also one that was never submitted (a dry run): it is then treated as the last of its priority.
    pub fn explain_with(&mut self, job: &Job, now: Timestamp, known: &Circumstances) -> Explanation {
        let mut explanation = Explanation {
            job: job.id,
            state: job.state(),
            reason: danlu_core::view::reason(job, None),
            further: Vec::new(),
            text: String::new(),
            position: None,
            supply: Vec::new(),
            quota: None,
            holders: Vec::new(),
            foreign: Vec::new(),
            cordoned: Vec::new(),
            estimate: None,
            offers: Vec::new(),
        };
        if let JobLifecycle::Queued { .. } = job.life {
            // What this says of those that run stays, so that it must be said to the reservations that stay.
            self.put_off_overdue(now);
            let (kept, findings) = (self.kept.clone(), std::mem::take(&mut self.findings));
            let is_guest = self.queue.get(job.id).is_none();
            if is_guest {
                self.receive(job, None);
            }
            self.explain_waiting(job, now, known, &mut explanation);
            if is_guest {
                self.queue.remove(job.id);
            }
            (self.kept, self.findings) = (kept, findings);
        }
        explanation.text = words::paragraph(&explanation, job, now);
        explanation
    }

    fn explain_waiting(
        &mut self,
        job: &Job,
        now: Timestamp,
        known: &Circumstances,
        explanation: &mut Explanation,
    ) {
        let plan = self.plan(now);
        let Some(waiting) = self.queue.get(job.id).cloned() else { return };
        if waiting.not_before.is_some() {
            // Nobody is in its way: the core says why it waits, and until when.
            return;
        }
        let starts_now = plan.starts.iter().any(|start| start.job == job.id);
        let of_job = plan.preemptions.iter().filter(|preemption| preemption.for_job == job.id);
        let victims: Vec<JobId> = of_job.map(|preemption| preemption.victim).collect();
        let reason = match () {
            () if starts_now => WaitReason::NotYetConsidered,
            () if !victims.is_empty() => WaitReason::Preempting { victims },
            () => self.reason_of(job.id, &waiting),
        };
        if let Some(reason) = reason.clone().reason(&job.spec) {
            explanation.reason = reason;
        }
        explanation.supply = self.supply(&waiting);
        if starts_now {
            return;
        }
        explanation.position = Some(self.position(&waiting));
        explanation.quota = self.quota_use(&waiting, &reason);
        explanation.holders = self.holders_of(&waiting, &reason, now, known);
        explanation.foreign = self.foreign_holders_of(&waiting, &reason);
        explanation.cordoned = self.cordoned_for(&waiting);
        if !matches!(reason, WaitReason::NoSuchDevices | WaitReason::NodesCordoned { .. }) {
            explanation.estimate = self.start_estimate(&waiting, &reason, now, known);
        }
        explanation.offers = self.offers(job, &waiting, now, &known.workspaces);
    }

    /// Plans, and forgets the plan.
    pub(super) fn would_start(&mut self, job: JobId, now: Timestamp) -> bool {
        self.plan(now).starts.iter().any(|start| start.job == job)
    }

    /// Its number among the jobs of its workspace that wait for the same kinds of devices.
    pub(super) fn position(&self, waiting: &QueuedJob) -> u32 {
        let QueuedJob { class, place, .. } = waiting;
        let ahead = self.queue.ahead_of(class.account, class.pools, *place).map(|(_, count)| count);
        u32::try_from(ahead.sum::<usize>()).unwrap_or(u32::MAX).saturating_add(1)
    }

    fn supply(&mut self, waiting: &QueuedJob) -> Vec<Supply> {
        let asks = self.fleet.shape_of(waiting.class.shape).alternatives.clone();
        let mut supply: Vec<Supply> = Vec::new();
        for found in asks.iter().flat_map(|ask| self.fleet.supply(ask)) {
            let known = supply.iter().any(|other| (other.kind, &other.model) == (found.kind, &found.model));
            if !known {
                supply.push(found);
            }
        }
        let mark = self.fleet.mark();
        for kept in self.kept.values().filter(|kept| kept.job() != waiting.place.job) {
            self.fleet.withhold(kept.placement());
        }
        let left: Vec<Supply> = asks.iter().flat_map(|ask| self.fleet.supply(ask)).collect();
        self.fleet.undo(mark);
        for supply in &mut supply {
            let left = left.iter().find(|left| (left.kind, &left.model) == (supply.kind, &supply.model));
            supply.reserved = supply.free - left.map_or(0, |left| left.free);
        }
        supply
    }

    /// Where the workspace stands, if it has a quota of what the job is about or a quota keeps the job waiting.
    fn quota_use(&self, waiting: &QueuedJob, reason: &WaitReason) -> Option<QuotaUse> {
        let account = self.accounts.get(waiting.class.account);
        let asked = self.usual_use(&waiting.class);
        let (resource, is_user) = match reason {
            WaitReason::WorkspaceLimit { resource, .. } | WaitReason::GuaranteedToOthers { resource, .. } => {
                (*resource, false)
            }
            WaitReason::UserLimit { resource, .. } => (*resource, true),
            _ => (asked.main_resource(), false),
        };
        let limit = if is_user { account.per_user.get(resource) } else { account.limit.get(resource) };
        let guaranteed = account.guaranteed.get(resource);
        if limit.is_none() && guaranteed == 0 && !matches!(reason, WaitReason::GuaranteedToOthers { .. }) {
            return None;
        }
        let used =
            if is_user { self.accounts.used_by(waiting.class.account, &waiting.owner) } else { account.used };
        Some(QuotaUse {
            workspace: account.name.clone(),
            user: is_user.then(|| waiting.owner.to_string()),
            resource,
            asked: amount(resource, asked.get(resource)),
            used: amount(resource, used.get(resource)),
            guaranteed: amount(resource, guaranteed),
            limit: limit.map(|limit| amount(resource, limit)),
        })
    }

    /// Cordoned nodes that have devices which the job would take, in the order of nodes.
    pub(super) fn cordoned_for(&self, waiting: &QueuedJob) -> Vec<CordonedNode> {
        let shape = self.fleet.shape_of(waiting.class.shape);
        let nodes = self.fleet.nodes().iter().filter(|node| shape.may_run_on(node));
        nodes
            .filter_map(|node| {
                let reason = node.cordoned.clone()?;
                Some(CordonedNode { node: node.name.clone(), reason })
            })
            .collect()
    }
}
