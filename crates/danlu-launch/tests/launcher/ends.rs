//! How workers end, and that nothing of them is left.

use std::fs;

use crate::harness::{Bench, Launched, eventually, is_gone};
use danlu_core::job::{FailureCause, ProcessExit, WorkerEnd};
use danlu_core::launch::{ActualAllocation, GIVEN_FILE, LauncherState};
use danlu_types::{Rank, Span};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

#[test]
fn the_exit_code_is_reported() {
    let bench = Bench::new();
    let mut launched = Launched::start(bench.launch_file("exit 7"));
    let failure = launched.failure();
    assert_eq!((failure.cause, failure.rank), (FailureCause::Exit, Some(Rank(0))));
    assert_eq!(failure.exit, Some(ProcessExit::Code(7)));
}

#[test]
fn a_real_time_signal_is_reported_too() {
    let bench = Bench::new();
    let mut launched = Launched::start(bench.launch_file("kill -40 $$"));
    assert_eq!(launched.failure().exit, Some(ProcessExit::Signal(40)));
}

#[test]
fn the_first_failure_names_the_culprit_and_ends_the_others() {
    let bench = Bench::new();
    let command = "if [ $RANK = 1 ]; then exit 3; fi; exec sleep 1000";
    let mut launched = Launched::start(bench.launch_file_of_ranks(3, command));
    let failure = launched.failure();
    assert_eq!((failure.rank, failure.exit), (Some(Rank(1)), Some(ProcessExit::Code(3))));
}

#[test]
fn a_stop_leaves_time_for_a_checkpoint() {
    let bench = Bench::new();
    // The shell around the program dies of the signal at once; the program must have its time all the same.
    let script = bench.path().join("train.sh");
    fs::write(&script, "trap 'sleep 0.2; echo saved; exit 0' TERM; echo ready; while :; do sleep 0.05; done")
        .unwrap();
    let mut launched =
        Launched::start(bench.launch_file(&format!("sh {}; echo not reached", script.display())));
    eventually("a trap", || launched.lines(0).contains(&"ready".to_owned()).then_some(()));
    launched.order_stop(Span::from_seconds(30));
    assert_eq!(launched.exit(), WorkerEnd::Stopped);
    let lines = launched.lines(0);
    assert!(lines.contains(&"saved".to_owned()) && !lines.contains(&"not reached".to_owned()), "{lines:?}");
}

#[test]
fn a_program_that_does_not_heed_the_signal_is_killed() {
    let bench = Bench::new();
    let mut launched =
        Launched::start(bench.launch_file("trap '' TERM; echo ready; while :; do sleep 1000; done"));
    eventually("a trap", || launched.lines(0).contains(&"ready".to_owned()).then_some(()));
    let pids = launched.running();
    launched.order_stop(Span::from_seconds(3600));
    // A later order with less grace hurries.
    launched.order_stop(Span { milliseconds: 100 });
    assert_eq!(launched.exit(), WorkerEnd::Stopped);
    assert!(pids.into_iter().all(is_gone));
}

#[test]
fn a_worker_that_was_stopped_before_it_began_does_not_begin() {
    let bench = Bench::new();
    let launch = bench.launch_file("echo begun");
    fs::create_dir_all(&launch.folders.run).unwrap();
    fs::write(launch.folders.run.join("stop.json"), r#"{"grace":"1s"}"#).unwrap();
    let (launched, exit) = Launched::run(launch);
    assert_eq!(exit, WorkerEnd::Stopped);
    assert!(launched.lines(0).is_empty());
}

#[test]
fn a_daemon_does_not_survive_its_worker() {
    let bench = Bench::new();
    let fifo = bench.fifo("daemon");
    // A session of its own, an orphan, no ties to the rank's pipes.
    let command = format!(
        "(setsid sh -c 'setsid sh -c \"echo \\$\\$ > {0}; exec sleep 1000\" & ' <&- >/dev/null 2>&1 &); read pid < {0}; echo $pid",
        fifo.display()
    );
    let (launched, exit) = bench.run(&command);
    assert_eq!(exit, WorkerEnd::Succeeded);
    let daemon: i32 = launched.lines(0)[0].parse().unwrap();
    assert!(is_gone(daemon), "{daemon} lives");
}

#[test]
fn time_is_limited() {
    let bench = Bench::new();
    let mut launch = bench.launch_file("exec sleep 1000");
    launch.max_time = Some(Span { milliseconds: 100 });
    let mut launched = Launched::start(launch);
    let failure = launched.failure();
    assert_eq!(failure.cause, FailureCause::TimeLimit);
    assert!(failure.detail.contains("100ms"), "{}", failure.detail);
}

#[test]
fn a_killed_launcher_takes_its_ranks_along_and_leaves_a_readable_status() {
    let bench = Bench::new();
    let mut launched = Launched::start(bench.launch_file_of_ranks(2, "exec sleep 1000"));
    let pids = launched.running();
    kill(launched.pid(), Signal::SIGKILL).unwrap();
    launched.launcher.wait().unwrap();
    eventually("the ranks' end", || pids.iter().all(|pid| is_gone(*pid)).then_some(()));
    assert!(matches!(launched.status().unwrap().phase, LauncherState::Running { .. }));
}

#[test]
fn setup_runs_first_and_its_failure_is_named() {
    let bench = Bench::new();
    let mut launch = bench.launch_file("cat made; echo ran");
    launch.setup = Some("echo preparing; echo made-by-setup > made".to_owned());
    let (launched, exit) = Launched::run(launch);
    assert_eq!(exit, WorkerEnd::Succeeded);
    assert_eq!(launched.lines(0), ["preparing", "made-by-setup", "ran"]);

    let bench = Bench::new();
    let mut launch = bench.launch_file("echo ran");
    launch.setup = Some("echo no such wheel; exit 4".to_owned());
    let mut launched = Launched::start(launch);
    let failure = launched.failure();
    assert_eq!((failure.cause, failure.exit), (FailureCause::SetupFailed, Some(ProcessExit::Code(4))));
    assert_eq!(launched.lines(0), ["no such wheel"]);
}

#[test]
fn a_command_that_cannot_be_started_says_why() {
    let bench = Bench::new();
    let mut launch = bench.launch_file("true");
    launch.working_directory = Some("/nowhere".into());
    let mut launched = Launched::start(launch);
    let failure = launched.failure();
    assert_eq!(failure.cause, FailureCause::StartFailed);
    assert!(failure.detail.contains("`/nowhere`"), "{}", failure.detail);
}

#[test]
fn a_checkpoint_outlives_its_attempt() {
    let bench = Bench::new();
    let mut launch = bench.launch_file("echo 7 > ckpt/step; echo resume=$DANLU_RESUME_DIR");
    launch.checkpoint = Some("./ckpt".into());
    let (first, _) = Launched::run(launch.clone());
    assert_eq!(first.lines(0), ["resume="]);
    launch.worker.attempt.0 = 2;
    launch.folders.run = bench.path().join("runs/1/2.0");
    launch.command = "cat $DANLU_RESUME_DIR/step ckpt/step".to_owned();
    let (second, _) = Launched::run(launch);
    assert_eq!(second.lines(0), ["7", "7"]);
}

/// A cluster's scheduler signals ranks and launcher alike, in no particular order: a rank that ends by it, with whatever code, has
/// neither failed nor come to its end.
#[test]
fn a_rank_that_heeds_a_signal_of_the_clusters_has_not_failed_and_not_succeeded() {
    for code in [143, 1, 0] {
        let bench = Bench::new();
        let command = format!("trap 'exit {code}' TERM; echo ready; while :; do sleep 0.05; done");
        let launch = bench.launch_file(&command);
        fs::create_dir_all(&launch.folders.run).unwrap();
        let given = ActualAllocation { devices: Vec::new(), place: None };
        fs::write(launch.folders.run.join(GIVEN_FILE), serde_json::to_vec(&given).unwrap()).unwrap();
        let mut launched = Launched::start(launch);
        eventually("a trap", || launched.lines(0).contains(&"ready".to_owned()).then_some(()));
        let rank = Pid::from_raw(launched.running()[0]);
        // So that the launcher hears of both at once.
        kill(launched.pid(), Signal::SIGSTOP).unwrap();
        kill(rank, Signal::SIGTERM).unwrap();
        eventually("the rank's end", || {
            let stat = fs::read_to_string(format!("/proc/{rank}/stat")).unwrap();
            stat.rsplit_once(')').unwrap().1.trim_start().starts_with('Z').then_some(())
        });
        kill(launched.pid(), Signal::SIGTERM).unwrap();
        kill(launched.pid(), Signal::SIGCONT).unwrap();
        assert_eq!(launched.exit(), WorkerEnd::Stopped, "code {code}");
    }
}
