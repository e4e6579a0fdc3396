//! Processes between the server and a job's ranks that live and do nothing: they are not waited for without end.

#![expect(
    clippy::unwrap_used,
    reason = "a test says what it expects by failing; a panic there is the message"
)]

use danlu_testkit::{TestServer, alive, eventually, processes_of, spec};
use danlu_types::api::{JobOutcome, JobState, StopRequest};
use danlu_types::{JobId, JobSpec, Span};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

const DANLU: &str = env!("CARGO_BIN_EXE_danlu");

/// Stops the launcher of a job's only worker, as a debugger or a person would; its process number.
fn freeze_launcher(server: &TestServer, job: JobId) -> i32 {
    let status = server.data().join(format!("runs/{job}/1.0/status.jsonl"));
    let text = std::fs::read_to_string(status).unwrap();
    let last: serde_json::Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    let pid = i32::try_from(last["launcher"]["pid"].as_i64().unwrap()).unwrap();
    kill(Pid::from_raw(pid), Signal::SIGSTOP).unwrap();
    pid
}

async fn running(server: &TestServer, spec: &JobSpec) -> JobId {
    let id = server.submit(spec).await;
    server.wait_for(id, JobState::Running).await;
    id
}

#[tokio::test(flavor = "multi_thread")]
async fn a_frozen_launcher_is_killed_some_time_after_the_grace() {
    let server = TestServer::start(DANLU, &[]).await;
    let id = running(&server, &JobSpec { grace: Span::from_seconds(0), ..spec("sleep 600") }).await;
    let launcher = freeze_launcher(&server, id);
    server.client().job_stop(id, &StopRequest::default()).await.unwrap();
    let job = server.wait_for_end(id).await;
    assert_eq!(job.outcome, Some(JobOutcome::Stopped), "{:?}", job.reason);
    assert!(!alive(launcher));
    eventually("nothing to be left of it", || async {
        let run = server.data().join(format!("runs/{id}/"));
        processes_of(&run).is_empty().then_some(())
    })
    .await;
    assert_eq!(server.run(&spec("true")).await.outcome, Some(JobOutcome::Succeeded));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_frozen_launcher_does_not_lengthen_the_time_limit() {
    let server = TestServer::start(DANLU, &[]).await;
    let limited =
        JobSpec { max_time: Some(Span::from_seconds(20)), grace: Span::from_seconds(0), ..spec("sleep 600") };
    let id = running(&server, &limited).await;
    let launcher = freeze_launcher(&server, id);
    let job = server.wait_for_end(id).await;
    assert_eq!(
        (job.outcome, job.reason.word()),
        (Some(JobOutcome::Failed), "time_limit"),
        "{:?}",
        job.reason
    );
    assert!(!alive(launcher));
}

#[tokio::test(flavor = "multi_thread")]
async fn issue_16_a_frozen_launcher_is_told_of_although_its_job_has_no_time_limit() {
    let server = TestServer::start(DANLU, &[]).await;
    let id = running(&server, &spec("sleep 600")).await;
    let launcher = freeze_launcher(&server, id);
    let words = format!("its launcher (process {launcher}) is stopped");
    let told = eventually("the server to tell of it", || async {
        let report = server.client().readiness_report().await.ok()?;
        report.problems.iter().any(|problem| problem.contains(&words)).then_some(report)
    })
    .await;
    assert_eq!(told.status, "degraded");
    let why = server.client().job_why(id).await.unwrap();
    assert!(why.text.contains(&words), "{}", why.text);
    kill(Pid::from_raw(launcher), Signal::SIGCONT).unwrap();
    eventually("all to be well", || async {
        let report = server.client().readiness_report().await.ok()?;
        (report.status == "ok").then_some(())
    })
    .await;
}

/// The process of the server's from which launchers come.
fn nursery(server: &TestServer) -> Option<i32> {
    let children = format!("/proc/{0}/task/{0}/children", server.pid());
    let by_thread = std::fs::read_dir(format!("/proc/{}/task", server.pid())).ok()?;
    let lists = by_thread.flatten().map(|thread| thread.path().join("children"));
    let texts =
        std::iter::once(children.into()).chain(lists).filter_map(|path| std::fs::read_to_string(path).ok());
    let pids: Vec<i32> = texts
        .flat_map(|text| text.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>())
        .collect();
    let is_nursery = |pid: &i32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).any(|word| word == b"launch-workers")
    };
    pids.into_iter().find(|pid| is_nursery(pid) && alive(*pid))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_frozen_nursery_is_replaced_and_launches_go_on() {
    let server = TestServer::start(DANLU, &[]).await;
    let before = running(&server, &spec("sleep 600")).await;
    let frozen = nursery(&server).expect("a job runs, so there is one");
    kill(Pid::from_raw(frozen), Signal::SIGSTOP).unwrap();
    let jobs = [server.submit(&spec("echo one")).await, server.submit(&spec("echo two")).await];
    for (job, text) in jobs.into_iter().zip(["one", "two"]) {
        let job = server.wait_for_end(job).await;
        assert_eq!((job.outcome, job.attempts.len()), (Some(JobOutcome::Succeeded), 1), "{:?}", job.reason);
        assert_eq!(server.texts(job.id).await, [text], "it ran once");
    }
    assert!(!alive(frozen));
    assert_ne!(nursery(&server), Some(frozen));
    assert_eq!(server.job(before).await.state, JobState::Running, "what it had started goes on");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_server_may_open_many_files_and_ranks_as_many_as_before() {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    let before = soft.min(hard.min(1000) - 1);
    // For the other tests of this program too, to which it does not matter.
    setrlimit(Resource::RLIMIT_NOFILE, before, hard).unwrap();
    let server = TestServer::start(DANLU, &[]).await;
    let id = server.run(&spec("ulimit -Sn; ulimit -Hn")).await.id;
    let texts = server.texts(id).await;
    assert_eq!(texts[0], before.to_string());
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", server.pid())).unwrap();
    let line = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    let soft: u64 = line.split_whitespace().nth(3).unwrap().parse().unwrap();
    assert!(soft > before, "{line}");
}
