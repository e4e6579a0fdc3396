//! Sites for the local engine's tests.

#![allow(dead_code, reason = "each test program uses its part")]
#![expect(clippy::unwrap_used, reason = "part of tests, where a panic is the message")]

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use danlu_core::launch::{LauncherStatus, STATUS_FILE};
use danlu_device::cgroup::Groups;
use danlu_engine::Engine;
use danlu_engine::conformance::Site;
use danlu_engine::local::{Launchers, LocalEngine, LocalOptions, Offered};
use danlu_types::WorkerId;
use nix::sys::signal::Signal;
use nix::unistd::Pid;

pub(crate) fn fake_site() -> Site {
    site_with(Launchers::Programs(fake_launcher()))
}

pub(crate) fn real_site() -> Site {
    site_with(Launchers::Nursery(vec![example("engine_launcher").into()]))
}

/// Where this machine lets us limit memory.
pub(crate) fn memory_limited_site() -> Option<Site> {
    let groups = Groups::detect();
    if let Some(limitation) = groups.limitation() {
        danlu_testkit::skip(&limitation);
        return None;
    }
    Some(real_site())
}

/// One of this crate's examples, which cargo builds beside the tests.
pub(crate) fn example(name: &str) -> PathBuf {
    let own = std::env::current_exe().unwrap();
    let program = own.parent().unwrap().parent().unwrap().join("examples").join(name);
    assert!(
        program.exists(),
        "`{name}` is not built; run `cargo test -p danlu-engine` without naming a target"
    );
    program
}

pub(crate) fn fake_launcher() -> Vec<OsString> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fake_launcher.py");
    vec!["python3".into(), "-S".into(), script.into()]
}

/// A site of its own, removed with it. The folder's name is longer than a socket's address may be.
pub(crate) fn site_with(launchers: Launchers) -> Site {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("long".repeat(30));
    fs::create_dir(&data).unwrap();
    let inside = data.clone();
    Site::new(data, move || {
        let _kept_until_the_site_goes = &folder;
        open_engine(&inside, launchers.clone())
    })
}

pub(crate) fn open_engine(data: &Path, launchers: Launchers) -> Arc<dyn Engine> {
    let options = LocalOptions {
        data: data.to_owned(),
        launchers,
        environment: Vec::new(),
        offered: Offered::default(),
    };
    Arc::new(LocalEngine::new(options).unwrap())
}

pub(crate) fn status(site: &Site, worker: WorkerId) -> LauncherStatus {
    let path = site.layout().run_folder(worker).join(STATUS_FILE);
    LauncherStatus::last_in(&fs::read(path).unwrap()).unwrap()
}

pub(crate) fn kill(pid: i32) {
    nix::sys::signal::kill(Pid::from_raw(pid), Signal::SIGKILL).unwrap();
}

pub(crate) fn parent_of(pid: i32) -> i32 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    stat.rsplit(')').next().unwrap().split_ascii_whitespace().nth(1).unwrap().parse().unwrap()
}
