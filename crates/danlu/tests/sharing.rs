//! Workspaces on the real binary: guarantees, lending and preemption, limits, rules that change, and what is said of it.

use std::process::Command;

use danlu_testkit::{TestServer, eventually, spec};
use danlu_types::api::{Explanation, JobOutcome, JobState, JobView, WorkspaceView};
use danlu_types::{DeviceRequest, JobId, JobSpec, ProblemCode, Span};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

const DANLU: &str = env!("CARGO_BIN_EXE_danlu");
const ONE_NODE: [&str; 2] = ["--simulate", "1x8:nvidia:A100"];

const GUARANTEES: &str = "\
minimum_run_time: 0s
workspaces:
  vision: { guaranteed: { nvidia: 4 } }
  speech: { guaranteed: { nvidia: 4 } }
";

fn devices(text: &str) -> DeviceRequest {
    text.parse().expect("a request for devices")
}

fn job_in(workspace: &str, request: &str, command: &str) -> JobSpec {
    JobSpec {
        workspace: workspace.to_owned(),
        devices: devices(request),
        grace: Span { milliseconds: 500 },
        ..spec(command)
    }
}

/// A server with one node of eight devices, shared by the given rules.
async fn shared(rules: &str) -> TestServer {
    let folder = tempfile::Builder::new().prefix("danlu-test-").tempdir().expect("a temporary folder");
    let file = folder.path().join("workspaces.yaml");
    std::fs::write(&file, rules).expect("a file in it");
    let flags = [ONE_NODE[0], ONE_NODE[1], "--workspaces", file.to_str().expect("a plain path")];
    TestServer::start_in(DANLU, &flags, folder, &[]).await
}

fn make_gate(server: &TestServer, name: &str) {
    nix::unistd::mkfifo(&server.folder().join(name), nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
}

fn open_gate(server: &TestServer, name: &str) {
    std::fs::write(server.folder().join(name), "go\n").expect("somebody waits at the gate");
}

async fn waits_for(server: &TestServer, id: JobId, code: &str) -> JobView {
    eventually(&format!("job {id} to wait because of {code}"), || async {
        let job = server.job(id).await;
        (job.state == JobState::Queued && job.reason.word() == code).then_some(job)
    })
    .await
}

fn danlu(server: &TestServer, arguments: &[&str]) -> String {
    let mut command = Command::new(DANLU);
    let output = command.arg("--data").arg(server.data()).args(arguments).output().expect("danlu runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("danlu writes UTF-8")
}

async fn workspace(server: &TestServer, name: &str) -> WorkspaceView {
    let workspaces = server.client().workspaces_list().await.expect("they can be listed").items;
    workspaces.into_iter().find(|workspace| workspace.name == name).expect("it is listed")
}

#[tokio::test]
async fn a_borrower_gives_back_keeps_its_place_and_resumes_from_its_checkpoint() {
    let server = shared(GUARANTEES).await;
    let folder = server.folder().display().to_string();
    make_gate(&server, "gate");
    let program = format!(
        "if [ -n \"$DANLU_RESUME_DIR\" ]; then echo resumed at $(cat $DANLU_RESUME_DIR/step) >> {folder}/order; exit 0; fi
         trap 'echo 42 > $DANLU_CHECKPOINT_DIR/step; exit 0' TERM
         echo > {folder}/borrowing
         while :; do sleep 0.05; done"
    );
    let borrower = JobSpec {
        preemptible: true,
        checkpoint: Some("ckpt".to_owned()),
        grace: Span::from_seconds(30),
        ..job_in("speech", "nvidia:8", &program)
    };
    let borrower = server.submit(&borrower).await;
    server.file("borrowing").await;
    server.wait_for(borrower, JobState::Running).await;
    let (vision, speech) = (workspace(&server, "vision").await, workspace(&server, "speech").await);
    assert_eq!((speech.used.nvidia, speech.borrowed.nvidia, vision.lent.nvidia), (8.0, 4.0, 4.0));
    let late = JobSpec {
        preemptible: true,
        ..job_in("speech", "nvidia:8", &format!("echo late >> {folder}/order"))
    };
    let late = server.submit(&late).await;

    let owner = server.submit(&job_in("vision", "nvidia:4", &format!("read x < {folder}/gate"))).await;
    server.wait_for(owner, JobState::Running).await;
    let job = server.wait_for(borrower, JobState::Queued).await;
    assert_eq!(job.attempts[0].reason.to_string(), format!("preempted by job {owner}"));
    assert_eq!(server.job(late).await.state, JobState::Queued);

    open_gate(&server, "gate");
    let job = server.wait_for_end(borrower).await;
    assert_eq!((job.outcome, job.attempts.len()), (Some(JobOutcome::Succeeded), 2), "{:?}", job.reason);
    server.wait_for_end(late).await;
    assert_eq!(server.file("order").await, "resumed at 42\nlate\n");
    let owner = server.wait_for_end(owner).await;
    assert_eq!((owner.outcome, owner.attempts.len()), (Some(JobOutcome::Succeeded), 1));
    let events = danlu(&server, &["events", &borrower.to_string()]);
    assert!(events.contains(&format!("preempted for job {}", owner.id)), "{events}");
}

#[tokio::test]
async fn a_limit_holds_and_what_exceeds_it_alone_is_refused() {
    let server = shared("workspaces:\n  vision: { limit: { nvidia: 2 } }\n").await;
    let folder = server.folder().display().to_string();
    make_gate(&server, "gate");
    let first = server.submit(&job_in("vision", "nvidia:2", &format!("read x < {folder}/gate"))).await;
    server.wait_for(first, JobState::Running).await;
    let second = server.submit(&job_in("vision", "nvidia:1", "true")).await;
    let job = waits_for(&server, second, "workspace_limit").await;
    assert_eq!(
        job.reason.to_string(),
        "waiting for quota of workspace `vision` (NVIDIA devices: 2 used, limit 2, 1 requested)"
    );
    let why = server.client().job_why(second).await.unwrap();
    let quota = why.quota.expect("the limit is what keeps it");
    assert_eq!((quota.resource.as_str(), quota.limit.as_deref()), ("nvidia", Some("2")));

    let refusals = [
        ("vision", "nvidia:4", ProblemCode::CannotEverRun, "devices.count"),
        ("visoin", "nvidia:1", ProblemCode::InvalidFields, "workspace"),
    ];
    for (workspace, request, code, field) in refusals {
        let refused =
            server.client().job_submit(&job_in(workspace, request, "true"), None).await.unwrap_err();
        let danlu_client::ClientError::Problem(problem) = refused else { panic!("{refused}") };
        assert_eq!((problem.code, problem.errors[0].field.as_str()), (code, field));
    }
    open_gate(&server, "gate");
    assert_eq!(server.wait_for_end(second).await.outcome, Some(JobOutcome::Succeeded));
}

#[tokio::test]
async fn rules_are_read_again_when_asked_and_a_bad_file_changes_nothing() {
    let server = shared("workspaces:\n  vision: { limit: { nvidia: 1 } }\n").await;
    let file = server.folder().join("workspaces.yaml");
    let hang_up = || kill(Pid::from_raw(server.pid()), Signal::SIGHUP).unwrap();
    let first = server.submit(&job_in("vision", "nvidia:1", "sleep 1000")).await;
    server.wait_for(first, JobState::Running).await;
    let second = server.submit(&job_in("vision", "nvidia:1", "sleep 1000")).await;
    waits_for(&server, second, "workspace_limit").await;

    std::fs::write(&file, "workspaces:\n  vision: { limt: { nvidia: 8 } }\n").unwrap();
    hang_up();
    eventually("the server to complain", || async {
        server.log().contains("the workspaces stay as they were").then_some(())
    })
    .await;
    assert!(server.log().contains("did you mean `limit`?"), "{}", server.log());
    assert_eq!(server.job(second).await.state, JobState::Queued);

    std::fs::write(&file, "workspaces:\n  vision: { limit: { nvidia: 2 } }\n").unwrap();
    hang_up();
    server.wait_for(second, JobState::Running).await;
    let table = danlu(&server, &["workspace"]);
    assert!(table.contains("2 NVIDIA"), "{table}");
}

#[tokio::test]
async fn why_and_a_dry_run_give_the_same_answer_with_offers_that_hold() {
    let server = TestServer::start(DANLU, &ONE_NODE).await;
    let holder = server.submit(&job_in("default", "nvidia:5", "sleep 1000")).await;
    server.wait_for(holder, JobState::Running).await;
    let code = env!("CARGO_MANIFEST_DIR");
    let dry: Explanation = serde_json::from_str(&danlu(
        &server,
        &["submit", "--dry-run", "--json", "--devices", "nvidia:8", "--code", code, "--", "true"],
    ))
    .unwrap();
    let waiting = server.submit(&job_in("default", "nvidia:8", "true")).await;
    waits_for(&server, waiting, "devices_busy").await;
    let why: Explanation =
        serde_json::from_str(&danlu(&server, &["why", &waiting.to_string(), "--json"])).unwrap();
    assert_eq!((dry.job, why.job), (JobId(0), waiting));
    assert_eq!(
        (dry.reason.code(), &dry.offers, dry.position),
        (why.reason.code(), &why.offers, why.position)
    );
    assert_eq!(why.position, Some(1));
    assert_eq!((why.holders[0].job, why.holders[0].devices), (Some(holder), 5));
    assert_eq!(why.supply[0].free, 3);

    let page = danlu(&server, &["why", &waiting.to_string()]);
    let offer = why.offers.iter().find(|offer| offer.set.contains_key("devices.count")).expect("fewer start");
    let assignment = format!("devices.count={}", offer.set["devices.count"]);
    assert!(page.contains(&format!("change {waiting} --set {assignment}")), "{page}");
    // The offer was planned before it was made: taken, it starts.
    danlu(&server, &["change", &waiting.to_string(), "--set", &assignment]);
    let changed = server.wait_for_end(waiting).await;
    assert_eq!(changed.outcome, Some(JobOutcome::Succeeded));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hangup_does_not_end_a_server_without_such_a_file() {
    let server = TestServer::start(DANLU, &ONE_NODE).await;
    kill(Pid::from_raw(server.pid()), Signal::SIGHUP).expect("it runs");
    eventually("the server to say that it was asked", || async {
        server.log().contains("no workspaces file to read again").then_some(())
    })
    .await;
    server.client().readiness().await.expect("it still serves");
}
