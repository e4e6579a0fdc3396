//! Migrations are tested on data: what an older version wrote is read by the newest.
//!
//! `fixtures/v1.sql` holds rows as version 1 wrote them, and is never edited. A new version adds its own fixture, and
//! this file a test for it.

use danlu_core::job::{AttemptEnd, JobEnd, QueueCause};
use danlu_core::{JobLifecycle, ProcessExit, StopCause};
use danlu_store::{EventFilter, JobFilter, StoreError};
use danlu_types::JobId;
use danlu_types::api::JobState;

use crate::database::Database;
use crate::jobs::{inserts, job};

const V1: &str = include_str!("../../fixtures/v1.sql");
const V2: &str = include_str!("../../fixtures/v2.sql");
const V8: &str = include_str!("../../fixtures/v8.sql");

fn all_jobs() -> JobFilter {
    JobFilter { limit: 100, ..JobFilter::default() }
}

pub(crate) async fn data_of_version_1_is_read_by_the_newest(database: &Database) {
    danlu_store::open_at_version(&database.url, 1).await.unwrap().close().await;
    database.execute(V1).await.unwrap();
    let store = database.open().await;

    let all = all_jobs();
    let mut jobs = store.jobs_list(&all).await.unwrap();
    jobs.reverse();
    let states: Vec<JobState> = jobs.iter().map(danlu_core::Job::state).collect();
    let expected =
        [JobState::Held, JobState::Queued, JobState::Starting, JobState::Running, JobState::Stopping];
    assert_eq!(states[..5], expected);
    assert_eq!(states[5..], [JobState::Ended; 3]);

    let JobLifecycle::Queued { why: QueueCause::Preempted { for_job, .. }, .. } = &jobs[1].life else {
        panic!("job 2 was preempted: {:?}", jobs[1].life)
    };
    assert_eq!(*for_job, JobId(3));
    assert!(matches!(jobs[1].past[0].verdict, AttemptEnd::Preempted { .. }));
    assert_eq!(jobs[1].spec.labels["project"], "ocr");
    let stop = jobs[4].active().unwrap().stop.as_ref().unwrap();
    assert_eq!(stop.why, StopCause::ByUser { who: "grace".to_owned() });
    assert_eq!(
        jobs[5].life,
        JobLifecycle::Ended { at: jobs[5].ended_at().unwrap(), outcome: JobEnd::Succeeded }
    );
    let JobLifecycle::Ended { outcome: JobEnd::Failed { failure, .. }, .. } = &jobs[6].life else {
        panic!("job 7 failed: {:?}", jobs[6].life)
    };
    assert_eq!(
        (failure.exit, failure.detail.as_str()),
        (Some(ProcessExit::Signal(9)), "killed by \"the\" kernel")
    );

    assert_eq!(store.job_last_id().await.unwrap(), JobId(12));
    assert_eq!(store.submission_find("8f14e45f").await.unwrap(), Some(JobId(2)));
    assert_eq!(store.submission_digest("8f14e45f").await.unwrap(), None);
    let labelled = JobFilter { label: Some(("project".to_owned(), "ocr".to_owned())), ..all };
    assert_eq!(store.jobs_list(&labelled).await.unwrap().len(), 1);
    let history =
        store.events_list(&EventFilter { job: None, visible: None, after: 0, limit: 100 }).await.unwrap();
    assert_eq!(history.len(), 2, "that of job 12, which was deleted, goes with it");

    let counts = store.jobs_count(&all_jobs()).await.unwrap();
    let lines: Vec<String> =
        counts.by_state.iter().map(|(status, number)| format!("{status} {number}")).collect();
    assert_eq!(
        lines,
        [
            "failed 1",
            "held 1",
            "queued 1",
            "running 1",
            "starting 1",
            "stopped 1",
            "stopping 1",
            "succeeded 1"
        ]
    );

    // And it can be written on: no number is given twice.
    store.commit(inserts([&job(13)])).await.unwrap();
    let more =
        store.events_list(&EventFilter { job: None, visible: None, after: 3, limit: 100 }).await.unwrap();
    assert_eq!(more.iter().map(|event| event.number).collect::<Vec<_>>(), [4]);
}

pub(crate) async fn the_code_that_jobs_of_version_1_name_is_found(database: &Database) {
    danlu_store::open_at_version(&database.url, 1).await.unwrap().close().await;
    database.execute(V1).await.unwrap();
    let digest = |digit: &str| format!("sha256:{}", digit.repeat(64));
    let name_code = r#"UPDATE jobs SET spec = '{"code":"DIGEST",' || substr(spec, 2) WHERE id IN (2, 3)"#;
    database.execute(&name_code.replace("DIGEST", &digest("a"))).await.unwrap();
    // The same words inside a command, and what PostgreSQL's own JSON does not read.
    let quote_code = r#"UPDATE jobs SET spec = '{"command":"echo \"code\":\"DIGEST\" \u0000"}' WHERE id = 4"#;
    database.execute(&quote_code.replace("DIGEST", &digest("b"))).await.unwrap();
    let store = database.open().await;
    assert_eq!(Vec::from_iter(store.codes_named().await.unwrap()), [digest("a")]);
}

pub(crate) async fn data_of_version_2_is_read_by_the_newest(database: &Database) {
    danlu_store::open_at_version(&database.url, 2).await.unwrap().close().await;
    database.execute(V2).await.unwrap();
    let store = database.open().await;
    let jobs = store.jobs_live().await.unwrap();
    assert_eq!(jobs.iter().map(|job| job.id).collect::<Vec<_>>(), [JobId(2)]);
    assert_eq!(store.codes_named().await.unwrap().len(), 1);
    assert!(store.node_notes().await.unwrap().is_empty());
    assert_eq!(store.job_last_id().await.unwrap(), JobId(2));
}

/// The rows of `fixtures/v8.sql`, as texts.
fn people_of_version_8() -> Vec<String> {
    let row = |line: &str| {
        let values = line.strip_prefix("INSERT INTO directory VALUES(")?.strip_suffix(");")?;
        Some(values.replace("','", " ").trim_matches('\'').replace("''", "'"))
    };
    let mut rows: Vec<String> = V8.lines().filter_map(row).collect();
    rows.sort_unstable();
    rows
}

/// Byte for byte: the proof of the audit that version 8 wrote covers these texts.
pub(crate) async fn people_of_version_8_are_carried_into_their_tables(database: &Database) {
    danlu_store::open_at_version(&database.url, 8).await.unwrap().close().await;
    database.execute(V8).await.unwrap();
    let store = database.open().await;
    let rows = store.directory().await.unwrap();
    let mut texts: Vec<String> = rows
        .iter()
        .map(|row| {
            let sealed = row.sealed();
            format!("{} {} {}", sealed.kind, sealed.key, sealed.value.unwrap())
        })
        .collect();
    texts.sort_unstable();
    assert_eq!(texts, people_of_version_8());
    assert!(texts.len() > 30, "{}", texts.len());
    assert!(database.execute("SELECT 1 FROM directory").await.is_err(), "the old table is gone");
}

pub(crate) async fn people_of_version_8_that_cannot_be_read_are_named_and_left_as_they_are(
    database: &Database,
) {
    danlu_store::open_at_version(&database.url, 8).await.unwrap().close().await;
    database.execute(V8).await.unwrap();
    let add = |kind: &str, key: &str, value: &str| {
        format!("INSERT INTO directory (kind, key, value) VALUES ('{kind}', '{key}', '{value}')")
    };
    for (kind, key, value, why) in [
        ("account", "eve", "{", "EOF while parsing an object at line 1 column 1"),
        ("account", "eve", "{}", "missing field `name`"),
        ("member", "lab", r#"{"role":"owner"}"#, "its key has no `/`"),
        ("member", "lab/eve", r#"{"role":"owner"}"#, "its account `eve` is missing"),
        ("wizard", "eve", "{}", "its kind is unknown"),
    ] {
        database.execute(&add(kind, key, value)).await.unwrap();
        let error = danlu_store::open(&database.url).await.unwrap_err();
        let told = error.to_string();
        assert!(matches!(error, StoreError::UnreadableRow(_)), "{error:?}");
        assert!(told.contains(kind) && told.contains(why), "{told}");
        // Of the migration nothing is left, so the version before still works.
        database
            .execute(&format!("DELETE FROM directory WHERE key = '{key}' AND kind = '{kind}'"))
            .await
            .unwrap();
    }
    database.open().await.directory().await.unwrap();
}

pub(crate) async fn opening_twice_changes_nothing(database: &Database) {
    database.open().await.commit(inserts([&job(1)])).await.unwrap();
    for _ in 0..2 {
        let store = database.open().await;
        assert_eq!(store.jobs_live().await.unwrap(), [job(1)]);
    }
}

pub(crate) async fn two_servers_may_open_an_empty_database_at_once(database: &Database) {
    let (one, two) = tokio::join!(danlu_store::open(&database.url), danlu_store::open(&database.url));
    one.unwrap().commit(inserts([&job(1)])).await.unwrap();
    assert_eq!(two.unwrap().jobs_live().await.unwrap(), [job(1)]);
}

pub(crate) async fn a_newer_database_is_refused(database: &Database) {
    database.open().await.close().await;
    database.execute("INSERT INTO schema_version (version) VALUES (7001)").await.unwrap();
    let refused = danlu_store::open(&database.url).await;
    assert!(matches!(refused, Err(StoreError::TooNew { found: 7001, .. })), "{refused:?}");
}
