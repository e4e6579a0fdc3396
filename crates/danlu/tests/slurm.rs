//! The platform on a Slurm cluster, through the built binary: jobs run there and say what they wait for. What they survive is
//! in `slurm_crashes`.

#![expect(
    clippy::unwrap_used,
    reason = "a test says what it expects by failing; a panic there is the message"
)]

use std::path::Path;

use danlu_testkit::{FakeAscend, SlurmRig, TestServer, eventually, spec};
use danlu_types::api::JobOutcome;
use danlu_types::{Cpus, Framework, JobSpec, RankTableUse};

const DANLU: &str = env!("CARGO_BIN_EXE_danlu");

async fn start(rig: &SlurmRig) -> TestServer {
    start_with(rig, &[]).await
}

async fn start_with(rig: &SlurmRig, environment: &[(&str, &str)]) -> TestServer {
    let folder = tempfile::Builder::new().prefix("danlu-test-").tempdir().unwrap();
    let settings = folder.path().join("slurm.yaml");
    std::fs::write(&settings, format!("configuration: {}\npoll: 200ms\n", rig.configuration().display()))
        .unwrap();
    let settings = settings.to_str().unwrap().to_owned();
    TestServer::start_in(DANLU, &["--engine", "slurm", "--slurm", &settings], folder, environment).await
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
async fn ranks_on_ascend_get_a_table_of_what_slurm_gave() {
    let Some(rig) = SlurmRig::start() else { return };
    // Every node's tools know its own devices; the first three are somebody else's.
    let report = Path::new(env!("CARGO_MANIFEST_DIR")).join("../danlu-device/tests/fixtures/npu-smi");
    let fake = FakeAscend::new(&std::fs::read_to_string(report.join("info-910B3-8-busy.txt")).unwrap());
    fake.write("bin/hccn_tool", "#!/bin/sh\necho \"ipaddr:192.168.$((10 + $2)).${SLURMD_NODENAME#n}\"\n");
    let path = format!("{}:{}", fake.bin().display(), std::env::var("PATH").unwrap());
    let server = start_with(&rig, &[("PATH", &path)]).await;
    let others = ["--parsable", "--nodes=4", "--gres=npu:3", "--output=/dev/null", "--wrap=srun sleep 600"];
    let foreign = rig.ask("sbatch", &others);
    eventually("the foreign job to run", || async {
        let running = rig.ask("squeue", &["--noheader", "--states=running", "--format=%i"]);
        (running.trim() == foreign.trim()).then_some(())
    })
    .await;
    let job = JobSpec {
        workers: 2,
        devices: "ascend:4".parse().unwrap(),
        // Too many for two workers on one node.
        cpus: Cpus::whole(40),
        framework: Framework::Pytorch,
        rank_table: RankTableUse::Always,
        ..spec("[ $RANK = 0 ] && cat $RANK_TABLE_FILE; true")
    };
    let ended = server.run(&job).await;
    let lines = server.texts(ended.id).await.join("\n");
    assert_eq!(ended.outcome, Some(JobOutcome::Succeeded), "{:?}\n{lines}", ended.reason);
    let table: serde_json::Value = serde_json::from_str(&lines).unwrap();
    let mut shown = Vec::new();
    for server in table["server_list"].as_array().unwrap() {
        for device in server["device"].as_array().unwrap() {
            let word = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
            let [rank, id, address] = ["rank_id", "device_id", "device_ip"].map(|name| word(&device[name]));
            shown.push(format!("rank {rank}: device {id} of {}, {address}", word(&server["server_id"])));
        }
    }
    insta::assert_snapshot!(shown.join("\n"), @r"
    rank 0: device 3 of n1, 192.168.13.1
    rank 1: device 4 of n1, 192.168.14.1
    rank 2: device 5 of n1, 192.168.15.1
    rank 3: device 6 of n1, 192.168.16.1
    rank 4: device 3 of n2, 192.168.13.2
    rank 5: device 4 of n2, 192.168.14.2
    rank 6: device 5 of n2, 192.168.15.2
    rank 7: device 6 of n2, 192.168.16.2
    ");
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
