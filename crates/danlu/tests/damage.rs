//! A database that is damaged while the server runs on it: pages of it, and single rows.

#![expect(clippy::unwrap_used, reason = "a panic is how a test says no, in its helpers too")]

use std::os::unix::fs::FileExt as _;
use std::process::Command;

use danlu_testkit::{TestServer, eventually, spec, wire};
use danlu_types::JobSpec;
use danlu_types::api::{JobOutcome, JobQuery, JobState};

const DANLU: &str = env!("CARGO_BIN_EXE_danlu");

fn doctor(server: &TestServer) -> (bool, String) {
    let done = Command::new(DANLU).arg("--data").arg(server.data()).arg("doctor").output().unwrap();
    (done.status.success(), String::from_utf8(done.stdout).unwrap())
}

/// Changes a byte of the database's file: the one before each place where the text stands, so that what is stored there
/// is a row as before, and its JSON is none. The server must be away, and have put everything into the file.
fn break_json_at(server: &TestServer, text: &str) {
    let path = server.data().join("danlu.db");
    assert!(!server.data().join("danlu.db-wal").exists(), "something is not in the file yet");
    let mut bytes = std::fs::read(&path).unwrap();
    let found: Vec<usize> =
        (1..bytes.len() - text.len()).filter(|at| bytes[*at..].starts_with(text.as_bytes())).collect();
    assert!(!found.is_empty(), "`{text}` is not in the database");
    for at in found {
        bytes[at - 1] = b'?';
    }
    std::fs::write(&path, bytes).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn damage_under_a_running_server_is_noticed_by_the_first_who_reads_it() {
    let mut server = TestServer::start(DANLU, &[]).await;
    let long = JobSpec { env: [("LONG".to_owned(), "x".repeat(8000))].into(), ..spec("true") };
    for _ in 0..40 {
        server.submit(&long).await;
    }
    eventually("all to end", || async {
        let live = JobQuery { state: Some("queued,starting,running,stopping".into()), ..JobQuery::default() };
        server.client().jobs_list(&live).await.ok()?.items.is_empty().then_some(())
    })
    .await;
    let running = server.submit(&spec("sleep 600")).await;
    server.wait_for(running, JobState::Running).await;
    // So that everything is in the file itself, and little of it in memory.
    server.terminate();
    server.restart().await;
    let path = server.data().join("danlu.db");
    let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    let pages = file.metadata().unwrap().len() / 4096;
    assert!(pages > 60, "{pages} pages");
    for page in pages / 3..pages {
        file.write_all_at(&[0x5a; 4096], page * 4096).unwrap();
    }

    // Whoever reads what no connection has in its memory.
    let body = eventually("readiness to say so", || async {
        for state in ["ended", "failed", "succeeded"] {
            let query = JobQuery { state: Some(state.into()), limit: Some(1000), ..JobQuery::default() };
            let _ = server.client().jobs_list(&query).await;
        }
        let answer = wire::send(&server.client().address(), "GET", "/readyz", &[], b"").await;
        (answer.status == 503 && answer.body.contains("damaged")).then_some(answer.body)
    })
    .await;
    assert!(body.contains("back-up"), "{body}");
    let (is_well, said) = doctor(&server);
    assert!(!is_well && said.contains("not ready") && said.contains("the database is damaged"), "{said}");
    let refused = server.client().job_submit(&spec("true"), None).await.unwrap_err().to_string();
    assert!(refused.contains("damaged"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_row_is_one_jobs_trouble() {
    let mut server = TestServer::start(DANLU, &[]).await;
    let go = server.folder().join("go");
    let mut jobs = Vec::new();
    for name in ["first", "second", "third"] {
        let program = format!(": {name}; while ! [ -e {} ]; do sleep 0.02; done; echo done", go.display());
        let job = server.submit(&spec(&program)).await;
        server.wait_for(job, JobState::Running).await;
        jobs.push(job);
    }
    let ended = server.run(&spec(": fourth")).await.id;
    server.terminate();
    let (bad, worse) = (jobs[1], ended);
    break_json_at(&server, ": second; while");
    break_json_at(&server, ": fourth\"");
    server.restart().await;

    let listed: Vec<_> = server
        .client()
        .jobs_list(&JobQuery::default())
        .await
        .unwrap()
        .items
        .iter()
        .map(|job| job.id)
        .collect();
    assert_eq!(listed, [jobs[2], jobs[0]]);
    let (is_well, said) = doctor(&server);
    assert!(!is_well && said.contains("degraded"), "{said}");
    for job in [bad, worse] {
        assert!(said.contains(&format!("job {job} cannot be read from the database")), "{said}");
    }
    let refused = server.client().job_fetch(bad).await.unwrap_err().to_string();
    assert!(refused.contains(&format!("job {bad} cannot be read")), "{refused}");
    // The others go on, and new ones come.
    std::fs::write(&go, "").unwrap();
    for job in [jobs[0], jobs[2]] {
        let job = server.wait_for_end(job).await;
        assert_eq!((job.outcome, job.attempts.len()), (Some(JobOutcome::Succeeded), 1), "{:?}", job.reason);
    }
    assert_eq!(server.run(&spec("true")).await.outcome, Some(JobOutcome::Succeeded));
}
