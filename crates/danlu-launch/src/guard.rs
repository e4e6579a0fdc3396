//! The process above a launcher inside a cluster's allocation: when the launcher dies, it ends what the launcher has left.
//!
//! Where there is no cgroup, nothing else does: a rank's children outlive the rank. The guard is a subreaper, so whatever the
//! launcher started comes to it, however it forked. It has one thread, reads nothing while the launcher lives, and says what it has
//! seen and done as the launcher's last status.

use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use danlu_core::job::{FailureCause, WorkerEnd, WorkerFailure};
use danlu_core::launch::{LAUNCH_FILE, LaunchFile, LauncherState, LauncherStatus, STATUS_FILE};
use danlu_device::process;
use danlu_device::spawn;
use jiff::Timestamp;
use nix::errno::Errno;
use nix::sys::prctl;
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{Pid, getpid};

use crate::launcher_log::LauncherLog;
use crate::status::Status;

const LOOK_AGAIN: Duration = Duration::from_millis(10);
/// A process in an uninterruptible sleep dies when its disk or device answers.
const LOOKS: u32 = 500;

/// Runs `launcher` in a process of its own below this one. Called before any thread was started.
pub(crate) fn guard(run: &Path, launcher: impl FnOnce() -> ExitCode) -> ExitCode {
    // Whoever kills the guard means the worker: it ends with its ranks.
    match below(Signal::SIGTERM) {
        Ok(Some(pid)) => watch(run, Pid::from_raw(pid)),
        Ok(None) => launcher(),
        Err(error) => {
            // Better unguarded than not at all.
            LauncherLog::new(run).note(format_args!("runs without a guard: {error}"));
            launcher()
        }
    }
}

/// Runs a sidecar below this process. Without it nobody would hear of the worker any more, and the cluster would call its job over while
/// the worker still runs: it ends with its sidecar, at once.
pub fn guard_sidecar(sidecar: impl FnOnce() -> ExitCode) -> ExitCode {
    // A sidecar that delivers what is left heeds no other.
    match below(Signal::SIGKILL) {
        Ok(Some(pid)) => {
            let ended = wait_for(Pid::from_raw(pid));
            end_all();
            ended.map_or(ExitCode::FAILURE, |code| {
                u8::try_from(code).map_or(ExitCode::FAILURE, ExitCode::from)
            })
        }
        Ok(None) => sidecar(),
        Err(error) => {
            let _ = writeln!(io::stderr(), "runs without a guard: {error}");
            sidecar()
        }
    }
}

/// Ends this process with the one that started it.
pub(crate) fn end_with_parent() {
    if let Err(error) = prctl::set_pdeathsig(Signal::SIGKILL) {
        let _ = writeln!(io::stderr(), "would outlive its sidecar: {error}");
    }
}

/// A process below this one, which gets the signal should this one die; `None` in that process.
fn below(death: Signal) -> io::Result<Option<i32>> {
    // Orders are for those below: Slurm signals all processes of a worker.
    let orders: SigSet =
        [Signal::SIGTERM, Signal::SIGHUP, Signal::SIGINT, Signal::SIGURG].into_iter().collect();
    prctl::set_child_subreaper(true)?;
    let before = SigSet::thread_get_mask()?;
    orders.thread_block()?;
    let child = spawn::fork()?;
    if child.is_none() {
        prctl::set_pdeathsig(death)?;
        before.thread_set_mask()?;
    }
    Ok(child)
}

/// With what code a process ended, or by what signal.
fn wait_for(child: Pid) -> Result<i32, Option<Signal>> {
    loop {
        match waitpid(child, None) {
            Ok(WaitStatus::Exited(_, code)) => return Ok(code),
            Ok(WaitStatus::Signaled(_, signal, _)) => return Err(Some(signal)),
            Ok(_) | Err(Errno::EINTR) => {}
            Err(_) => return Err(None),
        }
    }
}

fn watch(run: &Path, launcher: Pid) -> ExitCode {
    let identity = process::identity(launcher.as_raw());
    let ended = wait_for(launcher);
    let (found, left) = end_all();
    match ended {
        Ok(code) => u8::try_from(code).map_or(ExitCode::FAILURE, ExitCode::from),
        Err(signal) => {
            let what = signal.map_or("it died".to_owned(), |signal| format!("it was killed by {signal}"));
            let detail = match (found, left) {
                (_, 1..) => format!("{what}, and {left} of the processes that it left do not end"),
                (found, 0) => format!("{what}, and the {found} processes that it left were ended"),
            };
            tell(run, identity, detail);
            ExitCode::FAILURE
        }
    }
}

/// Kills everything below this process until nothing is. How many there were, and how many are left.
fn end_all() -> (usize, usize) {
    let mut found = std::collections::BTreeSet::new();
    for _ in 0..LOOKS {
        loop {
            match waitpid(Pid::from_raw(-1), Some(WaitPidFlag::WNOHANG)) {
                Err(Errno::ECHILD) => return (found.len(), 0),
                Ok(WaitStatus::StillAlive) | Err(_) => break,
                Ok(_) => {}
            }
        }
        for pid in process::descendants(getpid().as_raw()) {
            found.insert(pid);
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
        std::thread::sleep(LOOK_AGAIN);
    }
    (found.len(), process::descendants(getpid().as_raw()).len())
}

/// Adds the last status, unless the launcher has.
fn tell(run: &Path, launcher: Option<danlu_core::launch::ProcessIdentity>, detail: String) {
    let launcher_log = LauncherLog::new(run);
    launcher_log.note(format_args!("{detail}"));
    let told = || -> io::Result<()> {
        std::env::set_current_dir(run)?;
        let launch: LaunchFile = serde_json::from_slice(&std::fs::read(LAUNCH_FILE)?)?;
        let last = std::fs::read(STATUS_FILE).ok().and_then(|text| LauncherStatus::last_in(&text));
        let running_since = match last.as_ref().map(|last| &last.phase) {
            Some(LauncherState::Ended { .. }) => return Ok(()),
            Some(LauncherState::Running { since, .. }) => Some(*since),
            Some(LauncherState::Preparing) | None => None,
        };
        let Some(launcher) = last.map(|last| last.launcher).or(launcher) else { return Ok(()) };
        let failure = WorkerFailure { cause: FailureCause::LauncherLost, rank: None, exit: None, detail };
        let exit = WorkerEnd::Failed(failure);
        let status = Status::new(launch.worker, launcher, &launch.folders.hints);
        status.write(&LauncherState::Ended { running_since, at: Timestamp::now(), exit })?;
        status.poke();
        Ok(())
    };
    if let Err(error) = told() {
        launcher_log.note(format_args!("cannot write the last status: {error}"));
    }
}
