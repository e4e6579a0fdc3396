//! A cluster that is only imagined, for tests: programs are read step by step, files and logs are in memory, and time
//! passes when somebody says so. Nothing here sleeps, and the same story always goes the same way.
//!
//! A [`SimCluster`] is the world, which outlives servers; a [`SimEngine`] is one server's view of it. Faults are planned:
//! calls that fail before or after they had their effect, hints that get lost, launchers and nodes that go away. What must
//! never be is written down when it happens, in [`SimCluster::offences`].

mod ground;
mod placing;
mod process;
mod session;
mod state;
mod worker;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use danlu_core::job::{Grant, WorkerLocation};
use danlu_core::launch::{LaunchFile, StopOrder};
use danlu_types::{JobId, Node, NodeName, Span, WorkerId};
use jiff::Timestamp;

use crate::conformance::TestFolder;
use crate::hints::Hints;
use crate::{ClusterAnswer, Engine, EngineError, Observation, Which, WorkerStream};

use state::SimState;
pub use state::{Call, StartedRank};

/// Everything that goes on without a server.
#[derive(Debug)]
pub struct SimCluster {
    state: Mutex<SimState>,
    hints: Hints,
}

/// A server's way to a cluster.
#[derive(Debug)]
pub struct SimEngine {
    cluster: Arc<SimCluster>,
}

/// Whether a call that fails has done what it was to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallFault {
    /// Nothing was done.
    Refused,
    /// It was done, and the answer got lost.
    Unanswered,
    /// Nothing was done, and the cluster says that it takes the job later or elsewhere.
    NotNow,
}

impl SimCluster {
    pub fn new(nodes: Vec<Node>, now: Timestamp) -> Arc<Self> {
        Arc::new(SimCluster { state: Mutex::new(SimState::new(nodes, now)), hints: Hints::default() })
    }

    /// One that puts workers where it likes, which is seldom where they were planned to be.
    pub fn that_places(nodes: Vec<Node>, now: Timestamp) -> Arc<Self> {
        let cluster = Self::new(nodes, now);
        cluster.lock().places = true;
        cluster
    }

    /// Where a worker that was started is.
    pub fn whereabouts(&self, worker: WorkerId) -> Option<WorkerLocation> {
        self.lock().whereabouts(worker)
    }

    pub fn engine(self: &Arc<Self>) -> SimEngine {
        SimEngine { cluster: Arc::clone(self) }
    }

    pub fn now(&self) -> Timestamp {
        self.lock().now
    }

    /// Lets time pass, and all that happens within it happen.
    pub fn advance(&self, span: Span) {
        self.change(|state| state.advance(span));
    }

    /// Lets time pass until the next thing is due, or for a while where nothing is.
    pub fn advance_to_next(&self, otherwise: Span) {
        self.change(|state| {
            state.settle();
            match state.next_due() {
                Some(due) => state.advance_to(due),
                None => state.advance(otherwise),
            }
        });
    }

    /// The next calls of this kind fail.
    pub fn plan_faults(&self, call: Call, faults: impl IntoIterator<Item = CallFault>) {
        self.lock().faults.entry(call).or_default().extend(faults);
    }

    /// From now on calls of this kind do as they should.
    pub fn clear_faults_of(&self, call: Call) {
        self.lock().faults.remove(&call);
    }

    /// From now on calls do as they should.
    pub fn clear_faults(&self) {
        self.lock().faults.clear();
    }

    /// Hints that nobody has taken yet are gone.
    pub fn lose_hints(&self) {
        self.hints.clear();
    }

    /// A node goes away with all that runs there.
    pub fn lose_node(&self, node: &NodeName) {
        self.change(|state| state.lose_node(node));
    }

    /// It is back, and empty.
    pub fn restore_node(&self, node: &NodeName) {
        self.change(|state| state.away.remove(node));
    }

    /// A node is given to somebody else: what was to start there waits. Or it is given back.
    pub fn give_away(&self, node: &NodeName, is_given: bool) {
        self.change(|state| state.give_away(node, is_given));
    }

    /// Nothing that was launched begins, as where a limit is reached; or it does again.
    pub fn hold(&self, is_held: bool) {
        self.change(|state| state.held = is_held);
    }

    /// The cluster takes the nodes of a worker's gang and wants it to start again.
    pub fn requeue(&self, worker: WorkerId) {
        self.change(|state| state.requeue(worker));
    }

    pub fn lose_launcher(&self, worker: WorkerId) {
        self.change(|state| state.lose_launcher(worker));
    }

    /// Workers that run or prepare to.
    pub fn live(&self) -> Vec<WorkerId> {
        self.lock().live()
    }

    /// Workers that were launched and not released.
    pub fn known(&self) -> Vec<WorkerId> {
        self.lock().workers.keys().copied().collect()
    }

    /// Every start of a rank there ever was.
    pub fn starts(&self) -> Vec<StartedRank> {
        self.lock().starts.clone()
    }

    /// What must never be: a worker that starts twice, two attempts of a job or two holders of a device at the same time.
    pub fn offences(&self) -> Vec<String> {
        self.lock().offences.clone()
    }

    pub fn file(&self, job: JobId, place: TestFolder, name: &str) -> Option<String> {
        self.lock().file(job, place, name).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, SimState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does something to the world, and lets follow what follows at once.
    fn change<T>(&self, change: impl FnOnce(&mut SimState) -> T) -> T {
        let (answer, changed) = {
            let mut state = self.lock();
            let answer = change(&mut state);
            state.settle();
            (answer, std::mem::take(&mut state.changed))
        };
        for worker in changed {
            self.hints.add(worker);
        }
        answer
    }

    /// Does it, or fails as planned.
    fn attempt<T>(
        &self,
        call: Call,
        worker: Option<WorkerId>,
        act: impl FnOnce(&mut SimState) -> Result<T, EngineError>,
    ) -> Result<T, EngineError> {
        let fault = self.lock().faults.get_mut(&call).and_then(std::collections::VecDeque::pop_front);
        if !matches!(fault, Some(CallFault::Refused | CallFault::NotNow)) {
            let answer = self.change(act)?;
            if fault.is_none() {
                return Ok(answer);
            }
        }
        let source = std::io::Error::new(std::io::ErrorKind::ResourceBusy, "as planned");
        let doing = call.doing();
        if let (Some(CallFault::NotNow), Call::Launch) = (fault, call) {
            let (said, answer) = ("not now, as planned".to_owned(), ClusterAnswer::NotNow);
            return Err(EngineError::Cluster { doing, program: "launch", said, answer });
        }
        Err(match worker {
            Some(worker) => EngineError::Worker { doing, worker, source },
            None => EngineError::Host { doing, source },
        })
    }
}

#[async_trait]
impl Engine for SimEngine {
    async fn inventory(&self) -> Result<Vec<Node>, EngineError> {
        self.cluster.attempt(Call::Inventory, None, |state| Ok(state.inventory()))
    }

    fn inventory_changes(&self) -> bool {
        true
    }

    fn places(&self, _planned: &[&Grant]) -> bool {
        self.cluster.lock().places
    }

    async fn launch(&self, launch: &LaunchFile) -> Result<(), EngineError> {
        self.cluster.attempt(Call::Launch, Some(launch.worker), |state| state.launch(launch))
    }

    async fn observe(&self, which: Which<'_>) -> Result<Vec<Observation>, EngineError> {
        self.cluster.attempt(Call::Observe, None, |state| {
            let these = match which {
                Which::All => state.workers.keys().copied().collect(),
                Which::These(these) => these.to_vec(),
            };
            let look = |worker| {
                let remark = state.remark(worker);
                let place = state.whereabouts(worker).filter(|_| state.places);
                let wait = state.wait(worker);
                Observation { remark, place, wait, ..Observation::new(worker, state.seen(worker)) }
            };
            Ok(these.into_iter().map(look).collect())
        })
    }

    async fn signal(&self, worker: WorkerId, order: &StopOrder) -> Result<(), EngineError> {
        self.cluster.attempt(Call::Signal, Some(worker), |state| {
            state.order(worker, order);
            Ok(())
        })
    }

    async fn release(&self, worker: WorkerId) -> Result<(), EngineError> {
        self.cluster.attempt(Call::Release, Some(worker), |state| state.release(worker))
    }

    async fn connect(&self, worker: WorkerId) -> Result<Box<dyn WorkerStream>, EngineError> {
        self.cluster.attempt(Call::Connect, Some(worker), |state| state.reach(worker))?;
        Ok(Box::new(session::open(&self.cluster, worker)))
    }

    async fn changed(&self) -> Vec<WorkerId> {
        self.cluster.hints.take().await
    }
}
