//! The command line as people use it: on a terminal, with Ctrl-C and windows that change their size.

use danlu_testkit::{CTRL_C, Terminal, TestServer, spec};
use danlu_types::JobId;
use danlu_types::api::{JobOutcome, JobState};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

const DANLU: &str = env!("CARGO_BIN_EXE_danlu");
const WINDOW: (u16, u16) = (24, 100);

/// Hears that it should end, says so, and goes on.
const STUBBORN: &str = "trap 'echo heard' TERM; echo ready; while :; do sleep 0.02; done";

#[tokio::test(flavor = "multi_thread")]
async fn the_first_ctrl_c_stops_with_grace_and_the_second_kills() {
    let server = TestServer::start(DANLU, &[]).await;
    let arguments = ["run", "--set", "grace=1h", "--", "sh", "-c", STUBBORN];
    let mut terminal = Terminal::start(DANLU, &server.data(), &arguments, WINDOW);
    terminal.wait_for("ready\n").await;
    terminal.type_in(CTRL_C).await;
    terminal.wait_for("stopping job 1; Ctrl-C again kills it at once").await;
    terminal.wait_for("heard\n").await;
    assert_eq!(server.job(JobId(1)).await.state, JobState::Stopping, "it has an hour");
    terminal.type_in(CTRL_C).await;
    terminal.wait_for("killing job 1").await;
    let (code, shown) = terminal.end().await;
    assert_eq!(code, Some(130), "{shown}");
    let job = server.wait_for_end(JobId(1)).await;
    assert_eq!(job.outcome, Some(JobOutcome::Stopped));
    assert!(shown.contains("job 1: stopped"), "{shown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_ends_in_its_grace_needs_one_ctrl_c() {
    let server = TestServer::start(DANLU, &[]).await;
    let polite = "trap 'echo saved; exit 0' TERM; echo ready; while :; do sleep 0.02; done";
    let arguments = ["run", "--set", "grace=1h", "--", "sh", "-c", polite];
    let mut terminal = Terminal::start(DANLU, &server.data(), &arguments, WINDOW);
    terminal.wait_for("ready\n").await;
    terminal.type_in(CTRL_C).await;
    let (code, shown) = terminal.end().await;
    assert_eq!(code, Some(130), "{shown}");
    assert!(shown.contains("saved\n"), "its last words are shown: {shown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_third_ctrl_c_leaves_even_if_the_server_does_not_answer() {
    let server = TestServer::start(DANLU, &[]).await;
    let arguments = ["run", "--set", "grace=1h", "--", "sh", "-c", STUBBORN];
    let mut terminal = Terminal::start(DANLU, &server.data(), &arguments, WINDOW);
    terminal.wait_for("ready\n").await;
    let pid = Pid::from_raw(server.pid());
    kill(pid, Signal::SIGSTOP).unwrap();
    terminal.type_in(CTRL_C).await;
    terminal.wait_for("stopping job 1").await;
    terminal.type_in(CTRL_C).await;
    terminal.wait_for("killing job 1").await;
    terminal.type_in(CTRL_C).await;
    let (code, shown) = terminal.end().await;
    kill(pid, Signal::SIGCONT).unwrap();
    assert_eq!(code, Some(130), "{shown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn progress_is_a_line_that_moves() {
    let server = TestServer::start(DANLU, &[]).await;
    let go = server.folder().join("go");
    let program = format!(
        "echo begun; echo ::danlu progress 0.42; while ! [ -e {} ]; do sleep 0.02; done; echo done",
        go.display()
    );
    let terminal = Terminal::start(DANLU, &server.data(), &["run", "--", "sh", "-c", &program], WINDOW);
    terminal.wait_for("42%").await;
    std::fs::write(&go, "").unwrap();
    let (code, shown) = terminal.end().await;
    assert_eq!(code, Some(0), "{shown}");
    assert!(shown.contains("done\n"), "{shown}");
    assert!(!shown.contains("::danlu progress"), "reports are drawn, not printed: {shown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_waits_says_for_what() {
    let server = TestServer::start(DANLU, &["--simulate", "1x1:ascend:910B3"]).await;
    let devices = "ascend:1".parse().unwrap();
    let holder = server.submit(&danlu_types::JobSpec { devices, ..spec("sleep 1000") }).await;
    server.wait_for(holder, JobState::Running).await;
    let arguments = ["run", "--devices", "ascend:1", "--", "echo", "my turn"];
    let terminal = Terminal::start(DANLU, &server.data(), &arguments, WINDOW);
    terminal.wait_for("job 2 is queued: ").await;
    server.client().job_stop(holder, &danlu_types::api::StopRequest::default()).await.unwrap();
    let (code, shown) = terminal.end().await;
    assert_eq!(code, Some(0), "{shown}");
    assert!(shown.contains("my turn\n"), "{shown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_window_that_changes_its_size_does_so_inside_the_worker_too() {
    let server = TestServer::start(DANLU, &[]).await;
    let job = server.submit(&spec("sleep 1000")).await;
    server.wait_for(job, JobState::Running).await;
    let program = "stty size; trap 'stty size; exit 3' WINCH; echo ready; while :; do sleep 0.02; done";
    let arguments = ["exec", "-it", "1", "--", "sh", "-c", program];
    let terminal = Terminal::start(DANLU, &server.data(), &arguments, (30, 100));
    terminal.wait_for("ready\n").await;
    terminal.resize(40, 120);
    let (code, shown) = terminal.end().await;
    assert_eq!((code, shown.as_str()), (Some(3), "30 100\nready\n40 120\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn ctrl_c_in_a_session_is_for_its_program() {
    let server = TestServer::start(DANLU, &[]).await;
    let job = server.submit(&spec("sleep 1000")).await;
    server.wait_for(job, JobState::Running).await;
    let program = "trap 'echo interrupted; exit 4' INT; echo ready; while :; do sleep 0.02; done";
    let arguments = ["exec", "-it", "1", "--", "sh", "-c", program];
    let mut terminal = Terminal::start(DANLU, &server.data(), &arguments, WINDOW);
    terminal.wait_for("ready\n").await;
    terminal.type_in(CTRL_C).await;
    let (code, shown) = terminal.end().await;
    assert_eq!(code, Some(4), "{shown}");
    assert!(shown.contains("interrupted"), "{shown}");
    assert_eq!(server.job(job).await.state, JobState::Running, "the job itself goes on");
}
