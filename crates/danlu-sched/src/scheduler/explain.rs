//! Why one job waits, for people and programs: the reason, the numbers, who holds what it needs, when it should start,
//! and what would start it now.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use danlu_core::{Job, Life};
use danlu_types::api::{Explanation, ForeignHolder, Holder, QuotaUse, StartEstimate, Supply};
use danlu_types::{ForeignKind, JobId};
use jiff::Timestamp;

use super::history::Witness;
use super::pass::Pass;
use super::queue::Waiting;
use super::running::{Ends, after, foreign_end};
use super::why::amount;
use super::{Scheduler, WaitReason};
use crate::fleet::{NodeId, Part};
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
            foreign: Vec::new(),
            estimate: None,
            offers: Vec::new(),
        };
        if let Life::Queued { .. } = job.life {
            // What this says of those that run stays, so that it must be said to the reservations that stay.
            self.put_off_overdue(now);
            let (kept, findings) = (self.kept.clone(), std::mem::take(&mut self.findings));
            let is_guest = self.queue.get(job.id).is_none();
            if is_guest {
                self.receive(job, None);
            }
            self.explain_waiting(job, now, &mut explanation);
            if is_guest {
                self.queue.remove(job.id);
            }
            (self.kept, self.findings) = (kept, findings);
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
        explanation.holders = self.holders_of(&waiting, now);
        explanation.foreign = self.foreign_holders_of(&waiting);
        if !matches!(reason, WaitReason::NoSuchDevices | WaitReason::BackOff { .. }) {
            explanation.estimate = self.start_estimate(&waiting, now);
        }
        explanation.offers = self.offers(job, &waiting, now);
    }

    /// Plans, and forgets the plan.
    pub(super) fn would_start(&mut self, job: JobId, now: Timestamp) -> bool {
        self.plan(now).starts.iter().any(|start| start.job == job)
    }

    /// Its number among the jobs of its workspace that wait for the same kinds of devices.
    fn position(&self, waiting: &Waiting) -> u32 {
        let Waiting { class, place, .. } = waiting;
        let ahead = self.queue.ahead_of(class.account, class.pools, *place).map(|(_, count)| count);
        u32::try_from(ahead.sum::<usize>()).unwrap_or(u32::MAX).saturating_add(1)
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
    fn quota_use(&self, waiting: &Waiting, reason: &WaitReason) -> Option<QuotaUse> {
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
            resource: resource.as_str().to_owned(),
            asked: amount(resource, asked.get(resource)),
            used: amount(resource, used.get(resource)),
            guaranteed: amount(resource, guaranteed),
            limit: limit.map(|limit| amount(resource, limit)),
        })
    }

    /// Who holds devices that the job would take, most devices first.
    fn holders_of(&self, waiting: &Waiting, now: Timestamp) -> Vec<Holder> {
        let shape = self.fleet.shape_of(waiting.class.shape);
        let is_cpu_only = shape.alternatives.iter().all(|ask| ask.count.is_none());
        let wanted = |part: &Part| {
            let devices = &self.fleet.nodes()[part.node.ordinal()].devices;
            let of_part = part.devices.iter().map(|position| &devices[usize::from(*position)]);
            of_part
                .filter(|device| shape.alternatives.iter().any(|ask| ask.accepts(device.kind, &device.model)))
                .count()
        };
        let mut holders: Vec<(Reverse<usize>, JobId)> = self
            .running
            .iter()
            .map(|(job, running)| (Reverse(running.placement.parts.iter().map(wanted).sum()), job))
            .filter(|(Reverse(devices), _)| *devices > 0 || is_cpu_only)
            .collect();
        if holders.len() > MOST_HOLDERS {
            holders.select_nth_unstable(MOST_HOLDERS);
            holders.truncate(MOST_HOLDERS);
        }
        holders.sort_unstable();
        holders.into_iter().filter_map(|(Reverse(devices), job)| self.holder(job, devices, now)).collect()
    }

    /// Jobs of the cluster's own that hold devices which the job would take, most devices first.
    fn foreign_holders_of(&self, waiting: &Waiting) -> Vec<ForeignHolder> {
        let shape = self.fleet.shape_of(waiting.class.shape);
        let is_cpu_only = shape.alternatives.iter().all(|ask| ask.count.is_none());
        let mut found: BTreeMap<(ForeignKind, &str), ForeignHolder> = BTreeMap::new();
        for node in self.fleet.nodes() {
            for hold in &node.foreign {
                let of_hold = node.devices.iter().filter(|device| hold.devices.contains(&device.index));
                let wanted = of_hold.filter(|device| {
                    shape.alternatives.iter().any(|ask| ask.accepts(device.kind, &device.model))
                });
                let wanted: Vec<u32> = wanted.map(|device| device.index).collect();
                let devices = u32::try_from(wanted.len()).unwrap_or(u32::MAX);
                if devices == 0 && !is_cpu_only {
                    continue;
                }
                let holder = found.entry((hold.kind, &hold.job)).or_insert_with(|| ForeignHolder {
                    kind: hold.kind,
                    job: hold.job.clone(),
                    name: hold.name.clone(),
                    user: hold.user.clone(),
                    devices: 0,
                    device_indices: Vec::new(),
                    nodes: Vec::new(),
                    until: hold.until,
                });
                holder.devices += devices;
                if holder.nodes.iter().all(|known| *known == node.name) {
                    holder.device_indices.extend(wanted);
                } else {
                    holder.device_indices.clear();
                }
                if holder.nodes.last() != Some(&node.name) {
                    holder.nodes.push(node.name.clone());
                }
            }
        }
        let mut found: Vec<ForeignHolder> = found.into_values().collect();
        found.sort_by_key(|holder| Reverse(holder.devices));
        found.truncate(MOST_HOLDERS);
        found
    }

    /// When a running job should end, if there is anything to tell it by.
    pub fn expected_end(&self, job: JobId, now: Timestamp) -> Option<Timestamp> {
        let running = self.running.get(job)?;
        (running.estimate.witness != Witness::Guess).then(|| running.typical_end_at(now))
    }

    fn holder(&self, job: JobId, devices: usize, now: Timestamp) -> Option<Holder> {
        let running = self.running.get(job)?;
        let mut nodes: Vec<NodeId> = running.placement.parts.iter().map(|part| part.node).collect();
        nodes.dedup();
        Some(Holder {
            job,
            name: running.name.to_string(),
            workspace: self.accounts.get(running.account).name.clone(),
            owner: running.owner.to_string(),
            devices: u32::try_from(devices).unwrap_or(u32::MAX),
            nodes: nodes.into_iter().map(|node| self.fleet.nodes()[node.ordinal()].name.clone()).collect(),
            expected_end: self.expected_end(job, now),
        })
    }

    /// Earliest: running jobs end when half of their like have, and nobody else waits. Latest: they take as long as nine
    /// in ten of their like, and everybody ahead in the workspace runs first, sharing what the cluster has.
    fn start_estimate(&mut self, waiting: &Waiting, now: Timestamp) -> Option<StartEstimate> {
        let typical = Ends::typical(&self.running, now);
        let mut pass = Pass::new(self, now);
        let earliest = pass.opening(&waiting.class, typical)?;
        let latest = pass.opening(&waiting.class, Ends::as_expected())?;
        let waits_for = |witness: Witness| {
            let ended = latest.ended.iter().filter_map(|job| self.running.get(*job));
            ended.filter(|running| running.estimate.witness == witness).count()
        };
        let others: BTreeSet<&str> = self
            .fleet
            .foreign()
            .filter(|(hold, _)| hold.until.is_some_and(|until| foreign_end(until, now) <= latest.at))
            .map(|(hold, _)| hold.job.as_str())
            .collect();
        let is_guess = waits_for(Witness::Guess) > 0;
        let queue_time = after(latest.at, self.time_for_those_ahead(waiting));
        Some(StartEstimate {
            earliest: earliest.at,
            latest: (!is_guess).then_some(queue_time.max(earliest.at)),
            rests_on: words::rests_on(
                waits_for(Witness::TimeLimit) + others.len(),
                waits_for(Witness::SameName) + waits_for(Witness::SameSize),
                waits_for(Witness::Guess),
            ),
        })
    }

    /// How long the whole cluster would be busy with those ahead in the workspace that wait for the same.
    fn time_for_those_ahead(&self, waiting: &Waiting) -> danlu_types::Span {
        let Waiting { class, place, .. } = waiting;
        let resource = self.usual_use(class).main_resource();
        let work: u128 = self
            .queue
            .ahead_of(class.account, class.pools, *place)
            .map(|(class, count)| {
                let each = u128::from(self.usual_use(class).get(resource));
                each * u128::from(class.expected().milliseconds) * count as u128
            })
            .sum();
        let account = self.accounts.get(waiting.class.account);
        let capacity = self.accounts.capacity.get(resource);
        let share = account.limit.get(resource).map_or(capacity, |limit| limit.min(capacity)).max(1);
        danlu_types::Span { milliseconds: u64::try_from(work / u128::from(share)).unwrap_or(u64::MAX) }
    }
}
