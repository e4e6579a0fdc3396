//! Sites for the local engine's tests.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use danlu_core::launch::{LauncherStatus, STATUS_FILE};
use danlu_engine::Engine;
use danlu_engine::conformance::Site;
use danlu_engine::local::{LocalEngine, LocalOptions};
use danlu_types::WorkerId;
use nix::sys::signal::Signal;
use nix::unistd::Pid;

/// A site of its own with the fake launcher. The folder's name is longer than a socket's address may be.
pub fn fake_site() -> Site {
    site_with(fake_launcher())
}

pub fn fake_launcher() -> Vec<OsString> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fake_launcher.py");
    vec!["python3".into(), "-S".into(), script.into()]
}

pub fn site_with(launcher: impl Into<Vec<OsString>>) -> Site {
    let launcher = launcher.into();
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("long".repeat(30));
    fs::create_dir(&data).unwrap();
    let inside = data.clone();
    Site::new(data, move || {
        // Kept until the site is dropped.
        let _ = &folder;
        open_engine(&inside, launcher.clone())
    })
}

pub fn open_engine(data: &Path, launcher: Vec<OsString>) -> Arc<dyn Engine> {
    let options = LocalOptions { data: data.to_owned(), launcher, nodes: Vec::new() };
    Arc::new(LocalEngine::new(options).unwrap())
}

pub fn status(site: &Site, worker: WorkerId) -> LauncherStatus {
    let path = site.layout().run_folder(worker).join(STATUS_FILE);
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

pub fn kill(pid: i32) {
    nix::sys::signal::kill(Pid::from_raw(pid), Signal::SIGKILL).unwrap();
}
