//! Who holds what, since when, and when each should end.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use danlu_core::Grant;
use danlu_types::{JobId, Span};
use jiff::{SignedDuration, Timestamp};

use super::history::{Estimate, Witness};
use super::usage::ResourceVector;
use super::workspaces::WorkspaceIndex;
use crate::fleet::Placement;

#[derive(Debug, Clone)]
pub(crate) struct Running {
    pub(crate) account: WorkspaceIndex,
    pub(crate) owner: Arc<str>,
    pub(crate) name: Arc<str>,
    pub(crate) priority: u8,
    pub(crate) preemptible: bool,
    pub(crate) placed_at: Timestamp,
    /// When it last saved its work.
    pub(crate) saved_at: Option<Timestamp>,
    /// What it holds as the engine names it: a node that went away may come back, and it still holds its part then.
    pub(crate) grants: Arc<[Grant]>,
    /// The same on the nodes that are here.
    pub(crate) placement: Placement,
    pub(crate) usage: ResourceVector,
    pub(crate) estimate: Estimate,
    /// When it should end; moved back when it does not.
    pub(crate) expected_end: Timestamp,
    /// When its time limit ends it.
    pub(crate) latest_end: Option<Timestamp>,
    /// What its turn was put off by, should it have to wait again.
    pub(crate) handicap: Span,
    pub(crate) stopping: Option<Stopping>,
    /// How long it may take to end when it is told to.
    pub(crate) grace: Span,
}

/// It has been told to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stopping {
    /// For whom it makes room, if for anybody.
    pub(crate) for_job: Option<JobId>,
    pub(crate) since: Timestamp,
    pub(crate) grace: Span,
}

#[derive(Debug, Default)]
pub(crate) struct Runnings {
    jobs: BTreeMap<JobId, Running>,
    ends: BTreeSet<(Timestamp, JobId)>,
    /// Who makes room for whom.
    claims: BTreeMap<JobId, BTreeSet<JobId>>,
    stopping: BTreeSet<JobId>,
    /// Who may be preempted, by workspace and priority: without any, nobody need look for victims.
    preemptible: BTreeMap<(WorkspaceIndex, u8), BTreeSet<JobId>>,
}

/// What a start costs: to come up, to read data, to compile.
const RESTART: Span = Span::from_seconds(60);
/// No estimate is shorter: it is doubled until it lies ahead.
pub(crate) const SHORTEST: Span = Span::from_seconds(1);

impl Running {
    /// Now, or when it should end: stopping a job that ends by itself in the time it would be given to stop gains nothing.
    pub(crate) fn until_worth_stopping(&self, now: Timestamp) -> Timestamp {
        let is_known = self.estimate.witness != Witness::Guess;
        let ends_soon = self.expected_end <= after(now, self.grace);
        if is_known && ends_soon { self.expected_end } else { now }
    }

    /// Device time that would be lost with it, in device-milliseconds (core-milliseconds without devices), with what it
    /// takes to start again. Without that, twenty devices that began a second ago would be cheaper than one that began
    /// half a minute ago; and twenty that are taken for one leave their workspace short of its guarantee, so that it takes
    /// them back at once.
    pub(crate) fn work_at_stake(&self, now: Timestamp) -> u128 {
        let main = self.usage.get(self.usage.main_resource());
        u128::from(main)
            * u128::from(milliseconds(self.saved_at.unwrap_or(self.placed_at), now) + RESTART.milliseconds)
    }

    /// When it should have ended, going by nine in ten of its like. One that outlives its estimate is given as long again: the longer a job has run, the longer
    /// it is likely to go on. Depends on nothing but the time, so that it does not matter who asked before.
    pub(crate) fn end_expected_at(&self, now: Timestamp) -> Timestamp {
        self.end_if_it_takes(self.estimate.most, now)
    }

    /// The same, going by those of its like that take no longer than half of them.
    pub(crate) fn typical_end_at(&self, now: Timestamp) -> Timestamp {
        self.end_if_it_takes(self.estimate.typical, now)
    }

    fn end_if_it_takes(&self, span: Span, now: Timestamp) -> Timestamp {
        let end = ahead(self.placed_at, span, now);
        let stops = self.stopping.map(|stopping| ahead(stopping.since, stopping.grace, now));
        let limit = self.latest_end.filter(|limit| *limit > now);
        stops.into_iter().chain(limit).fold(end, Timestamp::min)
    }

    fn may_be_preempted(&self) -> bool {
        self.preemptible && self.stopping.is_none()
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
        if running.may_be_preempted() {
            self.preemptible.entry((running.account, running.priority)).or_default().insert(job);
        }
        if let Some(stopping) = running.stopping {
            self.stopping.insert(job);
            if let Some(for_job) = stopping.for_job {
                self.claims.entry(for_job).or_default().insert(job);
            }
        }
        self.jobs.insert(job, running);
    }

    pub(crate) fn remove(&mut self, job: JobId) -> Option<Running> {
        let running = self.jobs.remove(&job)?;
        self.ends.remove(&(running.expected_end, job));
        self.stopping.remove(&job);
        let key = (running.account, running.priority);
        if running.may_be_preempted()
            && let Some(alike) = self.preemptible.get_mut(&key)
        {
            alike.remove(&job);
            if alike.is_empty() {
                self.preemptible.remove(&key);
            }
        }
        if let Some(Stopping { for_job: Some(for_job), .. }) = running.stopping
            && let Some(victims) = self.claims.get_mut(&for_job)
        {
            victims.remove(&job);
            if victims.is_empty() {
                self.claims.remove(&for_job);
            }
        }
        Some(running)
    }

    /// Jobs for which others are being stopped, with those others.
    pub(crate) fn claims(&self) -> impl Iterator<Item = (JobId, &BTreeSet<JobId>)> {
        self.claims.iter().map(|(job, victims)| (*job, victims))
    }

    pub(crate) fn has_claim(&self, job: JobId) -> bool {
        self.claims.contains_key(&job)
    }

    /// Those who make room for a job.
    pub(crate) fn victims_of(&self, job: JobId) -> impl Iterator<Item = JobId> {
        self.claims.get(&job).into_iter().flatten().copied()
    }

    /// Those that have been told to end.
    pub(crate) fn stopping(&self) -> impl Iterator<Item = (JobId, &Running)> {
        self.stopping.iter().map(|job| (*job, &self.jobs[job]))
    }

    /// Workspaces and priorities of those that may be preempted.
    pub(crate) fn preemptible(&self) -> impl Iterator<Item = (WorkspaceIndex, u8)> {
        self.preemptible.keys().copied()
    }

    /// Those of one workspace and priority.
    pub(crate) fn preemptible_of(
        &self,
        group: (WorkspaceIndex, u8),
    ) -> impl Iterator<Item = (JobId, &Running)> {
        self.preemptible.get(&group).into_iter().flatten().map(|job| (*job, &self.jobs[job]))
    }

    /// Those that should have ended by a time.
    pub(crate) fn ending_by(&self, at: Timestamp) -> impl Iterator<Item = &Running> {
        self.ends.iter().take_while(move |(end, _)| *end <= at).map(|(_, job)| &self.jobs[job])
    }

    /// Expects those later that should have ended and have not; says which, and when they should have.
    pub(crate) fn put_off_overdue(&mut self, now: Timestamp) -> Vec<(Timestamp, JobId)> {
        let mut overdue = Vec::new();
        while let Some(&(end, job)) = self.ends.first()
            && end <= now
        {
            self.ends.remove(&(end, job));
            if let Some(running) = self.jobs.get_mut(&job) {
                running.expected_end = running.end_expected_at(now);
                self.ends.insert((running.expected_end, job));
                overdue.push((end, job));
            }
        }
        overdue
    }
}

/// Running jobs in the order in which they should end: as many as somebody asks for.
#[derive(Debug)]
pub(crate) enum Ends {
    /// As expected of each, after this one.
    Expected(Option<(Timestamp, JobId)>),
    Given(std::vec::IntoIter<(Timestamp, JobId)>),
}

impl Ends {
    pub(crate) fn as_expected() -> Self {
        Ends::Expected(None)
    }

    /// If each ended at the time that is said of it.
    pub(crate) fn given(running: &Runnings, end: impl Fn(JobId, &Running) -> Timestamp) -> Self {
        let mut ends: Vec<(Timestamp, JobId)> =
            running.iter().map(|(job, running)| (end(job, running), job)).collect();
        ends.sort_unstable();
        Ends::Given(ends.into_iter())
    }

    /// The next that is none of these.
    pub(crate) fn next(
        &mut self,
        running: &Runnings,
        besides: &BTreeSet<JobId>,
    ) -> Option<(Timestamp, JobId)> {
        match self {
            Ends::Expected(last) => {
                let from = last.map_or(Bound::Unbounded, Bound::Excluded);
                let mut later = running.ends.range((from, Bound::Unbounded));
                *last = later.find(|(_, job)| !besides.contains(job)).copied().or(*last);
                last.filter(|last| Bound::Excluded(*last) != from)
            }
            Ends::Given(ends) => ends.find(|(_, job)| !besides.contains(job)),
        }
    }
}

/// When something ends that should take so long; as often as it did not, it is given as long again.
fn ahead(from: Timestamp, span: Span, now: Timestamp) -> Timestamp {
    let mut span = span.max(SHORTEST);
    while span.milliseconds <= milliseconds(from, now) {
        span.milliseconds = span.milliseconds.saturating_mul(2);
    }
    after(from, span)
}

/// When a job that is none of ours should end, going by its time limit.
pub(crate) fn foreign_end(until: Timestamp, now: Timestamp) -> Timestamp {
    if until > now { until } else { ahead(until, SHORTEST, now) }
}

pub(crate) fn after(start: Timestamp, span: Span) -> Timestamp {
    let span = SignedDuration::try_from(span.to_duration()).unwrap_or(SignedDuration::MAX);
    start.saturating_add(span).unwrap_or(Timestamp::MAX)
}

pub(crate) fn milliseconds(from: Timestamp, to: Timestamp) -> u64 {
    u64::try_from(to.duration_since(from).as_millis()).unwrap_or(0)
}
