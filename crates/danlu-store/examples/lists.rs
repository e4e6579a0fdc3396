//! How long counting, listing and forgetting take beside many jobs that have ended.
//!
//! ```text
//! cargo run --release -p danlu-store --example lists [JOBS] [TO FORGET]
//! ```
//!
//! SQLite in a folder of the current one; PostgreSQL, where it is installed, as the tests start it. The jobs are copies of
//! one that ended, made by the database itself: of a hundred owners in ten workspaces, one in a thousand still running.

#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a program for the one who measures")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use danlu_core::Job;
use danlu_store::{Batch, Insert, JobFilter, Store};
use danlu_types::api::{JobOutcome, JobState};
use danlu_types::{JobId, JobSpec};
use jiff::Timestamp;
use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection, SqliteConnection};

/// As many as the server forgets in one transaction.
const FORGET_AT_ONCE: u32 = 500;

const COPY: &str = "
    INSERT INTO jobs (id, name, workspace, owner, priority, state, outcome, submitted_at, ended_at, generation, code, spec, life)
        SELECT n, 'job-' || n, 'workspace-' || (n % 10), 'owner-' || (n % 100), priority,
            CASE WHEN n % 1000 = 0 THEN 'running' ELSE 'ended' END,
            CASE WHEN n % 1000 = 0 THEN NULL WHEN n % 7 = 0 THEN 'failed' ELSE 'succeeded' END,
            submitted_at + n, CASE WHEN n % 1000 = 0 THEN NULL ELSE submitted_at + n END, generation, code, spec, life
        FROM NUMBERS, jobs WHERE id = 1;
    INSERT INTO events (number, at, job, attempt, kind, actor, message)
        SELECT e.number + n * 5 + k, at, n, attempt, kind, actor, message
        FROM NUMBERS, events AS e, (SELECT 0 AS k UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4) AS five
        WHERE e.number = 1;
    DELETE FROM job_counts;
    INSERT INTO job_counts (workspace, owner, status, number)
        SELECT workspace, owner, COALESCE(outcome, state), COUNT(*) FROM jobs GROUP BY 1, 2, 3";

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let mut arguments = std::env::args().skip(1);
    let jobs: u64 = arguments.next().map_or(1_000_000, |count| count.parse().unwrap());
    let to_forget: u64 = arguments.next().map_or(40_000, |count| count.parse().unwrap());

    let folder = tempfile::tempdir_in(".").unwrap();
    let file = folder.path().join("lists.db");
    let url = format!("sqlite:{}", file.display());
    let numbers = format!(
        "(WITH RECURSIVE numbers (n) AS (SELECT 2 UNION ALL SELECT n + 1 FROM numbers WHERE n < {jobs}) SELECT n FROM numbers) AS ns"
    );
    let store = first_job(&url).await;
    let mut connection = SqliteConnection::connect(&url).await.unwrap();
    connection.execute(sqlx::raw_sql(AssertSqlSafe(COPY.replace("NUMBERS", &numbers)))).await.unwrap();
    connection.close().await.unwrap();
    println!("sqlite, {jobs} jobs, {} MB", std::fs::metadata(&file).unwrap().len() >> 20);
    measure(&*store, to_forget).await;
    println!("  {} MB afterwards", std::fs::metadata(&file).unwrap().len() >> 20);
    store.close().await;

    if let Some(server) = danlu_testkit::PostgresServer::shared() {
        let url = server.create_database();
        let numbers = format!("generate_series(2, {jobs}) AS n");
        let store = first_job(&url).await;
        let mut connection = PgConnection::connect(&url).await.unwrap();
        connection.execute(sqlx::raw_sql(AssertSqlSafe(COPY.replace("NUMBERS", &numbers)))).await.unwrap();
        connection.execute("ANALYZE").await.unwrap();
        connection.close().await.unwrap();
        println!("postgres, {jobs} jobs");
        measure(&*store, to_forget).await;
        store.close().await;
    }
}

async fn first_job(url: &str) -> Arc<dyn Store> {
    let store = danlu_store::open(url).await.unwrap();
    let at = Timestamp::now();
    let spec = Arc::new(JobSpec::of_command("python train.py --epochs 10"));
    let job = Job::submitted(JobId(1), "ada".to_owned(), spec, at);
    let records = vec![danlu_core::transition::submission_record(&job)];
    let insert = Insert { job, submission_key: None, at, records };
    store.commit(Batch { inserts: vec![insert], updates: Vec::new() }).await.unwrap();
    store
}

async fn measure(store: &dyn Store, to_forget: u64) {
    let page = JobFilter { limit: 50, ..JobFilter::default() };
    let workspace = || Some("workspace-3".to_owned());
    let filters = [
        ("all", page.clone()),
        ("state=running", JobFilter { states: vec![JobState::Running], ..page.clone() }),
        ("state=queued, one there", JobFilter { states: vec![JobState::Queued], ..page.clone() }),
        ("state=stopping, none there", JobFilter { states: vec![JobState::Stopping], ..page.clone() }),
        ("outcome=failed", JobFilter { outcomes: vec![JobOutcome::Failed], ..page.clone() }),
        ("owner", JobFilter { owner: Some("owner-42".to_owned()), ..page.clone() }),
        (
            "state=running, workspace",
            JobFilter { states: vec![JobState::Running], workspace: workspace(), ..page.clone() },
        ),
        (
            "state=failed, three visible workspaces",
            JobFilter {
                outcomes: vec![JobOutcome::Failed],
                visible: Some(["workspace-1", "workspace-5", "nothing"].map(str::to_owned).to_vec()),
                ..page.clone()
            },
        ),
        ("search, found among the newest", JobFilter { search: Some("99".to_owned()), ..page.clone() }),
        ("search, found nowhere", JobFilter { search: Some("nothing".to_owned()), ..page.clone() }),
    ];
    for (what, filter) in filters {
        let (list, found) = median(async || store.jobs_list(&filter).await.unwrap().len()).await;
        let (count, total) =
            median(async || store.jobs_count(&filter).await.unwrap().by_state.values().sum::<u64>()).await;
        println!("  {what}: list of {found} in {list:.1} ms, count of {total} in {count:.1} ms");
    }
    let began = Instant::now();
    store.integrity_check().await.unwrap();
    println!("  check of the whole database: {:.1} s", began.elapsed().as_secs_f64());

    let began = Instant::now();
    let (mut forgotten, mut longest) = (0, Duration::ZERO);
    while forgotten < to_forget {
        let piece = Instant::now();
        let ids = store.jobs_ended_before(Timestamp::MAX, FORGET_AT_ONCE).await.unwrap();
        forgotten += store.jobs_delete(&ids).await.unwrap();
        longest = longest.max(piece.elapsed());
    }
    println!(
        "  {forgotten} jobs and their history forgotten in {:.1} s, the longest transaction {} ms",
        began.elapsed().as_secs_f64(),
        longest.as_millis()
    );
    let (began, mut steps) = (Instant::now(), 0);
    while store.space_give_back().await.unwrap() {
        steps += 1;
    }
    println!("  space given back in {steps} steps and {:.1} s", began.elapsed().as_secs_f64());
}

/// The median of eleven, in milliseconds, and what was found.
async fn median<T>(ask: impl AsyncFn() -> T) -> (f64, T) {
    let mut times = Vec::new();
    loop {
        let began = Instant::now();
        let found = ask().await;
        times.push(began.elapsed().as_secs_f64() * 1e3);
        if times.len() == 11 {
            times.sort_by(f64::total_cmp);
            return (times[5], found);
        }
    }
}
