//! A disk that takes nothing any more: what can be done is done, and what cannot says exactly why.

#![expect(clippy::unwrap_used, reason = "a panic is how a test says no, in its helpers too")]

use danlu_testkit::{SmallDisk, TestServer, alive, eventually, spec};
use danlu_types::api::{JobOutcome, JobState, StopRequest};
use danlu_types::{JobSpec, Span};
use tempfile::TempDir;

const DANLU: &str = env!("CARGO_BIN_EXE_danlu");

fn test_folder() -> TempDir {
    tempfile::Builder::new().prefix("danlu-test-").tempdir().unwrap()
}

/// A job that says its process number outside the data folder and runs for long.
fn long(folder: &TempDir) -> JobSpec {
    let command = format!("echo $$ > {}/rank; exec sleep 600", folder.path().display());
    JobSpec { grace: Span::from_seconds(1), ..spec(&command) }
}

async fn rank(server: &TestServer) -> i32 {
    server.file("rank").await.trim().parse().unwrap()
}

/// The disk lets nobody open or make a file; what is open is written. So the stop is written, and its order is not.
#[tokio::test(flavor = "multi_thread")]
async fn a_job_is_stopped_on_a_disk_that_became_read_only() {
    let folder = test_folder();
    let Some(disk) = SmallDisk::below(&folder) else { return };
    let job = long(&folder);
    let server = TestServer::start_in(DANLU, &[], folder, &[]).await;
    let running = server.submit(&job).await;
    server.wait_for(running, JobState::Running).await;
    let rank = rank(&server).await;
    disk.lock();
    // With a grace of days, nothing but the signal ends it.
    let long_grace = StopRequest { grace: Some(Span::from_seconds(86_400)) };
    server.client().job_stop(running, &long_grace).await.unwrap();
    let job = server.wait_for_end(running).await;
    assert_eq!(job.outcome, Some(JobOutcome::Stopped), "{:?}", job.reason);
    assert!(!alive(rank));
    let error = server.client().job_delete(running).await.unwrap_err().to_string();
    assert!(error.contains("cannot be deleted") && error.contains("read-only file system"), "{error}");
    disk.unlock();
    server.client().job_delete(running).await.unwrap();
    drop(server);
}

/// And one on which a server has started: not even the stop can be written.
#[tokio::test(flavor = "multi_thread")]
async fn what_runs_can_be_ended_where_nothing_can_be_written() {
    let folder = test_folder();
    let Some(disk) = SmallDisk::below(&folder) else { return };
    let job = long(&folder);
    let mut server = TestServer::start_in(DANLU, &["--simulate", "1x1:nvidia:A100"], folder, &[]).await;
    let device = || "nvidia:1".parse().unwrap();
    let running = server.submit(&JobSpec { devices: device(), ..job }).await;
    server.wait_for(running, JobState::Running).await;
    let rank = rank(&server).await;
    let waits = server.submit(&JobSpec { devices: device(), ..spec("true") }).await;
    server.terminate();
    disk.lock();
    server.restart_unready().await;

    let at_once = StopRequest { grace: Some(Span::default()) };
    let said = server.client().job_stop(running, &at_once).await.unwrap_err().to_string();
    assert!(said.contains("cannot be written down") && said.contains("read-only file system"), "{said}");
    assert!(said.contains("were told to end all the same"), "{said}");
    eventually("the rank to end", || async { (!alive(rank)).then_some(()) }).await;
    let said = server.client().job_stop(waits, &at_once).await.unwrap_err().to_string();
    assert!(said.contains("none starts while that is so"), "{said}");
    let said = server.client().job_delete(running).await.unwrap_err().to_string();
    assert!(said.contains("has not ended") || said.contains("read-only"), "{said}");

    server.terminate();
    disk.unlock();
    server.restart().await;
    let job = server.wait_for_end(running).await;
    assert_eq!((job.outcome, job.attempts.len()), (Some(JobOutcome::Stopped), 1), "{:?}", job.reason);
    assert_eq!(server.wait_for_end(waits).await.outcome, Some(JobOutcome::Succeeded));
    drop(server);
}
