//! A batch is written whole or not at all, and what was written is there after reopening.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::Duration;

use danlu_core::WorkerEnd;
use danlu_store::{Batch, Committed, EventFilter, JobFilter, StoreError};
use danlu_types::JobId;

use crate::database::Database;
use crate::jobs::{ended_job, hold, insert, insert_keyed, inserts, job, job_with, step};

const HISTORY: EventFilter = EventFilter { job: None, visible: None, after: 0, limit: 1000 };

pub(crate) async fn an_impossible_row_leaves_nothing_of_its_batch(database: &Database) {
    let store = database.open().await;
    store.commit(inserts([&job(1)])).await.unwrap();
    let before = store.events_list(&HISTORY).await.unwrap();
    let held = || step(&job(1), hold("ada"), 9);
    // An id that is in use; one that no column can hold.
    for impossible in [job(1), job_with(1, |_| {}), job_numbered(u64::MAX)] {
        let inserts = vec![insert_keyed(&job(5), "k"), insert(&impossible)];
        let refused = store.commit(Batch { inserts, updates: vec![held()] }).await;
        assert!(matches!(refused, Err(StoreError::Refused { .. })), "{refused:?}");
    }
    assert_eq!(store.jobs_live().await.unwrap(), [job(1)]);
    assert_eq!(store.submission_find("k").await.unwrap(), None);
    assert_eq!(store.events_list(&HISTORY).await.unwrap(), before);
    assert_eq!(store.job_last_id().await.unwrap(), JobId(1));

    let batch = Batch { inserts: vec![insert_keyed(&job(5), "k")], updates: vec![held()] };
    assert_eq!(store.commit(batch).await.unwrap(), Committed::default(), "and the store goes on");
}

/// Longer than an index of PostgreSQL takes, and not to be compressed away.
pub(crate) async fn a_refused_key_leaves_nothing_of_its_batch(database: &Database) {
    let store = database.open().await;
    let mut state = 1_u64;
    let key: String = std::iter::repeat_with(|| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        char::from(b'a' + u8::try_from(state >> 60).unwrap())
    })
    .take(100_000)
    .collect();
    let batch = Batch { inserts: vec![insert(&job(1)), insert_keyed(&job(2), &key)], updates: vec![] };
    match store.commit(batch).await {
        Ok(_) => assert_eq!(store.submission_find(&key).await.unwrap(), Some(JobId(2))),
        Err(error) => {
            assert!(matches!(error, StoreError::Refused { .. }), "{error:?}");
            assert_eq!(store.jobs_live().await.unwrap(), []);
        }
    }
    store.commit(inserts([&job(3)])).await.unwrap();
}

pub(crate) async fn reopening_finds_everything(database: &Database) {
    let store = database.open().await;
    let jobs = [ended_job(1, WorkerEnd::Succeeded, 4), job(2), step(&job(3), hold("ada"), 5).job];
    store.commit(inserts(&jobs)).await.unwrap();
    store.commit(Batch { inserts: vec![insert_keyed(&job(4), "k")], updates: vec![] }).await.unwrap();
    let history = store.events_list(&HISTORY).await.unwrap();
    // One store is closed and one is not, as after a crash.
    for close in [true, false] {
        let store = database.open().await;
        let filter = JobFilter { limit: 100, ..JobFilter::default() };
        let mut found = store.jobs_list(&filter).await.unwrap();
        found.reverse();
        assert_eq!(found, [&jobs[..], &[job(4)]].concat());
        assert_eq!(store.events_list(&HISTORY).await.unwrap(), history);
        assert_eq!(store.submission_find("k").await.unwrap(), Some(JobId(4)));
        if close {
            store.close().await;
        }
    }
}

/// Whoever stops waiting for a commit leaves a whole batch or nothing, and a store that works.
pub(crate) async fn an_abandoned_commit_is_whole_or_nothing(database: &Database) {
    let store = database.open().await;
    for round in 0..40_u64 {
        let first = round * 100 + 1;
        let batch = inserts(&(first..first + 70).map(job).collect::<Vec<_>>());
        let patience = Duration::from_micros(round * 150);
        let _ = tokio::time::timeout(patience, store.commit(batch)).await;
    }
    store.commit(inserts([&job(9_999)])).await.unwrap();
    let live = store.jobs_live().await.unwrap();
    let history = store.events_list(&EventFilter { limit: 10_000, ..HISTORY }).await.unwrap();
    assert_eq!(live.len(), history.len());
    assert_eq!(live.len() % 70, 1, "{} jobs", live.len());
}

/// Set in the writer's process: the database to write to.
const WRITE_TO: &str = "DANLU_TEST_WRITE_TO";
const JOBS_PER_BATCH: u64 = 7;

/// Not a test of its own: what `a_killed_writer_leaves_whole_batches` starts and kills.
#[tokio::test]
async fn writer_process() {
    let Ok(url) = std::env::var(WRITE_TO) else { return };
    let store = danlu_store::open(&url).await.unwrap();
    for batch in 0.. {
        let first = batch * JOBS_PER_BATCH + 1;
        let jobs: Vec<_> = (first..first + JOBS_PER_BATCH).map(job).collect();
        store.commit(inserts(&jobs)).await.unwrap();
        let mut stdout = std::io::stdout().lock();
        writeln!(stdout, "written {batch}").unwrap();
        stdout.flush().unwrap();
    }
}

pub(crate) async fn a_killed_writer_leaves_whole_batches(database: &Database) {
    let mut writer = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "crash::writer_process", "--nocapture"])
        .env(WRITE_TO, &database.url)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let said = BufReader::new(writer.stdout.take().unwrap()).lines().map_while(Result::ok);
    let mut batches = said.filter_map(|line| line.strip_prefix("written ")?.parse::<u64>().ok());
    assert!(batches.any(|batch| batch == 30), "the writer ended by itself");
    writer.kill().unwrap();
    writer.wait().unwrap();
    let acknowledged = batches.last().unwrap_or(30) + 1;

    let store = database.open().await;
    let live = store.jobs_live().await.unwrap().len() as u64;
    assert_eq!(live % JOBS_PER_BATCH, 0, "{live} jobs");
    assert!(
        live >= acknowledged * JOBS_PER_BATCH,
        "{live} jobs, but {acknowledged} batches were acknowledged"
    );
    assert_eq!(store.job_last_id().await.unwrap(), JobId(live));
    let history = store.events_list(&EventFilter { limit: u32::MAX, ..HISTORY }).await.unwrap();
    assert_eq!(history.len() as u64, live);
    store.commit(inserts([&job(live + 1)])).await.unwrap();
}

pub(crate) async fn check_answers(database: &Database) {
    let store = database.open().await;
    store.check().await.unwrap();
    store.close().await;
    let closed = store.check().await;
    assert!(matches!(closed, Err(StoreError::Unavailable { .. })), "{closed:?}");
}

fn job_numbered(id: u64) -> danlu_core::Job {
    danlu_core::Job { id: JobId(id), ..job(1) }
}
