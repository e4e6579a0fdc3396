//! The agenda and the clock.
//!
//! A step takes everything on the agenda for the next moment, in the order in which it was put there, and then lets the
//! scheduler make one pass. Between two steps nothing changes, so invariants can be checked there.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use danlu_core::job::Failure;
use danlu_core::transition::DANLU;
use danlu_core::{Event, FailureCause, Job, Life, Step, WorkerExit, WorkerState, apply};
use danlu_sched::{Cluster, Waiting, next_wake, plan};
use danlu_types::api::JobState;
use danlu_types::{AttemptNumber, FieldError, Health, JobId, Node, NodeName, Span, WorkerIndex};
use jiff::{SignedDuration, Timestamp};

use crate::report::{JobReport, Report};
use crate::story::{Happening, Intervention, Script, SimJob};

/// A cluster under way.
#[derive(Debug)]
pub struct Simulation {
    now: Timestamp,
    /// By time, then in order of arrival: two things at one moment happen in the order in which they were planned.
    agenda: BTreeMap<(Timestamp, u64), Item>,
    arrivals: u64,
    nodes: Vec<Node>,
    lost: BTreeSet<NodeName>,
    cluster: Cluster,
    stories: Vec<SimJob>,
    /// By position in `stories`: what became of the submission.
    submitted: Vec<Option<Result<JobId, FieldError>>>,
    jobs: BTreeMap<JobId, (usize, Job)>,
    /// Places of queued jobs, kept sorted.
    queue: BTreeSet<(Reverse<u8>, JobId)>,
    /// The back-off end for which there is an item on the agenda.
    wake: Option<Timestamp>,
    device_milliseconds: u128,
}

#[derive(Debug)]
enum Item {
    Submit {
        story: usize,
    },
    Happens(Happening),
    /// The attempt has run its course.
    Finished {
        job: JobId,
        attempt: AttemptNumber,
    },
    /// What is left of the attempt has ended, as it was told to.
    Stopped {
        job: JobId,
        attempt: AttemptNumber,
    },
    /// A back-off is over.
    Wake,
}

impl Simulation {
    pub fn new(nodes: Vec<Node>, jobs: Vec<SimJob>, interventions: Vec<Intervention>) -> Self {
        let mut simulation = Simulation {
            now: Timestamp::UNIX_EPOCH,
            agenda: BTreeMap::new(),
            arrivals: 0,
            cluster: Cluster::new(&nodes),
            nodes,
            lost: BTreeSet::new(),
            submitted: vec![None; jobs.len()],
            jobs: BTreeMap::new(),
            queue: BTreeSet::new(),
            wake: None,
            device_milliseconds: 0,
            stories: Vec::new(),
        };
        for (story, job) in jobs.iter().enumerate() {
            simulation.put(time(job.submit_at), Item::Submit { story });
        }
        for intervention in interventions {
            simulation.put(time(intervention.at), Item::Happens(intervention.what));
        }
        simulation.stories = jobs;
        simulation
    }

    /// Goes to the next moment at which anything happens; false if nothing ever will.
    pub fn step(&mut self) -> bool {
        let Some((&(next, _), _)) = self.agenda.first_key_value() else { return false };
        let held: usize =
            self.cluster.holders().flat_map(|(_, grants)| grants).map(|grant| grant.devices.len()).sum();
        self.device_milliseconds += held as u128 * u128::from(milliseconds(self.now, next));
        self.now = next;
        let later = self.agenda.split_off(&(next, u64::MAX));
        let due = std::mem::replace(&mut self.agenda, later);
        for (_, item) in due {
            self.take(item);
        }
        self.pass();
        true
    }

    pub fn now(&self) -> Timestamp {
        self.now
    }

    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// Everything that was accepted, in order of submission.
    pub fn jobs(&self) -> impl Iterator<Item = &Job> {
        self.jobs.values().map(|(_, job)| job)
    }

    /// What waits, in the scheduler's order.
    pub fn queue(&self) -> impl Iterator<Item = Waiting<'_>> {
        self.queue.iter().map(|(_, id)| Waiting { job: &self.jobs[id].1 })
    }

    pub fn report(&self) -> Report {
        let jobs: Vec<JobReport> = (0..self.stories.len()).map(|story| self.job_report(story)).collect();
        let makespan = jobs.iter().filter_map(|job| job.ended_at).max().unwrap_or_default();
        let devices: usize = self.nodes.iter().map(|node| node.devices.len()).sum();
        let all = u128::from(makespan.milliseconds) * devices as u128;
        let device_utilisation = if all == 0 { 0.0 } else { self.device_milliseconds as f64 / all as f64 };
        Report { jobs, makespan, device_utilisation }
    }

    fn job_report(&self, story: usize) -> JobReport {
        let name = self.stories[story].spec.name.clone();
        let submitted_at = self.stories[story].submit_at;
        let (id, refused) = match &self.submitted[story] {
            Some(Ok(id)) => (Some(*id), None),
            Some(Err(error)) => (None, Some(error.clone())),
            None => (None, None),
        };
        let mut report = JobReport {
            name,
            id,
            refused,
            submitted_at,
            waited: Span::default(),
            ran: Span::default(),
            attempts: 0,
            ended_at: None,
            outcome: None,
        };
        let Some((_, job)) = id.and_then(|id| self.jobs.get(&id)) else { return report };
        let end = job.ended_at().unwrap_or(self.now);
        let past = job.past.iter().map(|past| milliseconds(past.attempt.placed_at, past.ended_at));
        let live = job.active().map(|attempt| milliseconds(attempt.placed_at, end));
        report.ran = Span { milliseconds: past.chain(live).sum() };
        let whole = milliseconds(job.submitted_at, end);
        report.waited = Span { milliseconds: whole.saturating_sub(report.ran.milliseconds) };
        report.attempts = job.next_attempt().0 - 1;
        report.ended_at =
            job.ended_at().map(|at| Span { milliseconds: milliseconds(Timestamp::UNIX_EPOCH, at) });
        report.outcome = job.outcome();
        report
    }

    fn put(&mut self, at: Timestamp, item: Item) {
        self.agenda.insert((at, self.arrivals), item);
        self.arrivals += 1;
    }

    fn take(&mut self, item: Item) {
        match item {
            Item::Submit { story } => self.submit(story),
            Item::Happens(happening) => self.happen(happening),
            Item::Finished { job, attempt } => self.finish(job, attempt),
            Item::Stopped { job, attempt } => {
                self.end_workers(job, attempt, &WorkerExit::Stopped, |_| true);
            }
            Item::Wake => self.wake = None,
        }
    }

    fn submit(&mut self, story: usize) {
        let spec = &self.stories[story].spec;
        let answer = self.cluster.can_ever_run(spec).map(|()| {
            let id = JobId(self.jobs.len() as u64 + 1);
            let job = Job::submitted(id, DANLU.to_owned(), Arc::new(spec.clone()), self.now);
            self.queue.insert(job.place());
            self.jobs.insert(id, (story, job));
            id
        });
        self.submitted[story] = Some(answer);
    }

    fn happen(&mut self, happening: Happening) {
        let by = || "somebody".to_owned();
        match happening {
            Happening::NodeLost { node } => {
                if self.lost.insert(node.clone()) {
                    self.lose_workers(&node);
                }
            }
            Happening::NodeBack { node } => {
                self.lost.remove(&node);
            }
            Happening::DeviceFailed { node, device } => self.set_health(&node, device, Health::Failed),
            Happening::DeviceMended { node, device } => self.set_health(&node, device, Health::Ok),
            Happening::Stop { job } => self.tell(job, Event::Stop { by: by(), grace: None }),
            Happening::Hold { job } => self.tell(job, Event::Hold { by: by() }),
            Happening::Release { job } => self.tell(job, Event::Release { by: by() }),
            Happening::Preempt { job, for_job } => {
                if let Some(Some(Ok(for_job))) = self.submitted.get(for_job).cloned() {
                    self.tell(job, Event::Preempt { for_job });
                }
            }
        }
        let here: Vec<Node> =
            self.nodes.iter().filter(|node| !self.lost.contains(&node.name)).cloned().collect();
        self.cluster.update_nodes(&here);
    }

    fn set_health(&mut self, name: &NodeName, index: u32, health: Health) {
        let devices =
            self.nodes.iter_mut().filter(|node| node.name == *name).flat_map(|node| &mut node.devices);
        for device in devices.filter(|device| device.index == index) {
            device.health = health;
        }
    }

    fn lose_workers(&mut self, node: &NodeName) {
        let failure =
            Failure { cause: FailureCause::NodeLost, rank: None, exit: None, detail: String::new() };
        let exit = WorkerExit::Failed(failure);
        let active = self.jobs().filter_map(|job| job.active().map(|attempt| (job.id, attempt.number)));
        for (job, attempt) in active.collect::<Vec<_>>() {
            self.end_workers(job, attempt, &exit, |name| name == node);
        }
    }

    fn finish(&mut self, job: JobId, attempt: AttemptNumber) {
        let (story, _) = &self.jobs[&job];
        let exit = script(&self.stories[*story], &self.jobs[&job].1, attempt).exit;
        if exit == WorkerExit::Succeeded {
            self.end_workers(job, attempt, &exit, |_| true);
        } else {
            self.apply(job, Event::WorkerEnded { attempt, worker: WorkerIndex(0), exit });
        }
    }

    /// Ends the workers of an attempt that are on the given nodes and have not ended yet.
    fn end_workers(
        &mut self,
        job: JobId,
        attempt: AttemptNumber,
        exit: &WorkerExit,
        on: impl Fn(&NodeName) -> bool,
    ) {
        let Some(live) = self.jobs[&job].1.active().filter(|live| live.number == attempt) else { return };
        let there = live.workers.iter().zip(0..).filter(|(worker, _)| {
            on(&worker.grant.node) && !matches!(worker.state, WorkerState::Ended { .. })
        });
        for worker in there.map(|(_, index)| WorkerIndex(index)).collect::<Vec<_>>() {
            self.apply(job, Event::WorkerEnded { attempt, worker, exit: exit.clone() });
        }
    }

    fn tell(&mut self, story: usize, event: Event) {
        if let Some(Some(Ok(id))) = self.submitted.get(story) {
            self.apply(*id, event);
        }
    }

    /// The one place where a job changes: queue, cluster and agenda follow its new state.
    fn apply(&mut self, id: JobId, event: Event) {
        let (story, job) = &self.jobs[&id];
        let Step::Next { job: next, .. } = apply(job, event, self.now) else { return };
        let story = *story;
        let begins_to_stop = next.state() == JobState::Stopping && job.state() != JobState::Stopping;
        if matches!(next.life, Life::Queued { .. }) {
            self.queue.insert(next.place());
        } else {
            self.queue.remove(&next.place());
        }
        match next.active() {
            Some(attempt) if begins_to_stop => {
                let wait = self.stories[story].takes_to_stop.min(next.spec.grace);
                self.put(after(self.now, wait), Item::Stopped { job: id, attempt: attempt.number });
            }
            Some(_) => {}
            None => self.cluster.give_back(id),
        }
        self.jobs.insert(id, (story, *next));
    }

    /// One pass of the scheduler, and what it decided, done.
    fn pass(&mut self) {
        let plan = plan(&self.cluster, self.queue(), self.now);
        for start in plan.starts {
            self.cluster.take(start.job, &start.grants).expect("a plan fits the cluster it was made for");
            self.apply(start.job, Event::Place { grants: start.grants });
            let (story, job) = &self.jobs[&start.job];
            let Some(attempt) = job.active().map(|attempt| attempt.number) else { continue };
            let runs = script(&self.stories[*story], job, attempt).runs;
            for worker in 0..job.spec.workers {
                self.apply(start.job, Event::WorkerRunning { attempt, worker: WorkerIndex(worker) });
            }
            self.put(after(self.now, runs), Item::Finished { job: start.job, attempt });
        }
        let wake = next_wake(self.queue(), self.now);
        if let Some(at) = wake.filter(|_| wake != self.wake) {
            self.wake = wake;
            self.put(at, Item::Wake);
        }
    }
}

/// What the attempt does, which `max_time` may cut short.
fn script(story: &SimJob, job: &Job, attempt: AttemptNumber) -> Script {
    let nothing = || Script { runs: Span::default(), exit: WorkerExit::Succeeded };
    let position = (attempt.0 as usize).min(story.attempts.len());
    let script = position.checked_sub(1).map_or_else(nothing, |position| story.attempts[position].clone());
    match job.spec.max_time {
        Some(runs) if runs < script.runs => {
            let failure =
                Failure { cause: FailureCause::TimeLimit, rank: None, exit: None, detail: String::new() };
            Script { runs, exit: WorkerExit::Failed(failure) }
        }
        _ => script,
    }
}

fn time(since_start: Span) -> Timestamp {
    after(Timestamp::UNIX_EPOCH, since_start)
}

fn after(start: Timestamp, wait: Span) -> Timestamp {
    let wait = SignedDuration::try_from(wait.to_duration()).unwrap_or(SignedDuration::MAX);
    start.checked_add(wait).unwrap_or(Timestamp::MAX)
}

/// Virtual time never goes back.
fn milliseconds(from: Timestamp, to: Timestamp) -> u64 {
    u64::try_from(to.duration_since(from).as_millis()).unwrap_or(0)
}
