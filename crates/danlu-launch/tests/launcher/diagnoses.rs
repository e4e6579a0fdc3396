//! Failures with a sentence that says why.

use std::time::{Duration, Instant};

use danlu_core::job::{FailureCause, ProcessExit};
use danlu_types::{Bytes, Device, DeviceKind, Health, Rank, Wiring};

use crate::harness::{Bench, Launched};

fn device() -> Device {
    Device {
        index: 0,
        kind: DeviceKind::Nvidia,
        model: "H200".to_owned(),
        memory: Bytes(1 << 30),
        island: 0,
        health: Health::Ok,
        wiring: Wiring::default(),
    }
}

#[test]
fn issue_15_a_printed_tip_takes_no_retry_away() {
    let bench = Bench::new();
    let command =
        "echo \"tip: if you see 'CUDA out of memory', lower --batch\"; echo 'NFS stale handle' >&2; exit 1";
    let mut launch = bench.launch_file(command);
    launch.devices = vec![device()];
    let failure = Launched::start(launch).failure();
    assert_eq!(failure.cause, FailureCause::Exit);
    assert!(failure.detail.contains("perhaps the device's memory is full"), "{}", failure.detail);
}

#[test]
fn a_missing_module_is_the_programs_and_not_tried_again() {
    let bench = Bench::new();
    let command = r#"echo "ModuleNotFoundError: No module named 'mindspore'" >&2; exit 1"#;
    let failure = Launched::start(bench.launch_file(command)).failure();
    assert_eq!((failure.cause, failure.exit), (FailureCause::ProgramError, Some(ProcessExit::Code(1))));
    assert!(failure.detail.starts_with("on here: a Python package is missing"), "{}", failure.detail);
    assert!(failure.detail.contains("'mindspore'"), "{}", failure.detail);
}

#[test]
fn a_broken_device_is_a_device_error() {
    let bench = Bench::new();
    let command = "echo 'RuntimeError: CUDA error: uncorrectable ECC error encountered'; exit 1";
    let mut launch = bench.launch_file(command);
    launch.devices = vec![device()];
    assert_eq!(Launched::start(launch).failure().cause, FailureCause::DeviceError);
    // A job without devices was failed by none.
    assert_eq!(Launched::start(Bench::new().launch_file(command)).failure().cause, FailureCause::Exit);
}

#[test]
fn who_only_suffered_from_another_is_not_blamed() {
    let bench = Bench::new();
    let fifo = bench.fifo("said");
    // Rank 2 is the reason, but rank 0 is the first to end.
    let command = format!(
        "case $RANK in 2) echo 'RuntimeError: NPU out of memory. Tried to allocate'; echo > {0}; exec sleep 1000;; \
         0) read line < {0}; echo 'EI0006: Getting socket times out'; exit 1;; *) exec sleep 1000;; esac",
        fifo.display()
    );
    let mut launch = bench.launch_file_of_ranks(3, &command);
    launch.devices = vec![device()];
    let failure = Launched::start(launch).failure();
    assert_eq!((failure.rank, failure.cause), (Some(Rank(2)), FailureCause::ProgramError));
    assert!(failure.detail.contains("smaller batch"), "{}", failure.detail);
}

#[test]
fn a_rank_that_crashes_at_its_start_ends_the_worker_at_once() {
    let bench = Bench::new();
    let begun = Instant::now();
    let command = "[ $RANK != 1 ] || kill -SEGV $$; exec sleep 1000";
    let failure = Launched::start(bench.launch_file_of_ranks(4, command)).failure();
    assert!(begun.elapsed() < Duration::from_secs(10));
    assert_eq!((failure.rank, failure.exit), (Some(Rank(1)), Some(ProcessExit::Signal(11))));
    assert!(failure.detail.contains("it crashed"), "{}", failure.detail);
}

#[test]
fn a_number_that_is_none_explains_the_end() {
    let bench = Bench::new();
    let failure = Launched::start(bench.launch_file("echo '::danlu metric loss=nan'; exit 1")).failure();
    assert_eq!(failure.cause, FailureCause::ProgramError);
    assert!(failure.detail.contains("rank 0 reported a loss that is not a number"), "{}", failure.detail);
}

#[test]
fn what_nobody_knows_is_left_as_it_is() {
    let bench = Bench::new();
    let failure = Launched::start(bench.launch_file("echo 'ordinary words'; exit 3")).failure();
    assert_eq!((failure.cause, failure.detail.as_str()), (FailureCause::Exit, ""));
}
