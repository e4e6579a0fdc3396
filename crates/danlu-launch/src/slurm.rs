//! A worker inside an allocation of Slurm's: who am I, what was I given, and a way in from outside.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use danlu_core::launch::{ActualAllocation, GIVEN_FILE, GivenPlace, SESSION_SOCKET};
use danlu_core::log::{LAUNCHER_LOG, LAUNCHER_STARTED, encode};
use danlu_slurm::{AllocationRequest, GRANTED_FILE, ORDER_FILE, TaskLocation, granted};
use danlu_types::NodeName;
use danlu_types::api::LogStream;
use jiff::Timestamp;
use nix::unistd::{dup2_stderr, dup2_stdin, dup2_stdout};
use thiserror::Error;

use crate::error::chain;
use crate::guard;
use crate::worker::write_whole;

/// Of Slurm's variables, those that a rank may have. The others say which task of a step one is: frameworks that find
/// them take their rank from there, and it would be the launcher's.
const FOR_RANKS: [&str; 6] = [
    "SLURM_CONF",
    "SLURM_CLUSTER_NAME",
    "SLURM_JOB_ID",
    "SLURM_JOB_NODELIST",
    "SLURM_JOB_PARTITION",
    "SLURM_JOB_ACCOUNT",
];

pub(crate) fn is_of_a_step(name: &OsStr) -> bool {
    let ours = |prefix: &[u8]| name.as_bytes().starts_with(prefix);
    (ours(b"SLURM_") || ours(b"SRUN_") || ours(b"PMI_") || ours(b"PMIX_"))
        && !FOR_RANKS.iter().any(|kept| *kept == name)
}

#[derive(Debug, Error)]
enum AllocationError {
    #[error("cannot read the order in `{}`", path.display())]
    Order { path: PathBuf, source: io::Error },
    #[error("the order in `{}` is not what an engine of this release writes", path.display())]
    OrderForm { path: PathBuf, source: serde_json::Error },
    #[error("the order has no worker for task {local} on node `{node}`; is this run by Slurm?")]
    NoWorker { node: String, local: usize },
    #[error(
        "Slurm has chosen node `{node}` and does not say which of its devices are the job's; give them device files in \
         gres.conf, or set `placement: danlu`"
    )]
    NoNumbers { node: String },
    #[error("cannot prepare the run folder `{}`", path.display())]
    RunFolder { path: PathBuf, source: io::Error },
}

/// Runs the worker that this process of an allocation is to be, to its end: beside a sidecar, not longer than that lives. Called before
/// any thread was started.
pub fn run_in_allocation(folder: &Path, beside_sidecar: bool) -> ExitCode {
    if beside_sidecar {
        guard::end_with_parent();
    }
    match take_place(folder) {
        Ok(run) => guard::guard(&run, || crate::run(&run)),
        Err(error) => {
            // Standard error is the allocation's log.
            let _ = writeln!(io::stderr(), "could not start a worker: {}", chain(&error));
            ExitCode::FAILURE
        }
    }
}

/// Finds the worker of this place, writes down what it was given, and has its log take what the launcher prints.
fn take_place(folder: &Path) -> Result<PathBuf, AllocationError> {
    let path = folder.join(ORDER_FILE);
    let text = fs::read(&path).map_err(|source| AllocationError::Order { path: path.clone(), source })?;
    let order: AllocationRequest =
        serde_json::from_slice(&text).map_err(|source| AllocationError::OrderForm { path, source })?;
    let here = TaskLocation::from_environment(|name| std::env::var(name).ok());
    // Without it, the planned devices count.
    let details = fs::read(folder.join(GRANTED_FILE)).unwrap_or_default();
    let Some(found) = granted(&order, &here, &String::from_utf8_lossy(&details)) else {
        return Err(AllocationError::NoWorker { node: here.node, local: here.local });
    };
    let node = here.node;
    let place = match &order.delegated {
        None => None,
        Some(_) if found.held.len() < found.worker.needs.len() => {
            return Err(AllocationError::NoNumbers { node });
        }
        Some(delegated) => Some(GivenPlace {
            node: NodeName(node.clone()),
            address: delegated.addresses.get(&node).unwrap_or(&node).clone(),
            held: found.held,
        }),
    };
    let given = ActualAllocation { devices: found.devices, place };
    let run = found.worker.run.clone();
    let prepare = || -> io::Result<()> {
        write_whole(&run.join(GIVEN_FILE), &serde_json::to_string(&given)?)?;
        let mut log = OpenOptions::new().create(true).append(true).open(run.join(LAUNCHER_LOG))?;
        let mut line = Vec::new();
        let text = format!("{LAUNCHER_STARTED}{} on {node}", std::process::id());
        encode(&mut line, Timestamp::now(), LogStream::Danlu, text.as_bytes());
        log.write_all(&line)?;
        dup2_stdin(File::open("/dev/null")?)?;
        dup2_stdout(&log)?;
        dup2_stderr(&log)?;
        Ok(())
    };
    prepare().map_err(|source| AllocationError::RunFolder { path: run.clone(), source })?;
    Ok(run)
}

/// Joins standard input and output with the session socket of the worker on this node whose run folder this is, until the
/// worker says no more.
pub fn pipe_session(run: &Path) -> ExitCode {
    let joined = || -> io::Result<()> {
        // The address of a socket may have 107 bytes; this way it has.
        let folder = File::open(run)?;
        let socket = UnixStream::connect(format!("/proc/self/fd/{}/{SESSION_SOCKET}", folder.as_raw_fd()))?;
        let mut towards = socket.try_clone()?;
        // Ends with the process: nobody waits for one who says no more but may still listen.
        std::thread::spawn(move || {
            let _ = io::copy(&mut io::stdin().lock(), &mut towards);
            let _ = towards.shutdown(std::net::Shutdown::Write);
        });
        let mut from = socket;
        let mut out = File::from(std::os::fd::AsFd::as_fd(&io::stdout()).try_clone_to_owned()?);
        io::copy(&mut from, &mut out).map(drop)
    };
    match joined() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "could not reach the worker's launcher: {error}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_not_told_which_task_the_launcher_is() {
        for gone in ["SLURM_PROCID", "SLURM_NTASKS", "SLURM_STEP_ID", "SRUN_DEBUG", "PMI_RANK"] {
            assert!(is_of_a_step(OsStr::new(gone)), "{gone}");
        }
        for kept in ["SLURM_CONF", "SLURM_JOB_ID", "PATH", "SLURMD_NODENAME"] {
            assert!(!is_of_a_step(OsStr::new(kept)), "{kept}");
        }
    }
}
