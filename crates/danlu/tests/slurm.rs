//! The platform on a Slurm cluster, through the built binary: jobs run there and say what they wait for. What they survive is
//! in `slurm_crashes`.

#![expect(
    clippy::unwrap_used,
    reason = "a test says what it expects by failing; a panic there is the message"
)]

use danlu_testkit::{SlurmRig, TestServer, eventually, spec};
use danlu_types::api::JobOutcome;
use danlu_types::{Framework, JobSpec};

const DANLU: &str = env!("CARGO_BIN_EXE_danlu");

async fn start(rig: &SlurmRig) -> TestServer {
    let folder = tempfile::Builder::new().prefix("danlu-test-").tempdir().unwrap();
    let settings = folder.path().join("slurm.yaml");
    std::fs::write(&settings, format!("configuration: {}\npoll: 200ms\n", rig.configuration().display()))
        .unwrap();
    let settings = settings.to_str().unwrap().to_owned();
    TestServer::start_in(DANLU, &["--engine", "slurm", "--slurm", &settings], folder, &[]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gang_trains_over_the_nodes_of_a_cluster() {
    let Some(rig) = SlurmRig::start() else { return };
    let server = start(&rig).await;
    let nodes = server.client().nodes_list().await.unwrap().items;
    assert_eq!(nodes.len(), 4);
    let job = JobSpec {
        workers: 4,
        devices: "nvidia:A100:8".parse().unwrap(),
        framework: Framework::Pytorch,
        ..spec("echo rank $RANK of $WORLD_SIZE on $DANLU_NODE sees $CUDA_VISIBLE_DEVICES as $LOCAL_RANK")
    };
    let ended = server.run(&job).await;
    assert_eq!(ended.outcome, Some(JobOutcome::Succeeded), "{:?}\n{}", ended.reason, server.log());
    let mut lines = server.texts(ended.id).await;
    lines.retain(|line| line.starts_with("rank "));
    lines.sort_unstable();
    let mut expected = Vec::new();
    for (worker, node) in (0..4).zip(SlurmRig::nodes()) {
        for local in 0..8 {
            let rank = 8 * worker + local;
            expected.push(format!("rank {rank} of 32 on {node} sees 0,1,2,3,4,5,6,7 as {local}"));
        }
    }
    expected.sort_unstable();
    assert_eq!(lines, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn why_says_what_slurm_waits_for() {
    let Some(rig) = SlurmRig::start() else { return };
    let server = start(&rig).await;
    let foreign = rig.ask(
        "sbatch",
        &["--parsable", "--nodes=4", "--gres=gpu:8", "--output=/dev/null", "--wrap=srun sleep 600"],
    );
    eventually("the foreign job to run", || async {
        let state = rig.ask("squeue", &["--noheader", "--format=%T", &format!("--jobs={}", foreign.trim())]);
        (state.trim() == "RUNNING").then_some(())
    })
    .await;
    let id = server.submit(&JobSpec { devices: "nvidia:1".parse().unwrap(), ..spec("true") }).await;
    // At first Slurm has not looked at it.
    eventually("Slurm's reason", || async {
        let why = server.client().job_why(id).await.ok()?.text;
        (why.contains("waits in Slurm") && (why.contains("Resources") || why.contains("Priority")))
            .then_some(())
    })
    .await;
    rig.ask("scancel", &[foreign.trim()]);
    assert_eq!(server.wait_for_end(id).await.outcome, Some(JobOutcome::Succeeded));
}
