//! Workers: what an engine and a launcher do for them, in one.

mod fortune;

use std::collections::BTreeSet;
use std::io::{self, ErrorKind};

use danlu_core::job::{FailureCause, ProcessExit, WorkerEnd, WorkerFailure};
use danlu_core::launch::{LaunchFile, Present, RankPlan, Rendezvous, StopOrder, rank_environment};
use danlu_types::{Rank, WorkerId, WorkerIndex};
use jiff::Timestamp;

use super::process::{ProcessRole, SimProcess};
use super::state::{SimState, StartedRank, after};
use crate::conformance::TestProgram;
use crate::{EngineError, ObservedState};

#[derive(Debug)]
pub(super) struct SimWorker {
    pub(super) launch: LaunchFile,
    phase: Phase,
    order: Option<StopOrder>,
    pub(super) ran_out_of_memory: bool,
}

#[derive(Debug)]
enum Phase {
    Preparing { since: Timestamp },
    Running(Run),
    Ended { running_since: Option<Timestamp>, at: Timestamp, exit: WorkerEnd },
}

#[derive(Debug)]
struct Run {
    since: Timestamp,
    /// Ranks that have not ended.
    left: BTreeSet<u32>,
    deadline: Option<Timestamp>,
    ending: Option<Ending>,
}

/// The first reason to end stays the reason; what comes later can only hurry it.
#[derive(Debug)]
struct Ending {
    exit: WorkerEnd,
    /// When politeness ends.
    kill_at: Option<Timestamp>,
}

impl SimWorker {
    pub(super) fn due(&self) -> Option<Timestamp> {
        match &self.phase {
            Phase::Preparing { since } => Some(after(*since, self.launch.gang.timeout)),
            Phase::Running(run) => match &run.ending {
                Some(ending) => ending.kill_at,
                None => run.deadline,
            },
            Phase::Ended { .. } => None,
        }
    }

    pub(super) fn is_preparing(&self) -> bool {
        matches!(self.phase, Phase::Preparing { .. })
    }
}

impl SimState {
    pub(super) fn launch(&mut self, launch: &LaunchFile) -> Result<(), EngineError> {
        let worker = launch.worker;
        if self.workers.contains_key(&worker) {
            return Ok(());
        }
        let refused = |kind, text: &str| {
            Err(EngineError::Worker { doing: "launch", worker, source: io::Error::new(kind, text) })
        };
        if self.released.contains(&worker) {
            return refused(ErrorKind::AlreadyExists, "it was launched and released before");
        }
        if let Err(error) = TestProgram::parse(&launch.command) {
            let text = format!("its command is no program of the suite: {error}");
            return refused(ErrorKind::InvalidInput, &text);
        }
        let phase = Phase::Preparing { since: self.now };
        let (launch, order) = (launch.clone(), None);
        self.workers.insert(worker, SimWorker { launch, phase, order, ran_out_of_memory: false });
        Ok(())
    }

    pub(super) fn order(&mut self, worker: WorkerId, order: &StopOrder) {
        let now = self.now;
        let Some(found) = self.workers.get_mut(&worker) else { return };
        if found.order.as_ref().is_none_or(|standing| order.grace < standing.grace) {
            found.order = Some(order.clone());
        }
        let Phase::Running(run) = &mut found.phase else { return };
        let kill_at = after(now, order.grace);
        if let Some(ending) = &mut run.ending {
            ending.kill_at = ending.kill_at.map(|at| at.min(kill_at));
            return;
        }
        run.ending = Some(Ending { exit: WorkerEnd::Stopped, kill_at: Some(kill_at) });
        self.terminate(worker);
    }

    pub(super) fn release(&mut self, worker: WorkerId) -> Result<(), EngineError> {
        match self.workers.get(&worker).map(|worker| &worker.phase) {
            None => {}
            Some(Phase::Ended { .. }) => {
                self.workers.remove(&worker);
                self.released.insert(worker);
            }
            Some(Phase::Preparing { .. } | Phase::Running(_)) => {
                let source = io::Error::new(ErrorKind::ResourceBusy, "its launcher still runs");
                return Err(EngineError::Worker { doing: "release", worker, source });
            }
        }
        Ok(())
    }

    pub(super) fn reach(&self, worker: WorkerId) -> Result<(), EngineError> {
        match self.seen(worker) {
            ObservedState::Running { .. } => Ok(()),
            ObservedState::Unknown
            | ObservedState::Unreadable { .. }
            | ObservedState::Preparing
            | ObservedState::Ended { .. } => {
                Err(EngineError::NotReachable { worker, why: "it does not run" })
            }
        }
    }

    pub(super) fn seen(&self, worker: WorkerId) -> ObservedState {
        match self.workers.get(&worker).map(|worker| &worker.phase) {
            None => ObservedState::Unknown,
            Some(Phase::Preparing { .. }) => ObservedState::Preparing,
            Some(Phase::Running(run)) => ObservedState::Running { since: run.since, report: None },
            Some(Phase::Ended { running_since, at, exit }) => {
                ObservedState::Ended { running_since: *running_since, at: *at, exit: exit.clone() }
            }
        }
    }

    pub(super) fn live(&self) -> Vec<WorkerId> {
        let is_live = |worker: &SimWorker| !matches!(worker.phase, Phase::Ended { .. });
        self.workers.iter().filter(|(_, worker)| is_live(worker)).map(|(id, _)| *id).collect()
    }

    /// One that was told to stop was stopped, whatever became of it.
    fn lose(&mut self, worker: WorkerId, cause: FailureCause, detail: String) {
        for pid in self.processes_of(worker) {
            self.processes.remove(&pid);
        }
        let was_told = self.workers.get(&worker).is_some_and(|it| it.order.is_some());
        let failure = WorkerFailure { cause, rank: None, exit: None, detail };
        self.conclude(worker, if was_told { WorkerEnd::Stopped } else { WorkerEnd::Failed(failure) });
    }

    fn conclude(&mut self, worker: WorkerId, exit: WorkerEnd) {
        let at = self.now;
        let Some(found) = self.workers.get_mut(&worker) else { return };
        let running_since = match &found.phase {
            Phase::Running(run) => Some(run.since),
            Phase::Preparing { .. } | Phase::Ended { .. } => None,
        };
        found.phase = Phase::Ended { running_since, at, exit };
        self.changed.insert(worker);
    }

    /// True if any worker began or ended, or has to be dealt with again.
    pub(super) fn move_workers(&mut self) -> bool {
        let ids: Vec<WorkerId> = self.workers.keys().copied().collect();
        let mut moved = false;
        for worker in ids {
            moved |= self.move_worker(worker);
        }
        moved
    }

    fn move_worker(&mut self, worker: WorkerId) -> bool {
        let Some(found) = self.workers.get(&worker) else { return false };
        match &found.phase {
            Phase::Ended { .. } => false,
            Phase::Preparing { since } => {
                let missing = self.missing(&found.launch);
                if found.order.is_some() {
                    self.conclude(worker, WorkerEnd::Stopped);
                } else if missing.is_empty() {
                    return self.gang_can_start(worker) && self.start_gang(worker);
                } else if after(*since, found.launch.gang.timeout) <= self.now {
                    let detail = format!("missing: {}", missing.join(", "));
                    let cause = FailureCause::GangTimeout;
                    let failure = WorkerFailure { cause, rank: None, exit: None, detail };
                    self.conclude(worker, WorkerEnd::Failed(failure));
                } else {
                    return false;
                }
                true
            }
            Phase::Running(_) => self.move_running(worker),
        }
    }

    fn move_running(&mut self, worker: WorkerId) -> bool {
        let now = self.now;
        let is_empty = self.processes_of(worker).is_empty();
        let Some(SimWorker { launch, phase: Phase::Running(run), .. }) = self.workers.get_mut(&worker) else {
            return false;
        };
        if run.ending.is_none()
            && !run.left.is_empty()
            && run.deadline.is_some_and(|deadline| deadline <= now)
        {
            let detail = launch.max_time.map(|limit| limit.to_string()).unwrap_or_default();
            let failure = WorkerFailure { cause: FailureCause::TimeLimit, rank: None, exit: None, detail };
            let kill_at = Some(after(now, launch.grace));
            run.ending = Some(Ending { exit: WorkerEnd::Failed(failure), kill_at });
            self.terminate(worker);
            return true;
        }
        if let Some(ending) = &mut run.ending
            && ending.kill_at.is_some_and(|at| at <= now)
        {
            ending.kill_at = None;
            self.kill(worker);
            return true;
        }
        // What was told to end may have left others, which have their grace.
        let in_grace = run.ending.as_ref().is_some_and(|ending| ending.kill_at.is_some());
        if !run.left.is_empty() || (in_grace && !is_empty) {
            return false;
        }
        let exit = run.ending.as_ref().map_or(WorkerEnd::Succeeded, |ending| ending.exit.clone());
        self.kill(worker);
        self.conclude(worker, exit);
        true
    }

    /// The workers of its gang that have not been launched.
    fn missing(&self, launch: &LaunchFile) -> Vec<String> {
        let gang = gang_of(launch).filter(|worker| !self.workers.contains_key(worker));
        gang.map(|worker| format!("worker {}", worker.worker)).collect()
    }

    fn gang_can_start(&self, worker: WorkerId) -> bool {
        let Some(found) = self.workers.get(&worker) else { return false };
        let can = |other: WorkerId| {
            let other = self.workers.get(&other);
            other.is_some_and(|it| {
                let node = &it.launch.node;
                let is_taken = self.away.contains(node) || self.given_away.contains(node);
                let is_away = self.held || (!self.places && is_taken);
                it.is_preparing() && it.order.is_none() && !is_away
            })
        };
        gang_of(&found.launch).all(can)
    }

    /// True once there was room for it.
    fn start_gang(&mut self, worker: WorkerId) -> bool {
        let Some(gang) = self.workers.get(&worker).map(|it| gang_of(&it.launch).collect::<Vec<_>>()) else {
            return false;
        };
        let has_room = !self.places || self.put_gang(&gang);
        if has_room {
            for worker in gang {
                self.start(worker);
            }
        }
        has_room
    }

    fn start(&mut self, worker: WorkerId) {
        let Some(launch) = self.workers.get(&worker).map(|it| it.launch.clone()) else { return };
        self.note_offences(&launch);
        let program = TestProgram::parse(&launch.command).unwrap_or_default();
        for plan in &launch.ranks {
            let env = self.environment(&launch, plan);
            let rank = plan.rank.0;
            self.printed.entry((worker, rank)).or_default();
            self.starts.push(StartedRank { worker, rank, at: self.now });
            self.spawn(SimProcess::new(worker, ProcessRole::Rank(rank), env, program.clone()));
        }
        let run = Run {
            since: self.now,
            left: launch.ranks.iter().map(|plan| plan.rank.0).collect(),
            deadline: launch.max_time.map(|limit| after(self.now, limit)),
            ending: None,
        };
        if let Some(found) = self.workers.get_mut(&worker) {
            found.phase = Phase::Running(run);
        }
        self.changed.insert(worker);
    }

    pub(super) fn environment(
        &self,
        launch: &LaunchFile,
        plan: &RankPlan,
    ) -> std::collections::BTreeMap<String, String> {
        let present = |worker: WorkerId| {
            let launch = self.workers.get(&worker).map(|it| &it.launch);
            Present {
                address: launch.map(|it| it.address.clone()).unwrap_or_default(),
                port: 0,
                node: launch.map(|it| it.node.clone()),
                super_pod: None,
                devices: launch.map(|it| it.devices.clone()).unwrap_or_default(),
            }
        };
        let job = launch.worker.job;
        let rendezvous = Rendezvous {
            address: launch.address.clone(),
            resume: launch.worker.attempt.0 > 1 && self.has_checkpoint(job),
            workers: gang_of(launch).map(present).collect(),
            ..Rendezvous::default()
        };
        rank_environment(launch, &rendezvous, plan)
    }

    fn note_offences(&mut self, launch: &LaunchFile) {
        let worker = launch.worker;
        if self.starts.iter().any(|start| start.worker == worker) {
            self.offences.push(format!("worker {worker} is started a second time"));
        }
        let mut others: Vec<WorkerId> = self.processes.values().map(|process| process.worker).collect();
        others.dedup();
        for other in others.into_iter().filter(|other| *other != worker) {
            if other.job == worker.job && other.attempt != worker.attempt {
                self.offences.push(format!("worker {worker} starts while {other} still runs"));
            }
            let Some(held) = self.workers.get(&other).map(|it| &it.launch) else { continue };
            let shares = |index: u32| held.devices.iter().any(|device| device.index == index);
            if held.node == launch.node && launch.devices.iter().any(|device| shares(device.index)) {
                self.offences.push(format!("workers {worker} and {other} share a device of {}", held.node));
            }
        }
    }

    pub(super) fn on_rank_ended(&mut self, worker: WorkerId, rank: u32, exit: ProcessExit) {
        let now = self.now;
        let Some(found) = self.workers.get_mut(&worker) else { return };
        let Phase::Running(run) = &mut found.phase else { return };
        run.left.remove(&rank);
        if exit == ProcessExit::Code(0) || run.ending.is_some() {
            return;
        }
        let out_of_memory = found.ran_out_of_memory && exit == ProcessExit::Signal(9);
        let cause = if out_of_memory { FailureCause::OutOfMemory } else { FailureCause::Exit };
        let failure =
            WorkerFailure { cause, rank: Some(Rank(rank)), exit: Some(exit), detail: String::new() };
        let kill_at = Some(after(now, found.launch.grace));
        run.ending = Some(Ending { exit: WorkerEnd::Failed(failure), kill_at });
        self.terminate(worker);
    }
}

fn gang_of(launch: &LaunchFile) -> impl Iterator<Item = WorkerId> + use<> {
    let (worker, count) = (launch.worker, launch.gang.workers);
    (0..count).map(move |index| WorkerId { worker: WorkerIndex(index), ..worker })
}
