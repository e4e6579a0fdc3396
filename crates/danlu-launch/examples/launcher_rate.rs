//! Measures the launcher: how many trivial workers pass per second, how soon the first line comes, of one rank and of the
//! last of eight, how much memory it takes, and what its samples cost. Run in release: `cargo run --release -p danlu-launch --example launcher_rate [WORKERS] [AT_A_TIME] [LAUNCHER]`.
//! LAUNCHER is a program to which a run folder is given; by default the example `launch-worker` beside this one.

#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a measuring tool: figures out, failures loud")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use danlu_core::job::WorkerEnd;
use danlu_core::launch::{
    Gang, LAUNCH_FILE, LaunchFile, LaunchOptions, LauncherState, LauncherStatus, Limits, RankPlan, RunLayout,
    STATUS_FILE, WorkerFolders,
};
use danlu_core::log::{decode, rank_log_name};
use danlu_core::sample::SAMPLES_FILE;
use danlu_types::{
    AttemptNumber, Cpus, Framework, JobId, NodeName, Rank, Span, Topology, WorkerId, WorkerIndex,
};
use jiff::Timestamp;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::signal::{Signal, kill};
use nix::sys::time::TimeValLike;
use nix::unistd::Pid;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let workers: u64 = arguments.next().map_or(2000, |text| text.parse().unwrap());
    let at_a_time: usize = arguments.next().map_or(4, |text| text.parse().unwrap());
    let beside = std::env::current_exe().unwrap().with_file_name("launch-worker");
    let program = arguments.next().map_or(beside, PathBuf::from);
    let data = tempfile::tempdir().unwrap();

    let floor = rate(workers, at_a_time, |_| shell());
    println!("floor: `sh -c true` alone, {at_a_time} at a time: {floor}");

    let launches: Vec<LaunchFile> = (1..=workers).map(|job| launch_file(data.path(), job, "true")).collect();
    launches.iter().for_each(write);
    let passed = rate(workers, at_a_time, |index| start(&program, &launches[index]));
    launches.iter().for_each(check);
    println!("launchers of `true`, {at_a_time} at a time: {passed}");

    let mut delays: Vec<i64> =
        (0..200).map(|index| first_line(&program, data.path(), workers + 1 + index)).collect();
    delays.sort_unstable();
    println!("start to first line: median {} µs, slowest of 200 {} µs", delays[100], delays[199]);
    let mut delays: Vec<i64> =
        (0..50).map(|index| line_of_last_rank(&program, data.path(), workers + 1000 + index)).collect();
    delays.sort_unstable();
    println!("start to first line of rank 7 of 8: median {} µs, slowest of 50 {} µs", delays[25], delays[49]);
    watched(&program, data.path(), workers + 2000);
    let memory_kib = getrusage(UsageWho::RUSAGE_CHILDREN).unwrap().max_rss();
    println!("memory of the largest process: {memory_kib} KiB");
}

fn rate(count: u64, at_a_time: usize, start: impl Fn(usize) -> Child + Sync) -> String {
    let (begun, used) = (Instant::now(), processor_milliseconds());
    std::thread::scope(|scope| {
        for lane in 0..at_a_time {
            let start = &start;
            scope.spawn(move || {
                for index in (lane..usize::try_from(count).unwrap()).step_by(at_a_time) {
                    assert!(start(index).wait().unwrap().success());
                }
            });
        }
    });
    let per_second = count as f64 / begun.elapsed().as_secs_f64();
    // Wall time is what people feel; this one does not depend on what else the machine does.
    let each = (processor_milliseconds() - used) / count as f64;
    format!("{per_second:.0}/s, {each:.2} ms of processor time each")
}

fn processor_milliseconds() -> f64 {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).unwrap();
    (usage.user_time() + usage.system_time()).num_microseconds() as f64 / 1000.0
}

fn shell() -> Child {
    Command::new("/bin/sh").args(["-c", "true"]).stdin(Stdio::null()).spawn().unwrap()
}

fn start(program: &Path, launch: &LaunchFile) -> Child {
    let mut command = Command::new(program);
    command.arg(&launch.folders.run).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::inherit());
    command.spawn().unwrap()
}

fn write(launch: &LaunchFile) {
    fs::create_dir_all(&launch.folders.run).unwrap();
    fs::write(launch.folders.run.join(LAUNCH_FILE), serde_json::to_vec(launch).unwrap()).unwrap();
}

fn check(launch: &LaunchFile) {
    let status = LauncherStatus::last_in(&fs::read(launch.folders.run.join(STATUS_FILE)).unwrap()).unwrap();
    assert!(matches!(status.phase, LauncherState::Ended { exit: WorkerEnd::Succeeded, .. }), "{status:?}");
}

fn first_line(program: &Path, data: &Path, job: u64) -> i64 {
    let launch = launch_file(data, job, "echo here");
    write(&launch);
    let begun = Timestamp::now();
    assert!(start(program, &launch).wait().unwrap().success());
    let log = fs::read(launch.folders.run.join(rank_log_name(Rank(0)))).unwrap();
    let (at, ..) = decode(log.strip_suffix(b"\n").unwrap()).unwrap();
    i64::try_from(at.duration_since(begun).as_micros()).unwrap()
}

/// All of eight ranks start, and the last one's line is read.
fn line_of_last_rank(program: &Path, data: &Path, job: u64) -> i64 {
    let launch = of_eight(launch_file(data, job, "echo here"));
    write(&launch);
    let begun = Timestamp::now();
    assert!(start(program, &launch).wait().unwrap().success());
    let log = fs::read(launch.folders.run.join(rank_log_name(Rank(7)))).unwrap();
    let (at, ..) = decode(log.strip_suffix(b"\n").unwrap()).unwrap();
    i64::try_from(at.duration_since(begun).as_micros()).unwrap()
}

/// What a launcher takes of a processor while eight ranks run and it takes a sample every half second, ten times as often as
/// it does by itself.
fn watched(program: &Path, data: &Path, job: u64) {
    const SECONDS: u64 = 10;
    let mut launch = of_eight(launch_file(data, job, "exec sleep 1000"));
    launch.options.hang_after = Some(Span::from_seconds(1));
    write(&launch);
    let mut launcher = start(program, &launch);
    let pid = launcher.id();
    std::thread::sleep(Duration::from_secs(2));
    let before = nanoseconds_run(pid);
    std::thread::sleep(Duration::from_secs(SECONDS));
    let used = nanoseconds_run(pid) - before;
    let samples = fs::read_to_string(launch.folders.run.join(SAMPLES_FILE)).unwrap().lines().count() as u64;
    let memory = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let memory = memory.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap().trim().to_owned();
    kill(Pid::from_raw(i32::try_from(pid).unwrap()), Signal::SIGTERM).unwrap();
    launcher.wait().unwrap();
    let each = used as f64 / (samples as f64 * SECONDS as f64 / (SECONDS + 2) as f64);
    println!(
        "a sample: {:.0} µs, so {:.4} % of a processor at one every 5 s; the launcher of 8 ranks takes {memory}",
        each / 1e3,
        each / 5e9 * 100.0
    );
}

fn nanoseconds_run(pid: u32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/schedstat")).unwrap();
    text.split(' ').next().unwrap().parse().unwrap()
}

fn of_eight(mut launch: LaunchFile) -> LaunchFile {
    launch.ranks = (0..8).map(|rank| RankPlan { rank: Rank(rank), local_rank: rank }).collect();
    launch.world_size = 8;
    launch
}

fn launch_file(data: &Path, job: u64, command: &str) -> LaunchFile {
    let layout = RunLayout { data: data.to_owned() };
    let worker = WorkerId { job: JobId(job), attempt: AttemptNumber(1), worker: WorkerIndex(0) };
    LaunchFile {
        worker,
        job_name: "rate".to_owned(),
        owner: "admin".to_owned(),
        workspace: "default".to_owned(),
        node: NodeName("here".to_owned()),
        address: "127.0.0.1".to_owned(),
        framework: Framework::None,
        command: command.to_owned(),
        setup: None,
        working_directory: None,
        checkpoint: None,
        env: BTreeMap::new(),
        gang: Gang { workers: 1, timeout: Span::from_seconds(10) },
        ranks: vec![RankPlan { rank: Rank(0), local_rank: 0 }],
        world_size: 1,
        devices: Vec::new(),
        topology: Topology::default(),
        options: LaunchOptions::default(),
        limits: Limits { cpus: Cpus::whole(1), memory: None, shared_memory: None, processes: None },
        max_time: None,
        grace: Span::from_seconds(10),
        folders: WorkerFolders {
            run: layout.run_folder(worker),
            gang: layout.gang_folder(worker.job, worker.attempt),
            checkpoint: layout.checkpoint_folder(worker.job),
            output: layout.output_folder(worker.job),
            code: None,
            python: None,
            hints: layout.hints_socket(),
        },
        user: None,
        access: None,
        sandbox: None,
        unsuitable: Vec::new(),
        secrets: Vec::new(),
    }
}
