//! A cluster where Slurm says which nodes jobs get, and Danlu follows.

#![expect(
    clippy::unwrap_used,
    reason = "a test says what it expects by failing; a panic there is the message"
)]

use std::collections::BTreeSet;
use std::process::Command;

use danlu_testkit::{SlurmRig, TestServer, eventually, spec};
use danlu_types::api::{EventQuery, JobOutcome, JobState, StopRequest};
use danlu_types::{Framework, JobId, JobSpec};

const DANLU: &str = env!("CARGO_BIN_EXE_danlu");

/// Slurm takes the last node first, and Danlu would take the first.
async fn start(rig: &SlurmRig) -> TestServer {
    for (weight, node) in [4, 3, 2, 1].into_iter().zip(SlurmRig::nodes()) {
        rig.ask("scontrol", &["update", &format!("NodeName={node}"), &format!("Weight={}", 10 * weight)]);
    }
    let folder = tempfile::Builder::new().prefix("danlu-test-").tempdir().unwrap();
    let settings = folder.path().join("slurm.yaml");
    let text = format!("configuration: {}\npoll: 200ms\nplacement: engine\n", rig.configuration().display());
    std::fs::write(&settings, text).unwrap();
    let settings = settings.to_str().unwrap().to_owned();
    TestServer::start_in(DANLU, &["--engine", "slurm", "--slurm", &settings], folder, &[]).await
}

/// Nodes of which a job has devices, by Danlu's book.
async fn nodes_of(server: &TestServer, id: JobId) -> BTreeSet<String> {
    let nodes = server.client().nodes_list().await.unwrap().items;
    let has = |view: &danlu_types::api::NodeView| view.held.iter().any(|held| held.job == Some(id));
    nodes.iter().filter(|view| has(view)).map(|view| view.node.name.0.clone()).collect()
}

/// Nodes that a job has, by Slurm's.
fn nodes_by_slurm(rig: &SlurmRig, id: JobId) -> BTreeSet<String> {
    let listed = rig.ask("squeue", &["--noheader", "--states=running", "--format=%j|%N"]);
    let own =
        listed.lines().filter_map(|line| line.trim().strip_prefix(&format!("danlu-{id}."))?.split_once('|'));
    own.flat_map(|(_, nodes)| {
        rig.ask("scontrol", &["show", "hostnames", nodes]).lines().map(str::to_owned).collect::<Vec<_>>()
    })
    .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn danlu_follows_where_slurm_puts_jobs_and_starts_no_more_than_fits() {
    let Some(rig) = SlurmRig::start() else { return };
    let server = start(&rig).await;
    let gang = JobSpec {
        workers: 2,
        devices: "nvidia:8".parse().unwrap(),
        framework: Framework::Pytorch,
        ..spec(
            "echo rank $RANK of $WORLD_SIZE sees $LOCAL_RANK on $DANLU_NODE is $SLURMD_NODENAME; exec sleep 600",
        )
    };
    let first = server.submit(&gang).await;
    server.wait_for(first, JobState::Running).await;
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();
    assert_eq!(nodes_of(&server, first).await, names(&["n3", "n4"]), "{}", server.log());
    assert_eq!(nodes_by_slurm(&rig, first), names(&["n3", "n4"]));
    let query = EventQuery { job: Some(first), ..EventQuery::default() };
    let events = server.client().events_list(&query).await.unwrap().items;
    let moved = events.iter().any(|event| event.message == "worker 0 was put on n3, not on n1");
    assert!(moved, "{events:?}");
    let lines = eventually("a line of each rank", || async {
        let mut lines = server.texts(first).await;
        lines.retain(|line| line.starts_with("rank "));
        (lines.len() == 16).then_some(lines)
    })
    .await;
    assert!(lines.contains(&"rank 0 of 16 sees 0 on n3 is n3".to_owned()), "{lines:?}");
    assert!(lines.contains(&"rank 15 of 16 sees 7 on n4 is n4".to_owned()), "{lines:?}");
    // A command runs where the worker is.
    let inside = Command::new(DANLU)
        .arg("--data")
        .arg(server.data())
        .args(["exec", &first.to_string(), "--worker", "1", "--", "sh", "-c", "echo $SLURMD_NODENAME"])
        .output()
        .unwrap();
    assert_eq!(
        String::from_utf8_lossy(&inside.stdout).trim(),
        "n4",
        "{}",
        String::from_utf8_lossy(&inside.stderr)
    );

    // Two of four nodes are left. Of three jobs that each want one, one waits here, and not in Slurm's queue.
    let whole = JobSpec { devices: "nvidia:8".parse().unwrap(), ..spec("exec sleep 600") };
    let mut others = Vec::new();
    for _ in 0..3 {
        others.push(server.submit(&whole).await);
    }
    for id in &others[..2] {
        server.wait_for(*id, JobState::Running).await;
        assert_eq!(nodes_of(&server, *id).await, nodes_by_slurm(&rig, *id));
    }
    let why = server.client().job_why(others[2]).await.unwrap();
    assert_eq!(why.reason.word(), "devices_busy", "{why:?}");
    assert_eq!(rig.ask("squeue", &["--noheader", "--states=pending", "--format=%j"]).trim(), "");
    server.client().job_stop(others[0], &StopRequest::default()).await.unwrap();
    server.wait_for(others[2], JobState::Running).await;
    assert_eq!(nodes_of(&server, others[2]).await, nodes_by_slurm(&rig, others[2]));
}

#[tokio::test(flavor = "multi_thread")]
async fn slurm_chooses_among_nodes_that_would_do() {
    let Some(rig) = SlurmRig::start() else { return };
    let mut server = start(&rig).await;
    server.client().node_cordon("n4", "new fans").await.unwrap();
    let job = JobSpec { devices: "ascend:2".parse().unwrap(), ..spec("echo on $SLURMD_NODENAME; sleep 600") };
    let id = server.submit(&job).await;
    server.wait_for(id, JobState::Running).await;
    assert_eq!(nodes_by_slurm(&rig, id).into_iter().collect::<Vec<_>>(), ["n3"]);
    // A server that did not start it knows as much.
    server.kill();
    server.restart().await;
    assert_eq!(nodes_of(&server, id).await.into_iter().collect::<Vec<_>>(), ["n3"]);
    server.client().job_stop(id, &StopRequest::default()).await.unwrap();
    assert_eq!(server.wait_for_end(id).await.outcome, Some(JobOutcome::Stopped));
}
