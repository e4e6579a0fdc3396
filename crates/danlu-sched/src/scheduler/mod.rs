//! The scheduler: everything it needs to know, kept up to date job by job, and the plan drawn from it.
//!
//! [`Scheduler::file`] is told whatever state a job is in now; what it held and where it waited follows from that. A
//! plan is made on the scheduler's own books and undone afterwards, so that planning twice gives the same plan. Whoever
//! carries a plan out files the jobs' new states.

mod check;
mod estimate;
mod explain;
mod future;
mod history;
mod holders;
mod non_reclaimable;
mod offers;
mod pass;
mod preempt;
mod preemption_claims;
mod price;
mod queue;
mod quota_filter;
mod reserve;
mod running;
mod update;
mod usage;
mod wait;
mod why;
mod workspace_queue;
mod workspaces;

use std::collections::BTreeMap;
use std::sync::Arc;

use danlu_core::{Grant, Job, JobLifecycle};
use danlu_types::{JobId, Node, Sharing};
use jiff::Timestamp;

pub use explain::Circumstances;
pub use history::{Estimate, Witness};
pub(crate) use update::blamed;
pub use wait::WaitReason;

use self::history::History;
use self::queue::{JobClass, Queue, QueueKey, QueuedJob};
use self::reserve::CachedReservation;
use self::running::{Running, Runnings};
use self::update::{avoided, due};
use self::usage::ResourceVector;
use self::workspaces::WorkspaceTable;
use crate::fleet::{Fleet, Placement, ShapeId, Totals};

/// What to do now.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Plan {
    pub starts: Vec<JobStart>,
    pub preemptions: Vec<Preemption>,
    pub reservations: Vec<Reservation>,
    /// When a plan may come out differently although nothing has happened.
    pub next_wake: Option<Timestamp>,
}

/// Start this job with one grant for each of its workers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobStart {
    pub job: JobId,
    pub grants: Vec<Grant>,
    /// The generation of the job that was planned: a plan for an older one says nothing about the job as it is now.
    pub seen: u64,
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
    accounts: WorkspaceTable,
    queue: Queue,
    running: Runnings,
    history: History,
    /// Reservations of the last pass: computing one takes a look at many running jobs, and it changes seldom.
    kept: BTreeMap<reserve::QueueSlot, CachedReservation>,
    reserves_anew: bool,
    searches_anew: bool,
    findings: Findings,
    owners: BTreeMap<String, Arc<str>>,
    /// When to look next for what nobody needs any more: at so many shapes.
    tidy_at: usize,
    /// Whether a shape fits what works now, were it idle.
    possible: BTreeMap<ShapeId, bool>,
}

/// What the last pass found, for whoever asks why a job waits.
#[derive(Debug, Default)]
struct Findings {
    /// Why classes did not start; those without an entry found no room.
    verdicts: BTreeMap<Arc<JobClass>, wait::Blocker>,
    /// What was taken out of the fleet for whom, the claims of preemption first.
    withheld: Vec<(JobId, Placement)>,
}

impl Scheduler {
    pub fn new(nodes: &[Node], sharing: Sharing) -> Self {
        let fleet = Fleet::new(nodes);
        let accounts = WorkspaceTable::new(&sharing, usage(&fleet.capacity()), usage(&fleet.in_service()));
        Scheduler {
            fleet,
            sharing,
            accounts,
            queue: Queue::default(),
            running: Runnings::default(),
            history: History::default(),
            kept: BTreeMap::new(),
            reserves_anew: false,
            searches_anew: false,
            findings: Findings::default(),
            owners: BTreeMap::new(),
            tidy_at: update::MOST_IDLE_SHAPES,
            possible: BTreeMap::new(),
        }
    }

    /// Places jobs where they fit most tightly, whatever arrived before, and keeps no reservation from one pass to the
    /// next: what it says then depends on the jobs' states alone.
    #[must_use]
    pub fn that_expects_nothing(mut self) -> Self {
        self.fleet.expect_nothing();
        self.reserves_anew = true;
        self
    }

    /// Looks for victims anew for everybody, as if nobody alike had looked before: slow, and says the same.
    #[must_use]
    pub fn that_searches_anew(mut self) -> Self {
        self.searches_anew = true;
        self
    }

    /// Takes note of the state a job is in now.
    pub fn file(&mut self, job: &Job) {
        match &job.life {
            JobLifecycle::Queued { .. } => {
                let handicap = self.handicap_of(job.id);
                self.release(job.id);
                let handicap = self.handicap_after_change(job, handicap);
                let shape = self.receive(job, handicap);
                if handicap.is_none() {
                    self.fleet.learn(shape);
                    self.tidy();
                }
            }
            JobLifecycle::Active(attempt) => {
                let handicap = self.handicap_of(job.id);
                self.queue.remove(job.id);
                self.activate(job, attempt, handicap);
            }
            JobLifecycle::Held { .. } => self.forget(job.id),
            JobLifecycle::Ended { at, .. } => {
                self.forget(job.id);
                self.remember(job, *at);
                self.tidy();
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
        let mut accounts =
            self.accounts.renewed(&self.sharing, usage(&fleet.capacity()), usage(&fleet.in_service()));
        let (mut queue, mut running) = (Queue::default(), Runnings::default());
        for (job, old) in self.running.iter() {
            let placement = fleet.placement(&old.grants);
            let usage = ResourceVector::of_placement(&placement);
            fleet.allocate(&placement);
            accounts.add(old.account, &old.owner, &usage, old.preemptible);
            running.insert(job, Running { placement, usage, ..old.clone() });
        }
        for (job, old) in self.queue.jobs() {
            let shape = fleet.shape(self.fleet.shape_of(old.class.shape));
            let user = (!accounts.get(old.class.account).per_user.is_empty()).then(|| old.owner.clone());
            let avoid = avoided(&mut fleet, old.blamed.as_ref(), shape);
            let class = Arc::new(JobClass { shape, user, avoid, ..JobClass::clone(&old.class) });
            let policy = accounts.get(old.class.account).head_of_line;
            let place = QueueKey { due: due(old.submitted_at, policy, old.handicap), ..old.place };
            queue.insert(job, QueuedJob { place, class, ..old.clone() });
        }
        self.kept.clear();
        self.possible.clear();
        self.findings = Findings::default();
        (self.fleet, self.accounts, self.queue, self.running) = (fleet, accounts, queue, running);
    }

    /// Whether a shape fits what works now, if nobody held anything of it.
    fn is_possible(&mut self, shape: ShapeId) -> bool {
        *self.possible.entry(shape).or_insert_with(|| self.fleet.could_fit_when_idle(shape, &[]))
    }

    /// The same, as far as its workspace's limit and others' guarantees will ever allow it. Rules may have become stricter
    /// after it was accepted.
    fn could_ever_start(&mut self, class: &JobClass) -> bool {
        let shape = self.within_bounds(class.account, class.shape, class.preemptible);
        shape.is_some_and(|shape| self.is_possible(shape))
    }
}

fn usage(totals: &Totals) -> ResourceVector {
    ResourceVector::new(totals.devices_milli, totals.milli_cpus, totals.bytes)
}
