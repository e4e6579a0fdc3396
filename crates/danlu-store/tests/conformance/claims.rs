//! One server per database, and none that is locked out by one that is gone.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use danlu_store::{StoreError, claim};
use danlu_testkit::eventually;
use danlu_types::JobId;

use crate::database::Database;
use crate::jobs::{inserts, job};

pub(crate) async fn a_database_has_one_server_at_a_time(database: &Database) {
    let first = claim(&database.url).await.unwrap();
    let second = claim(&database.url).await;
    assert!(matches!(second, Err(StoreError::InUse)), "{second:?}");
    drop(first);
    claim(&database.url).await.unwrap();
}

pub(crate) async fn who_has_lost_the_lead_writes_nothing(database: &Database) {
    let (first, second) = (database.open().await, database.open().await);
    assert_eq!(first.identity().await.unwrap(), None);
    first.lead("folder").await.unwrap();
    first.commit(inserts([&job(1)])).await.unwrap();
    second.lead("folder").await.unwrap();
    assert_eq!(first.identity().await.unwrap().as_deref(), Some("folder"));

    let writes = [
        first.commit(inserts([&job(2)])).await.map(drop),
        first.jobs_delete(&[JobId(1)]).await.map(drop),
        first.check().await,
    ];
    for write in writes {
        assert!(matches!(write, Err(StoreError::Deposed)), "{write:?}");
    }
    first.deposed().await;
    second.commit(inserts([&job(3)])).await.unwrap();
    let ids: Vec<u64> = first.jobs_live().await.unwrap().iter().map(|job| job.id.0).collect();
    assert_eq!(ids, [1, 3], "what was refused is not there; who has lost the lead may still read");
}

/// Set in the claimer's process: the database to claim.
const CLAIM: &str = "DANLU_TEST_CLAIM";

/// Not a test of its own: what `a_claim_ends_with_its_process` starts and kills.
#[tokio::test]
async fn claimer_process() {
    let Ok(url) = std::env::var(CLAIM) else { return };
    let mut claim = claim(&url).await.unwrap();
    writeln!(std::io::stdout(), "claimed").unwrap();
    claim.lost().await;
}

pub(crate) async fn a_claim_ends_with_its_process(database: &Database) {
    let mut claimer = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "claims::claimer_process", "--nocapture"])
        .env(CLAIM, &database.url)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(claimer.stdout.take().unwrap()).lines().map_while(Result::ok);
    assert!(said.any(|line| line == "claimed"), "the claimer ended by itself");
    assert!(matches!(claim(&database.url).await, Err(StoreError::InUse)));
    claimer.kill().unwrap();
    claimer.wait().unwrap();
    claim(&database.url).await.unwrap();
}

/// Returns when they have ended, with their locks.
const END_ALL_CLAIMS: &str = "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity
    WHERE application_name = 'danlu claim' AND datname = current_database()";
/// Fails where nobody has one.
const ASSERT_CLAIMED: &str = "DO $$ BEGIN ASSERT EXISTS (
    SELECT FROM pg_locks JOIN pg_stat_activity USING (pid)
    WHERE locktype = 'advisory' AND datname = current_database()); END $$";

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_whose_session_broke_is_taken_again() {
    let Some(database) = Database::postgres() else { return };
    let mut first = claim(&database.url).await.unwrap();
    let keeper = tokio::spawn(async move { first.lost().await });
    database.execute(END_ALL_CLAIMS).await.unwrap();
    eventually("the lock to be taken again", || async { database.execute(ASSERT_CLAIMED).await.ok() }).await;
    let second = claim(&database.url).await;
    assert!(matches!(second, Err(StoreError::InUse)), "{second:?}");
    assert!(!keeper.is_finished());
    keeper.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_that_another_took_meanwhile_is_lost() {
    let Some(database) = Database::postgres() else { return };
    let mut first = claim(&database.url).await.unwrap();
    database.execute(END_ALL_CLAIMS).await.unwrap();
    let _second = claim(&database.url).await.unwrap();
    let lost = first.lost().await;
    assert!(matches!(lost, StoreError::InUse), "{lost:?}");
}
