//! The scheduler: everything it needs to know, kept up to date job by job, and the plan drawn from it.
//!
//! [`Scheduler::file`] is told whatever state a job is in now; what it held and where it waited follows from that. A
//! plan is made on the scheduler's own books and undone afterwards, so that planning twice gives the same plan. Whoever
//! carries a plan out files the jobs' new states.

mod accounts;
mod allow;
mod check;
mod claim;
mod explain;
mod future;
mod history;
mod line;
mod offers;
mod pass;
mod preempt;
mod queue;
mod reserve;
mod running;
mod usage;
mod wait;
mod why;

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use danlu_core::job::{StopReason, Verdict, Waiting as Why};
use danlu_core::{Attempt, FailureCause, Grant, Job, Life};
use danlu_types::{HeadOfLine, JobId, JobSpec, Node, NodeName, Sharing, Span};
use jiff::{SignedDuration, Timestamp};

pub use history::{Estimate, Witness};
pub use usage::Resource;
pub use wait::{ReasonCode, WaitReason};

use self::accounts::Accounts;
use self::history::History;
use self::queue::{Class, Place, Queue, Waiting};
use self::reserve::Kept;
use self::running::{Running, Runnings, Stopping, after};
use self::usage::Usage;
use crate::fleet::{Fleet, NodeId, ShapeId};
use crate::shape::Shape;

/// What to do now.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Plan {
    pub starts: Vec<Start>,
    pub preemptions: Vec<Preemption>,
    pub reservations: Vec<Reservation>,
    /// When a plan may come out differently although nothing has happened.
    pub next_wake: Option<Timestamp>,
}

/// Start this job with one grant for each of its workers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Start {
    pub job: JobId,
    pub grants: Vec<Grant>,
}

/// Ask this job to end, so that another can have what it holds; it is queued again in its old place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Preemption {
    pub victim: JobId,
    pub for_job: JobId,
}

/// A job at the head of its line starts at this time at the latest, if running jobs end when expected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reservation {
    pub job: JobId,
    pub at: Timestamp,
    pub grants: Vec<Grant>,
}

/// Nodes, workspaces, and every job that has not ended.
#[derive(Debug)]
pub struct Scheduler {
    fleet: Fleet,
    sharing: Sharing,
    accounts: Accounts,
    queue: Queue,
    running: Runnings,
    history: History,
    /// Reservations of the last pass: computing one takes a look at many running jobs, and it changes seldom.
    kept: BTreeMap<reserve::LineKey, Kept>,
    /// Why classes did not start in the last pass; those without an entry found no room.
    verdicts: BTreeMap<Arc<Class>, wait::Verdict>,
    owners: BTreeMap<String, Arc<str>>,
    /// Whether a shape fits what works now, were it idle.
    possible: BTreeMap<ShapeId, bool>,
}

/// How long a job keeps away from a node that failed it.
const AVOID_FOR: SignedDuration = SignedDuration::from_mins(10);

impl Scheduler {
    pub fn new(nodes: &[Node], sharing: Sharing) -> Self {
        let fleet = Fleet::new(nodes);
        let accounts = Accounts::new(&sharing, capacity(&fleet));
        Scheduler {
            fleet,
            sharing,
            accounts,
            queue: Queue::default(),
            running: Runnings::default(),
            history: History::default(),
            kept: BTreeMap::new(),
            verdicts: BTreeMap::new(),
            owners: BTreeMap::new(),
            possible: BTreeMap::new(),
        }
    }

    /// Places jobs where they fit most tightly, whatever arrived before: what it says then depends on the jobs' states
    /// alone.
    #[must_use]
    pub fn that_expects_nothing(mut self) -> Self {
        self.fleet.expect_nothing();
        self
    }

    /// Takes note of the state a job is in now.
    pub fn file(&mut self, job: &Job) {
        match &job.life {
            Life::Queued { .. } => {
                let handicap = self.handicap_of(job.id);
                self.release(job.id);
                let shape = self.receive(job, handicap);
                if handicap.is_none() {
                    self.fleet.learn(shape);
                }
            }
            Life::Active(attempt) => {
                let handicap = self.handicap_of(job.id);
                self.queue.remove(job.id);
                self.activate(job, attempt, handicap);
            }
            Life::Held { .. } => self.forget(job.id),
            Life::Ended { at, .. } => {
                self.forget(job.id);
                self.remember(job, *at);
            }
        }
    }

    /// Drops a job that is no more, whatever it was.
    pub fn forget(&mut self, job: JobId) {
        self.queue.remove(job);
        self.release(job);
    }

    /// Follows the engine's inventory. Says whether anything changed.
    pub fn set_nodes(&mut self, nodes: &[Node]) -> bool {
        if self.fleet.nodes() == nodes {
            return false;
        }
        let mut fleet = Fleet::new(nodes);
        fleet.learn_from(&self.fleet);
        self.move_to(fleet);
        true
    }

    /// Takes other rules for sharing.
    pub fn set_sharing(&mut self, sharing: Sharing) {
        if sharing == self.sharing {
            return;
        }
        self.sharing = sharing;
        let mut fleet = Fleet::new(self.fleet.nodes());
        fleet.learn_from(&self.fleet);
        self.move_to(fleet);
    }

    pub fn nodes(&self) -> &[Node] {
        self.fleet.nodes()
    }

    pub fn sharing(&self) -> &Sharing {
        &self.sharing
    }

    pub fn queue_len(&self) -> usize {
        self.queue.len()
    }

    /// Inventories and rules change seldom: everything is filed anew, which keeps one way of counting instead of two.
    fn move_to(&mut self, mut fleet: Fleet) {
        let mut accounts = self.accounts.renewed(&self.sharing, capacity(&fleet));
        let (mut queue, mut running) = (Queue::default(), Runnings::default());
        for (job, old) in self.running.iter() {
            let placement = fleet.placement(&old.grants);
            let usage = Usage::of_placement(&placement);
            fleet.take(&placement);
            accounts.add(old.account, &old.owner, &usage, old.preemptible);
            running.insert(job, Running { placement, usage, ..old.clone() });
        }
        for (job, old) in self.queue.jobs() {
            let shape = fleet.shape(self.fleet.shape_of(old.class.shape));
            let user = (!accounts.get(old.class.account).per_user.is_empty()).then(|| old.owner.clone());
            let avoid = avoided(&mut fleet, old.blamed.as_ref(), shape);
            let class = Arc::new(Class { shape, user, avoid, ..Class::clone(&old.class) });
            let policy = accounts.get(old.class.account).head_of_line;
            let place = Place { due: due(old.submitted_at, policy, old.handicap), ..old.place };
            queue.insert(job, Waiting { place, class, ..old.clone() });
        }
        self.kept.clear();
        self.possible.clear();
        self.verdicts.clear();
        (self.fleet, self.accounts, self.queue, self.running) = (fleet, accounts, queue, running);
    }

    /// What a job's turn was put off by when it was first seen; `None` if it is new here.
    fn handicap_of(&self, job: JobId) -> Option<Span> {
        let waiting = self.queue.get(job).map(|waiting| waiting.handicap);
        waiting.or_else(|| self.running.get(job).map(|running| running.handicap))
    }

    /// Puts a job into the queue.
    fn receive(&mut self, job: &Job, handicap: Option<Span>) -> ShapeId {
        let shape = self.fleet.shape(&Shape::of(&job.spec));
        let waiting = self.waiting(job, shape, handicap);
        self.queue.insert(job.id, waiting);
        shape
    }

    fn waiting(&mut self, job: &Job, shape: ShapeId, handicap: Option<Span>) -> Waiting {
        let account = self.accounts.id(&job.spec.workspace);
        let owner = self.owner(&job.owner);
        let estimate = self.estimate(job);
        let (since, not_before, made_room_for) = match &job.life {
            Life::Queued { since, why: Why::Retry { not_before, .. } } => (*since, Some(*not_before), None),
            Life::Queued { since, why: Why::Preempted { for_job, .. } } => (*since, None, Some(*for_job)),
            Life::Queued { since, .. } => (*since, None, None),
            _ => (job.submitted_at, None, None),
        };
        let handicap = handicap.unwrap_or_else(|| estimate.handicap());
        let due = due(job.submitted_at, self.accounts.get(account).head_of_line, handicap);
        let user = (!self.accounts.get(account).per_user.is_empty()).then(|| owner.clone());
        let blamed = blamed(job);
        let avoid = avoided(&mut self.fleet, blamed.as_ref(), shape);
        let avoid_until = blamed.is_some().then(|| since.saturating_add(AVOID_FOR).unwrap_or(Timestamp::MAX));
        let class = Class {
            account,
            shape,
            pools: queue::pools_of(self.fleet.shape_of(shape)),
            preemptible: job.spec.preemptible,
            length: Class::length_of(estimate.typical),
            user,
            avoid,
        };
        Waiting {
            place: Place { priority: Reverse(job.spec.priority), due, job: job.id },
            class: Arc::new(class),
            owner,
            submitted_at: job.submitted_at,
            handicap,
            since,
            not_before,
            made_room_for,
            blamed,
            avoid_until,
            estimate,
        }
    }

    fn activate(&mut self, job: &Job, attempt: &Attempt, handicap: Option<Span>) {
        let stopping = attempt.stop.as_ref().map(|stop| Stopping {
            for_job: match stop.why {
                StopReason::Preempted { for_job } => Some(for_job),
                _ => None,
            },
            since: stop.since,
            grace: stop.grace,
        });
        let grants: Arc<[Grant]> = attempt.workers.iter().map(|worker| worker.grant.clone()).collect();
        if let Some(running) = self.running.get(job.id)
            && running.placed_at == attempt.placed_at
        {
            if running.saved_at != attempt.saved_at {
                let running = Running { saved_at: attempt.saved_at, ..running.clone() };
                self.running.insert(job.id, running);
            }
            if let Some(running) = self.running.get(job.id).filter(|running| running.stopping != stopping) {
                let mut running = Running { stopping, ..running.clone() };
                let asked_at = stopping.map_or(running.placed_at, |stopping| stopping.since);
                running.expected_end = running.end_expected_at(asked_at);
                self.running.insert(job.id, running);
            }
            return;
        }
        self.release(job.id);
        let account = self.accounts.id(&job.spec.workspace);
        let owner = self.owner(&job.owner);
        let estimate = self.estimate(job);
        let placement = self.fleet.placement(&grants);
        let usage = Usage::of_placement(&placement);
        self.fleet.take(&placement);
        self.accounts.add(account, &owner, &usage, job.spec.preemptible);
        let mut running = Running {
            account,
            owner,
            name: job.spec.name.as_str().into(),
            priority: job.spec.priority,
            preemptible: job.spec.preemptible,
            placed_at: attempt.placed_at,
            saved_at: attempt.saved_at,
            grants,
            placement,
            usage,
            expected_end: attempt.placed_at,
            latest_end: job.spec.max_time.map(|limit| after(attempt.placed_at, limit)),
            handicap: handicap.unwrap_or_else(|| estimate.handicap()),
            estimate,
            stopping,
            grace: job.spec.grace,
        };
        running.expected_end = running.end_expected_at(running.placed_at);
        self.running.insert(job.id, running);
    }

    /// Takes back what a job holds.
    fn release(&mut self, job: JobId) -> Option<()> {
        let running = self.running.remove(job)?;
        self.fleet.give_back(&running.placement);
        self.accounts.remove(running.account, &running.owner, &running.usage, running.preemptible);
        Some(())
    }

    fn remember(&mut self, job: &Job, at: Timestamp) {
        let last = job.past.last().and_then(|past| past.attempt.running_since());
        let Some(since) = last.filter(|since| *since <= at) else { return };
        let ran = Span { milliseconds: running::milliseconds(since, at) };
        let account = self.accounts.id(&job.spec.workspace);
        self.history.record(account, &job.owner, &job.spec.name, size(&job.spec), ran);
    }

    fn estimate(&mut self, job: &Job) -> Estimate {
        let account = self.accounts.id(&job.spec.workspace);
        self.history.estimate(account, &job.owner, &job.spec.name, size(&job.spec), job.spec.max_time)
    }

    /// Whether a shape fits what works now, if nobody held anything of it.
    fn is_possible(&mut self, shape: ShapeId) -> bool {
        *self.possible.entry(shape).or_insert_with(|| self.fleet.could_fit_when_idle(shape, &[]))
    }

    /// The same, as far as its workspace's limit and others' guarantees will ever allow it. Rules may have become stricter
    /// after it was accepted.
    fn could_ever_start(&mut self, class: &Class) -> bool {
        let shape = self.within_bounds(class.account, class.shape, class.preemptible);
        shape.is_some_and(|shape| self.is_possible(shape))
    }

    fn owner(&mut self, name: &str) -> Arc<str> {
        if let Some(owner) = self.owners.get(name) {
            return owner.clone();
        }
        let owner: Arc<str> = name.into();
        self.owners.insert(name.to_owned(), owner.clone());
        owner
    }
}

/// When a job's turn comes: at its submission, put off by its handicap unless the workspace insists on the order of
/// submission.
fn due(submitted_at: Timestamp, policy: HeadOfLine, handicap: Span) -> Timestamp {
    match policy {
        HeadOfLine::Strict | HeadOfLine::Balance => submitted_at,
        HeadOfLine::Backfill | HeadOfLine::Skip => after(submitted_at, handicap),
    }
}

/// The node that failed the last attempt, if a node did.
fn blamed(job: &Job) -> Option<NodeName> {
    let past = job.past.last()?;
    let Verdict::Failed { worker, failure } = &past.verdict else { return None };
    match failure.cause {
        FailureCause::NodeLost
        | FailureCause::LauncherLost
        | FailureCause::DeviceError
        | FailureCause::StartFailed => {}
        FailureCause::Exit
        | FailureCause::OutOfMemory
        | FailureCause::TimeLimit
        | FailureCause::SetupFailed
        | FailureCause::GangTimeout => return None,
    }
    Some(past.attempt.workers.get(worker.0 as usize)?.grant.node.clone())
}

/// The node to keep away from, if others could take the job.
fn avoided(fleet: &mut Fleet, blamed: Option<&NodeName>, shape: ShapeId) -> Vec<NodeId> {
    let avoid: Vec<NodeId> = blamed.and_then(|name| fleet.node(name)).into_iter().collect();
    if avoid.is_empty() || fleet.could_fit_when_idle(shape, &avoid) { avoid } else { Vec::new() }
}

fn capacity(fleet: &Fleet) -> Usage {
    let totals = fleet.capacity();
    Usage::new(totals.devices_milli, totals.milli_cpus, totals.bytes)
}

/// How many devices a job is about, in thousandths; for the history only.
fn size(spec: &JobSpec) -> u64 {
    let most = spec.alternatives().iter().map(|request| request.count.milli()).max().unwrap_or(0);
    u64::from(most) * u64::from(spec.workers)
}
