//! Takes back what the engine has accepted and does not start.
//!
//! An attempt that waits in the engine's own queue holds devices here that nobody uses. It is requeued where another node might
//! do, and where others wait for what it holds. Each requeue that follows another without a run between them waits twice as
//! long ([`danlu_core::transition`]), so a cluster that refuses for days is asked every few minutes.

use std::collections::{BTreeMap, BTreeSet};

use danlu_core::job::{JobLifecycle, QueueCause};
use danlu_core::transition::DANLU;
use danlu_core::{Attempt, Job, Trigger, WorkerLifecycle};
use danlu_slurm::QueueWait;
use danlu_types::{DeviceKind, JobId, Node, NodeName};
use jiff::Timestamp;

use crate::app::App;
use crate::reports::Queued;

/// A node that is being cleaned up after one job takes a while until it takes the next, and Slurm calls that waiting, too.
const INVENTORIES_TO_WAIT: u32 = 2;

impl App {
    /// Jobs that wait for nodes of which, by this inventory, others have taken too much.
    pub(crate) fn displaced(&self, inventory: &[Node]) -> BTreeSet<JobId> {
        let pages = self.live_state.read();
        let attempts = || pages.active().filter_map(|job| Some((job.id, job.active()?)));
        let mut free: BTreeMap<&NodeName, Free> =
            inventory.iter().map(|it| (&it.name, Free::of(it))).collect();
        for (_, attempt) in attempts() {
            for worker in
                attempt.workers.iter().filter(|it| matches!(it.state, WorkerLifecycle::Running { .. }))
            {
                if let Some(free) = free.get_mut(&worker.grant.node) {
                    free.take(&worker.grant.devices);
                }
            }
        }
        let lacks_room = |attempt: &Attempt| {
            let mut left = free.clone();
            let mut fits = |worker: &danlu_core::job::Worker| {
                left.get_mut(&worker.grant.node).is_none_or(|free| free.take(&worker.grant.devices))
            };
            !attempt.workers.iter().all(&mut fits)
        };
        let waits = |id: JobId, attempt: &Attempt| self.reports.queued(id, attempt.number).is_some();
        let displaced = attempts().filter(|(id, attempt)| waits(*id, attempt) && lacks_room(attempt));
        displaced.map(|(id, _)| id).collect()
    }

    /// Takes back what waits in the engine's own queue for a node that it has closed. What runs there, runs on.
    pub(crate) async fn leave_closed_nodes(&self) {
        let closed = self.nodes.closed_by_engine();
        let waits_for = |job: &Job| -> Option<NodeName> {
            let attempt = job.active().filter(|attempt| attempt.stop.is_none())?;
            // An engine that places workers itself chooses another.
            if self.engine.places(&attempt.grants()) {
                return None;
            }
            self.reports.remark_on(job.id, attempt.number)?;
            let waiting = attempt.workers.iter().filter(|worker| worker.state == WorkerLifecycle::Placed);
            waiting.map(|worker| &worker.grant.node).find(|node| closed.contains(node)).cloned()
        };
        let events: Vec<_> = {
            let pages = self.live_state.read();
            let leaving = pages.active().filter_map(|job| Some((job.id, waits_for(job)?)));
            let event = |node| Trigger::Drain { node, by: DANLU.to_owned() };
            leaving.map(|(id, node)| (id, event(node), Timestamp::now())).collect()
        };
        for (result, (id, event, _)) in self.job_writer.apply_all(events.clone()).await.iter().zip(&events) {
            // The next inventory finds it again.
            if let (Err(error), Trigger::Drain { node, .. }) = (result, event) {
                tracing::warn!(job.id = %id, "could not take job {id} back from {node}: {}", crate::error_chain(error));
            }
        }
    }

    /// Requeues what waits in the engine's own queue in vain.
    pub(crate) async fn take_back(&self, displaced: &BTreeSet<JobId>) {
        let now = Timestamp::now();
        let events: Vec<_> = {
            let pages = self.live_state.read();
            let contended = pages.jobs().any(|job| wants_to_start(job, now));
            let wanted = |job: &Job| -> Option<Trigger> {
                let attempt = job.active().filter(|attempt| attempt.stop.is_none())?;
                let queued = self.reports.queued(job.id, attempt.number)?;
                let places = self.engine.places(&attempt.grants());
                is_vain(&queued, displaced.contains(&job.id), places, contended).then(|| Trigger::Requeue {
                    attempt: attempt.number,
                    reason: format!("after {}", queued.reason),
                })
            };
            pages.active().filter_map(|job| Some((job.id, wanted(job)?, now))).collect()
        };
        // The next inventory finds again what could not be written.
        for (id, result) in
            events.iter().map(|(id, ..)| *id).zip(self.job_writer.apply_all(events.clone()).await)
        {
            if let Err(error) = result {
                tracing::warn!(job.id = %id, "could not take job {id} back: {}", crate::error_chain(&error));
            }
        }
    }
}

/// Whether waiting on helps nobody.
fn is_vain(queued: &Queued, is_displaced: bool, engine_places: bool, contended: bool) -> bool {
    let long_enough = queued.inventories >= INVENTORIES_TO_WAIT;
    match queued.wait {
        // An engine that chooses the nodes finds others by itself.
        QueueWait::Nodes => !engine_places && (is_displaced || long_enough),
        // Nodes may have been given other devices since it was planned; where none has what it asks for, the next plan says so.
        QueueWait::Hardware if !engine_places => is_displaced || long_enough,
        // What it waits for is the same everywhere; only those who could use the devices are better off.
        QueueWait::Hardware | QueueWait::Other => contended && long_enough,
    }
}

fn wants_to_start(job: &Job, now: Timestamp) -> bool {
    match &job.life {
        JobLifecycle::Queued {
            why: QueueCause::Requeued { not_before, .. } | QueueCause::Retry { not_before, .. },
            ..
        } => *not_before <= now,
        JobLifecycle::Queued { .. } => true,
        JobLifecycle::Held { .. } | JobLifecycle::Active(_) | JobLifecycle::Ended { .. } => false,
    }
}

/// How many devices of each kind and model nobody has on a node. Which of them somebody has is Slurm's to say, so numbers would
/// prove nothing.
#[derive(Debug, Clone)]
struct Free<'a> {
    node: &'a Node,
    counts: BTreeMap<(DeviceKind, &'a str), usize>,
}

impl<'a> Free<'a> {
    fn of(node: &'a Node) -> Self {
        let mut free = Free { node, counts: BTreeMap::new() };
        for device in &node.devices {
            *free.counts.entry((device.kind, &device.model)).or_default() += 1;
        }
        for hold in &node.foreign {
            free.take(&hold.devices);
        }
        free
    }

    /// False where there are too few.
    fn take(&mut self, devices: &[u32]) -> bool {
        let mut enough = true;
        for index in devices {
            let device = self.node.devices.iter().find(|device| device.index == *index);
            let count = device.and_then(|device| self.counts.get_mut(&(device.kind, device.model.as_str())));
            match count {
                Some(count) if *count > 0 => *count -= 1,
                Some(_) | None => enough = false,
            }
        }
        enough
    }
}

#[cfg(test)]
mod tests {
    use danlu_types::Reason;

    use super::*;

    #[test]
    fn a_job_waits_on_where_taking_it_back_would_help_nobody() {
        let queued = |wait, inventories| Queued {
            wait,
            reason: Reason::Starting { started: 0, workers: 1 },
            inventories,
        };
        let nodes = |inventories| queued(QueueWait::Nodes, inventories);
        assert!(is_vain(&nodes(1), true, false, false), "its node went to somebody else");
        assert!(!is_vain(&nodes(1), false, false, true), "its node may only be cleaned up");
        assert!(is_vain(&nodes(2), false, false, false));
        assert!(!is_vain(&nodes(2), true, true, true), "Slurm finds another node");
        let hardware = |inventories| queued(QueueWait::Hardware, inventories);
        assert!(is_vain(&hardware(1), true, false, false), "its node has lost devices");
        assert!(is_vain(&hardware(2), false, false, false));
        assert!(!is_vain(&hardware(9), true, true, false), "Slurm has looked at all nodes");
        assert!(is_vain(&hardware(2), false, true, true), "others could use the devices");
        let limit = |inventories| queued(QueueWait::Other, inventories);
        assert!(is_vain(&limit(2), false, false, true) && is_vain(&limit(2), false, true, true));
        assert!(!is_vain(&limit(9), false, false, false), "nobody else wants the devices");
        assert!(!is_vain(&limit(1), false, false, true));
    }
}
