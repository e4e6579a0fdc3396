//! PostgreSQL: for those who have one already.
//!
//! Every write locks the one row of `counters` first. So writes come one after the other whoever makes them, event
//! numbers follow the order of commits, a reader that has seen number `n` can never miss a smaller one, and a server that
//! has lost the lead finds another's epoch there before it has written anything.

use std::sync::Arc;
use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions};
use sqlx::{ConnectOptions, Executor, QueryBuilder};

use crate::words::Words;
use crate::{STATEMENTS_KEPT, Store, StoreError};

#[allow(clippy::duplicate_mod, reason = "compiled once for each database; its module doc says why")]
#[path = "sql/mod.rs"]
mod sql;

pub(crate) use sql::migrate;

type Db = sqlx::Postgres;

const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED";
/// Reads see the database as it was when the first of them began.
const SNAPSHOT: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
const LOCK_COUNTERS: &str = "SELECT job_last_id, event_last_number, epoch FROM counters FOR UPDATE";
/// Two may open an empty database at once. The number is arbitrary, and ours.
const LOCK_SCHEMA: &str = "SELECT pg_advisory_xact_lock(4926107313)";
const MIGRATIONS: &[&str] = &[
    include_str!("../migrations/postgres/0001_jobs.sql"),
    include_str!("../migrations/postgres/0002_code.sql"),
    include_str!("../migrations/postgres/0003_nodes.sql"),
    include_str!("../migrations/postgres/0004_people.sql"),
    include_str!("../migrations/postgres/0005_identity.sql"),
    include_str!("../migrations/postgres/0006_counts.sql"),
    include_str!("../migrations/postgres/0007_submission_digest.sql"),
    include_str!("../migrations/postgres/0008_search.sql"),
    include_str!("../migrations/postgres/0009_people.sql"),
];
const SEARCH_ORDER: &str = "id DESC";

const CONNECTIONS: u32 = 8;
/// Someone may have turned durability off for the whole server; for us a commit is on disk when it returns. Stronger
/// settings (waiting for a standby) are left as they are.
const WAIT_FOR_DISK: &str = "SELECT set_config('synchronous_commit', 'on', false)
    WHERE current_setting('synchronous_commit') = 'off'";

fn push_placeholder(sql: &mut String, number: usize) {
    sql.push('$');
    sql.push_str(&number.to_string());
}

/// The jobs that have these words; which side it begins with is the planner's choice.
fn push_search(sql: &mut QueryBuilder<Db>, words: &Words, before: i64) {
    sql.push("jobs JOIN job_search ON job_search.job = jobs.id WHERE job_search.words @> ")
        .push_bind(words.all.clone())
        .push(" AND job_search.job < ")
        .push_bind(before);
    if let Some(any) = &words.any {
        sql.push(" AND job_search.words && ").push_bind(any.clone());
    }
}

/// Its own vacuum does that.
async fn give_space_back(_writer: &PgPool) -> Result<bool, sqlx::Error> {
    Ok(false)
}

/// Its own checksums and its administrator's tools do that; a damaged page shows as an error of the statement.
async fn find_damage(_readers: &PgPool) -> Result<Option<String>, sqlx::Error> {
    Ok(None)
}

pub(crate) async fn open(url: &str, up_to: i64) -> Result<Arc<dyn Store>, StoreError> {
    let options: PgConnectOptions =
        url.parse().map_err(|error| StoreError::of("read the database's address", error))?;
    let options = options
        .application_name("danlu")
        .statement_cache_capacity(STATEMENTS_KEPT)
        .disable_statement_logging();
    let pool = PgPoolOptions::new()
        .max_connections(CONNECTIONS)
        .acquire_timeout(Duration::from_secs(10))
        .after_connect(|connection, _| {
            Box::pin(async move { connection.execute(WAIT_FOR_DISK).await.map(|_| ()) })
        })
        .connect_with(options)
        .await
        .map_err(|error| StoreError::of("connect to the database", error))?;
    migrate(&pool, up_to).await?;
    Ok(Arc::new(sql::SqlStore::new(pool.clone(), pool)))
}
