//! What is the same on every database: the [`Store`] itself.
//!
//! This folder is compiled once for each database, as a child of the module that names the driver ([`Db`]) and the few
//! statements that differ. The alternatives were worse to read: sqlx's drivers as a type parameter need a page of
//! bounds on every function, a macro around it all is formatted and checked by nothing, and sqlx's `Any` driver
//! forgets types. The SQL keeps to what both understand: `$1` parameters, 64-bit integers, text.
//!
//! Invariant: a connection whose transaction failed is thrown away. SQLite ends a transaction by itself when the disk
//! is full; sqlx goes on counting it as open and would then refuse every later one on that connection.

mod audit;
mod commit;
mod counts;
mod listing;
mod migrate;
mod people;
mod read;

use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicI64, Ordering};

use async_trait::async_trait;
use danlu_core::{Job, NodeOverride};
use danlu_types::api::{AuditEntry, EventView, JobCounts};
use danlu_types::{JobId, NodeName};
use jiff::Timestamp;
use sqlx::{Connection as _, Pool, Row as _, query};
use tokio::sync::watch;

use super::{
    BEGIN, Db, LOCK_COUNTERS, LOCK_SCHEMA, MIGRATIONS, SEARCH_ORDER, SNAPSHOT, find_damage, give_space_back,
    push_placeholder, push_search,
};
use crate::unreadable::Unreadable;
use crate::{
    AuditFilter, AuditRow, Batch, Committed, DirectoryChange, DirectoryRow, EventFilter, JobFilter,
    NodeChange, Prove, Store, StoreError,
};

pub(crate) use migrate::migrate;

type Connection = <Db as sqlx::Database>::Connection;
type Row = <Db as sqlx::Database>::Row;

#[derive(Debug)]
pub(super) struct SqlStore {
    writer: Pool<Db>,
    readers: Pool<Db>,
    /// Of the lead that was taken through this store; 0 where none was, and then nothing is compared with it.
    epoch: AtomicI64,
    /// Turns true when a write finds another epoch.
    is_deposed: watch::Sender<bool>,
    unreadable: Unreadable,
}

/// The one row of `counters`, locked until the end of the transaction.
struct Counters {
    job_last_id: i64,
    event_last_number: i64,
    epoch: i64,
}

impl SqlStore {
    pub(super) fn new(writer: Pool<Db>, readers: Pool<Db>) -> Self {
        SqlStore {
            writer,
            readers,
            epoch: AtomicI64::new(0),
            is_deposed: watch::Sender::new(false),
            unreadable: Unreadable::default(),
        }
    }

    /// Runs `work` in a transaction of its own that locks the counters before anything else, unless another server has
    /// taken the lead. Everything that is written is written here.
    async fn write<T>(
        &self,
        doing: &'static str,
        work: impl AsyncFnOnce(&mut Connection, Counters) -> Result<T, sqlx::Error>,
    ) -> Result<T, StoreError> {
        let epoch = self.epoch.load(Ordering::SeqCst);
        let done = in_transaction(&self.writer, async |connection| {
            let row = query(LOCK_COUNTERS).fetch_one(&mut *connection).await?;
            let counters = Counters {
                job_last_id: row.try_get(0)?,
                event_last_number: row.try_get(1)?,
                epoch: row.try_get(2)?,
            };
            if epoch != 0 && counters.epoch != epoch {
                return Ok(None);
            }
            work(connection, counters).await.map(Some)
        });
        let written = done.await.map_err(|error| StoreError::of(doing, error))?;
        written.ok_or_else(|| {
            self.is_deposed.send_replace(true);
            StoreError::Deposed
        })
    }
}

#[async_trait]
impl Store for SqlStore {
    async fn commit(&self, batch: Batch) -> Result<Committed, StoreError> {
        if batch.inserts.is_empty() && batch.updates.is_empty() {
            return Ok(Committed::default());
        }
        self.write("write to the database", async |connection, counters| {
            commit::write(connection, counters, &batch).await
        })
        .await
    }

    async fn identity(&self) -> Result<Option<String>, StoreError> {
        read::identity(&self.readers).await
    }

    async fn lead(&self, identity: &str) -> Result<(), StoreError> {
        // Whoever asks for the lead does not have it yet.
        self.epoch.store(0, Ordering::SeqCst);
        let epoch = self
            .write("take the lead", async |connection, counters| {
                commit::lead(connection, identity, counters.epoch + 1).await
            })
            .await?;
        self.epoch.store(epoch, Ordering::SeqCst);
        Ok(())
    }

    async fn deposed(&self) {
        // The sender is ours, so it is there.
        let _ = self.is_deposed.subscribe().wait_for(|is_deposed| *is_deposed).await;
    }

    async fn job_fetch(&self, id: JobId) -> Result<Option<Job>, StoreError> {
        read::job_fetch(&self.readers, id).await
    }

    async fn jobs_live(&self) -> Result<Vec<Job>, StoreError> {
        read::jobs_live(&self.readers, &self.unreadable).await
    }

    async fn jobs_list(&self, filter: &JobFilter) -> Result<Vec<Job>, StoreError> {
        listing::jobs_list(&self.readers, &self.unreadable, filter).await
    }

    async fn jobs_count(&self, filter: &JobFilter) -> Result<JobCounts, StoreError> {
        counts::jobs_count(&self.readers, filter).await
    }

    async fn job_last_id(&self) -> Result<JobId, StoreError> {
        read::job_last_id(&self.readers).await
    }

    async fn jobs_ended_before(&self, time: Timestamp, limit: u32) -> Result<Vec<JobId>, StoreError> {
        read::jobs_ended_before(&self.readers, time, limit).await
    }

    async fn jobs_ended_last(&self, limit: u32) -> Result<Vec<Job>, StoreError> {
        read::jobs_ended_last(&self.readers, &self.unreadable, limit).await
    }

    async fn jobs_delete(&self, ids: &[JobId]) -> Result<u64, StoreError> {
        let deleted =
            self.write("delete jobs", async |connection, _| commit::delete(connection, ids).await).await?;
        self.unreadable.forget(ids);
        Ok(deleted)
    }

    async fn codes_named(&self) -> Result<HashSet<String>, StoreError> {
        read::codes_named(&self.readers).await
    }

    async fn node_notes(&self) -> Result<BTreeMap<NodeName, NodeOverride>, StoreError> {
        read::node_notes(&self.readers).await
    }

    async fn node_note_set(&self, change: &NodeChange) -> Result<(), StoreError> {
        self.write("write what is known of a node", async |connection, counters| {
            commit::write_note(connection, counters, change).await
        })
        .await
    }

    async fn directory(&self) -> Result<Vec<DirectoryRow>, StoreError> {
        people::read_all(&self.readers).await
    }

    async fn directory_change(&self, change: &DirectoryChange) -> Result<AuditEntry, StoreError> {
        self.write("write to the accounts", async |connection, _| {
            audit::change(connection, change, None).await
        })
        .await
    }

    async fn directory_change_proven(
        &self,
        change: &DirectoryChange,
        prove: &Prove<'_>,
    ) -> Result<AuditEntry, StoreError> {
        self.write("write to the accounts", async |connection, _| {
            audit::change(connection, change, Some(prove)).await
        })
        .await
    }

    async fn audit_rows(&self, after: u64, limit: u32) -> Result<Vec<AuditRow>, StoreError> {
        audit::audit_rows(&self.readers, after, limit).await
    }

    async fn audit_list(&self, filter: &AuditFilter) -> Result<Vec<AuditEntry>, StoreError> {
        audit::audit_list(&self.readers, filter).await
    }

    async fn submission_find(&self, key: &str) -> Result<Option<JobId>, StoreError> {
        read::submission_find(&self.readers, key).await
    }

    async fn submission_digest(&self, key: &str) -> Result<Option<String>, StoreError> {
        read::submission_digest(&self.readers, key).await
    }

    async fn events_list(&self, filter: &EventFilter) -> Result<Vec<EventView>, StoreError> {
        read::events_list(&self.readers, filter).await
    }

    async fn space_give_back(&self) -> Result<bool, StoreError> {
        give_space_back(&self.writer)
            .await
            .map_err(|error| StoreError::of("give space back to the disk", error))
    }

    async fn integrity_check(&self) -> Result<(), StoreError> {
        let doing = "check the database";
        match find_damage(&self.readers).await {
            Ok(None) => Ok(()),
            Ok(Some(damage)) => Err(StoreError::Damaged { doing, source: sqlx::Error::Protocol(damage) }),
            Err(error) => Err(StoreError::of(doing, error)),
        }
    }

    fn unreadable_jobs(&self) -> Vec<(JobId, String)> {
        self.unreadable.all()
    }

    async fn check(&self) -> Result<(), StoreError> {
        read::job_last_id(&self.readers).await?;
        self.write("write to the database", async |connection, _| commit::touch(connection).await).await
    }

    async fn close(&self) {
        self.readers.close().await;
        self.writer.close().await;
    }
}

/// Runs `work` in a transaction of its own, and commits if it succeeds.
async fn in_transaction<T>(
    pool: &Pool<Db>,
    work: impl AsyncFnOnce(&mut Connection) -> Result<T, sqlx::Error>,
) -> Result<T, sqlx::Error> {
    let mut connection = pool.acquire().await?;
    let done = async {
        let mut transaction = connection.begin_with(BEGIN).await?;
        let value = work(&mut transaction).await?;
        transaction.commit().await?;
        Ok(value)
    }
    .await;
    if done.is_err() {
        // See the module's invariant. That closing may fail too is no news.
        let _ = connection.close().await;
    }
    done
}
