//! Copies, restored back-ups and rivals: nobody touches what belongs to another server, and nobody's number is given twice.

#![expect(
    clippy::unwrap_used,
    reason = "a test says what it expects by failing; a panic there is the message"
)]

use std::path::Path;
use std::process::Command;

use danlu_testkit::{PostgresServer, TestServer, eventually, spec};
use danlu_types::JobId;
use danlu_types::api::{JobOutcome, JobState};
use tempfile::TempDir;

const DANLU: &str = env!("CARGO_BIN_EXE_danlu");

fn test_folder() -> TempDir {
    tempfile::Builder::new().prefix("danlu-test-").tempdir().unwrap()
}

fn copy(from: &Path, to: &Path) {
    assert!(Command::new("cp").arg("-a").arg(from).arg(to).status().unwrap().success());
}

/// Waits for a file, then ends well.
fn waits_for(file: &Path) -> String {
    format!("echo before; while ! [ -e {} ]; do sleep 0.02; done; echo after", file.display())
}

/// What a server says that does not start.
fn refusal(data: &Path, flags: &[&str]) -> String {
    let up = Command::new(DANLU)
        .args(["up", "--listen", "127.0.0.1:0", "--data"])
        .arg(data)
        .args(flags)
        .output()
        .unwrap();
    assert!(!up.status.success());
    String::from_utf8(up.stderr).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copied_data_folder_leaves_the_originals_jobs_alone() {
    let original = TestServer::start(DANLU, &[]).await;
    let go = original.folder().join("go");
    let running = original.submit(&spec(&waits_for(&go))).await;
    original.wait_for(running, JobState::Running).await;

    let folder = test_folder();
    copy(&original.data(), &folder.path().join("data"));
    let said = refusal(&folder.path().join("data"), &[]);
    assert!(said.contains("is a copy of another one") && said.contains("--restored"), "{said}");

    // As a restore drill does it, against the advice, while the original is in use.
    let copy = TestServer::start_in(DANLU, &["--restored"], folder, &[]).await;
    let lost = copy.wait_for_end(running).await;
    assert_eq!(lost.outcome, Some(JobOutcome::Failed), "it does not run here: {:?}", lost.reason);
    copy.run(&spec("true")).await;
    drop(copy);
    assert_eq!(original.job(running).await.state, JobState::Running);
    std::fs::write(&go, "").unwrap();
    let job = original.wait_for_end(running).await;
    assert_eq!((job.outcome, job.attempts.len()), (Some(JobOutcome::Succeeded), 1), "{:?}", job.reason);
    assert_eq!(original.texts(running).await, ["before", "after"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restored_database_gives_no_number_twice() {
    let mut server = TestServer::start(DANLU, &[]).await;
    assert_eq!(server.run(&spec("echo one")).await.id, JobId(1));
    server.terminate();
    let backup = server.folder().join("backup.db");
    std::fs::copy(server.data().join("danlu.db"), &backup).unwrap();
    server.restart().await;
    for _ in 0..3 {
        server.run(&spec("echo of somebody else")).await;
    }
    server.terminate();
    restore(&server, &backup);
    server.restart().await;

    let job = server.run(&spec("echo mine")).await;
    assert_eq!((job.id, job.outcome), (JobId(5), Some(JobOutcome::Succeeded)), "{:?}", job.reason);
    assert_eq!(server.texts(job.id).await, ["mine"]);
}

/// Puts an older database in the place of a stopped server's.
fn restore(server: &TestServer, backup: &Path) {
    for log in ["danlu.db-wal", "danlu.db-shm"] {
        let _ = std::fs::remove_file(server.data().join(log));
    }
    std::fs::copy(backup, server.data().join("danlu.db")).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn issue_16_numbers_of_deleted_jobs_are_not_given_again_and_what_they_left_is_nobodys() {
    let mut server = TestServer::start(DANLU, &[]).await;
    server.run(&spec("echo one")).await;
    server.terminate();
    let backup = server.folder().join("backup.db");
    std::fs::copy(server.data().join("danlu.db"), &backup).unwrap();
    server.restart().await;
    for _ in 0..2 {
        let job = server.run(&spec("echo of somebody else")).await;
        server.client().job_delete(job.id).await.unwrap();
    }
    server.terminate();
    restore(&server, &backup);
    // As a server leaves it that is killed while it removes the folder of a deleted job.
    std::fs::create_dir_all(server.data().join("forgotten/4/output")).unwrap();
    server.restart().await;
    let job = server.run(&spec("echo mine")).await;
    assert_eq!((job.id, job.outcome), (JobId(5), Some(JobOutcome::Succeeded)), "{:?}", job.reason);
    assert_eq!(server.texts(job.id).await, ["mine"]);
    assert!(!server.data().join("runs/4").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn issue_16_a_job_that_has_run_since_the_back_up_is_told_as_it_ended_and_not_run_again() {
    let mut server = TestServer::start(DANLU, &[]).await;
    let (go, ran) = (server.folder().join("go"), server.folder().join("ran"));
    let holder = server.submit(&spec(&waits_for(&go))).await;
    server.wait_for(holder, JobState::Running).await;
    let cpus = server.client().nodes_list().await.unwrap().items[0].node.capacity.cpus;
    let behind = danlu_types::JobSpec { cpus, ..spec(&format!("echo ran >> {}", ran.display())) };
    let waiting = server.submit(&behind).await;
    server.terminate();
    let backup = server.folder().join("backup.db");
    std::fs::copy(server.data().join("danlu.db"), &backup).unwrap();
    server.restart().await;
    std::fs::write(&go, "").unwrap();
    let first = server.wait_for_end(waiting).await;
    assert_eq!(first.outcome, Some(JobOutcome::Succeeded), "{:?}", first.reason);
    server.terminate();
    restore(&server, &backup);
    server.restart().await;
    let again = server.wait_for_end(waiting).await;
    assert_eq!((again.outcome, again.attempts.len()), (Some(JobOutcome::Succeeded), 1), "{:?}", again.reason);
    assert_eq!(std::fs::read_to_string(&ran).unwrap(), "ran\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_serves_the_data_folder_that_it_belongs_to() {
    let Some(postgres) = PostgresServer::shared() else { return };
    let url = postgres.create_database();
    let mut first = TestServer::start(DANLU, &["--database", &url]).await;
    first.run(&spec("true")).await;
    first.kill();
    let elsewhere = test_folder();
    let said = refusal(&elsewhere.path().join("data"), &["--database", &url]);
    assert!(said.contains("belongs to another data folder") && said.contains("--restored"), "{said}");

    // Where that folder is gone, its place is taken, and should it come back it has lost it.
    let second = TestServer::start_in(DANLU, &["--database", &url, "--restored"], elsewhere, &[]).await;
    assert_eq!(second.run(&spec("true")).await.outcome, Some(JobOutcome::Succeeded));
    drop(second);
    let said = refusal(&first.data(), &["--database", &url]);
    assert!(said.contains("belongs to another data folder"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_whose_database_was_taken_over_writes_nothing_more_and_ends() {
    let Some(postgres) = PostgresServer::shared() else { return };
    let url = postgres.create_database();
    let server = TestServer::start(DANLU, &["--database", &url]).await;
    let go = server.folder().join("go");
    let running = server.submit(&spec(&waits_for(&go))).await;
    server.wait_for(running, JobState::Running).await;

    // What a rival does whose turn came when a connection was cut.
    let rival = danlu_store::open(&url).await.unwrap();
    let identity = rival.identity().await.unwrap().unwrap();
    rival.lead(&identity).await.unwrap();
    let refused = server.client().job_submit(&spec("true"), None).await;
    assert!(refused.is_err(), "{refused:?}");
    eventually("the server to end", || async { (!danlu_testkit::alive(server.pid())).then_some(()) }).await;
    assert!(server.log().contains("has taken over this database"), "{}", server.log());
    assert_eq!(rival.jobs_live().await.unwrap().len(), 1);
    std::fs::write(&go, "").unwrap();
}
