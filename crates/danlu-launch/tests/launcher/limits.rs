//! Limits that hold. Where this machine gives us no cgroups, these tests say so and do nothing; with `CI=true` they fail.

use std::fs;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

use danlu_core::job::{FailureCause, WorkerEnd};
use danlu_core::launch::Sandbox;
use danlu_device::cgroup::{Groups, open, worker_group_name};
use danlu_types::api::LogStream;
use danlu_types::{Bytes, Cpus, Span};

use crate::harness::{Bench, Launched, eventually};

fn cgroups() -> Option<Groups> {
    let groups = Groups::detect();
    match groups.limitation() {
        None => Some(groups),
        Some(limitation) => {
            danlu_testkit::skip(&limitation);
            None
        }
    }
}

fn group_folders(groups: &Groups, data: &Path, launched: &Launched) -> Vec<PathBuf> {
    let name = worker_group_name(data, launched.launch.worker);
    let files = open(groups, &name).map(|group| group.procs_files()).unwrap_or_default();
    files.iter().map(|file| file.parent().unwrap().to_owned()).collect()
}

#[test]
fn out_of_memory_is_reported_as_such() {
    let Some(groups) = cgroups() else { return };
    let bench = Bench::new();
    let mut launch = bench.launch_file("exec tail /dev/zero");
    launch.limits.memory = Some(Bytes(32 << 20));
    let mut launched = Launched::start(launch);
    let failure = launched.failure();
    assert_eq!(failure.cause, FailureCause::OutOfMemory, "{failure:?}");
    assert!(failure.detail.contains("32Mi"), "{}", failure.detail);
    assert!(group_folders(&groups, bench.path(), &launched).is_empty(), "the group is removed");
}

#[test]
fn processors_are_limited() {
    let Some(groups) = cgroups() else { return };
    let bench = Bench::new();
    let mut launch = bench.launch_file("while :; do :; done");
    launch.limits.cpus = Cpus { milli: 200 };
    let mut launched = Launched::start(launch);
    launched.running();
    // Held back at least once, says the kernel: no clock of ours is asked.
    eventually("throttling", || {
        let folders = group_folders(&groups, bench.path(), &launched);
        let stats = folders.iter().filter_map(|folder| fs::read_to_string(folder.join("cpu.stat")).ok());
        let held_back = |line: &str| line.strip_prefix("nr_throttled ").is_some_and(|count| count != "0");
        stats.into_iter().any(|stat| stat.lines().any(held_back)).then_some(())
    });
    launched.order_stop(Span { milliseconds: 0 });
    assert_eq!(launched.exit(), WorkerEnd::Stopped);
}

#[test]
fn shared_memory_is_the_workers_own_and_limited() {
    let bench = Bench::new();
    let probe = Path::new("/dev/shm").join(format!("danlu-probe-{}", std::process::id()));
    let mut launch = bench.launch_file(&format!(
        "head -c 1000000 /dev/zero > {probe} && echo fits; head -c 9000000 /dev/zero > {probe} || echo full",
        probe = probe.display()
    ));
    launch.limits.shared_memory = Some(Bytes(4 << 20));
    let (launched, exit) = Launched::run(launch);
    if launched.launcher_log().contains("shared memory is not limited") {
        // Then it was everybody's.
        fs::remove_file(&probe).unwrap();
        danlu_testkit::skip(&launched.launcher_log());
        return;
    }
    assert_eq!(exit, WorkerEnd::Succeeded);
    let log = launched.log(0);
    // The two streams are two pipes: their order to each other is not kept.
    let said: Vec<&str> =
        log.iter().filter(|line| line.1 == LogStream::Stdout).map(|line| line.2.as_str()).collect();
    assert_eq!(said, ["fits", "full"]);
    assert!(!probe.exists());
}

#[test]
fn a_full_disk_delays_lines_and_loses_none() {
    let bench = Bench::new();
    let small = bench.path().join("small");
    fs::create_dir(&small).unwrap();
    let options = Some("size=256k");
    if nix::mount::mount(Some("danlu"), &small, Some("tmpfs"), nix::mount::MsFlags::empty(), options).is_err()
    {
        danlu_testkit::skip("a small disk cannot be mounted here");
        return;
    }
    let _mounted = Mounted(small.clone());
    let ballast = small.join("ballast");
    let fifo = bench.fifo("go");
    let command = format!("echo first; read line < {}; seq 1 2000; echo last", fifo.display());
    let mut launch = bench.launch_file(&command);
    launch.folders.run = small.join("run");
    let mut launched = Launched::start(launch);
    eventually("the first line", || (launched.lines(0) == ["first"]).then_some(()));
    let rank = launched.running()[0];
    // All there is, to the last page.
    let _ = fs::write(&ballast, vec![0; 1 << 20]);
    fs::write(fifo, "go\n").unwrap();
    // The rank ends although nothing can be written; its launcher stays.
    eventually("the rank's end", || crate::harness::is_gone(rank).then_some(()));
    assert!(launched.launcher.try_wait().unwrap().is_none());
    fs::remove_file(ballast).unwrap();
    assert_eq!(launched.exit(), WorkerEnd::Succeeded);
    let lines = launched.lines(0);
    assert_eq!((lines.len(), lines.last().unwrap().as_str()), (2002, "last"));
}

/// The security review's H4: the launcher unpacked as itself, outside of the job's limits.
#[test]
fn what_unpacking_takes_is_the_jobs() {
    let Some(_) = cgroups() else { return };
    let bench = Bench::new();
    // Whoever packed this asks for 64 MiB of decoder.
    let size = 80 << 20;
    let mut archive = zstd::Encoder::new(Vec::new(), 1).unwrap();
    archive.window_log(26).unwrap();
    let mut header = tar::Header::new_gnu();
    header.set_path("zeros").unwrap();
    header.set_size(size);
    header.set_mode(0o644);
    header.set_cksum();
    archive.write_all(header.as_bytes()).unwrap();
    std::io::copy(&mut std::io::repeat(0).take(size), &mut archive).unwrap();
    let code = bench.path().join("code");
    fs::write(&code, archive.finish().unwrap()).unwrap();

    let mut launch = bench.launch_file("ls work/zeros zeros 2>/dev/null | wc -l");
    launch.folders.code = Some(code);
    let fits = Launched::run(launch.clone());
    assert_eq!((fits.1, fits.0.lines(0)), (WorkerEnd::Succeeded, vec!["1".to_owned()]));
    drop(fits.0);
    fs::remove_dir_all(&launch.folders.run).unwrap();
    launch.limits.memory = Some(Bytes(24 << 20));
    let failure = Launched::start(launch).failure();
    assert!(failure.detail.contains("cannot unpack the code"), "{failure:?}");
    assert!(failure.detail.contains("SIGKILL"), "{failure:?}");
}

#[test]
fn processes_are_limited() {
    let Some(_) = cgroups() else { return };
    let bench = Bench::new();
    let mut launch = bench.launch_file("for i in $(seq 100); do sleep 1000 & done; echo all");
    launch.limits.processes = Some(20);
    let mut launched = Launched::start(launch);
    let failure = launched.failure();
    assert!(
        launched.lines(0).iter().any(|line| line.contains("fork")),
        "{failure:?} {:?}",
        launched.lines(0)
    );
}

#[test]
fn what_the_server_says_of_all_jobs_holds() {
    let bench = Bench::new();
    let tell = "umask; grep -E '^(NoNewPrivs|Seccomp):' /proc/self/status | tr -s '\\t\\n' ' '";
    let mut launch = bench.launch_file(tell);
    launch.sandbox = Some(Sandbox { umask: Some(0o027), restricted: true, ..Sandbox::default() });
    let (launched, exit) = Launched::run(launch.clone());
    assert_eq!(exit, WorkerEnd::Succeeded);
    assert_eq!(launched.lines(0), ["0027", "NoNewPrivs: 1 Seccomp: 2 "]);
    drop(launched);
    fs::remove_dir_all(&launch.folders.run).unwrap();
    launch.sandbox = None;
    let (launched, _) = Launched::run(launch);
    assert!(launched.lines(0)[1].ends_with("Seccomp: 0 "), "{:?}", launched.lines(0));
}

struct Mounted(PathBuf);

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = nix::mount::umount2(&self.0, nix::mount::MntFlags::MNT_DETACH);
    }
}
