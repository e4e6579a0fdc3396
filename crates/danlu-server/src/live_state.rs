//! What the server knows without asking the store: every job that has not ended, and what each holds.
//!
//! Written by the job writer alone, after the store has made a change durable. Everybody else reads. The cluster's
//! bookkeeping lives under the same lock, so that nobody sees a job without the devices it holds.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use danlu_core::{Grant, Job, JobLifecycle};
use danlu_sched::Cluster;
use danlu_store::JobFilter;
use danlu_types::{JobId, JobSpec, Node};
use jiff::Timestamp;

#[derive(Debug)]
pub(crate) struct LiveState {
    pages: RwLock<LiveJobs>,
}

#[derive(Debug)]
pub(crate) struct LiveJobs {
    jobs: HashMap<JobId, Arc<Job>>,
    active: BTreeMap<JobId, Arc<Job>>,
    pub(crate) cluster: Cluster,
    pub(crate) nodes: Arc<Vec<Node>>,
    changes: Changes,
}

/// What the scheduler has not been told yet.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    /// The newest state of each job that changed.
    pub(crate) jobs: BTreeMap<JobId, Arc<Job>>,
    pub(crate) nodes: Option<Arc<Vec<Node>>>,
}

impl LiveState {
    pub(crate) fn new(nodes: Vec<Node>) -> Self {
        let cluster = Cluster::new(&nodes);
        let pages = LiveJobs {
            jobs: HashMap::new(),
            active: BTreeMap::new(),
            cluster,
            nodes: Arc::new(nodes),
            changes: Changes::default(),
        };
        LiveState { pages: RwLock::new(pages) }
    }

    /// Short reads only: the job writer waits for them.
    pub(crate) fn read(&self) -> RwLockReadGuard<'_, LiveJobs> {
        self.pages.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn write(&self) -> RwLockWriteGuard<'_, LiveJobs> {
        self.pages.write().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn job(&self, id: JobId) -> Option<Arc<Job>> {
        self.read().jobs.get(&id).cloned()
    }

    /// When the longest present wait of those queued jobs began that a filter finds.
    pub(crate) fn oldest_wait(&self, filter: &JobFilter) -> Option<Timestamp> {
        let is_found = |job: &Job| {
            let JobSpec { name, workspace, labels, .. } = &*job.spec;
            let is =
                |wanted: &Option<String>, value: &str| wanted.as_ref().is_none_or(|wanted| wanted == value);
            let has_state = filter.states.is_empty() && filter.outcomes.is_empty()
                || filter.states.contains(&danlu_types::api::JobState::Queued);
            has_state
                && is(&filter.workspace, workspace)
                && is(&filter.owner, &job.owner)
                && is(&filter.name, name)
                && filter
                    .search
                    .as_ref()
                    .is_none_or(|part| name.to_lowercase().contains(&part.to_lowercase()))
                && filter.label.as_ref().is_none_or(|(key, value)| labels.get(key) == Some(value))
                && filter.visible.as_ref().is_none_or(|visible| visible.contains(workspace))
        };
        let pages = self.read();
        let since = |job: &Arc<Job>| match &job.life {
            JobLifecycle::Queued { since, .. } if is_found(job) => Some(*since),
            _ => None,
        };
        pages.jobs().filter_map(since).min()
    }

    pub(crate) fn nodes(&self) -> Arc<Vec<Node>> {
        self.read().nodes.clone()
    }
}

impl LiveJobs {
    /// Every job that has not ended.
    pub(crate) fn jobs(&self) -> impl Iterator<Item = &Arc<Job>> {
        self.jobs.values()
    }

    /// Jobs with a live attempt.
    pub(crate) fn active(&self) -> impl Iterator<Item = &Arc<Job>> {
        self.active.values()
    }

    /// Files a job under its present state. Devices of a new attempt must have been taken before; those of an attempt
    /// that is over are given back here, and those of one whose workers were moved are changed.
    pub(crate) fn insert(&mut self, job: Arc<Job>) {
        let id = job.id;
        let was_active = self.active.remove(&id).is_some();
        if let JobLifecycle::Active(attempt) = &job.life {
            self.active.insert(id, job.clone());
            let held = self.cluster.held(id);
            if was_active && !attempt.workers.iter().map(|worker| &worker.grant).eq(held) {
                let grants: Vec<Grant> = attempt.workers.iter().map(|worker| worker.grant.clone()).collect();
                self.cluster.force_allocate(id, &grants);
            }
        }
        self.changes.jobs.insert(id, job.clone());
        if was_active && job.active().is_none() {
            self.cluster.free(id);
        }
        if job.ended_at().is_some() {
            self.jobs.remove(&id);
        } else {
            self.jobs.insert(id, job);
        }
    }

    /// Files a job as it was found to be, whatever was filed and taken for it before.
    pub(crate) fn replace(&mut self, job: Arc<Job>) {
        self.cluster.free(job.id);
        self.active.remove(&job.id);
        if let Some(attempt) = job.active() {
            let grants: Vec<Grant> = attempt.workers.iter().map(|worker| worker.grant.clone()).collect();
            self.cluster.force_allocate(job.id, &grants);
        }
        self.insert(job);
    }

    /// Has the scheduler look at a job again, which is not as it thought.
    pub(crate) fn mark_changed(&mut self, id: JobId) {
        if let Some(job) = self.jobs.get(&id) {
            self.changes.jobs.entry(id).or_insert_with(|| job.clone());
        }
    }

    /// Takes nodes as they are now; what is held stays held.
    pub(crate) fn set_nodes(&mut self, nodes: Vec<Node>) {
        if self.cluster.update_nodes(&nodes) {
            self.nodes = Arc::new(nodes);
            self.changes.nodes = Some(self.nodes.clone());
        }
    }

    pub(crate) fn take_changes(&mut self) -> Changes {
        std::mem::take(&mut self.changes)
    }
}
