//! Who holds what, since when, and when each should end.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use danlu_types::{JobId, Span};
use jiff::{SignedDuration, Timestamp};

use super::accounts::AccountId;
use super::history::Estimate;
use super::usage::Usage;
use crate::fleet::Placement;

#[derive(Debug, Clone)]
pub(crate) struct Running {
    pub(crate) account: AccountId,
    pub(crate) owner: Arc<str>,
    pub(crate) name: Arc<str>,
    pub(crate) priority: u8,
    pub(crate) preemptible: bool,
    pub(crate) placed_at: Timestamp,
    pub(crate) placement: Placement,
    pub(crate) usage: Usage,
    pub(crate) estimate: Estimate,
    /// When it should end; moved back when it does not.
    pub(crate) expected_end: Timestamp,
    /// When its time limit ends it.
    pub(crate) latest_end: Option<Timestamp>,
    pub(crate) stopping: Option<Stopping>,
}

/// It has been told to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stopping {
    /// For whom it makes room, if for anybody.
    pub(crate) for_job: Option<JobId>,
}

#[derive(Debug, Default)]
pub(crate) struct Runnings {
    jobs: BTreeMap<JobId, Running>,
    ends: BTreeSet<(Timestamp, JobId)>,
    /// Who makes room for whom.
    claims: BTreeMap<JobId, BTreeSet<JobId>>,
    /// How many may be preempted at all: without any, nobody need look for victims.
    pub(crate) preemptible: usize,
}

/// One that outlives its estimate is taken to have as long again before it.
const AT_LEAST_LEFT: SignedDuration = SignedDuration::from_secs(1);

impl Running {
    /// Device time that would be lost with it, in device-milliseconds (core-milliseconds without devices).
    pub(crate) fn work_at_stake(&self, now: Timestamp) -> u128 {
        let main = self.usage.get(self.usage.main_resource());
        u128::from(main) * u128::from(milliseconds(self.placed_at, now))
    }
}

impl Runnings {
    pub(crate) fn get(&self, job: JobId) -> Option<&Running> {
        self.jobs.get(&job)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (JobId, &Running)> {
        self.jobs.iter().map(|(id, running)| (*id, running))
    }

    pub(crate) fn insert(&mut self, job: JobId, running: Running) {
        self.remove(job);
        self.ends.insert((running.expected_end, job));
        self.preemptible += usize::from(running.preemptible);
        if let Some(Stopping { for_job: Some(for_job) }) = running.stopping {
            self.claims.entry(for_job).or_default().insert(job);
        }
        self.jobs.insert(job, running);
    }

    pub(crate) fn remove(&mut self, job: JobId) -> Option<Running> {
        let running = self.jobs.remove(&job)?;
        self.ends.remove(&(running.expected_end, job));
        self.preemptible -= usize::from(running.preemptible);
        if let Some(Stopping { for_job: Some(for_job) }) = running.stopping
            && let Some(victims) = self.claims.get_mut(&for_job)
        {
            victims.remove(&job);
            if victims.is_empty() {
                self.claims.remove(&for_job);
            }
        }
        Some(running)
    }

    /// By expected end. A job that is stopping ends before all others.
    pub(crate) fn by_end(&self) -> impl Iterator<Item = (Timestamp, JobId, &Running)> {
        self.ends.iter().map(|(end, job)| (*end, *job, &self.jobs[job]))
    }

    /// Jobs for which others are being stopped, with those others.
    pub(crate) fn claims(&self) -> impl Iterator<Item = (JobId, &BTreeSet<JobId>)> {
        self.claims.iter().map(|(job, victims)| (*job, victims))
    }

    pub(crate) fn has_claim(&self, job: JobId) -> bool {
        self.claims.contains_key(&job)
    }

    /// Gives those that should have ended, and have not, as long again as they ran: the longer a job has run, the longer
    /// it is likely to go on.
    pub(crate) fn put_off_overdue(&mut self, now: Timestamp) {
        while let Some(&(end, job)) = self.ends.first()
            && end <= now
        {
            self.ends.remove(&(end, job));
            if let Some(running) = self.jobs.get_mut(&job) {
                let left = if running.stopping.is_some() {
                    AT_LEAST_LEFT
                } else {
                    now.duration_since(running.placed_at).max(AT_LEAST_LEFT)
                };
                let put_off = now.saturating_add(left).unwrap_or(Timestamp::MAX);
                let limit = running.latest_end.filter(|limit| *limit > now).unwrap_or(put_off);
                running.expected_end = put_off.min(limit);
                self.ends.insert((running.expected_end, job));
            }
        }
    }
}

pub(crate) fn after(start: Timestamp, span: Span) -> Timestamp {
    let span = SignedDuration::try_from(span.to_duration()).unwrap_or(SignedDuration::MAX);
    start.saturating_add(span).unwrap_or(Timestamp::MAX)
}

pub(crate) fn milliseconds(from: Timestamp, to: Timestamp) -> u64 {
    u64::try_from(to.duration_since(from).as_millis()).unwrap_or(0)
}
