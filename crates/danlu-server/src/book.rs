//! What the server knows without asking the store: every job that has not ended, and what each holds.
//!
//! Written by the ledger alone, after the store has made a change durable. Everybody else reads. The cluster's
//! bookkeeping lives under the same lock, so that nobody sees a job without the devices it holds.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use danlu_core::{Job, Life};
use danlu_sched::{Cluster, Waiting};
use danlu_types::{JobId, Node};

/// Larger priority first, then earlier submission: [`Job::place`].
pub(crate) type Place = (std::cmp::Reverse<u8>, JobId);

#[derive(Debug)]
pub(crate) struct Book {
    pages: RwLock<Pages>,
}

#[derive(Debug)]
pub(crate) struct Pages {
    jobs: HashMap<JobId, Arc<Job>>,
    queue: BTreeMap<Place, Arc<Job>>,
    active: BTreeMap<JobId, Arc<Job>>,
    pub(crate) cluster: Cluster,
    pub(crate) nodes: Arc<Vec<Node>>,
}

impl Book {
    pub(crate) fn new(nodes: Vec<Node>) -> Self {
        let cluster = Cluster::new(&nodes);
        let pages = Pages {
            jobs: HashMap::new(),
            queue: BTreeMap::new(),
            active: BTreeMap::new(),
            cluster,
            nodes: Arc::new(nodes),
        };
        Book { pages: RwLock::new(pages) }
    }

    /// Short reads only: the ledger waits for them.
    pub(crate) fn read(&self) -> RwLockReadGuard<'_, Pages> {
        self.pages.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn write(&self) -> RwLockWriteGuard<'_, Pages> {
        self.pages.write().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn job(&self, id: JobId) -> Option<Arc<Job>> {
        self.read().jobs.get(&id).cloned()
    }

    pub(crate) fn nodes(&self) -> Arc<Vec<Node>> {
        self.read().nodes.clone()
    }
}

impl Pages {
    /// Waiting jobs in the order in which they are to start.
    pub(crate) fn queue(&self) -> impl Iterator<Item = Waiting<'_>> {
        self.queue.values().map(|job| Waiting { job })
    }

    /// Jobs with a live attempt.
    pub(crate) fn active(&self) -> impl Iterator<Item = &Arc<Job>> {
        self.active.values()
    }

    /// Files a job under its present state. Devices of a new attempt must have been taken before; those of an attempt
    /// that is over are given back here.
    pub(crate) fn file(&mut self, job: Arc<Job>) {
        let (id, place) = (job.id, job.place());
        self.queue.remove(&place);
        let was_active = self.active.remove(&id).is_some();
        match &job.life {
            Life::Active(_) => {
                self.active.insert(id, job.clone());
            }
            Life::Queued { .. } => {
                self.queue.insert(place, job.clone());
            }
            Life::Held { .. } | Life::Ended { .. } => {}
        }
        if was_active && job.active().is_none() {
            self.cluster.give_back(id);
        }
        if job.ended_at().is_some() {
            self.jobs.remove(&id);
        } else {
            self.jobs.insert(id, job);
        }
    }
}
