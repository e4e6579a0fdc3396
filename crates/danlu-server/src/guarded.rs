//! The store, watched: damage that any call meets is noted, and writes that find no room get the reserve.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use danlu_core::{Job, NodeOverride};
use danlu_store::{
    AuditFilter, AuditRow, Batch, Committed, DirectoryChange, DirectoryRow, EventFilter, JobFilter,
    NodeChange, Prove, Store, StoreError,
};
use danlu_types::api::{AuditEntry, EventView, JobCounts};
use danlu_types::{JobId, NodeName};
use jiff::Timestamp;

use crate::audit_proof::Trail;
use crate::health::ServerHealth;

#[derive(Debug)]
pub(crate) struct GuardedStore {
    inner: Arc<dyn Store>,
    health: Arc<ServerHealth>,
    trail: Arc<Trail>,
}

impl GuardedStore {
    pub(crate) fn new(inner: Arc<dyn Store>, health: Arc<ServerHealth>, trail: Arc<Trail>) -> Self {
        GuardedStore { inner, health, trail }
    }

    fn noting<T>(&self, result: Result<T, StoreError>) -> Result<T, StoreError> {
        if let Err(error @ StoreError::Damaged { .. }) = &result {
            self.health.note(damage(error));
        }
        result
    }

    /// For changes of what is also kept in memory: where the answer was lost, or another change came first, memory is read again.
    fn doubting<T>(&self, result: Result<T, StoreError>) -> Result<T, StoreError> {
        #[cfg(test)]
        let result = match result {
            Ok(_) if self.health.loses_answers.load(std::sync::atomic::Ordering::Relaxed) => {
                Err(StoreError::unavailable("hear an answer", std::io::ErrorKind::BrokenPipe.into()))
            }
            result => result,
        };
        if let Err(StoreError::Unavailable { .. } | StoreError::Stale(_)) = &result {
            self.health.doubt.notify_one();
        }
        result
    }

    /// Whether to write again, because there is room now.
    fn has_made_room<T>(&self, result: &Result<T, StoreError>) -> bool {
        matches!(result, Err(StoreError::Unavailable { .. })) && self.health.make_room()
    }
}

/// What people are told who have to mend it.
pub(crate) fn damage(error: &StoreError) -> String {
    format!(
        "the database is damaged ({}); no new jobs are taken. Stop the server and restore the database from a back-up, or \
         save what can be read with `sqlite3 danlu.db .recover`",
        crate::error_chain(error)
    )
}

/// A call that changes nothing.
macro_rules! reading {
    ($self:ident.$method:ident($($argument:expr),*)) => {
        $self.noting($self.inner.$method($($argument),*).await)
    };
}

/// A call that may be made again.
macro_rules! writing {
    ($self:ident.$method:ident($($argument:expr),*)) => {
        loop {
            let result = $self.inner.$method($($argument),*).await;
            if !$self.has_made_room(&result) {
                return $self.noting(result);
            }
        }
    };
}

#[async_trait]
impl Store for GuardedStore {
    async fn commit(&self, batch: Batch) -> Result<Committed, StoreError> {
        let began = Instant::now();
        let committed = async {
            if !self.health.is_tight() {
                // Nothing to be gained by another try, so no need to keep the batch for one.
                return reading!(self.commit(batch));
            }
            writing!(self.commit(batch.clone()))
        };
        let result = committed.await;
        let measures = &self.health.measures;
        measures.commits.add(began.elapsed());
        measures.failed_commits.add(u64::from(result.is_err()));
        result
    }

    async fn identity(&self) -> Result<Option<String>, StoreError> {
        reading!(self.identity())
    }

    async fn lead(&self, identity: &str) -> Result<(), StoreError> {
        writing!(self.lead(identity))
    }

    async fn deposed(&self) {
        self.inner.deposed().await;
    }

    async fn job_fetch(&self, id: JobId) -> Result<Option<Job>, StoreError> {
        reading!(self.job_fetch(id))
    }

    async fn jobs_live(&self) -> Result<Vec<Job>, StoreError> {
        reading!(self.jobs_live())
    }

    async fn jobs_list(&self, filter: &JobFilter) -> Result<Vec<Job>, StoreError> {
        reading!(self.jobs_list(filter))
    }

    async fn jobs_count(&self, filter: &JobFilter) -> Result<JobCounts, StoreError> {
        reading!(self.jobs_count(filter))
    }

    async fn job_last_id(&self) -> Result<JobId, StoreError> {
        reading!(self.job_last_id())
    }

    async fn jobs_ended_before(&self, time: Timestamp, limit: u32) -> Result<Vec<JobId>, StoreError> {
        reading!(self.jobs_ended_before(time, limit))
    }

    async fn jobs_ended_last(&self, limit: u32) -> Result<Vec<Job>, StoreError> {
        reading!(self.jobs_ended_last(limit))
    }

    async fn jobs_delete(&self, ids: &[JobId]) -> Result<u64, StoreError> {
        writing!(self.jobs_delete(ids))
    }

    async fn codes_named(&self) -> Result<HashSet<String>, StoreError> {
        reading!(self.codes_named())
    }

    async fn node_notes(&self) -> Result<BTreeMap<NodeName, NodeOverride>, StoreError> {
        reading!(self.node_notes())
    }

    async fn node_note_set(&self, change: &NodeChange) -> Result<(), StoreError> {
        let written = async { writing!(self.node_note_set(change)) };
        self.doubting(written.await)
    }

    async fn directory(&self) -> Result<Vec<DirectoryRow>, StoreError> {
        reading!(self.directory())
    }

    /// With what vouches for it: whoever changes the directory need not think of that.
    async fn directory_change(&self, change: &DirectoryChange) -> Result<AuditEntry, StoreError> {
        loop {
            let result = self.trail.change(&*self.inner, change).await;
            if !self.has_made_room(&result) {
                return self.doubting(self.noting(result));
            }
        }
    }

    async fn directory_change_proven(
        &self,
        change: &DirectoryChange,
        prove: &Prove<'_>,
    ) -> Result<AuditEntry, StoreError> {
        writing!(self.directory_change_proven(change, prove))
    }

    async fn audit_rows(&self, after: u64, limit: u32) -> Result<Vec<AuditRow>, StoreError> {
        reading!(self.audit_rows(after, limit))
    }

    async fn audit_list(&self, filter: &AuditFilter) -> Result<Vec<AuditEntry>, StoreError> {
        reading!(self.audit_list(filter))
    }

    async fn submission_find(&self, key: &str) -> Result<Option<JobId>, StoreError> {
        reading!(self.submission_find(key))
    }

    async fn submission_digest(&self, key: &str) -> Result<Option<String>, StoreError> {
        reading!(self.submission_digest(key))
    }

    async fn events_list(&self, filter: &EventFilter) -> Result<Vec<EventView>, StoreError> {
        reading!(self.events_list(filter))
    }

    async fn space_give_back(&self) -> Result<bool, StoreError> {
        reading!(self.space_give_back())
    }

    async fn integrity_check(&self) -> Result<(), StoreError> {
        reading!(self.integrity_check())
    }

    fn unreadable_jobs(&self) -> Vec<(JobId, String)> {
        self.inner.unreadable_jobs()
    }

    /// Without the reserve: to ask whether there is room takes none away.
    async fn check(&self) -> Result<(), StoreError> {
        reading!(self.check())
    }

    async fn close(&self) {
        self.inner.close().await;
    }
}
