//! What only SQLite can meet: a disk that is full, a file that may not be written, a file that is none.
//!
//! The full disk is a small tmpfs in a mount namespace of its own, in which the test runs itself again: nothing is
//! mounted where others see it, and it is gone with the process.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use danlu_store::{EventFilter, StoreError};
use danlu_types::JobId;

use crate::jobs::{ended_job, inserts, job, job_with};

/// Set in the second run: the folder where the small disk is mounted.
const SMALL_DISK: &str = "DANLU_TEST_SMALL_DISK";

/// In the second run, the small disk. In the first, runs the test of this name again on one, and fails as it fails.
fn on_small_disk(test: &str) -> Option<PathBuf> {
    if let Some(folder) = std::env::var_os(SMALL_DISK) {
        return Some(PathBuf::from(folder));
    }
    let folder = tempfile::tempdir().unwrap();
    let mount = r#"mount -t tmpfs -o size=2m none "$0" || exit 77; exec "$@""#;
    let again = Command::new("unshare")
        .args(["--map-root-user", "--mount", "sh", "-c", mount])
        .arg(folder.path())
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", &format!("sqlite_disk::{test}"), "--nocapture"])
        .env(SMALL_DISK, folder.path())
        .output()
        .unwrap();
    let output =
        format!("{}{}", String::from_utf8_lossy(&again.stdout), String::from_utf8_lossy(&again.stderr));
    let cannot_mount = again.status.code() == Some(77) || output.starts_with("unshare:");
    if cannot_mount {
        danlu_testkit::skip(&format!("a small disk cannot be mounted here: {output}"));
        return None;
    }
    assert!(again.status.success(), "{output}");
    assert!(output.contains("1 passed"), "{output}");
    None
}

#[tokio::test]
async fn a_full_disk_loses_nothing_and_can_be_mended() {
    if let Some(folder) = on_small_disk("a_full_disk_loses_nothing_and_can_be_mended") {
        fill_and_mend(&folder).await;
    }
}

#[tokio::test]
async fn a_read_only_disk_is_refused_and_can_be_mended() {
    if let Some(folder) = on_small_disk("a_read_only_disk_is_refused_and_can_be_mended") {
        refuse_and_mend(&folder).await;
    }
}

async fn fill_and_mend(folder: &Path) {
    let store = danlu_store::open(&format!("sqlite:{}", folder.join("danlu.db").display())).await.unwrap();
    let ballast = folder.join("ballast");
    std::fs::write(&ballast, vec![0; 512 * 1024]).unwrap();

    let large = |id| job_with(id, |spec| spec.command = "x".repeat(20_000));
    let mut written = 0;
    let error = loop {
        // Two jobs in each, so that half a batch would be seen.
        match store.commit(inserts([&large(written + 1), &large(written + 2)])).await {
            Ok(_) => written += 2,
            Err(error) => break error,
        }
    };
    assert!(matches!(error, StoreError::Unavailable { .. }), "{error:?}");
    assert!(written >= 2, "the disk was full before the test began");
    for _ in 0..5 {
        let again = store.commit(inserts([&large(written + 1), &large(written + 2)])).await;
        assert!(matches!(again, Err(StoreError::Unavailable { .. })), "{again:?}");
    }
    let everything = EventFilter { job: None, visible: None, after: 0, limit: 1000 };
    assert_eq!(store.jobs_live().await.unwrap().len() as u64, written, "it can still be read");
    assert_eq!(store.events_list(&everything).await.unwrap().len() as u64, written);
    assert_eq!(store.job_last_id().await.unwrap(), JobId(written));

    std::fs::remove_file(&ballast).unwrap();
    store.commit(inserts([&large(written + 1), &large(written + 2)])).await.unwrap();
    store.check().await.unwrap();
    assert_eq!(store.jobs_live().await.unwrap().len() as u64, written + 2);
    assert_eq!(store.events_list(&everything).await.unwrap().len() as u64, written + 2);
}

async fn refuse_and_mend(folder: &Path) {
    let url = format!("sqlite:{}", folder.join("danlu.db").display());
    let store = danlu_store::open(&url).await.unwrap();
    store.commit(inserts([&job(1)])).await.unwrap();
    store.close().await;
    let remount = |how: &str| {
        let remounted = Command::new("mount").args(["-o", how]).arg(folder).status().unwrap();
        assert!(remounted.success());
    };
    remount("remount,bind,ro");
    let refused = danlu_store::open(&url).await;
    assert!(matches!(refused, Err(StoreError::Unavailable { .. })), "{refused:?}");
    remount("remount,bind,rw");
    let store = danlu_store::open(&url).await.unwrap();
    assert_eq!(store.jobs_live().await.unwrap(), [job(1)]);
    store.check().await.unwrap();
}

#[tokio::test]
async fn the_file_is_its_owners_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("with ? and % in its name.db");
    let store = danlu_store::open(&format!("sqlite:{}", path.display())).await.unwrap();
    store.commit(inserts([&job(1)])).await.unwrap();
    let mut files = 0;
    for file in std::fs::read_dir(folder.path()).unwrap() {
        assert_eq!(file.unwrap().metadata().unwrap().permissions().mode() & 0o777, 0o600);
        files += 1;
    }
    assert!(files >= 2, "the log is beside the file");
}

#[tokio::test]
async fn what_is_no_database_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notes.txt");
    std::fs::write(&path, "not a database, and dear to somebody. ".repeat(50)).unwrap();
    let before = std::fs::read(&path).unwrap();
    let refused = danlu_store::open(&format!("sqlite:{}", path.display())).await;
    assert!(matches!(refused, Err(StoreError::Damaged { .. })), "{refused:?}");
    assert_eq!(std::fs::read(&path).unwrap(), before);

    let nowhere = format!("sqlite:{}", folder.path().join("no/such/folder.db").display());
    let refused = danlu_store::open(&nowhere).await;
    assert!(matches!(refused, Err(StoreError::Unavailable { .. })), "{refused:?}");
    let refused = danlu_store::open("mysql://ada:secret@host/db").await.unwrap_err();
    assert!(refused.to_string().starts_with("`mysql` names no database"), "{refused}");
}

fn large_and_ended(id: u64) -> danlu_core::Job {
    let job = ended_job(id, danlu_core::WorkerEnd::Succeeded, 9);
    let spec = danlu_types::JobSpec { command: "x".repeat(20_000), ..(*job.spec).clone() };
    danlu_core::Job { spec: spec.into(), ..job }
}

#[tokio::test]
async fn forgotten_jobs_give_their_space_back_to_the_disk() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("danlu.db");
    let url = format!("sqlite:{}", path.display());
    // As an older version made it: such a file shrinks too.
    let old = sqlx::sqlite::SqliteConnectOptions::new().filename(&path).create_if_missing(true);
    let mut connection = sqlx::ConnectOptions::connect(&old).await.unwrap();
    sqlx::Executor::execute(&mut connection, "PRAGMA journal_mode = WAL; CREATE TABLE t (x); DROP TABLE t")
        .await
        .unwrap();
    sqlx::Connection::close(connection).await.unwrap();

    let store = danlu_store::open(&url).await.unwrap();
    let jobs: Vec<_> = (1..=800).map(large_and_ended).collect();
    store.commit(inserts(&jobs)).await.unwrap();
    assert!(!store.space_give_back().await.unwrap(), "there is nothing to give back");
    let ids: Vec<JobId> = (1..=800).map(JobId).collect();
    assert_eq!(store.jobs_delete(&ids).await.unwrap(), 800);
    while store.space_give_back().await.unwrap() {}
    store.integrity_check().await.unwrap();
    store.close().await;
    let bytes = std::fs::metadata(&path).unwrap().len();
    assert!(bytes < 8 << 20, "{bytes} bytes are left of 16 MB");
}

#[tokio::test]
async fn damaged_pages_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("danlu.db");
    let url = format!("sqlite:{}", path.display());
    let store = danlu_store::open(&url).await.unwrap();
    store.commit(inserts(&(1..=100).map(large_and_ended).collect::<Vec<_>>())).await.unwrap();
    store.integrity_check().await.unwrap();
    store.close().await;

    // All but the header and the tables of contents.
    let mut bytes = std::fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle..].iter_mut().step_by(7).for_each(|byte| *byte ^= 0x5a);
    std::fs::write(&path, bytes).unwrap();
    let store = danlu_store::open(&url).await.unwrap();
    let found = store.integrity_check().await;
    assert!(matches!(found, Err(StoreError::Damaged { .. })), "{found:?}");
}
