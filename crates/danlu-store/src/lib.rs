//! All SQL: one trait, SQLite and PostgreSQL, one conformance suite; and reading of log segments.
//!
//! A job is one row: what was asked for (`spec`, written once) and what has become of it (`life`, replaced at every
//! transition by a write that names the generation it saw). Columns beside them exist for filters and order only.
//! People are rows of tables of their own ([`DirectoryRow`]). History is append-only. A [`Batch`] is one transaction, so
//! many clients share one commit.

mod address;
mod directory;
mod error;
pub mod logs;
mod postgres;
mod row;
mod server_lock;
mod sqlite;
mod unreadable;
mod words;

use std::collections::{BTreeMap, HashSet};

use async_trait::async_trait;
use danlu_core::transition::EventKind;
use danlu_core::{HistoryEvent, Job, NodeOverride};
use danlu_types::api::{AuditEntry, EventView, JobCounts, JobOutcome, JobState};
use danlu_types::{JobId, NodeName};
use jiff::Timestamp;

pub use address::{claim, open, open_at_version, open_read_only};
pub use directory::{
    Account, AuditHead, DirectoryRow, Document, ExternalIdentityRecord, FormerRecord, InvitationRecord,
    Member, S3KeyRecord, SealedText, SecondFactor, SshKeyRecord, StoredSecret, Token, UnixUserRecord,
};
pub use error::{StaleRow, StoreError, UnreadableRow};
pub use server_lock::ServerLock;

/// How many prepared statements a connection keeps.
const STATEMENTS_KEPT: usize = 160;

/// Where Danlu keeps what should be.
#[async_trait]
pub trait Store: Send + Sync + std::fmt::Debug {
    /// Writes a batch in one transaction: all of it is durable when this returns, or none of it is.
    ///
    /// An update whose generation is not the stored one is left out and named in the result; the rest is written.
    /// Inserts are written before updates, so a batch may do both to one job.
    async fn commit(&self, batch: Batch) -> Result<Committed, StoreError>;

    /// The data folder that this database belongs to, if it belongs to one.
    async fn identity(&self) -> Result<Option<String>, StoreError>;

    /// Takes the lead: from now on whatever another store writes to this database fails with [`StoreError::Deposed`], if it
    /// has had the lead before. The database belongs to the data folder of this name.
    async fn lead(&self, identity: &str) -> Result<(), StoreError>;

    /// Returns once this store has found that it has lost the lead.
    async fn deposed(&self);

    async fn job_fetch(&self, id: JobId) -> Result<Option<Job>, StoreError>;

    /// Jobs that have not ended, in order of id: what a starting server needs to know.
    async fn jobs_live(&self) -> Result<Vec<Job>, StoreError>;

    /// One page of jobs, newest first.
    async fn jobs_list(&self, filter: &JobFilter) -> Result<Vec<Job>, StoreError>;

    /// How many jobs the filter finds in each state, whatever its limit.
    async fn jobs_count(&self, filter: &JobFilter) -> Result<JobCounts, StoreError>;

    /// The largest id ever given to a job, 0 if none was: deleted jobs count, so that no id is used twice.
    async fn job_last_id(&self) -> Result<JobId, StoreError>;

    /// Jobs that ended before the given time, oldest end first, at most `limit`.
    async fn jobs_ended_before(&self, time: Timestamp, limit: u32) -> Result<Vec<JobId>, StoreError>;

    /// The jobs that ended last, latest end first, at most `limit`: what durations are learned from.
    async fn jobs_ended_last(&self, limit: u32) -> Result<Vec<Job>, StoreError>;

    /// Forgets jobs that have ended, with their spec, submission key and history. Others are left alone. Returns how many
    /// were forgotten.
    async fn jobs_delete(&self, ids: &[JobId]) -> Result<u64, StoreError>;

    /// The code snapshots that jobs name: those of ended ones too, until they are forgotten.
    async fn codes_named(&self) -> Result<HashSet<String>, StoreError>;

    /// What is known of nodes beyond what their engine says.
    async fn node_notes(&self) -> Result<BTreeMap<NodeName, NodeOverride>, StoreError>;

    /// Replaces what is known of a node, and writes so into history.
    async fn node_note_set(&self, change: &NodeChange) -> Result<(), StoreError>;

    /// Everything that is known of people: accounts, tokens, members. A row that cannot be read is an error
    /// ([`StoreError::UnreadableRow`]): without it, an account or its role would count as missing.
    async fn directory(&self) -> Result<Vec<DirectoryRow>, StoreError>;

    /// Changes what is known of people, and says so in the audit, both or neither. Returns the entry, numbered and sealed.
    /// An account's row names the generation after the one it was made from; [`StoreError::Stale`] where the account has another.
    async fn directory_change(&self, change: &DirectoryChange) -> Result<AuditEntry, StoreError>;

    /// The same, with a proof that is made from the sealed entry and written beside it.
    async fn directory_change_proven(
        &self,
        change: &DirectoryChange,
        prove: &Prove<'_>,
    ) -> Result<AuditEntry, StoreError>;

    /// Entries of the audit as they lie in the database, at most `limit` after that number, by their numbers.
    async fn audit_rows(&self, after: u64, limit: u32) -> Result<Vec<AuditRow>, StoreError>;

    /// One page of the audit, oldest first.
    async fn audit_list(&self, filter: &AuditFilter) -> Result<Vec<AuditEntry>, StoreError>;

    /// The id of the job that was submitted with this key, if one was and has not been forgotten.
    async fn submission_find(&self, key: &str) -> Result<Option<JobId>, StoreError>;
    /// The digest of what was first submitted with the key; `None` where nothing was, or before digests were kept.
    async fn submission_digest(&self, key: &str) -> Result<Option<String>, StoreError>;

    /// One page of history, oldest first. Numbers grow in the order in which batches were committed: whoever has read
    /// up to `n` and asks for what comes after `n` misses nothing, whoever writes at the same time.
    async fn events_list(&self, filter: &EventFilter) -> Result<Vec<EventView>, StoreError>;

    /// Gives a little of the space that forgotten jobs left back to the disk, where that is the store's affair. True while
    /// there is more to give back.
    async fn space_give_back(&self) -> Result<bool, StoreError>;

    /// Reads the whole database and fails with [`StoreError::Damaged`] if it is not what was written. Takes seconds for
    /// each GB.
    async fn integrity_check(&self) -> Result<(), StoreError>;

    /// Jobs that were met whose rows cannot be read, with what is wrong; lists leave them out.
    fn unreadable_jobs(&self) -> Vec<(JobId, String)>;

    /// Answers if the store can be read and written now; for readiness.
    async fn check(&self) -> Result<(), StoreError>;

    async fn close(&self);
}

/// Changes that belong into one transaction.
#[derive(Debug, Clone, Default)]
pub struct Batch {
    pub inserts: Vec<Insert>,
    pub updates: Vec<Update>,
}

/// A new job.
#[derive(Debug, Clone)]
pub struct Insert {
    pub job: Job,
    /// A client's own name for this submission: a second one with the same key is the same submission.
    pub submission_key: Option<SubmissionKey>,
    pub at: Timestamp,
    pub records: Vec<HistoryEvent>,
}

/// See [`Insert::submission_key`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubmissionKey {
    pub key: String,
    /// Of what was submitted, so that the same key with something else is noticed.
    pub digest: String,
}

/// A job after one or more transitions.
#[derive(Debug, Clone)]
pub struct Update {
    pub job: Job,
    /// The generation that the transitions started from.
    pub seen_generation: u64,
    pub at: Timestamp,
    pub records: Vec<HistoryEvent>,
}

impl Update {
    /// Whether the job asks for something else than before. Few updates do, and specs are long: it is written only then.
    pub(crate) fn changes_spec(&self) -> bool {
        self.records.iter().any(|record| record.kind == EventKind::JobChanged)
    }
}

/// What is known of a node from now on.
#[derive(Debug, Clone)]
pub struct NodeChange {
    pub node: NodeName,
    pub note: NodeOverride,
    pub at: Timestamp,
    pub records: Vec<HistoryEvent>,
}

#[derive(Debug, Clone)]
pub struct DirectoryChange {
    pub rows: Vec<DirectoryRow>,
    /// Its number and seal are given by the store.
    pub audit: AuditEntry,
}

/// The proof of a sealed entry, which goes with it.
pub type Prove<'a> = dyn Fn(&AuditEntry) -> AuditHead + Send + Sync + 'a;

/// An entry of the audit with the columns that it is found by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditRow {
    pub number: u64,
    pub by: String,
    pub subject: String,
    /// JSON; not read here, because it may have become something else.
    pub entry: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AuditFilter {
    pub by: Option<String>,
    pub subject: Option<String>,
    /// Only entries with a larger number.
    pub after: u64,
    pub limit: u32,
}

/// What became of a batch.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Committed {
    /// Jobs whose update was left out because somebody else had written them.
    pub stale: Vec<JobId>,
    /// Inserts that were left out because a job with their submission key exists: (the id not used, the existing one).
    pub duplicates: Vec<(JobId, JobId)>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct JobFilter {
    /// Jobs in any of these; all when both lists are empty.
    pub states: Vec<JobState>,
    pub outcomes: Vec<JobOutcome>,
    pub workspace: Option<String>,
    /// Only jobs that this account submitted.
    pub owner: Option<String>,
    /// Only jobs in these; in all when absent.
    pub visible: Option<Vec<String>>,
    pub name: Option<String>,
    /// Part of the name, ignoring the case of ASCII letters; every character stands for itself. The empty part is in all.
    pub search: Option<String>,
    pub label: Option<(String, String)>,
    /// Only jobs with a smaller id.
    pub before: Option<JobId>,
    pub limit: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EventFilter {
    pub job: Option<JobId>,
    /// Only events of no job, or of one in these workspaces that has not been forgotten; all when absent.
    pub visible: Option<Vec<String>>,
    /// Only events with a larger number.
    pub after: u64,
    pub limit: u32,
}
