//! What happens to workers that nobody here asked for: nodes that go away or to others, launchers that die, a cluster that holds
//! everything back or takes a gang's nodes.

use danlu_core::job::{FailureCause, WorkerEnd};
use danlu_slurm::QueueWait;
use danlu_types::{NodeName, Reason, WorkerId};

use super::{Phase, SimWorker, gang_of};
use crate::sim::state::SimState;

impl SimState {
    /// What a worker that does not start waits for, where that is a node.
    pub(in crate::sim) fn remark(&self, worker: WorkerId) -> Option<Reason> {
        let pending = |detail: String| Reason::ClusterPending { detail };
        let found = self.workers.get(&worker).filter(|it| it.is_preparing())?;
        let node = &found.launch.node;
        if self.held {
            return Some(pending("no job may start".to_owned()));
        }
        if self.places {
            return None;
        }
        let gone = || self.given_away.contains(node).then(|| pending(format!("another job has node {node}")));
        let down = self.away.contains(node).then(|| pending(format!("node {node} is down")));
        down.or_else(gone)
    }

    pub(in crate::sim) fn wait(&self, worker: WorkerId) -> Option<QueueWait> {
        self.remark(worker)?;
        Some(if self.held { QueueWait::Other } else { QueueWait::Nodes })
    }

    /// Only what is empty is given to others.
    pub(in crate::sim) fn give_away(&mut self, node: &NodeName, is_given: bool) {
        let runs_there =
            |worker: &SimWorker| worker.launch.node == *node && matches!(worker.phase, Phase::Running(_));
        if is_given && !self.workers.values().any(runs_there) {
            self.given_away.insert(node.clone());
        } else if !is_given {
            self.given_away.remove(node);
        }
    }

    pub(in crate::sim) fn requeue(&mut self, worker: WorkerId) {
        let Some(launch) = self.workers.get(&worker).map(|it| it.launch.clone()) else { return };
        for worker in gang_of(&launch) {
            let Some(found) = self.workers.get(&worker) else { continue };
            let Phase::Running(_) = &found.phase else { continue };
            let was_told = found.order.is_some();
            for pid in self.processes_of(worker) {
                self.processes.remove(&pid);
            }
            let again = WorkerEnd::Requeued { reason: "another needs its node".to_owned() };
            self.conclude(worker, if was_told { WorkerEnd::Stopped } else { again });
        }
    }

    /// What ran there is gone; what was to start there waits until the node is back.
    pub(in crate::sim) fn lose_node(&mut self, node: &NodeName) {
        self.away.insert(node.clone());
        let here =
            |worker: &SimWorker| worker.launch.node == *node && matches!(worker.phase, Phase::Running(_));
        let lost: Vec<WorkerId> =
            self.workers.iter().filter(|(_, worker)| here(worker)).map(|(id, _)| *id).collect();
        for worker in lost {
            self.lose(worker, FailureCause::NodeLost, format!("node {node} went away"));
        }
    }

    pub(in crate::sim) fn lose_launcher(&mut self, worker: WorkerId) {
        let is_live = self.workers.get(&worker).is_some_and(|it| !matches!(it.phase, Phase::Ended { .. }));
        if is_live {
            self.lose(worker, FailureCause::LauncherLost, String::new());
        }
    }
}
