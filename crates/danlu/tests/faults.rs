//! A full disk, a read-only disk, a clock that jumps: a clear error, nothing lost, and all is well once it is mended.

#![expect(
    clippy::unwrap_used,
    reason = "a test says what it expects by failing; a panic there is the message"
)]

use std::process::Command;

use danlu_testkit::{FakeClock, SmallDisk, TestServer, eventually, spec};
use danlu_types::api::{JobOutcome, JobState, StopRequest};
use danlu_types::{JobSpec, Retry, RetryCause, Span};
use tempfile::TempDir;

const DANLU: &str = env!("CARGO_BIN_EXE_danlu");

fn test_folder() -> TempDir {
    tempfile::Builder::new().prefix("danlu-test-").tempdir().unwrap()
}

/// What lies where the files of one worker should be is that worker's trouble alone.
#[tokio::test(flavor = "multi_thread")]
async fn one_worker_that_cannot_be_looked_at_keeps_nobody_from_ending() {
    let mut server = TestServer::start(DANLU, &[]).await;
    let go = server.folder().join("go");
    let program = format!("while ! [ -e {} ]; do sleep 0.02; done", go.display());
    let mut jobs = Vec::new();
    for _ in 0..4 {
        jobs.push(server.submit(&spec(&program)).await);
    }
    for job in &jobs {
        server.wait_for(*job, JobState::Running).await;
    }
    let data = server.data();
    let run = |job: danlu_types::JobId| data.join(format!("runs/{job}/1.0"));
    // A folder in place of a file, and a run folder that leads nowhere; a folder among the markers that is nobody's.
    std::fs::remove_file(run(jobs[0]).join("status.jsonl")).unwrap();
    std::fs::create_dir(run(jobs[0]).join("status.jsonl")).unwrap();
    let aside = server.folder().join("aside");
    std::fs::rename(run(jobs[1]), &aside).unwrap();
    std::os::unix::fs::symlink("1.0", run(jobs[1])).unwrap();
    std::fs::create_dir(server.data().join("live/77.1.0")).unwrap();
    server.kill();
    server.restart().await;

    let told = eventually("the server to tell", || async {
        let health = server.client().readiness().await.ok()?;
        (health.status == "degraded").then_some(health)
    })
    .await;
    assert_eq!(told.problems.len(), 1, "{:?}", told.problems);
    assert!(told.problems[0].contains(&format!("danlu stop {}", jobs[1])), "{:?}", told.problems);

    let doctor = Command::new(DANLU).arg("--data").arg(server.data()).arg("doctor").output().unwrap();
    let said = String::from_utf8(doctor.stdout).unwrap();
    assert!(!doctor.status.success() && said.contains("degraded"), "{said}");
    assert!(said.contains(&format!("`danlu stop {}`", jobs[1])), "{said}");

    // The one whose status is lost can be stopped all the same.
    server.client().job_stop(jobs[0], &danlu_types::api::StopRequest::default()).await.unwrap();
    assert_eq!(server.wait_for_end(jobs[0]).await.outcome, Some(JobOutcome::Stopped));
    std::fs::write(&go, "").unwrap();
    for job in &jobs[2..] {
        let job = server.wait_for_end(*job).await;
        assert_eq!(job.outcome, Some(JobOutcome::Succeeded), "{:?}", job.reason);
    }
    // Repaired, it ends as it did.
    std::fs::remove_file(run(jobs[1])).unwrap();
    std::fs::rename(&aside, run(jobs[1])).unwrap();
    let job = server.wait_for_end(jobs[1]).await;
    assert_eq!((job.outcome, job.attempts.len()), (Some(JobOutcome::Succeeded), 1), "{:?}", job.reason);
    // With the next look at all workers.
    eventually("all to be well again", || async {
        let health = server.client().readiness().await.ok()?;
        (health.status == "ok").then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_refuses_clearly_and_loses_nothing() {
    let folder = test_folder();
    let Some(disk) = SmallDisk::below(&folder) else { return };
    let server = TestServer::start_in(DANLU, &[], folder, &[]).await;
    let go = server.folder().join("go");
    let wait_then_talk = format!(
        "echo before; while ! [ -e {go} ]; do sleep 0.02; done; i=0; while [ $i -lt 500 ]; do echo line $i; i=$((i+1)); done",
        go = go.display()
    );
    let running = server.submit(&spec(&wait_then_talk)).await;
    server.wait_for(running, JobState::Running).await;

    let ballast = disk.fill();
    let error = server.client().job_submit(&spec("true"), Some("while-full")).await.unwrap_err().to_string();
    assert!(error.contains("full") || error.contains("space"), "{error}");
    assert!(server.client().readiness().await.is_err(), "a server that cannot write is not ready");
    // The job writes 500 lines and ends while nothing can be written.
    std::fs::write(&go, "").unwrap();

    std::fs::remove_file(ballast).unwrap();
    let job = server.wait_for_end(running).await;
    assert_eq!(job.outcome, Some(JobOutcome::Succeeded), "{:?}", job.reason);
    let texts = server.texts(running).await;
    let mut expected = vec!["before".to_owned()];
    expected.extend((0..500).map(|line| format!("line {line}")));
    assert_eq!(texts, expected);
    let again = server.client().job_submit(&spec("true"), Some("while-full")).await.unwrap();
    assert_eq!(server.wait_for_end(again.id).await.outcome, Some(JobOutcome::Succeeded));
    drop(server);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_only_data_folder_is_named_and_works_again_when_mended() {
    let folder = test_folder();
    let Some(disk) = SmallDisk::below(&folder) else { return };
    disk.remount(true);
    let output = Command::new(DANLU)
        .args(["up", "--listen", "127.0.0.1:0", "--data"])
        .arg(&disk.path)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success());
    assert!(text.contains("data folder") && text.to_lowercase().contains("read-only"), "{text}");

    disk.remount(false);
    let server = TestServer::start_in(DANLU, &[], folder, &[]).await;
    assert_eq!(server.run(&spec("true")).await.outcome, Some(JobOutcome::Succeeded));
    drop(server);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_data_folder_that_becomes_read_only_refuses_clearly_and_loses_nothing() {
    let folder = test_folder();
    let Some(disk) = SmallDisk::below(&folder) else { return };
    let server = TestServer::start_in(DANLU, &[], folder, &[]).await;
    let go = server.folder().join("go");
    let program = format!(
        "echo before; while ! [ -e {go} ]; do sleep 0.02; done; seq 500; touch {go}.done",
        go = go.display()
    );
    let running = server.submit(&spec(&program)).await;
    server.wait_for(running, JobState::Running).await;

    disk.lock();
    let error =
        server.client().job_submit(&spec("true"), Some("while-locked")).await.unwrap_err().to_string();
    assert!(error.contains("data folder") && error.contains("read-only"), "{error}");
    assert!(server.client().readiness().await.is_err(), "a server that cannot write is not ready");
    assert_eq!(server.job(running).await.state, JobState::Running, "what can be read is read");
    // The job goes on, and ends while its end cannot be noted.
    std::fs::write(&go, "").unwrap();
    eventually("the job to come to its end", || async { go.with_extension("done").exists().then_some(()) })
        .await;

    disk.unlock();
    let job = server.wait_for_end(running).await;
    assert_eq!((job.outcome, job.attempts.len()), (Some(JobOutcome::Succeeded), 1), "{:?}", job.reason);
    let mut expected = vec!["before".to_owned()];
    expected.extend((1..=500).map(|number| number.to_string()));
    assert_eq!(server.texts(running).await, expected);
    let again = server.client().job_submit(&spec("true"), Some("while-locked")).await.unwrap();
    assert_eq!(server.wait_for_end(again.id).await.outcome, Some(JobOutcome::Succeeded));
    drop(server);
}

/// Why the server says that it cannot do its work.
async fn not_ready(server: &TestServer) -> String {
    let answer = danlu_testkit::wire::send(&server.client().address(), "GET", "/readyz", &[], b"").await;
    assert_eq!(answer.status, 503, "{}", answer.body);
    answer.body
}

/// Fills the disk and goes on trying, as a job does whose output nobody expected.
fn filler(file: &std::path::Path) -> JobSpec {
    let command = format!("while true; do cat /dev/zero >> {} 2>/dev/null; sleep 0.05; done", file.display());
    JobSpec { grace: Span::from_seconds(0), ..spec(&command) }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_job_that_fills_the_disk_can_be_stopped_and_deleted() {
    let folder = test_folder();
    let Some(disk) = SmallDisk::below(&folder) else { return };
    let server = TestServer::start_in(DANLU, &[], folder, &[]).await;
    let data = server.data();
    eventually("the reserve", || async { data.join("reserve-4").exists().then_some(()) }).await;
    let ended = server.run(&spec("echo something")).await.id;
    let file = disk.path.join("filler");
    let running = server.submit(&filler(&file)).await;
    eventually("the disk to be full", || async {
        let disk = nix::sys::statvfs::statvfs(&disk.path).unwrap();
        (disk.blocks_available() < 8).then_some(())
    })
    .await;
    let error = server.client().job_submit(&spec("true"), None).await.unwrap_err().to_string();
    assert!(error.contains("the disk of the data folder is full"), "{error}");
    let problems = not_ready(&server).await;
    assert!(problems.contains("full"), "{problems}");

    assert_eq!(server.texts(ended).await, ["something"], "what can be read is read");
    server.client().job_stop(running, &StopRequest::default()).await.unwrap();
    assert_eq!(server.wait_for_end(running).await.outcome, Some(JobOutcome::Stopped));
    server.client().job_delete(ended).await.unwrap();
    assert!(server.client().job_fetch(ended).await.is_err());

    std::fs::remove_file(file).unwrap();
    assert_eq!(server.run(&spec("true")).await.outcome, Some(JobOutcome::Succeeded));
    eventually("the reserve to be there again", || async {
        (1..=4).all(|number| data.join(format!("reserve-{number}")).exists()).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_starts_on_a_full_disk_and_stops_jobs_there() {
    let folder = test_folder();
    let Some(disk) = SmallDisk::below(&folder) else { return };
    let mut server = TestServer::start_in(DANLU, &[], folder, &[]).await;
    let data = server.data();
    eventually("the reserve", || async { data.join("reserve-4").exists().then_some(()) }).await;
    let running = server.submit(&JobSpec { grace: Span::from_seconds(0), ..spec("sleep 600") }).await;
    server.wait_for(running, JobState::Running).await;
    server.terminate();
    let ballast = disk.fill();

    server.restart_unready().await;
    let problems = not_ready(&server).await;
    assert!(problems.contains("full"), "{problems}");
    let error = server.client().job_submit(&spec("true"), None).await.unwrap_err().to_string();
    assert!(error.contains("the disk of the data folder is full"), "{error}");
    assert_eq!(server.job(running).await.state, JobState::Running);
    server.client().job_stop(running, &StopRequest::default()).await.unwrap();
    assert_eq!(server.wait_for_end(running).await.outcome, Some(JobOutcome::Stopped));

    std::fs::remove_file(ballast).unwrap();
    assert_eq!(server.run(&spec("true")).await.outcome, Some(JobOutcome::Succeeded));
    // Whoever looks into the data folder finds this server, and not the one before.
    eventually("word of the server in its folder", || async {
        let text = std::fs::read_to_string(data.join("server.json")).ok()?;
        text.contains(&format!("\"pid\":{}", server.pid())).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_starts_on_a_read_only_disk_and_shows_what_is_there() {
    let folder = test_folder();
    let Some(disk) = SmallDisk::below(&folder) else { return };
    let mut server = TestServer::start_in(DANLU, &[], folder, &[]).await;
    let ended = server.run(&spec("echo something")).await.id;
    server.terminate();
    disk.remount(true);

    server.restart_unready().await;
    let job = server.job(ended).await;
    assert_eq!(job.outcome, Some(JobOutcome::Succeeded));
    assert_eq!(server.texts(ended).await, ["something"]);
    let problems = not_ready(&server).await;
    assert!(problems.contains("read-only"), "{problems}");
    let error = server.client().job_submit(&spec("true"), None).await.unwrap_err().to_string();
    assert!(error.contains("read"), "{error}");
    let error = server.client().job_delete(ended).await.unwrap_err().to_string();
    assert!(error.contains("readonly") || error.contains("read-only"), "{error}");

    server.terminate();
    disk.remount(false);
    server.restart().await;
    assert_eq!(server.run(&spec("true")).await.outcome, Some(JobOutcome::Succeeded));
}

/// The clock of the server and of everything it starts jumps under their feet, days forward and back.
#[tokio::test(flavor = "multi_thread")]
async fn a_jumping_clock_ends_no_job_early_and_delays_none() {
    let folder = test_folder();
    let Some(clock) = FakeClock::below(folder.path()) else { return };
    let server = TestServer::start_in(DANLU, &[], folder, &clock.environment()).await;

    let go = server.folder().join("go");
    let patient = JobSpec {
        max_time: Some(Span::from_seconds(3600)),
        ..spec(&format!("echo before; while ! [ -e {} ]; do sleep 0.02; done; echo after", go.display()))
    };
    let running = server.submit(&patient).await;
    server.wait_for(running, JobState::Running).await;

    clock.jump("+3d");
    let later = server.run(&spec("echo later")).await;
    assert_eq!(later.outcome, Some(JobOutcome::Succeeded), "{:?}", later.reason);
    assert_eq!(server.job(running).await.state, JobState::Running, "three days are not an hour of running");

    clock.jump("-3d");
    // A failure whose back-off is counted from a clock that then goes back six days: it must not wait for six days.
    let flaky = JobSpec {
        retry: Retry { limit: 3, on: vec![RetryCause::Exit] },
        ..spec(&format!("[ -e {} ] || exit 1", go.display()))
    };
    let retried = server.submit(&flaky).await;
    eventually("the first attempt to fail", || async {
        (!server.job(retried).await.attempts.is_empty()).then_some(())
    })
    .await;
    clock.jump("-6d");
    std::fs::write(&go, "").unwrap();
    assert_eq!(server.wait_for_end(retried).await.outcome, Some(JobOutcome::Succeeded));
    let job = server.wait_for_end(running).await;
    assert_eq!(job.outcome, Some(JobOutcome::Succeeded), "{:?}", job.reason);
    assert_eq!(
        server.texts(running).await,
        ["before", "after"],
        "a rank's lines keep their order whatever the clock says"
    );
}
