//! Who waits, grouped so that a pass need not look at everybody.
//!
//! Jobs of one *class* are alike in everything that decides whether they may start now; only their places differ. If the
//! first of a class cannot start, none of it can. So a pass costs classes plus starts, not jobs.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use danlu_types::{DeviceKind, JobId, JobSpec, NodeName, Span};
use jiff::Timestamp;

use super::history::Estimate;
use super::workspaces::WorkspaceIndex;
use crate::fleet::{NodeId, ShapeId};
use crate::shape::Shape;

/// Device kinds a job may run on, one bit each, or [`CPU_ONLY`].
pub(crate) type Pools = u8;
pub(crate) const CPU_ONLY: Pools = 1 << DeviceKind::ALL.len();

/// Where a job stands in its workspace's line: larger priority first, then who is due first, then earlier submission.
/// Nothing that happens to a job while it is here changes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct QueueKey {
    pub(crate) priority: Reverse<u8>,
    /// Its submission, put off by as long as it is expected to run: who asks for a minute passes who asks for a day, but
    /// only those that have not waited that long.
    pub(crate) due: Timestamp,
    pub(crate) job: JobId,
}

#[derive(Debug, Clone)]
pub(crate) struct QueuedJob {
    pub(crate) place: QueueKey,
    pub(crate) class: Arc<JobClass>,
    /// What it asks for, and the generation in which it did.
    pub(crate) spec: Arc<JobSpec>,
    pub(crate) generation: u64,
    pub(crate) owner: Arc<str>,
    pub(crate) submitted_at: Timestamp,
    /// What its turn was put off by when it was first seen.
    pub(crate) handicap: Span,
    pub(crate) since: Timestamp,
    /// Set while a retry backs off.
    pub(crate) not_before: Option<Timestamp>,
    /// For whom it was stopped, if it was.
    pub(crate) made_room_for: Option<JobId>,
    /// The node that failed it lately, and until when it keeps away from there.
    pub(crate) blamed: Option<NodeName>,
    pub(crate) avoid_until: Option<Timestamp>,
    pub(crate) estimate: Estimate,
}

/// What decides whether a job may start now, apart from its place.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct JobClass {
    pub(crate) account: WorkspaceIndex,
    pub(crate) shape: ShapeId,
    /// The kinds of devices it may run on: those who have none in common do not stand in each other's way.
    pub(crate) pools: Pools,
    pub(crate) preemptible: bool,
    /// The power of two of seconds within which half of such jobs end.
    pub(crate) length: u8,
    /// Only where people have limits of their own.
    pub(crate) user: Option<Arc<str>>,
    /// Nodes that failed it lately.
    pub(crate) avoid: Vec<NodeId>,
}

/// The first of a class, with what a pass asks of everybody.
#[derive(Debug, Clone)]
pub(crate) struct First {
    pub(crate) class: Arc<JobClass>,
    pub(crate) shape: ShapeId,
    pub(crate) pools: Pools,
    pub(crate) length: u8,
    /// Whether its class keeps away from some node.
    pub(crate) is_wary: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Queue {
    jobs: BTreeMap<JobId, QueuedJob>,
    classes: BTreeMap<Arc<JobClass>, BTreeSet<QueueKey>>,
    /// By workspace, the first of each class.
    firsts: BTreeMap<WorkspaceIndex, BTreeMap<QueueKey, First>>,
    /// Jobs whose back-off may not be over yet; they are in no class.
    asleep: BTreeSet<(Timestamp, JobId)>,
    /// Jobs that keep away from some node, by the end of that.
    wary: BTreeSet<(Timestamp, JobId)>,
    /// Jobs that were stopped for others, by those.
    made_room: BTreeSet<(JobId, JobId)>,
}

pub(crate) fn pools_of(shape: &Shape) -> Pools {
    let mut pools = 0;
    for ask in shape.alternatives.iter().filter(|ask| !ask.count.is_none()) {
        for (position, kind) in DeviceKind::ALL.into_iter().enumerate() {
            if ask.kind.is_none_or(|asked| asked == kind) {
                pools |= 1 << position;
            }
        }
    }
    if pools == 0 { CPU_ONLY } else { pools }
}

impl JobClass {
    /// How long a job of this class is taken to run if it started now.
    pub(crate) fn expected(&self) -> Span {
        JobClass::span_of(self.length)
    }

    pub(crate) const LONGEST: u8 = 40;

    pub(crate) fn span_of(length: u8) -> Span {
        Span::from_seconds(1u64 << length.min(JobClass::LONGEST))
    }

    pub(crate) fn length_of(span: Span) -> u8 {
        let seconds = span.milliseconds.div_ceil(1000).max(1).next_power_of_two();
        u8::try_from(seconds.trailing_zeros()).unwrap_or(JobClass::LONGEST)
    }
}

impl Queue {
    pub(crate) fn get(&self, job: JobId) -> Option<&QueuedJob> {
        self.jobs.get(&job)
    }

    pub(crate) fn len(&self) -> usize {
        self.jobs.len()
    }

    pub(crate) fn insert(&mut self, job: JobId, waiting: QueuedJob) {
        self.remove(job);
        match waiting.not_before {
            Some(not_before) => {
                self.asleep.insert((not_before, job));
            }
            None => self.join(&waiting),
        }
        if let Some(until) = waiting.avoid_until {
            self.wary.insert((until, job));
        }
        if let Some(for_job) = waiting.made_room_for {
            self.made_room.insert((for_job, job));
        }
        self.jobs.insert(job, waiting);
    }

    pub(crate) fn remove(&mut self, job: JobId) {
        let Some(waiting) = self.jobs.remove(&job) else { return };
        if let Some(until) = waiting.avoid_until {
            self.wary.remove(&(until, job));
        }
        if let Some(for_job) = waiting.made_room_for {
            self.made_room.remove(&(for_job, job));
        }
        if let Some(not_before) = waiting.not_before
            && self.asleep.remove(&(not_before, job))
        {
            return;
        }
        if let Some(places) = self.classes.get_mut(&waiting.class) {
            let was = places.first().copied();
            places.remove(&waiting.place);
            let is = places.first().copied();
            if is.is_none() {
                self.classes.remove(&waiting.class);
            }
            self.move_first(&waiting.class, was, is);
        }
    }

    /// Lets those into their classes whose back-off is over, and all nodes be taken again by those who kept away from
    /// one for long enough. A clock that was set back must not make a job wait for the time it was set back by.
    pub(crate) fn wake(&mut self, now: Timestamp) {
        let due = |(not_before, job): &(Timestamp, JobId)| {
            *not_before <= now || self.jobs.get(job).is_some_and(|waiting| now < waiting.since)
        };
        let due: Vec<(Timestamp, JobId)> = self.asleep.iter().filter(|entry| due(entry)).copied().collect();
        for entry in due {
            self.asleep.remove(&entry);
            if let Some(mut waiting) = self.jobs.remove(&entry.1) {
                waiting.not_before = None;
                self.join(&waiting);
                self.jobs.insert(entry.1, waiting);
            }
        }
        let over = |(until, job): &(Timestamp, JobId)| {
            *until <= now || self.jobs.get(job).is_some_and(|waiting| now < waiting.since)
        };
        let over: Vec<(Timestamp, JobId)> = self.wary.iter().filter(|entry| over(entry)).copied().collect();
        for (_, job) in over {
            let Some(mut waiting) = self.jobs.get(&job).cloned() else { continue };
            self.remove(job);
            (waiting.blamed, waiting.avoid_until) = (None, None);
            waiting.class = Arc::new(JobClass { avoid: Vec::new(), ..JobClass::clone(&waiting.class) });
            self.insert(job, waiting);
        }
    }

    /// Jobs for which others were stopped that are queued again: what those left is meant for them. Who was stopped before
    /// the other was queued made room for an earlier attempt.
    pub(crate) fn owed(&self) -> impl Iterator<Item = JobId> {
        let still_waits = |(for_job, job): &&(JobId, JobId)| {
            let since = |job: &JobId| self.jobs.get(job).map(|waiting| waiting.since);
            since(for_job).is_some_and(|claimant| since(job).is_some_and(|victim| claimant <= victim))
        };
        self.made_room.iter().filter(still_waits).map(|(for_job, _)| *for_job)
    }

    pub(crate) fn next_wake(&self) -> Option<Timestamp> {
        let first = |times: &BTreeSet<(Timestamp, JobId)>| times.first().map(|(at, _)| *at);
        first(&self.asleep).into_iter().chain(first(&self.wary)).min()
    }

    /// By workspace, the first of each class, in their order.
    pub(crate) fn firsts(&self) -> impl Iterator<Item = (WorkspaceIndex, &BTreeMap<QueueKey, First>)> {
        self.firsts.iter().map(|(account, firsts)| (*account, firsts))
    }

    /// Those of one workspace from a place on.
    pub(crate) fn firsts_from(
        &self,
        account: WorkspaceIndex,
        place: QueueKey,
    ) -> impl Iterator<Item = (QueueKey, &First)> {
        let firsts = self.firsts.get(&account).into_iter();
        firsts.flat_map(move |firsts| firsts.range(place..)).map(|(place, first)| (*place, first))
    }

    /// How many jobs of each class of a workspace are before a place and wait for some of the same devices.
    pub(crate) fn ahead_of(
        &self,
        account: WorkspaceIndex,
        pools: Pools,
        place: QueueKey,
    ) -> impl Iterator<Item = (&JobClass, usize)> {
        let classes = self.classes.iter();
        let same = classes.filter(move |(class, _)| class.account == account && class.pools & pools != 0);
        same.map(move |(class, places)| (&**class, places.range(..place).count()))
    }

    /// Shapes that somebody waits with.
    pub(crate) fn shapes(&self) -> impl Iterator<Item = ShapeId> {
        self.jobs.values().map(|waiting| waiting.class.shape)
    }

    /// Who comes after a place in its class.
    pub(crate) fn after(&self, class: &JobClass, place: QueueKey) -> Option<QueueKey> {
        let later = (std::ops::Bound::Excluded(place), std::ops::Bound::Unbounded);
        self.classes.get(class)?.range(later).next().copied()
    }

    pub(crate) fn jobs(&self) -> impl Iterator<Item = (JobId, &QueuedJob)> {
        self.jobs.iter().map(|(id, waiting)| (*id, waiting))
    }

    fn join(&mut self, waiting: &QueuedJob) {
        let places = self.classes.entry(waiting.class.clone()).or_default();
        let was = places.first().copied();
        places.insert(waiting.place);
        let is = places.first().copied();
        self.move_first(&waiting.class, was, is);
    }

    fn move_first(&mut self, class: &Arc<JobClass>, was: Option<QueueKey>, is: Option<QueueKey>) {
        if was == is {
            return;
        }
        let firsts = self.firsts.entry(class.account).or_default();
        if let Some(was) = was {
            firsts.remove(&was);
        }
        if let Some(is) = is {
            let JobClass { shape, pools, length, .. } = **class;
            let is_wary = !class.avoid.is_empty();
            firsts.insert(is, First { class: class.clone(), shape, pools, length, is_wary });
        }
    }
}
