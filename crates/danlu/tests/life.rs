//! The life of a job on the real binary: submit, watch, stop, retry, hold, clone, delete.

use danlu_testkit::{TestServer, alive, eventually, spec};
use danlu_types::api::{JobOutcome, JobQuery, JobState, StopRequest};
use danlu_types::{
    Bytes, DeviceCount, DeviceRequest, Framework, JobSpec, RanksPerWorker, Retry, RetryCause, Span,
};

const DANLU: &str = env!("CARGO_BIN_EXE_danlu");

fn short_grace(spec: JobSpec) -> JobSpec {
    JobSpec { grace: Span { milliseconds: 300 }, ..spec }
}

#[tokio::test]
async fn a_job_runs_and_its_output_is_kept() {
    let server = TestServer::start(DANLU, &[]).await;
    let job = server.run(&spec("echo one; echo two >&2; echo $DANLU_JOB_ID-$RANK-$WORLD_SIZE")).await;
    assert_eq!(job.outcome, Some(JobOutcome::Succeeded), "{:?}", job.reason);
    assert_eq!(job.exit_code, Some(0));
    let mut texts = server.texts(job.id).await;
    texts.sort();
    assert_eq!(texts, ["1-0-1", "one", "two"]);
}

#[tokio::test]
async fn a_failing_program_is_named_with_its_code() {
    let server = TestServer::start(DANLU, &[]).await;
    let job = server.run(&spec("exit 7")).await;
    assert_eq!(job.outcome, Some(JobOutcome::Failed));
    assert_eq!(job.exit_code, Some(7));
    assert_eq!(job.reason.to_string(), "failed: worker 0: rank 0 exited with code 7");
}

#[tokio::test]
async fn a_program_that_does_not_exist_is_a_failure_that_says_so() {
    let server = TestServer::start(DANLU, &[]).await;
    let job = server.run(&spec("no-such-program --at-all")).await;
    assert_eq!(job.exit_code, Some(127));
    let texts = server.texts(job.id).await.join("\n");
    assert!(texts.contains("no-such-program"), "{texts}");
}

#[tokio::test]
async fn the_first_failing_rank_of_a_gang_is_the_culprit_and_ends_the_others() {
    let server = TestServer::start(DANLU, &[]).await;
    let gang = JobSpec {
        workers: 2,
        ranks: Some(RanksPerWorker::Count(2)),
        ..short_grace(spec("if [ $RANK = 3 ]; then exit 9; fi; sleep 1000"))
    };
    let job = server.run(&gang).await;
    assert_eq!(job.reason.to_string(), "failed: worker 1: rank 3 exited with code 9");
    assert_eq!(job.exit_code, Some(9));
}

#[tokio::test]
async fn stop_gives_grace_and_leaves_no_orphan() {
    let server = TestServer::start(DANLU, &[]).await;
    let folder = server.folder().display().to_string();
    // A program that cleans up when asked, with a child that ignores everything and has left its process group.
    let program = format!(
        "setsid sh -c 'trap \"\" TERM INT HUP; echo $$ > {folder}/orphan; while :; do sleep 1; done' &
         trap 'echo saved > {folder}/saved; exit 0' TERM
         echo $$ > {folder}/rank
         while :; do sleep 0.05; done"
    );
    let id = server.submit(&spec(&program)).await;
    let orphan: i32 = server.file("orphan").await.trim().parse().unwrap();
    let rank: i32 = server.file("rank").await.trim().parse().unwrap();
    server.wait_for(id, JobState::Running).await;
    server.client().job_stop(id, &StopRequest::default()).await.unwrap();
    let job = server.wait_for_end(id).await;
    assert_eq!(job.outcome, Some(JobOutcome::Stopped), "{:?}", job.reason);
    assert_eq!(server.file("saved").await, "saved\n");
    assert!(!alive(orphan) && !alive(rank), "nothing of an ended job may live");
}

#[tokio::test]
async fn a_program_that_ignores_the_signal_is_killed_after_its_grace() {
    let server = TestServer::start(DANLU, &[]).await;
    let id = server.submit(&short_grace(spec("trap '' TERM; while :; do sleep 0.05; done"))).await;
    server.wait_for(id, JobState::Running).await;
    server.client().job_stop(id, &StopRequest::default()).await.unwrap();
    let job = server.wait_for_end(id).await;
    assert_eq!(job.outcome, Some(JobOutcome::Stopped), "{:?}", job.reason);
}

#[tokio::test]
async fn a_waiting_job_is_held_released_and_stopped_without_ever_running() {
    let server = TestServer::start(DANLU, &["--simulate", "1x1:ascend:910B3"]).await;
    let client = server.client();
    let device = DeviceRequest { count: DeviceCount::whole(1), ..DeviceRequest::default() };
    let with_device = |command: &str| JobSpec { devices: device.clone(), ..short_grace(spec(command)) };
    let blocker = server.submit(&with_device("sleep 1000")).await;
    server.wait_for(blocker, JobState::Running).await;
    let waiting = server.submit(&with_device("true")).await;
    let last = server.submit(&with_device("true")).await;

    let why = client.job_why(waiting).await.unwrap();
    assert_eq!((why.reason.word(), why.position), ("devices_busy", Some(1)), "{why:?}");
    client.job_hold(waiting).await.unwrap();
    assert_eq!(server.job(waiting).await.state, JobState::Held);
    client.job_stop(blocker, &StopRequest::default()).await.unwrap();
    // The held job is passed by the one behind it.
    assert_eq!(server.wait_for_end(last).await.outcome, Some(JobOutcome::Succeeded));
    assert_eq!(server.job(waiting).await.state, JobState::Held);
    client.job_stop(waiting, &StopRequest::default()).await.unwrap();
    let job = server.job(waiting).await;
    assert_eq!((job.outcome, job.attempts.len()), (Some(JobOutcome::Stopped), 0));
    let refused = client.job_release(waiting).await.unwrap_err().to_string();
    assert!(refused.contains("already ended"), "{refused}");
}

#[tokio::test]
async fn larger_priority_goes_first_and_the_rest_in_order() {
    let server = TestServer::start(DANLU, &["--simulate", "1x1:ascend:910B3"]).await;
    let folder = server.folder().display().to_string();
    let with_device = |command: String, priority: u8| JobSpec {
        devices: DeviceRequest { count: DeviceCount::whole(1), ..DeviceRequest::default() },
        priority: Some(priority),
        ..spec(&command)
    };
    let blocker = server.submit(&with_device(format!("read x < {folder}/gate"), 5)).await;
    nix::unistd::mkfifo(&server.folder().join("gate"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    server.wait_for(blocker, JobState::Running).await;
    let mut ids = Vec::new();
    for (name, priority) in [("a", 5), ("b", 5), ("urgent", 9), ("c", 5)] {
        ids.push(server.submit(&with_device(format!("echo {name} >> {folder}/order"), priority)).await);
    }
    std::fs::write(server.folder().join("gate"), "go\n").unwrap();
    for id in ids {
        server.wait_for_end(id).await;
    }
    assert_eq!(server.file("order").await, "urgent\na\nb\nc\n");
}

#[tokio::test]
async fn failures_are_retried_with_a_new_attempt_and_the_checkpoint_of_the_last() {
    let server = TestServer::start(DANLU, &[]).await;
    let retried = JobSpec {
        retry: Retry { limit: 2, on: vec![RetryCause::Exit] },
        checkpoint: Some("ckpt".to_owned()),
        ..spec(
            "echo attempt $DANLU_ATTEMPT resume ${DANLU_RESUME_DIR:+yes}; cat ckpt/step; echo $DANLU_ATTEMPT > ckpt/step; [ $DANLU_ATTEMPT = 2 ]",
        )
    };
    let job = server.run(&retried).await;
    assert_eq!(job.outcome, Some(JobOutcome::Succeeded), "{:?}", job.reason);
    assert_eq!(job.attempts.len(), 2);
    assert_eq!(job.attempts[0].reason.word(), "exit");
    assert_eq!(server.texts(job.id).await, ["attempt 2 resume yes", "1"]);
}

#[tokio::test]
async fn max_time_ends_a_job_and_says_so() {
    let server = TestServer::start(DANLU, &[]).await;
    let limited = JobSpec { max_time: Some(Span { milliseconds: 300 }), ..short_grace(spec("sleep 1000")) };
    let job = server.run(&limited).await;
    assert_eq!((job.reason.word(), job.exit_code), ("time_limit", Some(124)));
}

#[tokio::test]
async fn memory_limits_hold_and_an_out_of_memory_kill_is_reported_as_such() {
    if !std::path::Path::new("/sys/fs/cgroup/memory").exists()
        && !std::path::Path::new("/sys/fs/cgroup/cgroup.controllers").exists()
        || !nix::unistd::geteuid().is_root()
    {
        danlu_testkit::skip("only root can limit memory with a cgroup");
        return;
    }
    let server = TestServer::start(DANLU, &[]).await;
    let hungry = JobSpec {
        memory: Some(Bytes(64 << 20)),
        ..spec("python3 -c 'x = bytearray(512 << 20); print(len(x))'")
    };
    let job = server.run(&hungry).await;
    assert_eq!(job.reason.word(), "out_of_memory", "{:?}", job.reason);
}

#[tokio::test]
async fn simulated_devices_give_the_environment_of_real_ones() {
    let server = TestServer::start(DANLU, &["--simulate", "2x8:ascend:910B3,1x4:nvidia:A100-80G"]).await;
    let ascend = JobSpec {
        workers: 2,
        framework: Framework::Pytorch,
        devices: "ascend:910B*:8".parse().unwrap(),
        ..spec(
            "echo $RANK/$WORLD_SIZE $LOCAL_RANK [$ASCEND_RT_VISIBLE_DEVICES] $DEVICE_ID $RANK_ID $DANLU_NODE [$CUDA_VISIBLE_DEVICES]",
        )
    };
    let job = server.run(&ascend).await;
    assert_eq!(job.outcome, Some(JobOutcome::Succeeded), "{:?}", job.reason);
    let mut texts = server.texts(job.id).await;
    texts.sort_by_key(|text| text.split('/').next().and_then(|rank| rank.parse::<u32>().ok()));
    assert_eq!(texts.len(), 16);
    let nodes: Vec<&str> = job.attempts[0].workers.iter().map(|worker| worker.node.0.as_str()).collect();
    assert_ne!(nodes[0], nodes[1]);
    assert_eq!(texts[0], format!("0/16 0 [0,1,2,3,4,5,6,7] 0 0 {} []", nodes[0]));
    assert_eq!(texts[13], format!("13/16 5 [0,1,2,3,4,5,6,7] 5 13 {} []", nodes[1]));

    let nvidia = JobSpec {
        devices: "nvidia:2".parse().unwrap(),
        ..spec("echo [$CUDA_VISIBLE_DEVICES] [$ASCEND_RT_VISIBLE_DEVICES]")
    };
    let job = server.run(&nvidia).await;
    assert_eq!(server.texts(job.id).await, ["[0,1] []"]);
}

#[tokio::test]
async fn clones_take_changes_and_deleted_jobs_are_gone() {
    let server = TestServer::start(DANLU, &[]).await;
    let client = server.client();
    let job = server.run(&JobSpec { name: "first".to_owned(), ..spec("echo $WHO") }).await;
    let changes = serde_json::json!({ "name": "second", "env": { "WHO": "clone" } });
    let copy = client.job_clone(job.id, &changes).await.unwrap();
    server.wait_for_end(copy.id).await;
    assert_eq!(server.texts(copy.id).await, ["clone"]);

    let named = JobQuery { name: Some("second".to_owned()), ..JobQuery::default() };
    assert_eq!(client.jobs_list(&named).await.unwrap().items.len(), 1);
    client.job_delete(job.id).await.unwrap();
    assert!(client.job_fetch(job.id).await.unwrap_err().is_not_found());
    let bad = client.job_clone(copy.id, &serde_json::json!({ "workers": 0 })).await.unwrap_err().to_string();
    assert!(bad.contains("workers"), "{bad}");
}

#[tokio::test]
async fn the_same_key_is_the_same_submission() {
    let server = TestServer::start(DANLU, &[]).await;
    let client = server.client();
    let first = client.job_submit(&spec("true"), Some("key-1")).await.unwrap();
    let again = client.job_submit(&spec("true"), Some("key-1")).await.unwrap();
    let other = client.job_submit(&spec("true"), Some("key-2")).await.unwrap();
    assert_eq!(first.id, again.id);
    assert_ne!(first.id, other.id);
}

#[tokio::test]
async fn hints_tell_which_job_changed_and_nothing_else() {
    let server = TestServer::start(DANLU, &[]).await;
    let mut hints = server.client().hints();
    // The stream is open once it gives something: submit until it does.
    let mut submitted = Vec::new();
    let hint = loop {
        submitted.push(server.submit(&spec("true")).await);
        let waited = tokio::time::timeout(std::time::Duration::from_millis(200), hints.next()).await;
        if let Ok(next) = waited {
            break next.unwrap().expect("nothing was missed");
        }
    };
    assert_eq!(hint.kind, "job");
    assert!(submitted.iter().any(|id| id.to_string() == hint.id), "{hint:?} is about none of {submitted:?}");
    assert!(hint.generation >= 1);
}

#[tokio::test]
async fn nodes_and_devices_show_who_holds_what() {
    let server = TestServer::start(DANLU, &["--simulate", "1x2:ascend:910B3"]).await;
    let client = server.client();
    let holder = JobSpec {
        name: "holder".to_owned(),
        devices: "ascend:1".parse().unwrap(),
        ..short_grace(spec("sleep 1000"))
    };
    let id = server.submit(&holder).await;
    server.wait_for(id, JobState::Running).await;
    let devices = client.devices_list().await.unwrap().items;
    let held: Vec<Option<&str>> =
        devices.iter().map(|device| device.held_by.as_ref().map(|held| held.job_name.as_str())).collect();
    assert_eq!(held, [Some("holder"), None]);
    client.job_stop(id, &StopRequest { grace: Some(Span::default()) }).await.unwrap();
    server.wait_for_end(id).await;
    eventually("the device to be free", || async {
        client.devices_list().await.unwrap().items.iter().all(|device| device.held_by.is_none()).then_some(())
    })
    .await;
}
