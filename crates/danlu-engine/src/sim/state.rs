//! The world as it is at one time, and time itself.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use danlu_types::{ForeignHold, JobId, Node, NodeName, Span, WorkerId};
use jiff::{SignedDuration, Timestamp};

use super::CallFault;
use super::process::SimProcess;
use super::worker::SimWorker;
use crate::conformance::TestFolder;

/// What a server can ask of an engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Call {
    Inventory,
    Launch,
    Observe,
    Signal,
    Release,
    Connect,
}

impl Call {
    pub(super) fn doing(self) -> &'static str {
        match self {
            Call::Inventory => "list the nodes",
            Call::Launch => "launch",
            Call::Observe => "look at the workers",
            Call::Signal => "stop",
            Call::Release => "release",
            Call::Connect => "connect to",
        }
    }
}

/// A rank that was started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct StartedRank {
    pub worker: WorkerId,
    pub rank: u32,
    pub at: Timestamp,
}

#[derive(Debug)]
pub(super) struct SimState {
    pub(super) now: Timestamp,
    pub(super) nodes: Vec<Node>,
    /// Whether workers are put elsewhere than they were planned to be.
    pub(super) places: bool,
    pub(super) away: BTreeSet<NodeName>,
    /// Given to somebody else.
    pub(super) given_away: BTreeSet<NodeName>,
    /// Nothing begins.
    pub(super) held: bool,
    /// Launched and not released.
    pub(super) workers: BTreeMap<WorkerId, SimWorker>,
    pub(super) released: BTreeSet<WorkerId>,
    pub(super) processes: BTreeMap<i32, SimProcess>,
    pub(super) last_process: i32,
    files: BTreeMap<(JobId, TestFolder, String), String>,
    pub(super) printed: BTreeMap<(WorkerId, u32), String>,
    pub(super) faults: BTreeMap<Call, VecDeque<CallFault>>,
    /// Workers of which something new could be told.
    pub(super) changed: BTreeSet<WorkerId>,
    pub(super) starts: Vec<StartedRank>,
    pub(super) offences: Vec<String>,
}

impl SimState {
    pub(super) fn new(nodes: Vec<Node>, now: Timestamp) -> Self {
        SimState {
            now,
            nodes,
            places: false,
            away: BTreeSet::new(),
            given_away: BTreeSet::new(),
            held: false,
            workers: BTreeMap::new(),
            released: BTreeSet::new(),
            processes: BTreeMap::new(),
            last_process: 1,
            files: BTreeMap::new(),
            printed: BTreeMap::new(),
            faults: BTreeMap::new(),
            changed: BTreeSet::new(),
            starts: Vec::new(),
            offences: Vec::new(),
        }
    }

    pub(super) fn inventory(&self) -> Vec<Node> {
        let closed = |node: &Node| self.away.contains(&node.name).then(|| "it is down".to_owned());
        let foreign = |node: &Node| -> Vec<ForeignHold> {
            let is_given = self.given_away.contains(&node.name);
            is_given.then(|| whole(node)).into_iter().collect()
        };
        let offered = |node: &Node| Node { cordoned: closed(node), foreign: foreign(node), ..node.clone() };
        self.nodes.iter().map(offered).collect()
    }

    pub(super) fn file(&self, job: JobId, place: TestFolder, name: &str) -> Option<&String> {
        self.files.get(&(job, folder(place), name.to_owned()))
    }

    pub(super) fn file_mut(&mut self, job: JobId, place: TestFolder, name: &str) -> &mut String {
        self.files.entry((job, folder(place), name.to_owned())).or_default()
    }

    pub(super) fn has_checkpoint(&self, job: JobId) -> bool {
        self.files.keys().any(|(owner, place, _)| *owner == job && *place == TestFolder::Checkpoint)
    }

    /// Lets time pass from one thing that is due to the next.
    pub(super) fn advance(&mut self, span: Span) {
        self.advance_to(after(self.now, span));
    }

    pub(super) fn advance_to(&mut self, end: Timestamp) {
        self.settle();
        while let Some(due) = self.next_due().filter(|due| *due <= end) {
            self.now = due;
            self.settle();
        }
        self.now = self.now.max(end);
    }

    /// When something is to happen although nobody does anything.
    pub(super) fn next_due(&self) -> Option<Timestamp> {
        let processes = self.processes.values().filter_map(SimProcess::due);
        let dues = processes.chain(self.workers.values().filter_map(SimWorker::due));
        dues.filter(|due| *due > self.now).min()
    }

    /// Lets happen what can happen now.
    pub(super) fn settle(&mut self) {
        loop {
            let ran = self.run_processes();
            let moved = self.move_workers();
            if !ran && !moved {
                return;
            }
        }
    }
}

/// A job of somebody else's that has the whole node.
fn whole(node: &Node) -> ForeignHold {
    ForeignHold {
        kind: danlu_types::ForeignKind::ClusterJob,
        job: "1".to_owned(),
        name: "another".to_owned(),
        user: "somebody".to_owned(),
        devices: node.devices.iter().map(|device| device.index).collect(),
        cpus: node.capacity.cpus,
        memory: node.capacity.memory,
        until: None,
    }
}

/// Later attempts find what earlier ones kept by another name.
fn folder(place: TestFolder) -> TestFolder {
    match place {
        TestFolder::Output => TestFolder::Output,
        TestFolder::Checkpoint | TestFolder::Resume => TestFolder::Checkpoint,
    }
}

pub(super) fn after(time: Timestamp, span: Span) -> Timestamp {
    let span = SignedDuration::try_from(span.to_duration()).unwrap_or(SignedDuration::MAX);
    time.checked_add(span).unwrap_or(Timestamp::MAX)
}
