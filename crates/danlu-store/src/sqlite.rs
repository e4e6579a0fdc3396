//! SQLite: a file beside the server, and the default.
//!
//! One connection writes and a few read: in WAL mode readers neither wait for the writer nor hold it up.
//! `synchronous = FULL` makes a commit wait until the log is on disk, so that it survives a loss of power.

use std::fs::OpenOptions;
use std::io::ErrorKind;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sqlx::ConnectOptions;
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous,
};

use crate::{STATEMENTS_KEPT, Store, StoreError};

#[allow(clippy::duplicate_mod, reason = "compiled once for each database; its module doc says why")]
#[path = "portable/mod.rs"]
mod portable;

pub(crate) use portable::migrate;

type Db = sqlx::Sqlite;

/// Takes the right to write at once: a transaction that begins by reading could be refused it later.
const BEGIN: &str = "BEGIN IMMEDIATE";
/// There is one writer, so there is nothing more to lock.
const LOCK_COUNTERS: &str = "SELECT job_last_id, event_last_number, epoch FROM counters";
const LOCK_SCHEMA: &str = "SELECT 1";
const MIGRATIONS: &[&str] = &[
    include_str!("../migrations/sqlite/0001_jobs.sql"),
    include_str!("../migrations/sqlite/0002_code.sql"),
    include_str!("../migrations/sqlite/0003_nodes.sql"),
    include_str!("../migrations/sqlite/0004_people.sql"),
    include_str!("../migrations/sqlite/0005_identity.sql"),
    include_str!("../migrations/sqlite/0008_submission_digest.sql"),
];

const READERS: u32 = 4;
/// For others who write to the same file.
const LONGEST_WAIT: Duration = Duration::from_secs(10);
/// The log is cut back to this after a burst; it is checkpointed every 4 MB anyway.
const LONGEST_IDLE_LOG_BYTES: &str = "16777216";

/// Without its number, which SQLite takes for a name: it would look up the names of a thousand values one by one, and a
/// large statement would spend half of its time there.
fn push_placeholder(sql: &mut String, _number: usize) {
    sql.push('?');
}

pub(crate) async fn open(path: &Path, up_to: i64) -> Result<Arc<dyn Store>, StoreError> {
    // Whole, because readers are opened later, perhaps from another folder, and `:memory:` is a name like others.
    let path = std::path::absolute(path)
        .map_err(|error| StoreError::of("find the database's file", error.into()))?;
    create_private(&path)?;
    let options = SqliteConnectOptions::new()
        .filename(path)
        .statement_cache_capacity(STATEMENTS_KEPT)
        .busy_timeout(LONGEST_WAIT)
        .disable_statement_logging();
    let writer_options = options
        .clone()
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .pragma("journal_size_limit", LONGEST_IDLE_LOG_BYTES);
    // A connection to a file does not go stale: no lifetimes, and no question before each use.
    let pool = || SqlitePoolOptions::new().max_lifetime(None).idle_timeout(None).test_before_acquire(false);
    let writer = connect_writer(pool().max_connections(1), writer_options)
        .await
        .map_err(|error| StoreError::of("open the database", error))?;
    migrate(&writer, up_to).await?;
    let readers = pool().max_connections(READERS).connect_lazy_with(options.read_only(true));
    Ok(Arc::new(portable::SqlStore::new(writer, readers)))
}

/// Connects, which makes a new file use the log. Two who do that at once do not wait for each other whatever their
/// time-out is: SQLite refuses one of them, which is then to try again.
async fn connect_writer(
    pool: SqlitePoolOptions,
    options: SqliteConnectOptions,
) -> Result<SqlitePool, sqlx::Error> {
    const BUSY: &str = "5";
    let give_up = Instant::now() + LONGEST_WAIT;
    loop {
        match pool.clone().connect_with(options.clone()).await {
            Err(sqlx::Error::Database(error))
                if error.code().as_deref() == Some(BUSY) && Instant::now() < give_up =>
            {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            done => return done,
        }
    }
}

/// Creates the file for its owner alone, if it is not there; SQLite gives the log files beside it the same mode.
///
/// A file that is there is not opened: closing it would drop the locks that another store of this process has on it.
fn create_private(path: &Path) -> Result<(), StoreError> {
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(StoreError::of("create the database's file", sqlx::Error::Io(error))),
    }
}
