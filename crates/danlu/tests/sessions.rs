//! Sessions inside a running worker: pipes, terminals, signals, exit codes; and the CLI's `exec`.

#![expect(
    clippy::unwrap_used,
    reason = "a test says what it expects by failing; a panic there is the message"
)]

use std::process::Command;

use danlu_testkit::{TestServer, alive, eventually, spec};
use danlu_types::api::{JobState, StopRequest};
use danlu_types::session::{Frame, FrameKind, OpenSession, SessionExit, TerminalSize};
use danlu_types::{JobId, JobSpec, Span, WorkerIndex};

const DANLU: &str = env!("CARGO_BIN_EXE_danlu");

async fn server_with_a_running_job() -> (TestServer, JobId) {
    let server = TestServer::start(DANLU, &["--simulate", "1x2:ascend:910B3"]).await;
    let job = JobSpec {
        workers: 2,
        devices: "ascend:1".parse().unwrap(),
        grace: Span::default(),
        ..spec("sleep 1000")
    };
    let id = server.submit(&job).await;
    server.wait_for(id, JobState::Running).await;
    (server, id)
}

fn run(command: &[&str], terminal: Option<TerminalSize>) -> OpenSession {
    OpenSession { command: command.iter().map(|word| (*word).to_owned()).collect(), terminal, env: vec![] }
}

/// Runs a session to its end: standard output, standard error, exit.
async fn session(
    server: &TestServer,
    id: JobId,
    worker: u32,
    open: OpenSession,
    input: &[Frame],
) -> (String, String, SessionExit) {
    let (mut sender, mut receiver) =
        server.client().session_open(id, WorkerIndex(worker), &open).await.unwrap();
    for frame in input {
        sender.send(frame.clone()).await.unwrap();
    }
    let (mut out, mut err) = (Vec::new(), Vec::new());
    while let Some(frame) = receiver.next().await.unwrap() {
        match frame.kind {
            FrameKind::Stdout => out.extend(frame.payload),
            FrameKind::Stderr => err.extend(frame.payload),
            FrameKind::Exit => {
                let exit = serde_json::from_slice(&frame.payload).unwrap();
                return (String::from_utf8(out).unwrap(), String::from_utf8(err).unwrap(), exit);
            }
            other => panic!("unexpected frame {other:?}: {}", String::from_utf8_lossy(&frame.payload)),
        }
    }
    panic!("the session closed without an exit");
}

#[tokio::test]
async fn a_command_runs_with_the_workers_environment_and_its_exit_code_comes_back() {
    let (server, id) = server_with_a_running_job().await;
    let open =
        run(&["sh", "-c", "echo $DANLU_WORKER $ASCEND_RT_VISIBLE_DEVICES; echo oops >&2; exit 42"], None);
    let (out, err, exit) = session(&server, id, 1, open, &[]).await;
    assert_eq!((out.as_str(), err.as_str(), exit), ("1 1\n", "oops\n", SessionExit::Code(42)));
}

#[tokio::test]
async fn input_reaches_the_program_and_its_end_too() {
    let (server, id) = server_with_a_running_job().await;
    let input = [
        Frame::new(FrameKind::Stdin, *b"one\n"),
        Frame::new(FrameKind::Stdin, *b"two\n"),
        Frame::new(FrameKind::Stdin, Vec::new()),
    ];
    let (out, _, exit) = session(&server, id, 0, run(&["cat"], None), &input).await;
    assert_eq!((out.as_str(), exit), ("one\ntwo\n", SessionExit::Code(0)));
}

#[tokio::test]
async fn a_program_that_ends_before_its_input_still_says_how_it_ended() {
    let (server, id) = server_with_a_running_job().await;
    let mut input = vec![Frame::new(FrameKind::Stdin, vec![b'x'; 64 * 1024]); 8];
    input.push(Frame::new(FrameKind::Stdin, Vec::new()));
    for round in 0..20 {
        let open = run(&["sh", "-c", "echo out; exit 3"], None);
        let (mut sender, mut receiver) =
            server.client().session_open(id, WorkerIndex(0), &open).await.unwrap();
        for frame in &input {
            // The session may be over before all is sent.
            if sender.send(frame.clone()).await.is_err() {
                break;
            }
        }
        let mut seen = Vec::new();
        while let Some(frame) = receiver.next().await.unwrap_or_else(|error| panic!("round {round}: {error}"))
        {
            seen.push((frame.kind, String::from_utf8_lossy(&frame.payload).into_owned()));
            if frame.kind == FrameKind::Exit {
                break;
            }
        }
        let expected =
            [(FrameKind::Stdout, "out\n".to_owned()), (FrameKind::Exit, r#"{"code":3}"#.to_owned())];
        assert_eq!(seen, expected, "round {round}");
    }
}

#[tokio::test]
async fn a_terminal_has_its_size_and_follows_it() {
    let (server, id) = server_with_a_running_job().await;
    let size = |rows, columns| TerminalSize { rows, columns };
    let program = "stty size; trap 'stty size; exit 0' WINCH; echo ready; while :; do sleep 0.02; done";
    let open = run(&["sh", "-c", program], Some(size(30, 100)));
    let (mut sender, mut receiver) = server.client().session_open(id, WorkerIndex(0), &open).await.unwrap();
    let mut out = String::new();
    let mut resized = false;
    while let Some(frame) = receiver.next().await.unwrap() {
        match frame.kind {
            FrameKind::Stdout => out.push_str(&String::from_utf8_lossy(&frame.payload)),
            FrameKind::Exit => break,
            other => panic!("unexpected frame {other:?}"),
        }
        if out.contains("ready") && !resized {
            resized = true;
            sender.send(Frame::json(FrameKind::Resize, &size(40, 120))).await.unwrap();
        }
    }
    assert_eq!(out.replace('\r', ""), "30 100\nready\n40 120\n");
}

#[tokio::test]
async fn a_signal_reaches_the_program() {
    let (server, id) = server_with_a_running_job().await;
    let open = run(&["sh", "-c", "echo ready; exec sleep 1000"], None);
    let (mut sender, mut receiver) = server.client().session_open(id, WorkerIndex(0), &open).await.unwrap();
    loop {
        let frame = receiver.next().await.unwrap().expect("an exit comes before the end");
        match frame.kind {
            FrameKind::Stdout => sender.send(Frame::new(FrameKind::Signal, *b"15")).await.unwrap(),
            FrameKind::Exit => {
                assert_eq!(
                    serde_json::from_slice::<SessionExit>(&frame.payload).unwrap(),
                    SessionExit::Signal(15)
                );
                break;
            }
            other => panic!("unexpected frame {other:?}"),
        }
    }
}

#[tokio::test]
async fn a_session_ends_with_its_client_and_with_its_job() {
    let (server, id) = server_with_a_running_job().await;
    let folder = server.folder().display().to_string();
    let program = |name: &str| format!("echo $$ > {folder}/{name}; sleep 1000");
    for name in ["abandoned", "outlived"] {
        let open = run(&["sh", "-c", &program(name)], None);
        let halves = server.client().session_open(id, WorkerIndex(0), &open).await.unwrap();
        let pid: i32 = server.file(name).await.trim().parse().unwrap();
        if name == "abandoned" {
            drop(halves);
        } else {
            server.client().job_stop(id, &StopRequest { grace: Some(Span::default()) }).await.unwrap();
            server.wait_for_end(id).await;
        }
        eventually(&format!("the {name} program to end"), || async { (!alive(pid)).then_some(()) }).await;
    }
    let refused = server
        .client()
        .session_open(id, WorkerIndex(0), &run(&["true"], None))
        .await
        .unwrap_err()
        .to_string();
    assert!(refused.contains("ended"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_cli_passes_output_input_and_exit_code() {
    let (server, id) = server_with_a_running_job().await;
    let data = server.data();
    let output = tokio::task::spawn_blocking(move || {
        Command::new(DANLU)
            .arg("--data")
            .arg(data)
            .args([
                "exec",
                "--worker",
                "1",
                &id.to_string(),
                "--",
                "sh",
                "-c",
                "echo worker $DANLU_WORKER; exit 5",
            ])
            .output()
            .unwrap()
    })
    .await
    .unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "worker 1\n");
    assert_eq!(output.status.code(), Some(5), "{}", String::from_utf8_lossy(&output.stderr));
}
