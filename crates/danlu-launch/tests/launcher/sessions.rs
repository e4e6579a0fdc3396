//! Sessions inside a running worker.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use danlu_core::job::WorkerEnd;
use danlu_types::Span;
use danlu_types::session::{Frame, FrameKind, OpenSession, SessionExit, TerminalSize};

use crate::harness::{Bench, Launched, eventually, is_gone};

struct Session {
    stream: UnixStream,
    buffer: Vec<u8>,
}

impl Session {
    fn open(launched: &Launched, command: &[&str], terminal: Option<TerminalSize>) -> Self {
        let path = launched.launch.folders.run.join("session.sock");
        let stream = eventually("the session socket", || UnixStream::connect(&path).ok());
        let mut session = Session { stream, buffer: Vec::new() };
        let command = command.iter().map(|&word| word.to_owned()).collect();
        let env = [("EXTRA", "more"), ("CUDA_VISIBLE_DEVICES", "7"), ("ROCR_VISIBLE_DEVICES", "7")];
        let env = env.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
        session.send(&Frame::json(FrameKind::Open, &OpenSession { command, terminal, env }));
        session
    }

    fn send(&mut self, frame: &Frame) {
        self.stream.write_all(&frame.encode()).unwrap();
    }

    fn next(&mut self) -> Option<Frame> {
        loop {
            if let Some(frame) = Frame::decode(&mut self.buffer).unwrap() {
                return Some(frame);
            }
            let mut chunk = [0; 4096];
            match self.stream.read(&mut chunk).unwrap() {
                0 => return None,
                bytes => self.buffer.extend_from_slice(&chunk[..bytes]),
            }
        }
    }

    /// Everything up to the end: standard output, standard error, and the last frame.
    fn finish(&mut self) -> (String, String, Frame) {
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        loop {
            let frame = self.next().expect("a last frame");
            match frame.kind {
                FrameKind::Stdout => stdout.extend(frame.payload),
                FrameKind::Stderr => stderr.extend(frame.payload),
                _ => {
                    let text = |bytes| String::from_utf8(bytes).unwrap();
                    return (text(stdout), text(stderr), frame);
                }
            }
        }
    }

    fn until_output(&mut self, wanted: &str) {
        let mut seen = String::new();
        while !seen.contains(wanted) {
            let frame = self.next().expect("more output");
            assert_eq!(frame.kind, FrameKind::Stdout, "{:?}", String::from_utf8_lossy(&frame.payload));
            seen.push_str(&String::from_utf8_lossy(&frame.payload));
        }
    }
}

fn exit(frame: &Frame) -> SessionExit {
    assert_eq!(frame.kind, FrameKind::Exit, "{}", String::from_utf8_lossy(&frame.payload));
    serde_json::from_slice(&frame.payload).unwrap()
}

fn sleeper(bench: &Bench) -> Launched {
    Launched::start(bench.launch_file("exec sleep 1000"))
}

#[test]
fn exec_finds_the_workers_environment_and_gives_its_exit_code() {
    let bench = Bench::new();
    let launched = sleeper(&bench);
    let script = "echo $DANLU_RANK $EXTRA; pwd >&2; exit 5";
    let (stdout, stderr, last) = Session::open(&launched, &["sh", "-c", script], None).finish();
    assert_eq!(stdout, "0 more\n");
    assert_eq!(stderr.trim_end(), launched.launch.folders.run.join("work").display().to_string());
    assert_eq!(exit(&last), SessionExit::Code(5));
}

/// The security review's M7, by the other door.
#[test]
fn a_session_does_not_name_devices_that_its_worker_was_not_given() {
    let bench = Bench::new();
    let launched = sleeper(&bench);
    let script = "echo \"[$CUDA_VISIBLE_DEVICES] [${ROCR_VISIBLE_DEVICES-unset}] $EXTRA\"";
    let (stdout, _, _) = Session::open(&launched, &["sh", "-c", script], None).finish();
    assert_eq!(stdout, "[] [unset] more\n");
}

#[test]
fn all_output_comes_before_the_exit() {
    let bench = Bench::new();
    let launched = sleeper(&bench);
    let (stdout, _, last) = Session::open(&launched, &["seq", "1", "100000"], None).finish();
    assert_eq!(stdout.lines().count(), 100_000);
    assert_eq!(exit(&last), SessionExit::Code(0));
}

#[test]
fn standard_input_reaches_the_program_and_can_be_closed() {
    let bench = Bench::new();
    let launched = sleeper(&bench);
    let mut session = Session::open(&launched, &["cat"], None);
    session.send(&Frame::new(FrameKind::Stdin, "to and fro"));
    session.until_output("to and fro");
    session.send(&Frame::new(FrameKind::Stdin, ""));
    assert_eq!(exit(&session.finish().2), SessionExit::Code(0));
}

#[test]
fn a_terminal_has_a_size_and_can_be_resized() {
    let bench = Bench::new();
    let launched = sleeper(&bench);
    let size = TerminalSize { rows: 30, columns: 100 };
    let mut session =
        Session::open(&launched, &["sh", "-c", "stty size; read line; stty size; tty"], Some(size));
    session.until_output("30 100");
    session.send(&Frame::json(FrameKind::Resize, &TerminalSize { rows: 50, columns: 132 }));
    session.send(&Frame::new(FrameKind::Stdin, "\n"));
    let (stdout, _, last) = session.finish();
    assert!(stdout.contains("50 132") && stdout.contains("/dev/pts/"), "{stdout}");
    assert_eq!(exit(&last), SessionExit::Code(0));
}

#[test]
fn signals_reach_the_program() {
    let bench = Bench::new();
    let launched = sleeper(&bench);
    let mut session = Session::open(&launched, &["sh", "-c", "echo ready; exec sleep 1000"], None);
    session.until_output("ready");
    session.send(&Frame::new(FrameKind::Signal, "15"));
    assert_eq!(exit(&session.finish().2), SessionExit::Signal(15));
    let size = TerminalSize { rows: 24, columns: 80 };
    let mut session = Session::open(&launched, &["sh", "-c", "echo ready; exec sleep 1000"], Some(size));
    session.until_output("ready");
    session.send(&Frame::new(FrameKind::Signal, "2"));
    assert_eq!(exit(&session.finish().2), SessionExit::Signal(2));
}

#[test]
fn a_program_that_is_not_there_is_an_error() {
    let bench = Bench::new();
    let launched = sleeper(&bench);
    let last = Session::open(&launched, &["no-such-program"], None).finish().2;
    assert_eq!(last.kind, FrameKind::Error);
    assert!(String::from_utf8(last.payload).unwrap().contains("`no-such-program`"));
}

#[test]
fn a_client_that_goes_away_takes_its_program_along_and_nothing_else() {
    let bench = Bench::new();
    let launched = sleeper(&bench);
    let mut session =
        Session::open(&launched, &["sh", "-c", "trap '' HUP; echo $$ ready; sleep 1000; :"], None);
    let frame = session.next().unwrap();
    let text = String::from_utf8(frame.payload).unwrap();
    let pid: i32 = text.split(' ').next().unwrap().parse().unwrap();
    drop(session);
    eventually("the program's end", || is_gone(pid).then_some(()));
    assert!(!is_gone(launched.running()[0]));
}

#[test]
fn the_workers_end_is_the_sessions_end() {
    let bench = Bench::new();
    let mut launched = sleeper(&bench);
    let size = Some(TerminalSize { rows: 24, columns: 80 });
    // An interactive shell heeds no SIGTERM.
    let mut session = Session::open(&launched, &["sh", "-i"], size);
    session.send(&Frame::new(FrameKind::Stdin, "trap '' TERM; echo re''ady\n"));
    session.until_output("ready");
    launched.order_stop(Span::from_seconds(3600));
    assert_eq!(launched.exit(), WorkerEnd::Stopped);
    assert_eq!(session.finish().2.kind, FrameKind::Exit);
}
