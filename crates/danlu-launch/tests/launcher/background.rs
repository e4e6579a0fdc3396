//! Commands that end while what they started goes on (ADR 21).

use std::fs;

use danlu_core::job::{FailureCause, ProcessExit, WorkerEnd};
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
    assert_eq!(launched.exit(), WorkerEnd::Succeeded);
    let log = walk(bench.path()).into_iter().find(|path| path.ends_with("train.log")).unwrap();
    assert_eq!(fs::read_to_string(log).unwrap(), "trained\n");
}

/// As a guide for two accelerators does it: one branch for each kind of machine. `python3` is a stand-in that says what it was asked to run,
/// waits until it is let go, and ends with a code.
fn both_branches(bench: &Bench, kind: &str, code: i32) -> Launched {
    let (bin, go) = (bench.path().join("bin"), bench.fifo("go"));
    fs::create_dir(&bin).unwrap();
    let python = format!("#!/bin/sh\necho \"$*\"\nread line < {}\nexit {code}\n", go.display());
    for (name, text) in [("python3", &*python), ("taskset", "#!/bin/sh\nshift 2\nexec \"$@\"\n")] {
        fs::write(bin.join(name), text).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(bin.join(name), mode).unwrap();
    }
    let script = format!(
        "export PATH={}:$PATH\ncur_path=`pwd`\nif [ {kind} = aarch64 ]\nthen\n  for i in 0\n  do\n    export LOCAL_RANK=$i\n    \
         nohup taskset -c 0-0 python3 -u train.py --local_rank=$i > ${{cur_path}}/train.log 2>&1 &\n  done\nelse\n  \
         python3 -m torch.distributed.launch --nproc_per_node=2 train.py > ${{cur_path}}/train.log 2>&1 &\nfi\n",
        bin.display()
    );
    fs::write(bench.path().join("train.sh"), script).unwrap();
    Launched::start(bench.launch_file(&format!("bash {}", bench.path().join("train.sh").display())))
}

#[test]
fn issue_16_both_branches_of_a_guides_script_last_as_long_as_their_training_and_end_as_it_does() {
    for kind in ["aarch64", "x86_64"] {
        for code in [0, 3] {
            let bench = Bench::new();
            let mut launched = both_branches(&bench, kind, code);
            let line = eventually("a line in the log", || told(&launched, "left running in the background"));
            let evidence = if kind == "aarch64" { "started with nohup" } else { "printing into a file" };
            assert!(line.contains(evidence) && line.contains("fails if one of them does"), "{line}");
            // Whoever opens this end waits for the training, which is still there.
            fs::write(bench.path().join("go"), "go\n").unwrap();
            match (code, launched.exit()) {
                (0, WorkerEnd::Succeeded) => {}
                (3, WorkerEnd::Failed(failure)) => {
                    assert_eq!(
                        (failure.cause, failure.exit),
                        (FailureCause::Exit, Some(ProcessExit::Code(3)))
                    );
                    assert!(failure.detail.contains("(python3)"), "{}", failure.detail);
                }
                (_, exit) => panic!("{kind} with {code}: {exit:?}"),
            }
            let log = walk(bench.path()).into_iter().find(|path| path.ends_with("train.log")).unwrap();
            assert!(fs::read_to_string(log).unwrap().contains("train.py"));
        }
    }
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
    assert_eq!(launched.exit(), WorkerEnd::Stopped);
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
        assert_eq!(exit, WorkerEnd::Succeeded, "{command}");
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
    assert_eq!(exit, WorkerEnd::Succeeded);
    assert!(is_gone(launched.lines(0)[0].parse().unwrap()));
}
