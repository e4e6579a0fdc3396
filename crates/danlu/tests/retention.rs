//! What is forgotten, when, and what never is.

use std::time::{Duration, SystemTime};

use danlu_testkit::{FakeClock, TestServer, eventually, spec};
use danlu_types::api::{JobOutcome, JobState, LogQuery};
use danlu_types::{JobId, JobSpec};

const DANLU: &str = env!("CARGO_BIN_EXE_danlu");

#[tokio::test(flavor = "multi_thread")]
async fn jobs_are_forgotten_so_long_after_their_end_and_never_while_they_run() {
    let folder = tempfile::Builder::new().prefix("danlu-test-").tempdir().unwrap();
    let Some(clock) = FakeClock::below(folder.path()) else { return };
    clock.jump("-3d");
    let mut server = TestServer::start_in(DANLU, &["--keep-ended", "2d"], folder, &clock.environment()).await;
    let old = server.run(&spec("echo old")).await.id;
    let go = server.folder().join("go");
    let running =
        server.submit(&spec(&format!("while ! [ -e {} ]; do sleep 0.02; done", go.display()))).await;
    server.wait_for(running, JobState::Running).await;
    clock.jump("-1d");
    let young = server.run(&spec("echo young")).await.id;
    let run_folder = |id: JobId| server.data().join("runs").join(id.to_string());
    let folders = [old, young, running].map(run_folder);
    assert!(folders.iter().all(|folder| folder.is_dir()), "{folders:?}");

    // A pass is made at every start.
    clock.jump("+0");
    server.terminate();
    server.restart().await;
    eventually("the old job's folder to be gone", || async { (!folders[0].exists()).then_some(()) }).await;
    let gone = server.client().job_fetch(old).await.unwrap_err().to_string();
    assert!(gone.contains("not found"), "{gone}");
    assert!(server.client().logs_read(old, &LogQuery::default()).await.is_err());

    assert_eq!(server.texts(young).await, ["young"]);
    // It was submitted three days ago; only an end counts.
    assert_eq!(server.job(running).await.state, JobState::Running);
    std::fs::write(&go, "").unwrap();
    assert_eq!(server.wait_for_end(running).await.outcome, Some(JobOutcome::Succeeded));
    assert!(folders[1].is_dir() && folders[2].is_dir());
}

#[tokio::test(flavor = "multi_thread")]
async fn issue_16_a_clock_that_is_set_ahead_a_year_forgets_nothing_until_somebody_says_that_it_is_right() {
    let folder = tempfile::Builder::new().prefix("danlu-test-").tempdir().unwrap();
    let Some(clock) = FakeClock::below(folder.path()) else { return };
    clock.jump("+0");
    let mut server =
        TestServer::start_in(DANLU, &["--keep-ended", "30d"], folder, &clock.environment()).await;
    let job = server.run(&spec("echo precious")).await.id;
    server.terminate();
    clock.jump("+365d");
    server.restart().await;
    let says_so = async || {
        let problems = server.client().readiness_report().await.ok()?.problems;
        problems.into_iter().find(|problem| problem.contains("--trust-clock"))
    };
    let problem = eventually("the clock to be told of", says_so).await;
    assert!(problem.contains("days ahead"), "{problem}");
    assert_eq!(server.texts(job).await, ["precious"]);
    server.terminate();
    server.add_flags(&["--trust-clock"]);
    server.restart().await;
    let is_gone = async || server.client().job_fetch(job).await.is_err().then_some(());
    eventually("the job to be forgotten", is_gone).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn code_that_no_job_names_is_removed_after_a_day() {
    let mut server = TestServer::start(DANLU, &[]).await;
    let mut digests = Vec::new();
    for name in ["named", "unnamed", "young"] {
        let source = tempfile::tempdir().unwrap();
        std::fs::write(source.path().join("name"), name).unwrap();
        let archive = tempfile::NamedTempFile::new().unwrap();
        let packed = danlu_objects::pack(source.path(), archive.as_file(), |_| {}).unwrap();
        server.client().code_put(&packed.digest, archive.path(), |_| {}).await.unwrap();
        digests.push(packed.digest);
    }
    let coded = JobSpec { code: Some(digests[0].clone()), ..spec("cat name") };
    assert_eq!(server.run(&coded).await.outcome, Some(JobOutcome::Succeeded));

    let store = danlu_objects::CodeStore::new(server.data().join("code"));
    let archives: Vec<_> = digests.iter().map(|digest| store.path(digest).unwrap()).collect();
    let two_days_ago = SystemTime::now() - Duration::from_hours(48);
    for archive in &archives[..2] {
        std::fs::File::open(archive).unwrap().set_modified(two_days_ago).unwrap();
    }
    server.terminate();
    server.restart().await;
    eventually("the unnamed snapshot to be gone", || async { (!archives[1].exists()).then_some(()) }).await;
    assert!(archives[0].exists() && archives[2].exists());

    // Named by none any more.
    server.client().job_delete(JobId(1)).await.unwrap();
    server.terminate();
    server.restart().await;
    eventually("the deleted job's snapshot to be gone", || async { (!archives[0].exists()).then_some(()) })
        .await;
    assert!(archives[2].exists());
}
