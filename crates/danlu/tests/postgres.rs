//! The whole platform on PostgreSQL instead of its embedded database.

use std::process::Stdio;

use danlu_testkit::{DEADLINE, PostgresServer, TestServer, spec};
use danlu_types::api::{JobOutcome, JobState};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _};

const DANLU: &str = env!("CARGO_BIN_EXE_danlu");

#[tokio::test(flavor = "multi_thread")]
async fn jobs_survive_a_kill_of_the_server_on_postgresql_too() {
    let Some(postgres) = PostgresServer::shared() else { return };
    let url = postgres.create_database();
    let mut server = TestServer::start(DANLU, &["--database", &url]).await;
    let ended = server.run(&spec("echo first")).await;
    let go = server.folder().join("go");
    let program = format!("echo before; while ! [ -e {} ]; do sleep 0.02; done; echo after", go.display());
    let running = server.submit(&spec(&program)).await;
    server.wait_for(running, JobState::Running).await;

    server.kill();
    std::fs::write(&go, "").unwrap();
    server.restart().await;

    assert_eq!(server.job(ended.id).await.outcome, Some(JobOutcome::Succeeded));
    let job = server.wait_for_end(running).await;
    assert_eq!((job.outcome, job.attempts.len()), (Some(JobOutcome::Succeeded), 1), "{:?}", job.reason);
    assert_eq!(server.texts(running).await, ["before", "after"]);
    assert!(!server.data().join("danlu.db").exists(), "the embedded database is not used");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_server_on_one_database_is_refused_until_the_first_is_gone() {
    let Some(postgres) = PostgresServer::shared() else { return };
    let url = postgres.create_database();
    let mut first = TestServer::start(DANLU, &["--database", &url]).await;
    let elsewhere = tempfile::tempdir().unwrap();
    let mut second = tokio::process::Command::new(DANLU)
        .args(["up", "--listen", "127.0.0.1:0", "--database", &url, "--data"])
        .arg(elsewhere.path())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let status = tokio::time::timeout(DEADLINE, second.wait()).await.expect("it does not serve").unwrap();
    assert!(!status.success());
    let mut text = String::new();
    second.stderr.take().unwrap().read_to_string(&mut text).await.unwrap();
    assert!(text.contains("another `danlu up` is using this database"), "{text}");

    assert_eq!(first.run(&spec("true")).await.outcome, Some(JobOutcome::Succeeded), "the first goes on");
    first.kill();
    // The database lets go of what a killed server held: nobody has to clean up.
    first.restart().await;
    assert_eq!(first.run(&spec("true")).await.outcome, Some(JobOutcome::Succeeded));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_comes_up_later_is_waited_for() {
    let Some(postgres) = PostgresServer::shared() else { return };
    let url = postgres.create_database();
    // postgres://USER@FOLDER:PORT/NAME, with the folder of the server's socket.
    let (user, rest) = url.split_once('@').unwrap();
    let (folder, place) = rest.split_once(':').unwrap();
    let port = place.split_once('/').unwrap().0;
    let elsewhere = tempfile::tempdir().unwrap();
    let later = elsewhere.path().display().to_string().replace('/', "%2F");
    let url = format!("{user}@{later}:{port}/{}", place.split_once('/').unwrap().1);

    let data = tempfile::tempdir().unwrap();
    let mut server = tokio::process::Command::new(DANLU)
        .args(["up", "--listen", "127.0.0.1:0", "--database", &url, "--data"])
        .arg(data.path())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = tokio::io::BufReader::new(server.stderr.take().unwrap()).lines();
    let mut wait_for = async |text: &str| {
        while let Some(line) = tokio::time::timeout(DEADLINE, lines.next_line()).await.unwrap().unwrap() {
            if line.contains(text) {
                return;
            }
        }
        panic!("it ended without saying `{text}`");
    };
    wait_for("waiting up to").await;
    let socket = format!(".s.PGSQL.{port}");
    std::os::unix::fs::symlink(
        format!("{}/{socket}", folder.replace("%2F", "/")),
        elsewhere.path().join(socket),
    )
    .unwrap();
    wait_for("serving on").await;
}
