//! What ranks print, in their logs.

use crate::harness::{Bench, Launched, eventually};
use danlu_core::job::WorkerEnd;
use danlu_core::log::LONGEST_LINE;
use danlu_types::api::LogStream;

#[test]
fn lines_of_both_streams_carry_times_in_order() {
    let bench = Bench::new();
    let (launched, exit) = bench.run("echo one; echo two >&2; echo three");
    assert_eq!(exit, WorkerEnd::Succeeded, "{}", launched.launcher_log());
    let log = launched.log(0);
    let mut texts: Vec<(LogStream, &str)> =
        log.iter().map(|(_, stream, text)| (*stream, text.as_str())).collect();
    assert!(log.is_sorted_by_key(|(at, ..)| *at));
    texts.sort_by_key(|(_, text)| *text);
    assert_eq!(texts, [(LogStream::Stdout, "one"), (LogStream::Stdout, "three"), (LogStream::Stderr, "two")]);
}

#[test]
fn no_line_of_a_hundred_thousand_is_missing() {
    let bench = Bench::new();
    let (launched, exit) = bench.run("seq 1 100000");
    assert_eq!(exit, WorkerEnd::Succeeded);
    let expected: Vec<String> = (1..=100_000).map(|number: u32| number.to_string()).collect();
    assert_eq!(launched.lines(0), expected);
}

#[test]
fn a_last_line_without_an_end_is_kept() {
    let bench = Bench::new();
    let (launched, _) = bench.run("printf 'loss 0.3\\nalmost'");
    assert_eq!(launched.lines(0), ["loss 0.3", "almost"]);
}

#[test]
fn progress_shows_while_it_moves() {
    let bench = Bench::new();
    let fifo = bench.fifo("go");
    let command =
        format!("printf '10%%\\r20%%\\r'; read line < {}; printf '30%%\\r\\ndone\\n'", fifo.display());
    let mut launched = Launched::start(bench.launch_file(&command));
    eventually("progress", || (launched.lines(0) == ["10%", "20%"]).then_some(()));
    std::fs::write(fifo, "go\n").unwrap();
    assert_eq!(launched.exit(), WorkerEnd::Succeeded);
    assert_eq!(launched.lines(0), ["10%", "20%", "30%", "done"]);
}

#[test]
fn a_huge_line_is_cut_and_nothing_of_it_lost() {
    let bench = Bench::new();
    let (launched, _) = bench.run("head -c 200000 /dev/zero | tr '\\0' x; echo; echo after");
    let lines = launched.lines(0);
    assert_eq!(lines.len(), 200_000 / LONGEST_LINE + 2);
    assert_eq!(lines.last().unwrap(), "after");
    assert_eq!(lines.concat().len(), 200_000 + "after".len());
}

#[test]
fn each_rank_has_its_own_log_and_environment() {
    let bench = Bench::new();
    let mut launch =
        bench.launch_file_of_ranks(3, "echo $RANK/$WORLD_SIZE $DANLU_LOCAL_RANK $WORD $MASTER_PORT");
    launch.env.insert("WORD".to_owned(), "炉".to_owned());
    let (launched, exit) = Launched::run(launch);
    assert_eq!(exit, WorkerEnd::Succeeded);
    for rank in 0..3 {
        let line = &launched.lines(rank)[0];
        assert!(line.starts_with(&format!("{rank}/3 {rank} 炉 ")), "{line}");
        assert!(line.rsplit(' ').next().unwrap().parse::<u16>().unwrap() > 0);
    }
}
