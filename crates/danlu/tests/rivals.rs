//! Two servers on one PostgreSQL, and the connection by which the first one holds its lock is cut while the second one waits for it.

#![expect(
    clippy::unwrap_used,
    reason = "a test says what it expects by failing; a panic there is the message"
)]

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use danlu_testkit::{PostgresServer, TestServer, alive, eventually, skip, spec};
use danlu_types::api::{JobOutcome, JobState};
use danlu_types::{Cpus, JobId, JobSpec, Retry, RetryCause};
use tempfile::TempDir;

const DANLU: &str = env!("CARGO_BIN_EXE_danlu");

/// Waits until a second server waits for the lock, and ends the connection that has it: from then on it is the other's.
const CUT_WHEN_A_RIVAL_WAITS: &str = "DO $$ DECLARE holder integer; BEGIN LOOP
    SELECT had.pid INTO holder FROM pg_locks had JOIN pg_locks waits USING (locktype, database, classid, objid)
      WHERE locktype = 'advisory' AND had.granted AND NOT waits.granted
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database());
    IF holder IS NOT NULL THEN PERFORM pg_terminate_backend(holder, 60000); RETURN; END IF;
    PERFORM pg_sleep(0.01);
  END LOOP; END $$";

/// Waits until a server has the lock.
const UNTIL_LOCKED: &str = "DO $$ BEGIN
    WHILE NOT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND granted
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))
    LOOP PERFORM pg_sleep(0.01); END LOOP; END $$";

fn test_folder() -> TempDir {
    tempfile::Builder::new().prefix("danlu-test-").tempdir().unwrap()
}

/// May run again if its node is lost, and says each time that it runs.
fn witnessed(witness: &Path, command: &str) -> JobSpec {
    let retry = Retry { limit: 3, on: vec![RetryCause::NodeLost, RetryCause::StartFailed] };
    JobSpec { retry, ..spec(&format!("echo $DANLU_JOB_ID >> {}; {command}", witness.display())) }
}

/// Which jobs ran, as often as they did.
fn ran(witness: &Path) -> Vec<u64> {
    let text = std::fs::read_to_string(witness).unwrap();
    let mut jobs: Vec<u64> = text.lines().map(|line| line.parse().unwrap()).collect();
    jobs.sort_unstable();
    jobs
}

/// A program that is `danlu`, but that what another one locks in this data folder is not locked for it: as on another machine, where
/// the folder is on a disk whose locks are each machine's own.
fn danlu_elsewhere(folder: &Path, data: &Path) -> String {
    let (program, lock) = (folder.join("danlu"), folder.join("server.lock"));
    std::fs::write(&lock, "").unwrap();
    let (lock, locked) = (lock.display(), data.join("server.lock"));
    let text = format!(
        "#!/bin/sh\nexec unshare --mount sh -c 'mount --bind {lock} {} && exec {DANLU} \"$@\"' sh \"$@\"\n",
        locked.display()
    );
    std::fs::write(&program, text).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    program.to_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_whose_lock_another_took_ends_and_no_job_runs_twice() {
    let Some(postgres) = PostgresServer::shared() else { return };
    if !nix::unistd::geteuid().is_root() {
        return skip("only root can have a data folder look as on a disk whose locks are each machine's own");
    }
    let url = postgres.create_database();
    let first = TestServer::start(DANLU, &["--database", &url]).await;
    let (go, witness) = (first.folder().join("go"), first.folder().join("witness"));
    let holds = format!("while ! [ -e {} ]; do sleep 0.02; done", go.display());
    let running = first.submit(&witnessed(&witness, &holds)).await;
    first.wait_for(running, JobState::Running).await;
    let all_cpus = first.client().nodes_list().await.unwrap().items[0].node.capacity.cpus;
    // A few at a time: some run, some start and some wait when the lock changes hands.
    let short = JobSpec { cpus: Cpus { milli: all_cpus.milli / 4 }, ..witnessed(&witness, "sleep 0.3") };

    let folder = test_folder();
    std::os::unix::fs::symlink(first.data(), folder.path().join("data")).unwrap();
    let program = danlu_elsewhere(folder.path(), &first.data());
    let cut = {
        let url = url.clone();
        tokio::task::spawn_blocking(move || postgres.execute(&url, CUT_WHEN_A_RIVAL_WAITS))
    };
    let mut jobs = vec![running];
    for _ in 0..40 {
        jobs.push(first.submit(&short).await);
    }
    let second = TestServer::start_in(&program, &["--database", &url], folder, &[]).await;
    cut.await.unwrap();

    eventually("the first server to end", || async { (!alive(first.pid())).then_some(()) }).await;
    assert!(first.log().contains("lost the database, so this server had to end"), "{}", first.log());
    assert!(second.data().join("server.json").exists(), "clients find the server that is left");
    assert_eq!(second.job(running).await.state, JobState::Running);
    jobs.push(second.submit(&short).await);
    std::fs::write(&go, "").unwrap();
    for id in &jobs {
        let job = second.wait_for_end(*id).await;
        let told = (job.outcome, job.attempts.len());
        assert_eq!(told, (Some(JobOutcome::Succeeded), 1), "job {id}: {:?}\n{}", job.reason, second.log());
    }
    assert_eq!(ran(&witness), jobs.iter().map(|JobId(number)| *number).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rival_with_another_data_folder_is_refused_and_the_first_goes_on() {
    let Some(postgres) = PostgresServer::shared() else { return };
    let url = postgres.create_database();
    let first = TestServer::start(DANLU, &["--database", &url]).await;
    let (go, witness) = (first.folder().join("go"), first.folder().join("witness"));
    let holds = format!("while ! [ -e {} ]; do sleep 0.02; done", go.display());
    let running = first.submit(&witnessed(&witness, &holds)).await;
    first.wait_for(running, JobState::Running).await;

    let elsewhere = test_folder();
    let cut = {
        let url = url.clone();
        tokio::task::spawn_blocking(move || postgres.execute(&url, CUT_WHEN_A_RIVAL_WAITS))
    };
    let rival = Command::new(DANLU)
        .args(["up", "--listen", "127.0.0.1:0", "--database", &url, "--data"])
        .arg(elsewhere.path().join("data"))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    cut.await.unwrap();
    let said = String::from_utf8(rival.stderr).unwrap();
    assert!(!rival.status.success() && said.contains("belongs to another data folder"), "{said}");

    // The rival is gone, so it is the first server that has it.
    postgres.execute(&url, UNTIL_LOCKED);
    let next = first.run(&witnessed(&witness, "true")).await;
    assert_eq!(next.outcome, Some(JobOutcome::Succeeded), "{:?}\n{}", next.reason, first.log());
    std::fs::write(&go, "").unwrap();
    let job = first.wait_for_end(running).await;
    assert_eq!((job.outcome, job.attempts.len()), (Some(JobOutcome::Succeeded), 1), "{:?}", job.reason);
    assert_eq!(ran(&witness), [running.0, next.id.0]);
}
