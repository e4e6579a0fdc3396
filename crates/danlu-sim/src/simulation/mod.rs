//! The clock, and what happens at each moment.
//!
//! A step takes everything on the agenda for the next moment, in the order in which it was put there, and then lets the
//! scheduler make one pass. Between two steps nothing changes, so invariants can be checked there. A step costs what
//! happens in it: nothing here looks at all jobs or all nodes, except when nodes come and go.

mod agenda;
mod life;
pub(crate) mod meter;
mod trouble;

use std::collections::BTreeSet;
use std::sync::Arc;

use danlu_core::{Job, JobLifecycle, Trigger};
use danlu_sched::{Cluster, Plan, Scheduler};
use danlu_types::{FieldError, JobId, Node, NodeName, Span, WorkerIndex};
use jiff::{SignedDuration, Timestamp};

use crate::dice::Dice;
use crate::faults::Faults;
use crate::story::{Happening, Intervention, Scenario, SimJob};
use agenda::{Agenda, Item};
pub(crate) use life::SimulatedJob;
use meter::{Meter, Point, Unit};

/// A cluster under way.
#[derive(Debug)]
pub struct Simulation {
    now: Timestamp,
    agenda: Agenda,
    nodes: Vec<Node>,
    lost: BTreeSet<NodeName>,
    nodes_changed: bool,
    scheduler: Scheduler,
    /// Who holds what, kept apart from the scheduler so that a plan that overbooks is found out.
    ledger: Cluster,
    stories: Vec<SimJob>,
    interventions: Vec<Intervention>,
    faults: Option<Faults>,
    /// One for each node and device that may fail, in the order of nodes.
    dice: Vec<Vec<Dice>>,
    /// What failed by chance and has not been mended.
    broken: usize,
    /// By position in `stories`: what became of the submission.
    submitted: Vec<Option<Result<JobId, FieldError>>>,
    /// By number, which counts from 1.
    jobs: Vec<SimulatedJob>,
    /// Those that changed since the scheduler last heard of them.
    touched: BTreeSet<JobId>,
    /// Jobs on each node, by the node's position.
    on_node: Vec<BTreeSet<JobId>>,
    active: usize,
    /// Jobs that have not ended, those to come included.
    open: usize,
    /// When to look again although nothing happens; every other `Wake` on the agenda is out of date.
    wake: Option<Timestamp>,
    meter: Meter,
    passes: u64,
    /// Passes since time last moved.
    passes_at_once: u32,
}

/// So many passes at one moment mean that jobs make room for each other without end. A pass that preempts jobs which stop
/// at once is followed by another at the same moment, but each should leave less to do.
const MOST_PASSES_AT_ONCE: u32 = 1000;

impl Simulation {
    pub fn new(world: Scenario) -> Self {
        let Scenario { nodes, sharing, jobs, interventions, faults } = world;
        let mut simulation = Simulation {
            now: Timestamp::UNIX_EPOCH,
            agenda: Agenda::default(),
            lost: BTreeSet::new(),
            nodes_changed: false,
            scheduler: Scheduler::new(&nodes, sharing),
            ledger: Cluster::new(&nodes),
            submitted: vec![None; jobs.len()],
            jobs: Vec::with_capacity(jobs.len()),
            touched: BTreeSet::new(),
            on_node: vec![BTreeSet::new(); nodes.len()],
            active: 0,
            open: jobs.len(),
            wake: None,
            meter: Meter::new(&nodes),
            passes: 0,
            passes_at_once: 0,
            dice: Vec::new(),
            broken: 0,
            faults,
            nodes,
            stories: jobs,
            interventions,
        };
        for (story, job) in simulation.stories.iter().enumerate() {
            simulation.agenda.put(time(job.submit_at), Item::Submit(story));
        }
        for (position, intervention) in simulation.interventions.iter().enumerate() {
            simulation.agenda.put(time(intervention.at), Item::Happens(position));
        }
        simulation.prepare_faults();
        simulation
    }

    /// Goes to the next moment at which anything happens; false if nothing will that matters to any job.
    pub fn step(&mut self) -> bool {
        let stuck = self.agenda.only_chance_is_left() && self.active == 0 && self.broken == 0;
        if self.open == 0 || stuck || self.went_in_circles() {
            return false;
        }
        let Some(next) = self.agenda.next_time() else { return false };
        if next > self.now {
            self.passes_at_once = 0;
        }
        self.now = next;
        let mut matters = false;
        while let Some(item) = self.agenda.take_due(next) {
            matters |= self.take(item);
        }
        if matters {
            self.pass();
            self.meter.mark(self.now);
        }
        true
    }

    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// Who holds what.
    pub fn cluster(&self) -> &Cluster {
        &self.ledger
    }

    /// Everything that was accepted, in order of submission.
    pub fn jobs(&self) -> impl Iterator<Item = &Job> {
        self.jobs.iter().map(|entry| &entry.job)
    }

    /// How many jobs have ended or were refused, of how many.
    pub fn progress(&self) -> (usize, usize) {
        (self.stories.len() - self.open, self.stories.len())
    }

    /// Whether it was given up because the scheduler changed its mind for ever at one moment, [`Simulation::now`].
    pub fn went_in_circles(&self) -> bool {
        self.passes_at_once > MOST_PASSES_AT_ONCE
    }

    /// How many jobs another pass at this moment would start, which should be none.
    pub fn would_start(&mut self) -> usize {
        self.scheduler.plan(self.now).starts.len()
    }

    pub(crate) fn stories(&self) -> &[SimJob] {
        &self.stories
    }

    pub(crate) fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// What became of the submission of a story.
    pub(crate) fn submission(&self, story: usize) -> Option<&Result<JobId, FieldError>> {
        self.submitted[story].as_ref()
    }

    pub(crate) fn entry(&self, job: JobId) -> &SimulatedJob {
        &self.jobs[position(job)]
    }

    pub(crate) fn points(&self) -> &[Point] {
        self.meter.points()
    }

    pub(crate) fn unit(&self) -> Unit {
        self.meter.unit()
    }

    pub(crate) fn passes(&self) -> u64 {
        self.passes
    }

    /// Whether anything came of it: an attempt that was interrupted does not finish, and a later plan may have put off
    /// the time to look again.
    fn take(&mut self, item: Item) -> bool {
        match item {
            Item::Wake => return self.wake.take_if(|wake| *wake <= self.now).is_some(),
            Item::Finished(job, attempt) | Item::Stopped(job, attempt)
                if self.entry(job).job.active().is_none_or(|live| live.number != attempt) =>
            {
                return false;
            }
            Item::Submit(story) => self.submit(story),
            Item::Happens(position) => {
                let what = self.interventions[position].what.clone();
                self.happen(what);
            }
            Item::Finished(job, attempt) => self.finish(job, attempt),
            Item::Stopped(job, attempt) => self.stopped(job, attempt),
            Item::Breaks(fault) => self.breaks(fault),
            Item::Mended(fault) => self.mended(fault),
        }
        true
    }

    fn submit(&mut self, story: usize) {
        let SimJob { spec, owner, .. } = &self.stories[story];
        let answer = self.scheduler.check(spec).map(|()| {
            let id = JobId(self.jobs.len() as u64 + 1);
            let job = Job::submitted(id, owner.clone(), Arc::new(spec.clone()), self.now);
            self.meter.queued(&job.spec);
            self.touched.insert(id);
            self.jobs.push(SimulatedJob::new(story, job));
            id
        });
        if answer.is_err() {
            self.open -= 1;
        }
        self.submitted[story] = Some(answer);
    }

    fn happen(&mut self, happening: Happening) {
        let by = || "somebody".to_owned();
        match happening {
            Happening::NodeLost { node } => self.lose_node(&node),
            Happening::NodeBack { node } => self.return_node(&node),
            Happening::DeviceFailed { node, device } => self.fail_device(&node, device, false),
            Happening::DeviceBroke { node, device } => self.fail_device(&node, device, true),
            Happening::DeviceMended { node, device } => self.mend_device(&node, device),
            Happening::Stop { job } => self.tell(job, Trigger::Stop { by: by(), grace: None }),
            Happening::Hold { job } => self.tell(job, Trigger::Hold { by: by() }),
            Happening::Release { job } => self.tell(job, Trigger::Release { by: by() }),
            Happening::Preempt { job, for_job } => {
                if let Some(Some(Ok(for_job))) = self.submitted.get(for_job).cloned() {
                    self.tell(job, Trigger::Preempt { for_job });
                }
            }
        }
    }

    fn tell(&mut self, story: usize, event: Trigger) {
        if let Some(Some(Ok(id))) = self.submitted.get(story) {
            self.apply(*id, event);
        }
    }

    /// One pass of the scheduler, and what it decided, done.
    fn pass(&mut self) {
        if std::mem::take(&mut self.nodes_changed) {
            let here: Vec<Node> =
                self.nodes.iter().filter(|node| !self.lost.contains(&node.name)).cloned().collect();
            self.scheduler.set_nodes(&here);
            self.ledger.update_nodes(&here);
        }
        self.file_touched();
        let Plan { starts, preemptions, next_wake, .. } = self.scheduler.plan(self.now);
        self.passes += 1;
        self.passes_at_once += 1;
        for start in starts {
            self.ledger.allocate(start.job, &start.grants).expect("a plan fits the cluster it was made for");
            self.apply(start.job, Trigger::Place { grants: start.grants });
            let Some(attempt) = self.entry(start.job).job.active().map(|attempt| attempt.number) else {
                continue;
            };
            for worker in 0..self.entry(start.job).job.spec.workers {
                self.apply(start.job, Trigger::WorkerRunning { attempt, worker: WorkerIndex(worker) });
            }
            let until = self.entry(start.job).runs_until(&self.stories);
            self.agenda.put(until, Item::Finished(start.job, attempt));
        }
        for preemption in preemptions {
            self.apply(preemption.victim, Trigger::Preempt { for_job: preemption.for_job });
        }
        self.file_touched();
        let wake = next_wake.filter(|at| *at > self.now);
        if let Some(at) = wake.filter(|_| wake != self.wake) {
            self.agenda.put(at, Item::Wake);
        }
        self.wake = wake;
    }

    fn file_touched(&mut self) {
        while let Some(id) = self.touched.pop_first() {
            self.scheduler.file(&self.jobs[position(id)].job);
        }
    }
}

fn position(job: JobId) -> usize {
    usize::try_from(job.0 - 1).unwrap_or(usize::MAX)
}

fn is_queued(job: &Job) -> bool {
    matches!(job.life, JobLifecycle::Queued { .. })
}

pub(crate) fn time(since_start: Span) -> Timestamp {
    after(Timestamp::UNIX_EPOCH, since_start)
}

pub(crate) fn after(start: Timestamp, wait: Span) -> Timestamp {
    let wait = SignedDuration::try_from(wait.to_duration()).unwrap_or(SignedDuration::MAX);
    start.checked_add(wait).unwrap_or(Timestamp::MAX)
}

/// Virtual time never goes back.
pub(crate) fn between(from: Timestamp, to: Timestamp) -> Span {
    Span { milliseconds: u64::try_from(to.duration_since(from).as_millis()).unwrap_or(0) }
}
