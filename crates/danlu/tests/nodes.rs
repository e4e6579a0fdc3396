//! Where jobs run on the real binary: nodes that are cordoned or drained, alternatives, shares of devices, labels.

use std::process::Command;

use danlu_testkit::{TestServer, eventually, spec};
use danlu_types::api::{JobOutcome, JobState, JobView};
use danlu_types::{DeviceRequest, Framework, JobId, JobSpec, NodeSelection, Span};

const DANLU: &str = env!("CARGO_BIN_EXE_danlu");
const LONG: &str = "sleep 1000";

fn with_devices(request: &str, command: &str) -> JobSpec {
    let devices: DeviceRequest = request.parse().expect("a request for devices");
    JobSpec { devices, grace: Span { milliseconds: 300 }, ..spec(command) }
}

fn node_of(job: &JobView) -> &str {
    &job.attempts.last().expect("it was placed").workers[0].node.0
}

#[tokio::test]
async fn a_cordoned_node_takes_nothing_also_after_a_restart_until_it_is_let_go() {
    let mut server = TestServer::start(DANLU, &["--simulate", "1x2:nvidia:A100"]).await;
    let node = "sim-nvidia-a100-0";
    let running = server.submit(&with_devices("1", LONG)).await;
    server.wait_for(running, JobState::Running).await;
    let cordoned = server.client().node_cordon(node, "new fans").await.unwrap();
    assert_eq!(cordoned.node.cordoned.as_deref(), Some("new fans"));
    let waiting = server.submit(&with_devices("1", "true")).await;
    server.kill();
    server.restart().await;
    let nodes = server.client().nodes_list().await.unwrap().items;
    assert_eq!(nodes[0].node.cordoned.as_deref(), Some("new fans"));
    assert_eq!(server.job(running).await.state, JobState::Running, "what runs there, runs on");
    assert_eq!(server.job(waiting).await.state, JobState::Queued);
    server.client().node_uncordon(node).await.unwrap();
    assert_eq!(server.wait_for_end(waiting).await.outcome, Some(JobOutcome::Succeeded));

    let kinds: Vec<String> = {
        let history = server.client().events_list(&danlu_types::api::EventQuery::default()).await.unwrap();
        history.items.into_iter().filter(|event| event.job.is_none()).map(|event| event.kind).collect()
    };
    assert_eq!(kinds, ["node_cordoned", "node_uncordoned"]);
    for (name, why) in [("no-such-node", "x"), (node, " ")] {
        server.client().node_cordon(name, why).await.expect_err("there is nothing to cordon");
    }
}

#[tokio::test]
async fn a_drained_node_is_left_by_the_preemptible_and_kept_by_the_others() {
    let server = TestServer::start(DANLU, &["--simulate", "2x2:nvidia:A100"]).await;
    let firm = server.submit(&with_devices("1", LONG)).await;
    let node = node_of(&server.wait_for(firm, JobState::Running).await).to_owned();
    // Beside the other, because whole nodes are kept free.
    let soft = JobSpec { preemptible: true, ..with_devices("1", LONG) };
    let soft = server.submit(&soft).await;
    assert_eq!(node_of(&server.wait_for(soft, JobState::Running).await), node);

    let drained = server.client().node_drain(&node, "being drained").await.unwrap();
    assert_eq!(drained.preempted.iter().map(|job| job.job).collect::<Vec<_>>(), [soft]);
    assert_eq!(drained.running_on.iter().map(|job| job.job).collect::<Vec<_>>(), [firm]);
    let moved = eventually("the preemptible job to run elsewhere", || async {
        let job = server.job(soft).await;
        (job.state == JobState::Running && node_of(&job) != node).then_some(job)
    })
    .await;
    assert_eq!(moved.attempts[0].reason.to_string(), format!("preempted: node {node} was being drained"));
    let firm = server.job(firm).await;
    assert_eq!((firm.state, firm.attempts.len()), (JobState::Running, 1));
}

#[tokio::test]
async fn the_environment_follows_the_alternative_that_was_granted() {
    let server = TestServer::start(DANLU, &["--simulate", "1x2:nvidia:A100,1x4:ascend:910B3"]).await;
    let alternatives = ["nvidia:A100:2", "ascend:4"];
    let command =
        "echo $WORLD_SIZE nvidia=$CUDA_VISIBLE_DEVICES ascend=$ASCEND_RT_VISIBLE_DEVICES; sleep 1000";
    let either = JobSpec {
        any_of: alternatives.iter().map(|text| text.parse().unwrap()).collect(),
        framework: Framework::Pytorch,
        ..spec(command)
    };
    let first = server.submit(&either).await;
    server.wait_for(first, JobState::Running).await;
    // The same by flags: several `--devices` are alternatives.
    let flags = [
        "--cpus",
        "0.01",
        "--framework",
        "pytorch",
        "--devices",
        alternatives[0],
        "--devices",
        alternatives[1],
    ];
    let output = Command::new(DANLU)
        .arg("--data")
        .arg(server.data())
        .arg("submit")
        .args(flags)
        .args(["--", command])
        .output()
        .unwrap();
    let second = JobId(String::from_utf8(output.stdout).unwrap().trim().parse().unwrap());
    assert_eq!(server.job(second).await.spec.any_of, either.any_of);
    server.wait_for(second, JobState::Running).await;
    for (id, ranks, line) in [(first, 2, "2 nvidia=0,1 ascend="), (second, 4, "4 nvidia= ascend=0,1,2,3")] {
        let texts = eventually("every rank to speak", || async {
            let texts = server.texts(id).await;
            (texts.len() == ranks).then_some(texts)
        })
        .await;
        assert!(texts.iter().all(|text| text == line), "{texts:?}");
    }
}

#[tokio::test]
async fn two_halves_share_a_device_and_a_third_waits() {
    let server = TestServer::start(DANLU, &["--simulate", "1x1:nvidia:A100"]).await;
    let half = |command: &str| with_devices("nvidia:0.5", command);
    let first = server.submit(&half("echo $CUDA_VISIBLE_DEVICES; sleep 1000")).await;
    let second = server.submit(&half(LONG)).await;
    server.wait_for(first, JobState::Running).await;
    server.wait_for(second, JobState::Running).await;
    eventually("its one visible device", || async { (server.texts(first).await == ["0"]).then_some(()) })
        .await;
    let third = server.submit(&half("true")).await;
    eventually("the third to wait", || async {
        (server.job(third).await.reason.word() == "devices_busy").then_some(())
    })
    .await;
    let held = server.client().nodes_list().await.unwrap().items.remove(0).held;
    assert_eq!(held.iter().map(|held| held.count.to_string()).collect::<Vec<_>>(), ["0.5", "0.5"]);
    server.client().job_stop(first, &danlu_types::api::StopRequest::default()).await.unwrap();
    assert_eq!(server.wait_for_end(third).await.outcome, Some(JobOutcome::Succeeded));
}

#[tokio::test]
async fn labels_choose_the_node_and_what_no_node_has_is_refused() {
    let flags = ["--simulate", "1x1:nvidia:A100@zone=a,1x1:nvidia:A100@zone=b"];
    let server = TestServer::start(DANLU, &flags).await;
    let in_zone = |zone: &str| JobSpec {
        nodes: NodeSelection {
            labels: [("zone".to_owned(), zone.to_owned())].into(),
            ..NodeSelection::default()
        },
        ..with_devices("1", "true")
    };
    assert_eq!(node_of(&server.run(&in_zone("b")).await), "sim-nvidia-a100-1");
    assert_eq!(node_of(&server.run(&in_zone("a")).await), "sim-nvidia-a100-0");
    let refused = server.client().job_submit(&in_zone("c"), None).await.unwrap_err().to_string();
    assert!(refused.contains("zone: a"), "{refused}");
}
