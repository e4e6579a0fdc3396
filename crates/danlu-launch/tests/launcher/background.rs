//! Commands that end while what they started goes on (ADR 21).

use std::fs;

use danlu_core::job::{FailureCause, WorkerExit};
use danlu_types::Span;

use crate::harness::{Bench, Launched, eventually, is_gone};

fn told(launched: &Launched, words: &str) -> Option<String> {
    launched.lines(0).into_iter().find(|line| line.contains(words))
}

/// As the script of many a project does it.
#[test]
fn issue_15_training_that_a_script_puts_in_the_background_is_waited_for() {
    let bench = Bench::new();
    let fifo = bench.fifo("go");
    let script = bench.path().join("train.sh");
    let train = format!("read line < {}; echo trained", fifo.display());
    fs::write(&script, format!("nohup sh -c '{train}' > train.log 2>&1 &\n")).unwrap();
    let mut launched = Launched::start(bench.launch_file(&format!("sh {}", script.display())));
    let line = eventually("a line in the log", || told(&launched, "left running in the background"));
    assert!(line.contains("started with nohup") && line.contains("`wait`"), "{line}");
    fs::write(fifo, "go\n").unwrap();
    assert_eq!(launched.exit(), WorkerExit::Succeeded);
    let log = walk(bench.path()).into_iter().find(|path| path.ends_with("train.log")).unwrap();
    assert_eq!(fs::read_to_string(log).unwrap(), "trained\n");
}

fn walk(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .flat_map(|entry| match entry.file_type() {
            Ok(kind) if kind.is_dir() => walk(&entry.path()),
            _ => vec![entry.path()],
        })
        .collect()
}

#[test]
fn what_holds_the_output_is_waited_for_and_can_be_stopped() {
    let bench = Bench::new();
    let mut launched = Launched::start(bench.launch_file("sleep 1000 & echo $!"));
    let line = eventually("a line in the log", || told(&launched, "left running in the background"));
    assert!(line.contains("which holds its output"), "{line}");
    launched.order_stop(Span::from_seconds(30));
    assert_eq!(launched.exit(), WorkerExit::Stopped);
    assert!(is_gone(launched.lines(0)[0].parse().unwrap()));
}

#[test]
fn the_time_limit_holds_for_what_was_left_running() {
    let bench = Bench::new();
    let mut launch = bench.launch_file("nohup sleep 1000 > /dev/null 2>&1 &");
    launch.max_time = Some(Span::from_seconds(2));
    assert_eq!(Launched::start(launch).failure().cause, FailureCause::TimeLimit);
}

#[test]
fn a_helper_or_a_daemon_is_ended_and_named() {
    for command in
        ["sleep 1000 > /dev/null 2>&1 & echo $!", "setsid nohup sleep 1000 > /dev/null 2>&1 & echo $!"]
    {
        let bench = Bench::new();
        let (launched, exit) = bench.run(command);
        assert_eq!(exit, WorkerExit::Succeeded, "{command}");
        let line = told(&launched, "ending what it left running").unwrap();
        assert!(line.contains("(sleep)") && line.contains("`nohup`"), "{line}");
    }
}

#[test]
fn what_setup_has_started_is_not_waited_for() {
    let bench = Bench::new();
    let mut launch = bench.launch_file("echo trained");
    launch.setup = Some("nohup sleep 1000 > /dev/null 2>&1 & echo $!".to_owned());
    let (launched, exit) = Launched::run(launch);
    assert_eq!(exit, WorkerExit::Succeeded);
    assert!(is_gone(launched.lines(0)[0].parse().unwrap()));
}
