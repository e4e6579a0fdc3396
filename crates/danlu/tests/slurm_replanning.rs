//! What becomes of jobs that a Slurm cluster does not start, takes back, or has no room for any more: through the built binary.

#![expect(
    clippy::unwrap_used,
    reason = "a test says what it expects by failing; a panic there is the message"
)]

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime};

use danlu_testkit::{SlurmRig, TestServer, alive, eventually, slurm_programs, spec};
use danlu_types::api::{JobOutcome, JobState, NodeView, StopRequest};
use danlu_types::{DeviceKind, JobId, JobSpec, Retry, RetryCause, Span};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;

const DANLU: &str = env!("CARGO_BIN_EXE_danlu");

fn folder() -> TempDir {
    tempfile::Builder::new().prefix("danlu-test-").tempdir().unwrap()
}

/// Starts a server in a folder; further lines of its settings, and flags.
async fn start(rig: &SlurmRig, folder: TempDir, settings: &str, flags: &[&str]) -> TestServer {
    let path = folder.path().join("slurm.yaml");
    let text = format!("configuration: {}\npoll: 200ms\n{settings}", rig.configuration().display());
    fs::write(&path, text).unwrap();
    let path = path.to_str().unwrap().to_owned();
    TestServer::start_in(DANLU, &[&["--engine", "slurm", "--slurm", &path], flags].concat(), folder, &[])
        .await
}

/// Slurm's programs, one of them replaced by a script, as a line of the settings.
fn with_program(folder: &Path, name: &str, script: &str) -> String {
    format!("programs: {}\n", slurm_programs(folder, &[(name, script)]).display())
}

fn whole(command: &str) -> JobSpec {
    JobSpec { devices: "nvidia:8".parse().unwrap(), ..spec(command) }
}

async fn until_why_says(server: &TestServer, id: JobId, words: &str) -> String {
    eventually(&format!("`why` to say `{words}`"), || async {
        let why = server.client().job_why(id).await.ok()?.text;
        why.contains(words).then_some(why)
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_whose_node_went_to_another_runs_elsewhere() {
    let Some(rig) = SlurmRig::start() else { return };
    let server = start(&rig, folder(), "", &[]).await;
    // Danlu's view of the cluster is some seconds old, and n1 is where it would begin.
    let foreign = rig
        .ask("sbatch", &["--parsable", "-w", "n1", "--gres=gpu:8", "--output=/dev/null", "--wrap=sleep 600"]);
    eventually("the foreign job to run", || async {
        let running = rig.ask("squeue", &["--noheader", "--states=running", "--format=%i"]);
        (running.trim() == foreign.trim()).then_some(())
    })
    .await;
    let ended = server.run(&whole("echo on $DANLU_NODE")).await;
    assert_eq!(ended.outcome, Some(JobOutcome::Succeeded), "{:?}\n{}", ended.reason, server.log());
    assert!(!server.texts(ended.id).await.contains(&"on n1".to_owned()));
    if let [first, .., _] = &ended.attempts[..] {
        assert_eq!(first.reason.word(), "requeued", "{:?}", first.reason);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_that_slurm_holds_keep_nobody_waiting() {
    let Some(rig) = SlurmRig::start() else { return };
    let folder = folder();
    let rules = folder.path().join("workspaces.yaml");
    fs::write(&rules, "workspaces: { free: {} }\n").unwrap();
    let rules = rules.to_str().unwrap().to_owned();
    let settings = "workspaces: { default: { options: [--hold] } }\n";
    let server = start(&rig, folder, settings, &["--workspaces", &rules]).await;
    let mut held = Vec::new();
    for _ in 0..4 {
        held.push(server.submit(&whole("true")).await);
    }
    for id in &held {
        until_why_says(&server, *id, "JobHeldUser").await;
    }
    let free = JobSpec { workspace: "free".to_owned(), ..whole("true") };
    // Asked without taking part: nothing is expected of jobs that do not run.
    let expected = server.client().job_dry_run(&free).await.unwrap();
    assert_eq!(expected.holders.len(), 4, "{expected:?}");
    assert!(
        expected.estimate.is_none() && expected.holders.iter().all(|it| it.expected_end.is_none()),
        "{expected:?}"
    );
    let ended = server.run(&free).await;
    assert_eq!(ended.outcome, Some(JobOutcome::Succeeded), "{:?}\n{}", ended.reason, server.log());
    let first = server.job(held[0]).await;
    assert!(first.state != JobState::Ended, "{:?}", first.reason);
    assert_eq!(first.attempts[0].reason.word(), "requeued");
    assert!(first.attempts[0].reason.to_string().contains("JobHeldUser"), "{:?}", first.attempts[0].reason);
    for id in held {
        server.client().job_stop(id, &StopRequest::default()).await.unwrap();
        server.wait_for_end(id).await;
    }
    eventually("nothing of them to be left in Slurm", || async {
        rig.ask("squeue", &["--noheader", "--format=%i"]).trim().is_empty().then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_closed_partition_is_waited_for() {
    let Some(rig) = SlurmRig::start() else { return };
    let server = start(&rig, folder(), "", &[]).await;
    rig.ask("scontrol", &["update", "PartitionName=main", "State=DRAIN"]);
    let id = server.submit(&whole("true")).await;
    let why = until_why_says(&server, id, "without using a retry").await;
    assert!(why.contains("partition not available"), "{why}");
    rig.ask("scontrol", &["update", "PartitionName=main", "State=UP"]);
    let ended = server.wait_for_end(id).await;
    assert_eq!(ended.outcome, Some(JobOutcome::Succeeded), "{:?}\n{}", ended.reason, server.log());
}

async fn until_gpus_are(server: &TestServer, wanted: [usize; 4]) {
    eventually(&format!("the nodes to have {wanted:?} GPUs"), || async {
        let nodes = server.client().nodes_list().await.ok()?.items;
        let gpus = |view: &NodeView| {
            view.node.devices.iter().filter(|device| device.kind == DeviceKind::Nvidia).count()
        };
        (nodes.iter().map(gpus).collect::<Vec<_>>() == wanted).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_nodes_have_is_followed() {
    let Some(rig) = SlurmRig::start() else { return };
    let server = start(&rig, folder(), "", &[]).await;
    // Slurm takes it, and has not started it when its node loses half of the GPUs.
    rig.ask("scontrol", &["update", "PartitionName=main", "State=DOWN"]);
    let waits = server.submit(&whole("echo on $DANLU_NODE")).await;
    until_why_says(&server, waits, "aiting in Slurm's queue as its job").await;
    rig.set_gpus(&["n1", "n2", "n3"], 4);
    rig.ask("scontrol", &["update", "NodeName=n4", "AvailableFeatures=rack=r9", "ActiveFeatures=rack=r9"]);
    until_gpus_are(&server, [4, 4, 4, 8]).await;
    eventually("the label to be seen", || async {
        let nodes = server.client().nodes_list().await.ok()?.items;
        (nodes.last()?.node.labels.get("rack")? == "r9").then_some(())
    })
    .await;
    for job in [server.wait_for_end(waits).await, server.run(&whole("echo on $DANLU_NODE")).await] {
        assert_eq!(job.outcome, Some(JobOutcome::Succeeded), "{:?}\n{}", job.reason, server.log());
        assert!(server.texts(job.id).await.contains(&"on n4".to_owned()), "job {}", job.id);
    }
    rig.set_gpus(&[], SlurmRig::GPUS);
    until_gpus_are(&server, [8; 4]).await;
    let all = server.run(&JobSpec { workers: 4, ..whole("true") }).await;
    assert_eq!(all.outcome, Some(JobOutcome::Succeeded), "{:?}\n{}", all.reason, server.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_requeued_job_runs_again_without_a_retry() {
    let Some(rig) = SlurmRig::start() else { return };
    let server = start(&rig, folder(), "", &[]).await;
    let id = server.submit(&whole("[ $DANLU_ATTEMPT != 1 ] || exec sleep 600")).await;
    server.wait_for(id, JobState::Running).await;
    let job = rig.ask("squeue", &["--noheader", "--format=%i %k"]);
    let (job, comment) = job.trim().split_once(' ').unwrap();
    assert!(comment.starts_with("danlu job 1 `") && comment.contains("` of "), "{comment}");
    rig.ask("scontrol", &["update", &format!("JobId={job}"), "Requeue=1"]);
    rig.ask("scontrol", &["requeue", job]);
    let ended = server.wait_for_end(id).await;
    assert_eq!(ended.outcome, Some(JobOutcome::Succeeded), "{:?}\n{}", ended.reason, server.log());
    assert_eq!(
        ended.attempts[0].reason.to_string(),
        format!("requeued without using a retry (Slurm's job {job} was requeued, and not by Danlu)")
    );
}

/// With a grace time, Slurm signals the steps first and calls a job whose launchers heed that completed, before 24.05.
#[tokio::test(flavor = "multi_thread")]
async fn a_gang_that_slurm_preempts_with_a_grace_time_runs_again_without_a_retry() {
    let Some(rig) = SlurmRig::start() else { return };
    let server = start(&rig, folder(), "", &[]).await;
    rig.ask("scontrol", &["update", "PartitionName=main", "GraceTime=5"]);
    let gang = JobSpec { workers: 2, ..whole("[ $DANLU_ATTEMPT != 1 ] || exec sleep 600") };
    let id = server.submit(&gang).await;
    server.wait_for(id, JobState::Running).await;
    let gate = server.folder().join("gate");
    let urgent = format!("--wrap=until [ -e {} ]; do sleep 0.1; done", gate.display());
    let all = ["--partition=urgent", "--nodes=4", "--gres=gpu:8", "--output=/dev/null"];
    rig.ask("sbatch", &[&all[..], &[&urgent]].concat());
    until_why_says(&server, id, "was preempted by Slurm").await;
    fs::write(gate, "").unwrap();
    let ended = server.wait_for_end(id).await;
    assert_eq!(ended.outcome, Some(JobOutcome::Succeeded), "{:?}\n{}", ended.reason, server.log());
    let first = &ended.attempts[0].reason;
    assert_eq!(first.word(), "requeued");
    assert!(first.to_string().contains("was preempted by Slurm"), "{first:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_submission_that_hangs_holds_up_only_itself() {
    let Some(rig) = SlurmRig::start() else { return };
    let folder = folder();
    let hang =
        "case \"$*\" in *'`hangs`'*) until [ -e \"$HERE/go\" ]; do sleep 0.1; done;; esac; exec $REAL \"$@\"";
    let settings = with_program(folder.path(), "sbatch", hang);
    let server = start(&rig, folder, &settings, &[]).await;
    let named = |name: &str| JobSpec { name: name.parse().unwrap(), ..spec("true") };
    let hangs = server.submit(&named("hangs")).await;
    for _ in 0..5 {
        let ended = server.run(&named("works")).await;
        assert_eq!(ended.outcome, Some(JobOutcome::Succeeded), "{:?}\n{}", ended.reason, server.log());
    }
    until_why_says(&server, hangs, "waits for the engine to accept it").await;
    fs::write(server.folder().join("go"), "").unwrap();
    let ended = server.wait_for_end(hangs).await;
    assert_eq!(ended.outcome, Some(JobOutcome::Succeeded), "{:?}\n{}", ended.reason, server.log());
}

/// Three that hang for ever, each for as long as a program of Slurm's may take: one after the other, nobody else would be started
/// or stopped before this test gives up.
#[tokio::test(flavor = "multi_thread")]
async fn stops_that_hang_hold_up_only_themselves() {
    let Some(rig) = SlurmRig::start() else { return };
    let folder = folder();
    let hang = "for word; do job=$word; done; while [ -e \"$HERE/hangs-$job\" ]; do sleep 0.1; done; exec $REAL \"$@\"";
    let settings = with_program(folder.path(), "scancel", hang);
    let server = start(&rig, folder, &settings, &[]).await;
    // They wait in Slurm, where only `scancel` ends them.
    rig.ask("scontrol", &["update", "PartitionName=main", "State=DOWN"]);
    let mut hanging = Vec::new();
    for _ in 0..3 {
        let id = server.submit(&spec("true")).await;
        let why = until_why_says(&server, id, "aiting in Slurm's queue as its job ").await;
        let job = why.split("aiting in Slurm's queue as its job ").nth(1).unwrap();
        let job: String = job.chars().take_while(char::is_ascii_digit).collect();
        let hangs = server.folder().join(format!("hangs-{job}"));
        fs::write(&hangs, "").unwrap();
        rig.ask("scontrol", &["hold", &job]);
        hanging.push((id, hangs));
    }
    rig.ask("scontrol", &["update", "PartitionName=main", "State=UP"]);
    let stop = async |id| {
        server.client().job_stop(id, &StopRequest::default()).await.unwrap();
    };
    for (id, _) in &hanging {
        stop(*id).await;
    }
    let runs = server.submit(&spec("exec sleep 600")).await;
    server.wait_for(runs, JobState::Running).await;
    stop(runs).await;
    assert_eq!(server.wait_for_end(runs).await.outcome, Some(JobOutcome::Stopped));
    for (id, hangs) in hanging {
        fs::remove_file(hangs).unwrap();
        assert_eq!(server.wait_for_end(id).await.outcome, Some(JobOutcome::Stopped));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_slurm_forgot_is_not_given_up_while_its_launcher_lives() {
    // Nodes are asked which jobs they have three times as often.
    let Some(rig) = SlurmRig::start_that_misses_nodes_after(Duration::from_mins(1)) else { return };
    let server = start(&rig, folder(), "", &[]).await;
    let command = "echo $DANLU_ATTEMPT begins; [ -e \"$DANLU_OUTPUT_DIR/once\" ] && exit 0; \
                   touch \"$DANLU_OUTPUT_DIR/once\"; trap 'echo told; exit 0' TERM; while :; do sleep 0.05; done";
    let retry = Retry { limit: 1, on: vec![RetryCause::NodeLost] };
    let id = server.submit(&JobSpec { retry, ..whole(command) }).await;
    server.wait_for(id, JobState::Running).await;
    let once = server.data().join(format!("runs/{id}/output/once"));
    eventually("the first attempt to be up", || async { once.exists().then_some(()) }).await;
    let status = fs::read_to_string(server.data().join(format!("runs/{id}/1.0/status.jsonl"))).unwrap();
    let status: serde_json::Value = serde_json::from_str(status.lines().next_back().unwrap()).unwrap();
    let launcher = i32::try_from(status["launcher"]["pid"].as_i64().unwrap()).unwrap();
    rig.forget_all_jobs();
    // Its node tells Slurm of the job, which then ends it.
    eventually("the first attempt to be over", || async {
        let first = server.job(id).await.attempts.into_iter().next()?;
        first.ended_at.is_some().then_some(())
    })
    .await;
    assert!(!alive(launcher), "the verdict fell while its launcher lived");
    let ended = server.wait_for_end(id).await;
    assert_eq!(ended.outcome, Some(JobOutcome::Succeeded), "{:?}\n{}", ended.reason, server.log());
    let [first, _] = &ended.attempts[..] else { panic!("{:?}", ended.attempts) };
    let reason = &first.reason;
    assert!(matches!(reason.word(), "requeued" | "launcher_lost"), "{reason:?}");
}

/// The launcher of a worker, stopped as a debugger or a person would.
fn freeze_launcher(server: &TestServer, id: JobId, worker: u32) -> i32 {
    let status =
        fs::read_to_string(server.data().join(format!("runs/{id}/1.{worker}/status.jsonl"))).unwrap();
    let status: serde_json::Value = serde_json::from_str(status.lines().next_back().unwrap()).unwrap();
    let launcher = i32::try_from(status["launcher"]["pid"].as_i64().unwrap()).unwrap();
    kill(Pid::from_raw(launcher), Signal::SIGSTOP).unwrap();
    launcher
}

/// Three jobs at once: each needs the whole of its nodes, and the one that comes last needs those of all others.
#[tokio::test(flavor = "multi_thread")]
async fn slurm_ends_the_jobs_of_frozen_launchers() {
    let Some(rig) = SlurmRig::start() else { return };
    let server = start(&rig, folder(), "", &[]).await;
    let command = "echo $$ > $DANLU_OUTPUT_DIR/$RANK; exec sleep 600";
    let frozen = JobSpec { grace: Span::from_seconds(0), ..whole(command) };
    let limited = JobSpec { max_time: Some(Span::from_seconds(15)), ..frozen.clone() };
    let gang = JobSpec { workers: 2, ..frozen.clone() };
    let mut jobs = Vec::new();
    for (spec, worker) in [(frozen, 0), (gang, 1), (limited, 0)] {
        let id = server.submit(&spec).await;
        server.wait_for(id, JobState::Running).await;
        jobs.push((id, freeze_launcher(&server, id, worker), spec.workers));
    }
    for (id, ..) in &jobs[..2] {
        server.client().job_stop(*id, &StopRequest::default()).await.unwrap();
    }
    let codes = ["stopped", "stopped", "time_limit"];
    for ((id, launcher, workers), code) in jobs.into_iter().zip(codes) {
        let ended = server.wait_for_end(id).await;
        assert_eq!(ended.attempts[0].reason.word(), code, "{:?}\n{}", ended.reason, server.log());
        for rank in 0..workers {
            let pid = fs::read_to_string(server.data().join(format!("runs/{id}/output/{rank}"))).unwrap();
            assert!(
                !alive(pid.trim().parse().unwrap()),
                "the verdict on job {id} fell while rank {rank} lived"
            );
        }
        // One that Slurm has woken says that it has ended, and goes.
        eventually("its launcher to be gone", || async { (!alive(launcher)).then_some(()) }).await;
    }
    let all = server.run(&JobSpec { workers: 4, ..whole("true") }).await;
    assert_eq!(all.outcome, Some(JobOutcome::Succeeded), "{:?}\n{}", all.reason, server.log());
    eventually("nothing of them to be left in Slurm", || async {
        rig.ask("squeue", &["--noheader", "--format=%i"]).trim().is_empty().then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_launcher_is_told_of() {
    let Some(rig) = SlurmRig::start() else { return };
    let server = start(&rig, folder(), "", &[]).await;
    let id = server.submit(&spec("sleep 600")).await;
    server.wait_for(id, JobState::Running).await;
    let samples = server.data().join(format!("runs/{id}/1.0/samples.jsonl"));
    eventually("a first sample", || async { samples.exists().then_some(()) }).await;
    let launcher = freeze_launcher(&server, id, 0);
    let file = fs::File::options().append(true).open(&samples).unwrap();
    file.set_modified(SystemTime::now() - Duration::from_mins(10)).unwrap();
    let words = format!("its launcher (process {launcher} on n1) has shown no sign of life for 10 minutes");
    until_why_says(&server, id, &words).await;
    let report = server.client().readiness_report().await.unwrap();
    assert_eq!(report.status, "degraded", "{report:?}");
    assert!(report.problems.iter().any(|problem| problem.contains(&words)), "{report:?}");
    kill(Pid::from_raw(launcher), Signal::SIGCONT).unwrap();
    eventually("all to be well", || async {
        let report = server.client().readiness_report().await.ok()?;
        (report.status == "ok").then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outage_is_told_and_survived() {
    let Some(rig) = SlurmRig::start() else { return };
    let mut server = start(&rig, folder(), "", &[]).await;
    let runs = server.submit(&spec("until [ -e \"$DANLU_OUTPUT_DIR/go\" ]; do sleep 0.05; done")).await;
    server.wait_for(runs, JobState::Running).await;
    rig.kill_controller();
    let waits = server.submit(&spec("true")).await;
    until_why_says(&server, waits, "Slurm has not answered since").await;
    let health = server.client().readiness().await.unwrap();
    assert_eq!((health.status.as_str(), health.problems.len()), ("degraded", 1), "{health:?}");

    // A server that starts meanwhile serves, and says so.
    server.kill();
    let data = server.data();
    let danlu = |words: &[&str]| {
        let output = Command::new(DANLU).arg("--data").arg(&data).args(words).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
    };
    let back = async {
        eventually("the new server to tell of the outage", || async {
            danlu(&["why", &waits.to_string()]).contains("Slurm has not answered since").then_some(())
        })
        .await;
        assert!(danlu(&["jobs"]).contains("running"));
        rig.restart_controller();
    };
    tokio::join!(server.restart(), back);
    let ended = server.wait_for_end(waits).await;
    assert_eq!(ended.outcome, Some(JobOutcome::Succeeded), "{:?}\n{}", ended.reason, server.log());
    fs::write(server.data().join(format!("runs/{runs}/output/go")), "").unwrap();
    assert_eq!(server.wait_for_end(runs).await.outcome, Some(JobOutcome::Succeeded));
}
