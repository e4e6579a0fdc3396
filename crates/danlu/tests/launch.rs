//! `danlu launch`: ranks on this machine, without a server.

#![expect(
    clippy::unwrap_used,
    reason = "a test says what it expects by failing; a panic there is the message"
)]

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Output, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

fn launch(folder: &std::path::Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_danlu"));
    command.arg("launch").args(arguments).current_dir(folder).env("TMPDIR", folder).stdin(Stdio::null());
    command
}

fn run(arguments: &[&str]) -> Output {
    let folder = tempfile::tempdir().unwrap();
    launch(folder.path(), arguments).output().unwrap()
}

fn sorted_lines(bytes: &[u8]) -> Vec<String> {
    let mut lines: Vec<String> = String::from_utf8_lossy(bytes).lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

#[test]
fn every_rank_is_told_who_it_is_and_its_lines_say_whose_they_are() {
    // This machine shows no such devices.
    let done = run(&[
        "--force",
        "--devices",
        "ascend:4-5",
        "--",
        "echo $RANK/$WORLD_SIZE on $ASCEND_RT_VISIBLE_DEVICES at $MASTER_ADDR; python3 -c 'import danlu'",
    ]);
    assert_eq!(sorted_lines(&done.stdout), ["[0] 0/2 on 4,5 at 127.0.0.1", "[1] 1/2 on 4,5 at 127.0.0.1"]);
    assert!(done.status.success(), "{done:?}");
}

#[test]
fn the_code_of_the_first_failed_rank_is_the_exit_code() {
    let done = run(&["--ranks", "3", "--", "[ $RANK != 1 ] || exit 7; exec sleep 1000"]);
    assert_eq!(done.status.code(), Some(7));
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(said.contains("failed: rank 1 exited with code 7"), "{said}");
    assert!(said.contains("its logs are in "), "{said}");
}

#[test]
fn one_process_needs_no_prefix_and_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let done =
        launch(folder.path(), &["--", "sh", "-c", "echo \"$0 $1\"", "two words", "x"]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&done.stdout), "two words x\n");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn an_interrupt_asks_the_ranks_to_end() {
    let folder = tempfile::tempdir().unwrap();
    let script = "trap 'echo saved; exit 0' TERM; echo ready; while :; do sleep 0.01; done";
    let mut child: Child =
        launch(folder.path(), &["--ranks", "2", "--", script]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    for _ in 0..2 {
        assert!(lines.next().unwrap().unwrap().ends_with("ready"));
    }
    kill(Pid::from_raw(i32::try_from(child.id()).unwrap()), Signal::SIGINT).unwrap();
    let rest: Vec<String> = lines.map(Result::unwrap).collect();
    assert_eq!(rest.iter().filter(|line| line.ends_with("saved")).count(), 2, "{rest:?}");
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

#[test]
fn machines_meet_in_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let meet = folder.path().join("meet");
    let start = |rank: &str| {
        let arguments = [
            "--nodes",
            "2",
            "--node-rank",
            rank,
            "--rendezvous",
            meet.to_str().unwrap(),
            "--ranks",
            "2",
            "--",
            "echo $RANK/$WORLD_SIZE $MASTER_PORT",
        ];
        launch(folder.path(), &arguments).stdout(Stdio::piped()).spawn().unwrap()
    };
    let (second, first) = (start("1"), start("0"));
    let mut lines = sorted_lines(&first.wait_with_output().unwrap().stdout);
    lines.extend(sorted_lines(&second.wait_with_output().unwrap().stdout));
    let ports: std::collections::BTreeSet<&str> =
        lines.iter().map(|line| line.rsplit(' ').next().unwrap()).collect();
    assert_eq!((lines.len(), ports.len()), (4, 1), "{lines:?}");
    assert!(lines[3].starts_with("[3] 3/4"), "{lines:?}");
}

#[test]
fn what_makes_no_sense_is_refused_with_what_would() {
    for (arguments, hint) in [
        (&["--devices", "0-1", "--", "true"][..], "--force --devices ascend:0-1"),
        (&["--devices", "ascend:7", "--", "true"][..], "this machine shows no device 7"),
        (&["--nodes", "2", "--", "true"][..], "--rendezvous"),
        (&["--ranks", "many", "--", "true"][..], "per-device"),
    ] {
        let refused = run(arguments);
        assert_eq!(refused.status.code(), Some(2), "{refused:?}");
        assert!(String::from_utf8_lossy(&refused.stderr).contains(hint), "{refused:?}");
    }
}
