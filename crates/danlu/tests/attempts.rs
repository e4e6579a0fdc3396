//! Tokens of attempts: what the programs of a job can say with theirs, and whose are refused.

use danlu_testkit::wire::{Answer, send};
use danlu_testkit::{TestServer, eventually, spec};
use danlu_types::api::{JobState, SeriesQuery};
use danlu_types::{Fraction, JobId, JobSpec, Span};
use serde_json::{Value, json};

const DANLU: &str = env!("CARGO_BIN_EXE_danlu");

/// Prints its token, which a program should not, and stays.
async fn talkative(server: &TestServer, more: &str) -> (JobId, String) {
    let command = format!("echo token $DANLU_TOKEN at $DANLU_SERVER; {more} exec sleep 1000");
    let id = server.submit(&JobSpec { grace: Span::default(), preemptible: true, ..spec(&command) }).await;
    server.wait_for(id, JobState::Running).await;
    (id, token(server, id).await)
}

async fn token(server: &TestServer, id: JobId) -> String {
    eventually("the token of the job", || async {
        let line = server.texts(id).await.into_iter().find(|line| line.starts_with("token "))?;
        let (token, address) = line.strip_prefix("token ")?.split_once(" at ")?;
        assert_eq!(address, server.client().address());
        Some(token.to_owned())
    })
    .await
}

async fn ask(server: &TestServer, token: &str, method: &str, path: &str, body: &Value) -> Answer {
    let bearer = format!("Bearer {token}");
    let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
    let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    send(&server.client().address(), method, &format!("/api/v1{path}"), &headers, &body).await
}

#[tokio::test]
async fn a_program_reports_without_printing() {
    let server = TestServer::start(DANLU, &[]).await;
    let (id, token) = talkative(&server, "").await;
    let own = ask(&server, &token, "GET", "/attempt", &Value::Null).await;
    let own: Value = serde_json::from_str(&own.body).unwrap();
    assert_eq!((&own["job"], &own["attempt"], &own["worker"]), (&json!(id), &json!(1), &json!(0)));

    let lines = ["::danlu progress 0.25", "::danlu checkpoint step=3", "::danlu metric loss=0.5 step=3"];
    let said = ask(&server, &token, "POST", "/attempt/reports", &json!({ "lines": lines })).await;
    assert_eq!(said.status, 204, "{}", said.body);
    let progress = eventually("progress", || async { server.job(id).await.progress }).await;
    assert_eq!(progress.done, Fraction::new(0.25));
    assert_eq!(progress.checkpoint_step, Some(3));
    let metrics = server.client().metrics_read(id, &SeriesQuery::default()).await.unwrap().items;
    assert_eq!((metrics.len(), metrics[0].step), (1, Some(3)));

    for (body, said) in [
        (json!({ "lines": ["::danlu progress 0.5", "hello"] }), "lines.1"),
        (
            json!({ "rank": 1, "lines": ["::danlu progress 0.5"] }),
            "rank 1 is not on this worker, which has 0",
        ),
        (json!({ "lines": [], "job": 7 }), "job"),
    ] {
        let refused = ask(&server, &token, "POST", "/attempt/reports", &body).await;
        assert!((400..500).contains(&refused.status) && refused.body.contains(said), "{}", refused.body);
    }
}

#[tokio::test]
async fn only_the_living_speak_and_only_for_themselves() {
    let server = TestServer::start(DANLU, &["--simulate", "2x2:nvidia:A100"]).await;
    let (first, hers) = talkative(&server, "").await;
    let (second, his) = talkative(&server, "").await;
    let about = |token: String| {
        let server = &server;
        async move {
            let answer = ask(server, &token, "GET", "/attempt", &Value::Null).await;
            let body: Value = serde_json::from_str(&answer.body).unwrap();
            (answer.status, body["job"].as_u64())
        }
    };
    assert_eq!(about(hers.clone()).await, (200, Some(first.0)));
    assert_eq!(about(his.clone()).await, (200, Some(second.0)));
    // One's seal does not carry another's name, be it another job, attempt or worker.
    let seal = hers.rsplit('_').next().unwrap();
    for worker in [format!("{second}.1.0"), format!("{first}.2.0"), format!("{first}.1.1")] {
        assert_eq!(about(format!("danlu_attempt_{worker}_{seal}")).await, (401, None), "{worker}");
    }
    for path in ["/jobs", "/whoami", "/nodes", "/openapi.json", &format!("/jobs/{first}/logs"), "/nowhere"] {
        assert_eq!(ask(&server, &hers, "GET", path, &Value::Null).await.status, 403, "{path}");
    }

    // Pushed out and started again, the job has another token, and the old one is worth nothing.
    let node = server.job(first).await.attempts[0].workers[0].node.0.clone();
    server.client().node_drain(&node, "being drained").await.unwrap();
    eventually("the second attempt", || async {
        let job = server.job(first).await;
        (job.attempts.len() == 2 && job.state == JobState::Running).then_some(())
    })
    .await;
    assert_eq!(about(hers.clone()).await, (401, None));
    let renewed = token(&server, first).await;
    assert_eq!(about(renewed.clone()).await, (200, Some(first.0)));
    server.client().job_stop(first, &danlu_types::api::StopRequest::default()).await.unwrap();
    server.wait_for_end(first).await;
    assert_eq!(about(renewed).await, (401, None));
    assert!(!server.log().contains(seal), "tokens are not logged");
}

#[tokio::test]
async fn tokens_outlive_a_server() {
    let mut server = TestServer::start(DANLU, &[]).await;
    let (_, token) = talkative(&server, "").await;
    server.kill();
    server.restart().await;
    assert_eq!(ask(&server, &token, "GET", "/attempt", &Value::Null).await.status, 200);
}

#[tokio::test]
async fn pythons_helper_reports_where_its_output_is_not_read() {
    let server = TestServer::start(DANLU, &[]).await;
    let script = server.folder().join("train.py");
    std::fs::write(&script, "import danlu\ndanlu.progress(1, 4)\ndanlu.metric(step=1, loss=0.5)\n").unwrap();
    let command =
        format!("python3 {} > quiet.txt; cat quiet.txt; echo left; exec sleep 1000", script.display());
    let id = server.submit(&JobSpec { grace: Span::default(), ..spec(&command) }).await;
    let progress = eventually("progress", || async { server.job(id).await.progress }).await;
    assert_eq!(progress.done, Fraction::new(0.25));
    eventually("its end", || async { (server.texts(id).await == ["left"]).then_some(()) }).await;
}
