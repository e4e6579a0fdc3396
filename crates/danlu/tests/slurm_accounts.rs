//! On a Slurm cluster that keeps accounts: its limits hold jobs back and fail none, and each workspace has its own account.

#![expect(
    clippy::unwrap_used,
    reason = "a test says what it expects by failing; a panic there is the message"
)]

use std::fs;

use danlu_testkit::{SlurmRig, TestServer, eventually, spec};
use danlu_types::api::{JobOutcome, JobState};
use danlu_types::{JobId, JobSpec};

const DANLU: &str = env!("CARGO_BIN_EXE_danlu");

/// With workspaces `default` and `free`, and further lines of the settings.
async fn start(rig: &SlurmRig, settings: &str) -> TestServer {
    let folder = tempfile::Builder::new().prefix("danlu-test-").tempdir().unwrap();
    let (path, rules) = (folder.path().join("slurm.yaml"), folder.path().join("workspaces.yaml"));
    let text = format!("configuration: {}\npoll: 200ms\n{settings}", rig.configuration().display());
    fs::write(&path, text).unwrap();
    fs::write(&rules, "workspaces: { free: {} }\n").unwrap();
    let [path, rules] = [path, rules].map(|path| path.to_str().unwrap().to_owned());
    let flags = ["--engine", "slurm", "--slurm", &path, "--workspaces", &rules];
    TestServer::start_in(DANLU, &flags, folder, &[]).await
}

fn sacctmgr(rig: &SlurmRig, words: &[&str]) {
    rig.ask("sacctmgr", &[&["--immediate"], words].concat());
}

/// A quality of service that root may use, once the controller knows that.
async fn quality(rig: &SlurmRig, name: &str, limits: &str) {
    sacctmgr(rig, &["add", "qos", name, "set", limits]);
    sacctmgr(rig, &["modify", "user", "root", "set", &format!("qos+={name}")]);
    eventually("the controller to know it", || async {
        let known = rig.ask("scontrol", &["show", "assoc_mgr", "flags=qos"]);
        known.contains(&format!("QOS={name}(")).then_some(())
    })
    .await;
}

async fn until_why_says(server: &TestServer, id: JobId, words: &str) {
    eventually(&format!("`why` to say `{words}`"), || async {
        let why = server.client().job_why(id).await.ok()?.text;
        why.contains(words).then_some(())
    })
    .await;
}

async fn succeeds(server: &TestServer, id: JobId) -> danlu_types::api::JobView {
    let ended = server.wait_for_end(id).await;
    assert_eq!(ended.outcome, Some(JobOutcome::Succeeded), "{:?}\n{}", ended.reason, server.log());
    ended
}

fn whole(command: &str) -> JobSpec {
    JobSpec { devices: "nvidia:8".parse().unwrap(), ..spec(command) }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_limit_on_devices_holds_back_keeps_nobody_waiting() {
    let Some(rig) = SlurmRig::start_with_accounting() else { return };
    quality(&rig, "tight", "MaxTRESPerUser=gres/gpu=4").await;
    let server = start(&rig, "workspaces: { default: { qos: tight }, free: { qos: normal } }\n").await;
    let mut held = Vec::new();
    for _ in 0..4 {
        held.push(server.submit(&whole("true")).await);
    }
    for id in &held {
        until_why_says(&server, *id, "a limit of its quality of service (QOS) is reached").await;
    }
    // All nodes are idle, and planned with.
    let free = JobSpec { workspace: "free".to_owned(), ..whole("echo on $DANLU_NODE") };
    let id = server.submit(&free).await;
    succeeds(&server, id).await;
    for id in &held {
        assert!(server.job(*id).await.state != JobState::Ended, "none of them has failed");
    }
    sacctmgr(&rig, &["modify", "qos", "tight", "set", "MaxTRESPerUser=gres/gpu=-1"]);
    for id in held {
        succeeds(&server, id).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_on_submissions_makes_jobs_wait_and_fails_none() {
    let Some(rig) = SlurmRig::start_with_accounting() else { return };
    quality(&rig, "few", "MaxSubmitJobsPerUser=3").await;
    let server = start(&rig, "qos: few\n").await;
    let gate = server.folder().join("gate");
    let waits = format!("until [ -e {} ]; do sleep 0.05; done", gate.display());
    let mut jobs = Vec::new();
    for _ in 0..6 {
        jobs.push(server.submit(&spec(&waits)).await);
    }
    eventually("three to run and three to be refused", || async {
        let (mut running, mut refused) = (0, 0);
        for id in &jobs {
            let job = server.job(*id).await;
            running += usize::from(job.state == JobState::Running);
            refused += usize::from(
                job.attempts.iter().any(|it| it.reason.to_string().contains("QOSMaxSubmitJobPerUserLimit")),
            );
        }
        (running == 3 && refused == 3).then_some(())
    })
    .await;
    fs::write(&gate, "").unwrap();
    for id in jobs {
        succeeds(&server, id).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_have_the_account_and_quality_of_their_workspace() {
    let Some(rig) = SlurmRig::start_with_accounting() else { return };
    quality(&rig, "high", "Priority=10").await;
    let settings = "workspaces: { default: { qos: high }, free: { account: vision } }\n";
    let server = start(&rig, settings).await;
    let by_default = server.submit(&spec("exec sleep 600")).await;
    server.wait_for(by_default, JobState::Running).await;
    let shown = rig.ask("squeue", &["--noheader", "--states=running", "--format=%a|%q"]);
    assert_eq!(shown.trim(), "root|high");
    // An account that is not there yet is waited for.
    let of_free =
        server.submit(&JobSpec { workspace: "free".to_owned(), ..spec("echo $SLURM_JOB_ACCOUNT") }).await;
    until_why_says(&server, of_free, "Invalid account").await;
    sacctmgr(&rig, &["add", "account", "vision"]);
    sacctmgr(&rig, &["add", "user", "root", "account=vision"]);
    let ended = succeeds(&server, of_free).await;
    assert!(
        ended.attempts[0].reason.to_string().contains("Invalid account"),
        "{:?}",
        ended.attempts[0].reason
    );
    let accounted =
        || rig.ask("sacct", &["--allocations", "--noheader", "--parsable2", "--format=Account,State"]);
    eventually("Slurm's accounting to have it", || async {
        accounted().lines().any(|line| line == "vision|COMPLETED").then_some(())
    })
    .await;
    server.client().job_stop(by_default, &danlu_types::api::StopRequest::default()).await.unwrap();
    server.wait_for_end(by_default).await;
}
