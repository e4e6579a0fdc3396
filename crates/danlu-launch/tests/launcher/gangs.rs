//! Workers that find each other.

use danlu_core::job::{FailureCause, WorkerEnd};
use danlu_core::launch::LaunchFile;
use danlu_types::{Rank, Span, WorkerIndex};

use crate::harness::{Bench, Launched, eventually};

fn member(bench: &Bench, index: u32, workers: u32) -> LaunchFile {
    let mut launch = bench.launch_file("echo $RANK at $MASTER_ADDR:$MASTER_PORT");
    launch.worker.worker = WorkerIndex(index);
    launch.folders.run = bench.path().join(format!("runs/1/1.{index}"));
    launch.gang.workers = workers;
    launch.ranks[0].rank = Rank(index);
    launch.world_size = workers;
    launch
}

#[test]
fn two_workers_meet_at_the_first_ones_address() {
    let bench = Bench::new();
    let mut second = Launched::start(member(&bench, 1, 2));
    let mut first = Launched::start(member(&bench, 0, 2));
    assert_eq!(first.exit(), WorkerEnd::Succeeded);
    assert_eq!(second.exit(), WorkerEnd::Succeeded);
    let (first, second) = (first.lines(0), second.lines(1));
    assert_eq!(first[0].replace("0 at", ""), second[0].replace("1 at", ""));
}

#[test]
fn a_gang_that_does_not_assemble_names_the_missing() {
    let bench = Bench::new();
    let mut launch = member(&bench, 1, 4);
    launch.gang.timeout = Span { milliseconds: 50 };
    let mut launched = Launched::start(launch);
    let failure = launched.failure();
    assert_eq!(failure.cause, FailureCause::GangTimeout);
    assert!(failure.detail.contains("workers 0, 2, 3 of 4"), "{}", failure.detail);
}

#[test]
fn a_worker_that_waits_for_others_can_be_stopped() {
    let bench = Bench::new();
    let mut launched = Launched::start(member(&bench, 0, 2));
    let present = launched.launch.folders.gang.join("worker-0.json");
    eventually("the first worker", || present.exists().then_some(()));
    launched.order_stop(Span::from_seconds(1));
    assert_eq!(launched.exit(), WorkerEnd::Stopped);
}
