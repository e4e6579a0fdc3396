//! Why one job waits, for people and programs: the reason, the numbers, who holds what it needs, when it should start,
//! and what would start it now.

use danlu_core::{Job, Life};
use danlu_types::JobId;
use danlu_types::api::{Explanation, Holder, QuotaUse, StartEstimate, Supply};
use jiff::Timestamp;

use super::history::Witness;
use super::pass::{Pass, pools_of};
use super::queue::Waiting;
use super::running::{Running, after};
use super::why::amount;
use super::{Scheduler, WaitReason};
use crate::words;

/// Lists of holders stop here: past a dozen names, a list explains no more than its length.
const MOST_HOLDERS: usize = 12;

impl Scheduler {
    /// Explains a job, also one that was never submitted (a dry run): it is then treated as the last of its priority.
    pub fn explain(&mut self, job: &Job, now: Timestamp) -> Explanation {
        let mut explanation = Explanation {
            job: job.id,
            state: job.state(),
            reason: danlu_core::view::reason(job, None),
            text: String::new(),
            position: None,
            supply: Vec::new(),
            quota: None,
            holders: Vec::new(),
            estimate: None,
            offers: Vec::new(),
        };
        if let Life::Queued { .. } = job.life {
            let (kept, verdicts) = (self.kept.clone(), std::mem::take(&mut self.verdicts));
            let is_guest = self.queue.get(job.id).is_none();
            if is_guest {
                self.receive(job);
            }
            self.explain_waiting(job, now, &mut explanation);
            if is_guest {
                self.queue.remove(job.id);
            }
            (self.kept, self.verdicts) = (kept, verdicts);
        }
        explanation.text = words::paragraph(&explanation, job, now);
        explanation
    }

    fn explain_waiting(&mut self, job: &Job, now: Timestamp, explanation: &mut Explanation) {
        let starts_now = self.would_start(job.id, now);
        let Some(waiting) = self.queue.get(job.id).cloned() else { return };
        let reason = if starts_now { WaitReason::NotYetConsidered } else { self.reason_of(job.id, &waiting) };
        explanation.reason = reason.reason(&job.spec);
        explanation.supply = self.supply(&waiting);
        if starts_now {
            return;
        }
        explanation.position = Some(self.position(&waiting));
        explanation.quota = self.quota_use(&waiting, &reason);
        explanation.holders = self.holders_of(&waiting);
        if !matches!(reason, WaitReason::NoSuchDevices | WaitReason::BackOff { .. }) {
            explanation.estimate = self.start_estimate(job.id, &waiting, now);
        }
        explanation.offers = self.offers(job, &waiting, now);
    }

    /// Plans, and forgets the plan.
    pub(super) fn would_start(&mut self, job: JobId, now: Timestamp) -> bool {
        self.plan(now).starts.iter().any(|start| start.job == job)
    }

    /// Its number among the jobs of its workspace that wait for the same kinds of devices.
    fn position(&self, waiting: &Waiting) -> u32 {
        let pools = pools_of(&self.fleet, &waiting.class);
        let ahead = self.queue.jobs().filter(|(_, other)| {
            other.class.account == waiting.class.account
                && other.place < waiting.place
                && pools_of(&self.fleet, &other.class) & pools != 0
        });
        u32::try_from(ahead.count()).unwrap_or(u32::MAX).saturating_add(1)
    }

    fn supply(&mut self, waiting: &Waiting) -> Vec<Supply> {
        let asks = self.fleet.shape_of(waiting.class.shape).alternatives.clone();
        let mut supply: Vec<Supply> = Vec::new();
        for found in asks.iter().flat_map(|ask| self.fleet.supply(ask)) {
            let known = supply.iter().any(|other| (other.kind, &other.model) == (found.kind, &found.model));
            if !known {
                supply.push(found);
            }
        }
        let mark = self.fleet.mark();
        for kept in self.kept.values().filter(|kept| !kept.is_for(waiting.place.1)) {
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
    fn quota_use(&self, waiting: &Waiting, reason: &WaitReason) -> Option<QuotaUse> {
        let account = self.accounts.get(waiting.class.account);
        let asked = self.usual_use(waiting);
        let (resource, is_user) = match reason {
            WaitReason::WorkspaceLimit { resource, .. } | WaitReason::GuaranteedToOthers { resource } => {
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
            resource: resource.as_str().to_owned(),
            asked: amount(resource, asked.get(resource)),
            used: amount(resource, used.get(resource)),
            guaranteed: amount(resource, guaranteed),
            limit: limit.map(|limit| amount(resource, limit)),
        })
    }

    /// Who holds devices that the job would take, most devices first.
    fn holders_of(&self, waiting: &Waiting) -> Vec<Holder> {
        let shape = self.fleet.shape_of(waiting.class.shape);
        let is_cpu_only = shape.alternatives.iter().all(|ask| ask.count.is_none());
        let mut holders: Vec<Holder> = Vec::new();
        for (job, running) in self.running.iter() {
            let mut nodes = Vec::new();
            let mut devices = 0;
            for part in &running.placement.parts {
                let node = &self.fleet.nodes()[part.node.ordinal()];
                let wanted = |position: &&u8| {
                    let device = &node.devices[usize::from(**position)];
                    shape.alternatives.iter().any(|ask| ask.accepts(device.kind, &device.model))
                };
                let count = part.devices.iter().filter(wanted).count();
                if (count > 0 || is_cpu_only) && !nodes.contains(&node.name) {
                    nodes.push(node.name.clone());
                }
                devices += u32::try_from(count).unwrap_or(u32::MAX);
            }
            if !nodes.is_empty() {
                holders.push(self.holder(job, running, devices, nodes));
            }
        }
        holders.sort_by_key(|holder| (std::cmp::Reverse(holder.devices), holder.job));
        holders.truncate(MOST_HOLDERS);
        holders
    }

    fn holder(
        &self,
        job: JobId,
        running: &Running,
        devices: u32,
        nodes: Vec<danlu_types::NodeName>,
    ) -> Holder {
        let expected = running.estimate.witness != Witness::Guess;
        Holder {
            job,
            name: running.name.to_string(),
            workspace: self.accounts.get(running.account).name.clone(),
            owner: running.owner.to_string(),
            devices,
            nodes,
            expected_end: expected.then_some(running.expected_end),
        }
    }

    /// Earliest: running jobs end when half of their like have, and nobody else waits. Latest: they take as long as nine
    /// in ten of their like, and everybody ahead in the workspace runs first, sharing what the cluster has.
    fn start_estimate(&mut self, job: JobId, waiting: &Waiting, now: Timestamp) -> Option<StartEstimate> {
        let typical: Vec<(Timestamp, JobId)> =
            self.running.by_end().map(|(end, job, _)| (end, job)).collect();
        let mut most: Vec<(Timestamp, JobId)> =
            self.running.iter().map(|(job, running)| (longest_end(running), job)).collect();
        most.sort_unstable();
        let mut pass = Pass::new(self, now);
        let earliest = pass.opening(&waiting.class, job, &typical)?;
        let latest = pass.opening(&waiting.class, job, &most)?;
        let waits_for = |witness: Witness| {
            let ended = latest.ended.iter().filter_map(|job| self.running.get(*job));
            ended.filter(|running| running.estimate.witness == witness).count()
        };
        let is_guess = waits_for(Witness::Guess) > 0;
        let queue_time = after(latest.at, self.time_for_those_ahead(waiting));
        Some(StartEstimate {
            earliest: earliest.at,
            latest: (!is_guess).then_some(queue_time.max(earliest.at)),
            rests_on: words::rests_on(
                waits_for(Witness::TimeLimit),
                waits_for(Witness::SameName) + waits_for(Witness::SameSize),
                waits_for(Witness::Guess),
            ),
        })
    }

    /// How long the whole cluster would be busy with those ahead in the workspace that wait for the same.
    fn time_for_those_ahead(&self, waiting: &Waiting) -> danlu_types::Span {
        let pools = pools_of(&self.fleet, &waiting.class);
        let mine = self.usual_use(waiting);
        let resource = mine.main_resource();
        let ahead = self.queue.jobs().filter(|(_, other)| {
            other.class.account == waiting.class.account
                && other.place < waiting.place
                && pools_of(&self.fleet, &other.class) & pools != 0
        });
        let work: u128 = ahead
            .map(|(_, other)| {
                u128::from(self.usual_use(other).get(resource)) * u128::from(other.estimate.most.milliseconds)
            })
            .sum();
        let account = self.accounts.get(waiting.class.account);
        let capacity = self.accounts.capacity.get(resource);
        let share = account.limit.get(resource).map_or(capacity, |limit| limit.min(capacity)).max(1);
        danlu_types::Span { milliseconds: u64::try_from(work / u128::from(share)).unwrap_or(u64::MAX) }
    }
}

fn longest_end(running: &Running) -> Timestamp {
    let most = after(running.placed_at, running.estimate.most).max(running.expected_end);
    running.latest_end.map_or(most, |limit| limit.min(most).max(running.expected_end))
}
