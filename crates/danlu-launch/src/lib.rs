//! The launcher: one process around each worker.
//!
//! It reads `launch.json` in its run folder, prepares what the ranks need, starts them, writes down what they print,
//! ends them when told to, and says in `status.jsonl` what became of them. It needs no server while it runs: everything
//! it says is a file first, and a hint to the server only afterwards.
//!
//! Invariants:
//! - The launcher is the only thread of its process that starts children. They are killed when that thread ends
//!   (`PR_SET_PDEATHSIG`), and `unshare` of a user namespace wants a single thread; so nothing here may use tokio's
//!   blocking pool.
//! - Every descendant is ours to reap: the launcher is a subreaper, so "no children left" means that nothing of the
//!   worker survives, however it forked.
//! - `status.jsonl` says `Ended` only after that, and it is the last file written.

mod binding;
mod capture;
mod children;
mod compat;
mod error;
mod folders;
mod fork_server;
mod guard;
mod inside;
mod interface;
mod launcher_log;
mod lines;
mod port;
mod rank;
mod rendezvous;
mod reports;
mod sampling;
mod secrets;
mod session;
mod shared_memory;
mod slurm;
mod spool;
pub mod standalone;
mod status;
mod steps;
mod termination;
mod user;
mod worker;

use std::io::ErrorKind;
use std::path::Path;
use std::process::ExitCode;

use danlu_core::job::WorkerEnd;
use danlu_core::launch::{ActualAllocation, GIVEN_FILE, LAUNCH_FILE, LaunchFile};
use danlu_device::inventory;
use danlu_device::machine::Machine;
use danlu_types::{Device, DeviceKind};

use error::{LauncherError, chain};
use launcher_log::LauncherLog;
use worker::{Audience, Confinement};

pub use fork_server::serve;
pub use guard::guard_sidecar;
pub use slurm::{pipe_session, run_in_allocation};

/// Runs the worker whose run folder this is, to its end. Called in a process of its own, before any thread was started.
pub fn run(run_folder: &Path) -> ExitCode {
    match run_to_the_end(run_folder, Audience::Nobody) {
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => {
            // Standard error is the launcher's log or nothing at all; the journal is surer.
            LauncherLog::new(run_folder).note(format_args!("launcher gave up: {}", chain(&error)));
            ExitCode::FAILURE
        }
    }
}

fn run_to_the_end(run_folder: &Path, audience: Audience) -> Result<WorkerEnd, LauncherError> {
    // The paths of sockets may have 107 bytes at most; from inside the folder they are short.
    std::env::set_current_dir(run_folder).map_err(LauncherError::RunFolder)?;
    children::hold_signals()?;
    let text = std::fs::read(LAUNCH_FILE).map_err(LauncherError::LaunchFile)?;
    let mut launch: LaunchFile = serde_json::from_slice(&text).map_err(LauncherError::LaunchFileForm)?;
    let confinement = match std::fs::read(GIVEN_FILE) {
        Ok(text) => {
            let given: ActualAllocation = serde_json::from_slice(&text).map_err(LauncherError::GivenForm)?;
            launch.devices = given.devices;
            if let Some(place) = given.place {
                (launch.node, launch.address) = (place.node, place.address);
            }
            learn_wiring(&mut launch);
            Confinement::Theirs
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Confinement::Ours,
        Err(error) => return Err(LauncherError::Given(error)),
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .build()
        .map_err(LauncherError::Runtime)?;
    runtime.block_on(worker::run(launch, audience, confinement))
}

/// A cluster's own scheduler knows nothing of the networks between Ascend devices: their machine does, which is this one.
fn learn_wiring(launch: &mut LaunchFile) {
    let is_unknown = |device: &&mut Device| device.kind == DeviceKind::Ascend && device.wiring.is_unknown();
    let mut unknown: Vec<&mut Device> = launch.devices.iter_mut().filter(is_unknown).collect();
    if unknown.is_empty() {
        return;
    }
    let here = inventory::look(Machine { nvml: false, ..Machine::this() }).node;
    for device in &mut unknown {
        if let Some(same) = here.devices.iter().find(|it| it.index == device.index) {
            // A site may call them as it likes; which generation they are, and so what a rank table needs, their own tools say.
            (device.wiring, device.model) = (same.wiring.clone(), same.model.clone());
        }
    }
    if launch.topology.is_unknown() {
        launch.topology = here.topology;
    }
}
