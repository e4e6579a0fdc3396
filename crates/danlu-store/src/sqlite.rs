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

use sqlx::sqlite::{
    SqliteAutoVacuum, SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions,
    SqliteSynchronous,
};
use sqlx::{ConnectOptions, QueryBuilder, Row as _};
use sqlx::{Executor, query, query_scalar};

use crate::words::Words;
use crate::{STATEMENTS_KEPT, Store, StoreError};

#[allow(clippy::duplicate_mod, reason = "compiled once for each database; its module doc says why")]
#[path = "sql/mod.rs"]
mod sql;

pub(crate) use sql::migrate;

type Db = sqlx::Sqlite;

/// Takes the right to write at once: a transaction that begins by reading could be refused it later.
const BEGIN: &str = "BEGIN IMMEDIATE";
/// Reads see the database as it was when the first of them began.
const SNAPSHOT: &str = "BEGIN";
/// There is one writer, so there is nothing more to lock.
const LOCK_COUNTERS: &str = "SELECT job_last_id, event_last_number, epoch FROM counters";
const LOCK_SCHEMA: &str = "SELECT 1";
const MIGRATIONS: &[&str] = &[
    include_str!("../migrations/sqlite/0001_jobs.sql"),
    include_str!("../migrations/sqlite/0002_code.sql"),
    include_str!("../migrations/sqlite/0003_nodes.sql"),
    include_str!("../migrations/sqlite/0004_people.sql"),
    include_str!("../migrations/sqlite/0005_identity.sql"),
    include_str!("../migrations/sqlite/0006_counts.sql"),
    include_str!("../migrations/sqlite/0007_submission_digest.sql"),
    include_str!("../migrations/sqlite/0008_search.sql"),
    include_str!("../migrations/sqlite/0009_people.sql"),
];
/// The index walks its rows in this order by itself; jobs are then looked up one by one until the page is full.
const SEARCH_ORDER: &str = "job_search.rowid DESC";

const READERS: u32 = 4;
/// For others who write to the same file.
const LONGEST_WAIT: Duration = Duration::from_secs(10);
/// The log is cut back to this after a burst; it is checkpointed every 4 MB anyway.
const LONGEST_IDLE_LOG_BYTES: &str = "16777216";
/// A file of an older version is rewritten once, at its opening, so that it can shrink. Larger ones would keep a server
/// from starting for minutes; the guide says how to do it by hand.
const LARGEST_TO_REWRITE_BYTES: i64 = 1 << 30;
/// One step of giving space back: 4 MB in pages of 4 KB, a few milliseconds during which nobody else can write.
const GIVE_BACK_AT_ONCE: &str = "PRAGMA incremental_vacuum(1024)";
/// Free pages are kept for the jobs that come next while they are fewer than this, or than an eighth of the file.
const LEAST_TO_GIVE_BACK_PAGES: i64 = 1024;

/// Without its number, which SQLite takes for a name: it would look up the names of a thousand values one by one, and a
/// large statement would spend half of its time there.
fn push_placeholder(sql: &mut String, _number: usize) {
    sql.push('?');
}

/// The jobs that have these words, with smaller ids. `CROSS` keeps the order of the two: the index is walked, not the jobs.
fn push_search(sql: &mut QueryBuilder<Db>, words: &Words, before: i64) {
    let mut expression = words.all.join(" AND ");
    match words.any.as_deref() {
        None => {}
        // No name has this.
        Some([]) => expression.push_str(" AND nothing"),
        Some(any) => {
            expression = format!("{expression} AND ({})", any.join(" OR "));
        }
    }
    sql.push("job_search CROSS JOIN jobs ON jobs.id = job_search.rowid WHERE job_search MATCH ")
        .push_bind(expression)
        .push(" AND job_search.rowid < ")
        .push_bind(before);
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
        .auto_vacuum(SqliteAutoVacuum::Incremental)
        .pragma("journal_size_limit", LONGEST_IDLE_LOG_BYTES);
    // A connection to a file does not go stale: no lifetimes, and no question before each use.
    let pool = || SqlitePoolOptions::new().max_lifetime(None).idle_timeout(None).test_before_acquire(false);
    let writer = connect_writer(pool().max_connections(1), writer_options)
        .await
        .map_err(|error| StoreError::of("open the database", error))?;
    migrate(&writer, up_to).await?;
    // A file that stays as it is costs space and nothing else: whatever is in the way now is tried again next time.
    let _ = let_shrink(&writer).await;
    let readers = pool().max_connections(READERS).connect_lazy_with(options.read_only(true));
    Ok(Arc::new(sql::SqlStore::new(writer, readers)))
}

/// Without a log beside it, a file that nobody can write is read as it is; with one, SQLite needs its index too, which a
/// server that was killed leaves beside it.
pub(crate) async fn open_read_only(path: &Path) -> Result<Arc<dyn Store>, StoreError> {
    let path = std::path::absolute(path)
        .map_err(|error| StoreError::of("find the database's file", error.into()))?;
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    let has_log = std::fs::metadata(log).is_ok_and(|log| log.len() > 0);
    let options = SqliteConnectOptions::new()
        .filename(path)
        .statement_cache_capacity(STATEMENTS_KEPT)
        .busy_timeout(LONGEST_WAIT)
        .disable_statement_logging()
        .read_only(true)
        .immutable(!has_log);
    let doing = "open the database for reading";
    let readers = SqlitePoolOptions::new()
        .max_lifetime(None)
        .idle_timeout(None)
        .max_connections(READERS)
        .connect_with(options)
        .await
        .map_err(|error| StoreError::of(doing, error))?;
    let found: i64 = query_scalar("SELECT MAX(version) FROM schema_version")
        .fetch_one(&readers)
        .await
        .map_err(|error| StoreError::of(doing, error))?;
    let known = i64::try_from(MIGRATIONS.len()).expect("migrations are counted in single digits");
    match found.cmp(&known) {
        std::cmp::Ordering::Less => Err(StoreError::TooOld { found, known }),
        std::cmp::Ordering::Greater => Err(StoreError::TooNew { found, known }),
        std::cmp::Ordering::Equal => Ok(Arc::new(sql::SqlStore::new(readers.clone(), readers))),
    }
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

/// Rewrites a file that was made without `auto_vacuum`, which takes effect by that only.
async fn let_shrink(writer: &SqlitePool) -> Result<(), sqlx::Error> {
    const INCREMENTAL: i64 = 2;
    let mode: i64 = query_scalar("PRAGMA auto_vacuum").fetch_one(writer).await?;
    let pages: i64 = query_scalar("PRAGMA page_count").fetch_one(writer).await?;
    let page_bytes: i64 = query_scalar("PRAGMA page_size").fetch_one(writer).await?;
    if mode != INCREMENTAL && pages.saturating_mul(page_bytes) <= LARGEST_TO_REWRITE_BYTES {
        writer.execute("PRAGMA auto_vacuum = INCREMENTAL; VACUUM").await?;
    }
    Ok(())
}

/// Gives some of the file's free space back to the disk; whether there is more to give back.
async fn give_space_back(writer: &SqlitePool) -> Result<bool, sqlx::Error> {
    let mut connection = writer.acquire().await?;
    let free: i64 = query_scalar("PRAGMA freelist_count").fetch_one(&mut *connection).await?;
    let pages: i64 = query_scalar("PRAGMA page_count").fetch_one(&mut *connection).await?;
    if free < LEAST_TO_GIVE_BACK_PAGES.max(pages / 8) {
        return Ok(false);
    }
    connection.fetch_all(GIVE_BACK_AT_ONCE).await?;
    let left: i64 = query_scalar("PRAGMA freelist_count").fetch_one(&mut *connection).await?;
    // A file that cannot shrink stays as it is.
    Ok(left < free)
}

/// What is wrong with the file, by a look at all its pages but not at what its indexes say.
async fn find_damage(readers: &SqlitePool) -> Result<Option<String>, sqlx::Error> {
    let found: String = query("PRAGMA quick_check(1)").fetch_one(readers).await?.try_get(0)?;
    Ok((found != "ok").then_some(found))
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
