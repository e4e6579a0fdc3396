//! The platform on a Slurm cluster, through the built binary: jobs run there and say what they wait for. What they survive is
//! in `slurm_crashes`.

#![expect(
    clippy::unwrap_used,
    reason = "a test says what it expects by failing; a panic there is the message"
)]

use std::path::Path;
use std::process::Command;

use danlu_testkit::{FakeAscend, SlurmRig, TestServer, eventually, spec};
use danlu_types::api::{JobOutcome, JobState, StopRequest};
use danlu_types::{Cpus, Framework, JobSpec, RankTableUse, Span};

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
    // What others hold, Danlu sees; a partition that starts nothing is for Slurm alone to say.
    let partition = |state: &str| {
        let state = format!("State={state}");
        rig.ask("scontrol", &["update", "PartitionName=main", &state]);
    };
    partition("DOWN");
    let id = server.submit(&JobSpec { devices: "nvidia:1".parse().unwrap(), ..spec("true") }).await;
    // At first Slurm has not looked at it.
    eventually("Slurm's reason", || async {
        let why = server.client().job_why(id).await.ok()?.text;
        (why.to_lowercase().contains("waiting in slurm's queue") && why.contains("Partition")).then_some(())
    })
    .await;
    partition("UP");
    assert_eq!(server.wait_for_end(id).await.outcome, Some(JobOutcome::Succeeded));
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_of_others_are_seen_and_nothing_is_placed_on_what_they_hold() {
    let Some(rig) = SlurmRig::start() else { return };
    let foreign = rig.ask(
        "sbatch",
        &[
            "--parsable",
            "--nodelist=n1",
            "--gres=gpu:6",
            "--job-name=somebody else's",
            "--time=60",
            "--output=/dev/null",
            "--wrap=sleep 600",
        ],
    );
    let foreign = foreign.trim();
    eventually("the foreign job to run", || async {
        let state = rig.ask("squeue", &["--noheader", "--format=%T", &format!("--jobs={foreign}")]);
        (state.trim() == "RUNNING").then_some(())
    })
    .await;
    let mut server = start(&rig).await;
    let nodes = server.client().nodes_list().await.unwrap().items;
    let on_first = &nodes.iter().find(|view| view.node.name.0 == "n1").unwrap().node.foreign;
    assert_eq!(on_first.len(), 1, "{on_first:?}");
    assert_eq!((on_first[0].job.as_str(), on_first[0].devices.len()), (foreign, 6));
    assert_eq!((on_first[0].name.as_str(), on_first[0].user.as_str()), ("somebody else's", "root"));
    assert!(on_first[0].until.is_some());

    // All three nodes that are free are taken; the fourth job would need what the others hold.
    let whole = JobSpec { devices: "nvidia:8".parse().unwrap(), ..spec("exec sleep 600") };
    let mut ours = Vec::new();
    for _ in 0..3 {
        let id = server.submit(&whole).await;
        server.wait_for(id, JobState::Running).await;
        ours.push(id);
    }
    let fourth = server.submit(&whole).await;
    let why = eventually("the reason", || async {
        let why = server.client().job_why(fourth).await.ok()?;
        (why.reason.word() == "devices_busy").then_some(why)
    })
    .await;
    assert_eq!((why.foreign[0].job.as_str(), why.foreign[0].devices), (foreign, 6), "{why:?}");
    assert!(why.text.contains(&format!("the cluster's jobs {foreign} of root (6)")), "{}", why.text);
    let latest = why.estimate.and_then(|estimate| estimate.latest);
    assert_eq!(latest, on_first[0].until, "it starts when their time is over");
    // Two are left of the node, and a job that wants no more runs beside, if it is short enough.
    let two = JobSpec { devices: "nvidia:2".parse().unwrap(), ..spec("echo $DANLU_NODE") };
    let two = server.run(&JobSpec { max_time: Some(Span::from_seconds(600)), ..two }).await;
    assert_eq!(two.outcome, Some(JobOutcome::Succeeded), "{:?}", two.reason);
    assert!(server.texts(two.id).await.contains(&"n1".to_owned()));
    // Ours are ours, also for a server that did not start them.
    server.kill();
    server.restart().await;
    let shown =
        Command::new(DANLU).arg("--data").arg(server.data()).args(["adopt", "--json"]).output().unwrap();
    let shown: Vec<serde_json::Value> = serde_json::from_slice(&shown.stdout).unwrap();
    assert_eq!(shown.len(), 1, "{shown:?}");
    assert_eq!(
        (shown[0]["job"].as_str(), shown[0]["nodes"][0]["node"].as_str()),
        (Some(foreign), Some("n1"))
    );

    rig.ask("scancel", &[foreign]);
    server.wait_for(fourth, JobState::Running).await;
    assert!(
        server.client().nodes_list().await.unwrap().items.iter().all(|view| view.node.foreign.is_empty())
    );
    for id in ours.into_iter().chain([fourth]) {
        server.client().job_stop(id, &StopRequest::default()).await.unwrap();
        server.wait_for_end(id).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_script_runs_over_the_nodes_of_a_cluster() {
    let Some(rig) = SlurmRig::start() else { return };
    let server = start(&rig).await;
    let script = server.folder().join("train.sbatch");
    let text = "#!/bin/bash\n#SBATCH --nodes=2 --ntasks-per-node=2 --gres=gpu:a100:8 --time=10\n#SBATCH -o out-%j.txt\n\n\
                hosts=$(scontrol show hostnames \"$SLURM_JOB_NODELIST\" | wc -l)\n\
                srun --gpus-per-task=1 bash -c \"echo task \\$SLURM_PROCID of \\$SLURM_NTASKS, $hosts hosts, on \\$DANLU_NODE\"\n";
    std::fs::write(&script, text).unwrap();
    let ran = Command::new(DANLU)
        .arg("--data")
        .arg(server.data())
        .arg("run")
        .arg(&script)
        .current_dir(server.folder())
        .output()
        .unwrap();
    let (out, err) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success(), "{out}{err}");
    assert!(err.contains("train.sbatch:3: `-o out-%j.txt` is not honoured"), "{err}");
    let mut lines: Vec<&str> = out.lines().collect();
    lines.sort_unstable();
    insta::assert_snapshot!(lines.join("\n"), @r"
    [rank 0] task 0 of 4, 2 hosts, on n1
    [rank 1] task 1 of 4, 2 hosts, on n1
    [rank 2] task 2 of 4, 2 hosts, on n2
    [rank 3] task 3 of 4, 2 hosts, on n2
    ");
}
