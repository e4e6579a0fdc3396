//! Logs over HTTP: pages, tails, search, and following across a restart of the server.

use std::process::Command;

use danlu_client::Followed;
use danlu_testkit::{TestServer, spec};
use danlu_types::api::{JobState, LogMessage, LogQuery, SeriesQuery};
use danlu_types::{AttemptNumber, JobSpec, Rank, RanksPerWorker, WorkerIndex};

const DANLU: &str = env!("CARGO_BIN_EXE_danlu");

fn counting(lines: u32) -> JobSpec {
    let program = format!("i=0; while [ $i -lt {lines} ]; do echo rank $RANK line $i; i=$((i+1)); done");
    JobSpec { ranks: Some(RanksPerWorker::Count(2)), ..spec(&program) }
}

#[tokio::test]
async fn pages_tails_and_searches_agree_with_what_was_printed() {
    let server = TestServer::start(DANLU, &[]).await;
    let client = server.client();
    let id = server.run(&counting(300)).await.id;

    let mut query = LogQuery { rank: Some(Rank(1)), limit: Some(7), ..LogQuery::default() };
    let mut texts = Vec::new();
    loop {
        let page = client.logs_read(id, &query).await.unwrap();
        assert!(page.items.len() <= 7);
        texts.extend(page.items.into_iter().map(|line| line.text));
        match page.next {
            Some(next) => query.cursor = Some(next),
            None => break,
        }
    }
    let expected: Vec<String> = (0..300).map(|line| format!("rank 1 line {line}")).collect();
    assert_eq!(texts, expected);

    let tail = LogQuery { rank: Some(Rank(0)), tail: Some(2), ..LogQuery::default() };
    let lines = client.logs_read(id, &tail).await.unwrap().items;
    let found: Vec<(u64, &str)> = lines.iter().map(|line| (line.number, line.text.as_str())).collect();
    assert_eq!(found, [(298, "rank 0 line 298"), (299, "rank 0 line 299")]);

    let search = LogQuery { search: Some("line 29".to_owned()), ..LogQuery::default() };
    assert_eq!(client.logs_read(id, &search).await.unwrap().items.len(), 2 * 11);
    let regex =
        LogQuery { search: Some("line 2[0-4]$".to_owned()), regex: Some(true), ..LogQuery::default() };
    assert_eq!(client.logs_read(id, &regex).await.unwrap().items.len(), 2 * 5);
    let broken = LogQuery { search: Some("(".to_owned()), regex: Some(true), ..LogQuery::default() };
    let error = client.logs_read(id, &broken).await.unwrap_err().to_string();
    assert!(error.contains("regular expression"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_follower_sees_every_line_once_although_the_server_is_killed_under_it() {
    let mut server = TestServer::start(DANLU, &[]).await;
    let go = server.folder().join("go");
    let program = format!(
        "i=0; while [ $i -lt 50 ]; do echo line $i; i=$((i+1)); sleep 0.005; done
         while ! [ -e {} ]; do sleep 0.01; done
         while [ $i -lt 100 ]; do echo line $i; i=$((i+1)); done",
        go.display()
    );
    let id = server.submit(&spec(&program)).await;
    // Discovered anew after the restart, as a user's terminal would: the port may be another one.
    let client = danlu_client::Client::discover(Some(&server.data())).unwrap();
    let mut follow = client.logs_follow(id, LogQuery::default());
    let mut texts = Vec::new();
    let mut killed = false;
    loop {
        match follow.next().await.unwrap() {
            Some(Followed::Message(LogMessage::Lines { lines })) => {
                texts.extend(lines.into_iter().map(|line| line.text));
            }
            Some(Followed::Message(LogMessage::End { exit_code, .. })) => {
                assert_eq!(exit_code, 0);
                break;
            }
            Some(_) => {}
            None => panic!("the stream ended before the job did"),
        }
        if texts.len() >= 20 && !killed {
            killed = true;
            server.kill();
            server.restart().await;
            std::fs::write(&go, "").unwrap();
        }
    }
    let expected: Vec<String> = (0..100).map(|line| format!("line {line}")).collect();
    assert_eq!(texts, expected);
    assert_eq!(server.job(id).await.state, JobState::Ended);
}

#[tokio::test]
async fn what_programs_report_is_read_in_pages_and_as_last_values() {
    let server = TestServer::start(DANLU, &[]).await;
    let client = server.client();
    let program = "for step in 1 2 3; do echo ::danlu metric loss=0.$step step=$step; done; echo ::danlu metric norm=nan";
    let id = server.run(&spec(program)).await.id;

    let mut query = SeriesQuery { limit: Some(3), ..SeriesQuery::default() };
    let first = client.metrics_read(id, &query).await.unwrap();
    let losses: Vec<(Option<u64>, Option<f64>)> =
        first.items.iter().map(|point| (point.step, point.values["loss"])).collect();
    assert_eq!(losses, [(Some(1), Some(0.1)), (Some(2), Some(0.2)), (Some(3), Some(0.3))]);
    query.cursor = first.next;
    let rest = client.metrics_read(id, &query).await.unwrap();
    assert_eq!((rest.items.len(), rest.items[0].values["norm"], rest.next), (1, None, None));

    let shown = Command::new(DANLU).args(["metrics", &id.to_string(), "--data"]).arg(server.data()).output();
    let table = String::from_utf8(shown.unwrap().stdout).unwrap();
    let rows: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().take(3).collect()).collect();
    assert_eq!(rows, [["METRIC", "VALUE", "STEP"], ["loss", "0.3", "3"], ["norm", "not", "a"]], "{table}");
    for wrong in [
        SeriesQuery { worker: Some(WorkerIndex(1)), ..SeriesQuery::default() },
        SeriesQuery { attempt: Some(AttemptNumber(2)), ..SeriesQuery::default() },
    ] {
        assert!(client.metrics_read(id, &wrong).await.unwrap_err().is_not_found(), "{wrong:?}");
    }
}
