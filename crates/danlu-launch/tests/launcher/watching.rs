//! While ranks run.

use std::fs;
use std::time::{Duration, Instant};

use danlu_core::job::FailureCause;
use danlu_core::launch::RunLayout;
use danlu_core::sample::{DeviceUse, NodeReadings, SAMPLES_FILE, Sample};
use danlu_types::{Bytes, Device, DeviceKind, Health, OnHang, Span, Wiring};
use jiff::Timestamp;

use crate::harness::{Bench, Launched, eventually};

fn samples(launched: &Launched) -> Vec<Sample> {
    let text = fs::read_to_string(launched.launch.folders.run.join(SAMPLES_FILE)).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_rank_that_hangs_ends_the_worker_in_its_time() {
    let bench = Bench::new();
    let mut launch = bench.launch_file_of_ranks(2, "echo begun; exec sleep 1000");
    launch.options.hang_after = Some(Span::from_seconds(1));
    launch.options.on_hang = OnHang::Restart;
    let begun = Instant::now();
    let mut launched = Launched::start(launch);
    let failure = launched.failure();
    assert!(begun.elapsed() < Duration::from_secs(10));
    assert_eq!(failure.cause, FailureCause::Hang);
    assert_eq!(failure.detail, "on here it printed nothing and used no processor for 1s");
    let last = samples(&launched).pop().unwrap();
    assert!(last.memory.unwrap() > 0 && last.cores.unwrap() < 0.02, "{last:?}");
}

#[test]
fn a_hang_is_only_noted_where_nothing_else_is_asked_for() {
    let bench = Bench::new();
    // One each: of a shared one, the shell could open the second time what the first writer has not closed yet, and read its end.
    let (on, end) = (bench.fifo("on"), bench.fifo("end"));
    let command = format!("read line < {}; echo again; read line < {}", on.display(), end.display());
    let mut launch = bench.launch_file(&command);
    launch.options.hang_after = Some(Span::from_seconds(1));
    let mut launched = Launched::start(launch);
    let told = eventually("a line in the log", || {
        launched.lines(0).into_iter().find(|line| line.contains("seems to hang"))
    });
    assert!(told.contains("it printed nothing and used no processor for 1s"), "{told}");
    let report = launched.launch.folders.run.join(danlu_core::report::REPORT_FILE);
    let report = || fs::read_to_string(&report).unwrap_or_default();
    eventually("a report", || report().contains("\"hang\"").then_some(()));
    fs::write(on, "on\n").unwrap();
    eventually("a line in the log", || {
        launched.lines(0).iter().any(|line| line.contains("the worker goes on")).then_some(())
    });
    eventually("a report", || (!report().contains("\"hang\"")).then_some(()));
    fs::write(end, "end\n").unwrap();
    assert_eq!(launched.exit(), danlu_core::WorkerEnd::Succeeded);
}

#[test]
fn devices_that_work_are_no_hang_and_stand_in_the_samples() {
    let bench = Bench::new();
    let fifo = bench.fifo("end");
    let mut launch = bench.launch_file(&format!("read line < {}", fifo.display()));
    launch.devices = vec![Device {
        index: 3,
        kind: DeviceKind::Nvidia,
        model: "H200".to_owned(),
        memory: Bytes(1 << 30),
        island: 0,
        health: Health::Ok,
        wiring: Wiring::default(),
    }];
    launch.options.hang_after = Some(Span::from_seconds(1));
    let file = RunLayout { data: bench.path().to_owned() }.readings_file(&launch.node);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    let busy = DeviceUse { percent: Some(88), memory: Some(5), watts: Some(310), celsius: Some(61) };
    let readings = NodeReadings { at: Timestamp::now(), devices: [(2, busy), (3, busy)].into() };
    fs::write(file, serde_json::to_vec(&readings).unwrap()).unwrap();
    let mut launched = Launched::start(launch);
    // At half a second each, this is long after it would have been called a hang.
    let seen = eventually("samples", || Some(samples(&launched)).filter(|samples| samples.len() >= 4));
    assert!(seen.iter().all(|sample| sample.devices == [(3, busy)].into()), "{seen:?}");
    assert!(!launched.launcher_log().contains("hang"), "{}", launched.launcher_log());
    fs::write(fifo, "end\n").unwrap();
    launched.exit();
}

#[test]
fn a_short_job_has_no_samples() {
    let bench = Bench::new();
    let (launched, _) = bench.run("true");
    assert!(!launched.launch.folders.run.join(SAMPLES_FILE).exists());
}
