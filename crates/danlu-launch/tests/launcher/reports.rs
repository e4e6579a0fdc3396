//! What programs say of themselves.

use std::fs;
use std::path::Path;

use danlu_core::job::WorkerEnd;
use danlu_core::report::{METRICS_FILE, ProgramReport, REPORT_FILE};
use danlu_types::{Fraction, Rank};

use crate::harness::{Bench, Launched, eventually};

fn report(run: &Path) -> Option<ProgramReport> {
    Some(
        serde_json::from_slice(&fs::read(run.join(REPORT_FILE)).ok()?)
            .expect("a report that is there is whole"),
    )
}

#[test]
fn a_word_of_progress_is_seen_while_the_program_runs() {
    let bench = Bench::new();
    let fifo = bench.fifo("go");
    let command = format!(
        "echo '::danlu progress 0.25'; echo '::danlu checkpoint step=3'; echo '::danlu metric loss=0.5 step=3'; \
         echo '::danlu nonsense'; read line < {}; printf '::danlu progress 1'",
        fifo.display()
    );
    let mut launched = Launched::start(bench.launch_file(&command));
    let run = launched.launch.folders.run.clone();
    let seen = eventually("a report", || report(&run));
    assert_eq!(seen.ranks[&Rank(0)].done, Fraction::new(0.25).unwrap());
    assert_eq!(seen.checkpoint.unwrap().step, Some(3));
    fs::write(&fifo, "go\n").unwrap();
    assert_eq!(launched.exit(), WorkerEnd::Succeeded);
    assert_eq!(
        report(&run).unwrap().ranks[&Rank(0)].done,
        Fraction::new(1.0).unwrap(),
        "its last word counts"
    );
    let metrics = fs::read_to_string(run.join(METRICS_FILE)).unwrap();
    assert!(metrics.ends_with("\"rank\":0,\"step\":3,\"values\":{\"loss\":0.5}}\n"), "{metrics}");
    assert_eq!(launched.lines(0).len(), 5, "all of it is in the log, too");
}

#[test]
fn a_worker_that_says_nothing_has_no_files_for_it() {
    let bench = Bench::new();
    let (launched, _) = bench.run("echo progress; echo '::danlu progress 0.5' >&2");
    let run = &launched.launch.folders.run;
    assert!(!run.join(REPORT_FILE).exists() && !run.join(METRICS_FILE).exists());
}

#[test]
fn python_finds_the_helper_behind_the_users_own_modules() {
    let bench = Bench::new();
    let mut launch = bench.launch_file("echo $PYTHONPATH");
    launch.folders.python = Some("/helper".into());
    launch.env.insert("PYTHONPATH".to_owned(), "/mine".to_owned());
    let (launched, _) = Launched::run(launch);
    assert_eq!(launched.lines(0), ["/mine:/helper"]);
}
