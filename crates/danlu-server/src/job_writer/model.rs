//! The writer, two observers, a launcher and a store, in every order in which their steps can follow each other and with
//! every way in which a commit can fail: nothing may be forgotten before it is durable.
//!
//! The decisions are those of the server ([`PendingBatch`], `judge`, `is_durable`, the core's `apply`); what is modelled is who acts
//! when. All states that can be reached are looked at, not a sample of them.

use std::collections::{HashSet, VecDeque};
use std::io::ErrorKind;
use std::sync::Arc;

use danlu_core::job::{Grant, JobEnd, WorkerEnd};
use danlu_core::{Job, JobLifecycle, Trigger, WorkerLifecycle, apply};
use danlu_engine::{Observation, ObservedState};
use danlu_store::{Committed, StoreError};
use danlu_types::device::WHOLE_DEVICE;
use danlu_types::{AttemptNumber, Bytes, Cpus, JobId, JobSpec, NodeName, WorkerId, WorkerIndex};
use jiff::Timestamp;

use super::draft::{PendingBatch, Wish};
use super::{JobWriterError, WriteResult};
use crate::reconcile::observe::{ObserveAction, is_durable, judge, without_old_news};

const OBSERVERS: usize = 2;
const NOW: Timestamp = Timestamp::UNIX_EPOCH;

/// Where the worker is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Worker {
    /// The engine knows nothing of it: it was never launched, or it was released.
    Unknown,
    /// In the queue of a cluster. A controller that is killed may forget it there.
    Waiting,
    Running,
    Ended,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EngineKind {
    Local,
    /// Its workers wait in a queue first, and a look may be older than what it is judged by.
    Slurm,
}

/// What one observer is doing: it looks, judges what it saw by the live state of a later moment, tells, and waits to be answered.
#[derive(Debug, Clone, PartialEq)]
enum Observer {
    Idle,
    Looked(Vec<Observation>),
    Told { releases: bool },
}

#[derive(Debug, Clone)]
struct Told {
    observer: usize,
    is_last: bool,
    event: Trigger,
}

/// How a commit ends.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Commit {
    Written,
    Failed,
    /// It was written, and the connection broke before the database could say so.
    WrittenUnheard,
}

#[derive(Debug, Clone)]
struct World {
    kind: EngineKind,
    worker: Worker,
    starts: u32,
    store: Job,
    live_state: Option<Job>,
    doubtful: bool,
    observers: [Observer; OBSERVERS],
    inbox: Vec<Told>,
    /// Being committed.
    batch: Vec<Told>,
    /// How many more commits may fail.
    failures_left: u32,
}

#[derive(Debug, Clone, Copy)]
enum Action {
    Launch,
    Start,
    ForgetInQueue,
    End,
    Look(usize),
    Judge(usize),
    TakeBatch(usize),
    FinishCommit(Commit),
    ResolveDoubt,
}

fn worker_id() -> WorkerId {
    WorkerId { job: JobId(1), attempt: AttemptNumber(1), worker: WorkerIndex(0) }
}

impl World {
    fn new(kind: EngineKind) -> Self {
        let spec = JobSpec::of_command("true");
        let job = Job::submitted(JobId(1), "tester".to_owned(), Arc::new(spec), NOW);
        let node = NodeName("n1".to_owned());
        let (cpus, memory) = (Cpus::default(), Bytes::default());
        let grant = Grant { node, devices: Vec::new(), share: WHOLE_DEVICE, cpus, memory };
        let danlu_core::Transition::Next { job, .. } =
            apply(&job, Trigger::Place { grants: vec![grant] }, NOW)
        else {
            panic!("a queued job can be placed")
        };
        World {
            kind,
            worker: Worker::Unknown,
            starts: 0,
            store: (*job).clone(),
            live_state: Some(*job),
            doubtful: false,
            observers: [Observer::Idle, Observer::Idle],
            inbox: Vec::new(),
            batch: Vec::new(),
            failures_left: 2,
        }
    }

    fn actions(&self) -> Vec<Action> {
        let mut actions = Vec::new();
        match self.worker {
            Worker::Unknown if self.is_to_be_launched() => actions.push(Action::Launch),
            Worker::Waiting => actions.extend([Action::Start, Action::ForgetInQueue]),
            Worker::Running => actions.push(Action::End),
            Worker::Unknown | Worker::Ended => {}
        }
        for (index, observer) in self.observers.iter().enumerate() {
            match observer {
                Observer::Idle => actions.push(Action::Look(index)),
                Observer::Looked(_) => actions.push(Action::Judge(index)),
                Observer::Told { .. } => {}
            }
        }
        if self.batch.is_empty() {
            actions.extend((1..=self.inbox.len()).map(Action::TakeBatch));
        } else {
            actions.push(Action::FinishCommit(Commit::Written));
            if self.failures_left > 0 {
                actions.push(Action::FinishCommit(Commit::Failed));
                actions.push(Action::FinishCommit(Commit::WrittenUnheard));
            }
        }
        if self.doubtful && self.batch.is_empty() {
            actions.push(Action::ResolveDoubt);
        }
        actions
    }

    /// As the pass that launches does: what is placed, and not known to the engine.
    fn is_to_be_launched(&self) -> bool {
        let attempt = self.live_state.as_ref().and_then(Job::active);
        attempt.is_some_and(|attempt| matches!(attempt.workers[0].state, WorkerLifecycle::Placed))
    }

    fn take(&mut self, action: Action) {
        match action {
            Action::Launch => match self.kind {
                EngineKind::Local => self.start(),
                EngineKind::Slurm => self.worker = Worker::Waiting,
            },
            Action::Start => self.start(),
            Action::ForgetInQueue => self.worker = Worker::Unknown,
            Action::End => self.worker = Worker::Ended,
            Action::Look(index) => self.look(index),
            Action::Judge(index) => self.judge(index),
            Action::TakeBatch(count) => {
                // Before it takes anything on, the writer asks for what it is in doubt about.
                if self.doubtful {
                    self.resolve_doubt();
                }
                self.batch = self.inbox.drain(..count).collect();
            }
            Action::FinishCommit(commit) => self.finish_commit(commit),
            Action::ResolveDoubt => self.resolve_doubt(),
        }
    }

    fn start(&mut self) {
        self.worker = Worker::Running;
        self.starts += 1;
    }

    fn look(&mut self, index: usize) {
        let exit = WorkerEnd::Succeeded;
        let seen = match self.worker {
            Worker::Unknown => ObservedState::Unknown,
            Worker::Waiting => ObservedState::Preparing,
            Worker::Running => ObservedState::Running { since: NOW, report: None },
            Worker::Ended => ObservedState::Ended { running_since: Some(NOW), at: NOW, exit },
        };
        let attempt = self.live_state.as_ref().and_then(Job::active);
        let runs = attempt
            .is_some_and(|attempt| matches!(attempt.workers[0].state, WorkerLifecycle::Running { .. }));
        let running_before = runs.then(worker_id).into_iter().collect();
        let observation = Observation::new(worker_id(), seen);
        self.observers[index] = Observer::Looked(without_old_news(vec![observation], &running_before));
    }

    fn judge(&mut self, index: usize) {
        let Observer::Looked(looked) = std::mem::replace(&mut self.observers[index], Observer::Idle) else {
            return;
        };
        let Some(observation) = looked.first() else { return };
        match judge(self.live_state.as_ref(), observation, NOW) {
            ObserveAction::Nothing => {}
            ObserveAction::Release => self.release(),
            // An old look, judged by a newer live state. The engine then finds nothing to end.
            ObserveAction::Kill => {
                assert_ne!(self.worker, Worker::Running, "a worker is ended that nobody gave up");
            }
            ObserveAction::Tell(told) => {
                let releases = matches!(observation.seen, ObservedState::Ended { .. });
                self.observers[index] = Observer::Told { releases };
                let last = told.len() - 1;
                for (number, (event, _)) in told.into_iter().enumerate() {
                    self.inbox.push(Told { observer: index, is_last: number == last, event });
                }
            }
        }
    }

    fn release(&mut self) {
        if self.worker == Worker::Ended {
            self.worker = Worker::Unknown;
        }
    }

    fn finish_commit(&mut self, commit: Commit) {
        let mut draft = PendingBatch::default();
        for told in std::mem::take(&mut self.batch) {
            let live_state = self.live_state.clone().map(Arc::new);
            let wish = Wish { id: JobId(1), event: told.event, at: NOW, seen: None };
            draft.apply(wish, live_state, (told.observer, told.is_last), |_| true);
        }
        let update = draft.batch().updates.pop();
        let is_stale = update.as_ref().is_some_and(|update| update.seen_generation != self.store.generation);
        if commit != Commit::Failed
            && !is_stale
            && let Some(update) = &update
        {
            self.store = update.job.clone();
        }
        let settled = if commit == Commit::Written {
            let stale = if is_stale { vec![JobId(1)] } else { Vec::new() };
            draft.committed(&Committed { stale, duplicates: Vec::new() })
        } else if draft.len() == 0 {
            // Nothing to write, so nothing to fail.
            draft.committed(&Committed::default())
        } else {
            self.failures_left -= 1;
            draft.failed(&Arc::new(StoreError::unavailable("write", ErrorKind::ConnectionReset.into())))
        };
        if let Some(job) = settled.changed.last() {
            self.live_state = Some((**job).clone()).filter(|job| job.ended_at().is_none());
        }
        if !settled.stale.is_empty() {
            self.read_again();
        }
        self.doubtful |= !settled.doubtful.is_empty();
        for ((observer, is_last), result) in settled.answers {
            if is_last {
                self.hear(observer, &result);
            }
        }
    }

    fn hear(&mut self, observer: usize, result: &Result<WriteResult, JobWriterError>) {
        let was = std::mem::replace(&mut self.observers[observer], Observer::Idle);
        if was == (Observer::Told { releases: true }) && is_durable(result) {
            self.release();
        }
    }

    fn resolve_doubt(&mut self) {
        self.doubtful = false;
        self.read_again();
    }

    fn read_again(&mut self) {
        self.live_state = Some(self.store.clone()).filter(|job| job.ended_at().is_none());
    }

    /// What must hold in every state.
    fn check(&self) -> Result<(), String> {
        if self.starts > 1 {
            return Err(format!("it was started {} times", self.starts));
        }
        if self.starts == 1 && self.worker == Worker::Unknown && self.store.ended_at().is_none() {
            return Err("it was forgotten before its end was durable".to_owned());
        }
        match &self.store.life {
            JobLifecycle::Ended { outcome: JobEnd::Succeeded, .. } if self.starts == 1 => Ok(()),
            JobLifecycle::Ended { outcome, .. } => Err(format!("it ended well and is told as {outcome:?}")),
            _ => Ok(()),
        }
    }
}

/// Looks at every state that can be reached; how many there are, and whether some of them is the good end.
fn explore(first: World) -> (usize, bool) {
    let mut seen = HashSet::from([format!("{first:?}")]);
    let mut queue = VecDeque::from([(first, Vec::new())]);
    let mut is_reached = false;
    while let Some((world, path)) = queue.pop_front() {
        is_reached |= world.store.ended_at().is_some() && world.worker == Worker::Unknown;
        for action in world.actions() {
            let mut next = world.clone();
            next.take(action);
            let mut path: Vec<Action> = path.clone();
            path.push(action);
            if let Err(broken) = next.check() {
                panic!("{broken} after {path:?}");
            }
            if seen.insert(format!("{next:?}")) {
                queue.push_back((next, path));
            }
        }
    }
    (seen.len(), is_reached)
}

#[test]
fn nothing_of_a_process_is_forgotten_before_it_is_durable() {
    let (states, is_reached) = explore(World::new(EngineKind::Local));
    assert!(is_reached && states > 500, "{states} states");
}

#[test]
fn nothing_of_a_slurm_job_is_forgotten_before_it_is_durable() {
    let (states, is_reached) = explore(World::new(EngineKind::Slurm));
    assert!(is_reached && states > 500, "{states} states");
}
