//! The sidecar: one process beside each launcher on a node that shares no disk with the server.
//!
//! It brings what the launcher reads (launch file, secrets, code, checkpoint, orders, the words of the gang), starts the
//! launcher on a folder of the node's own, and carries what it writes to the server, into the run folder that the engine
//! looks at. The launcher knows nothing of it, and neither does the engine
//! ([ADR 12](../../../docs/adr/0012-sidecars-where-nothing-is-shared.md)).
//!
//! Invariants:
//! - That a worker has ended is the last that the server hears of it: logs, outputs and checkpoints are there by then.
//! - A server that is away is waited for, as long as the allocation lives. What was sent and not answered is sent again, and
//!   is there once.
//! - One question at a time asks for news, and waits for the answer; everything else is sent only when there is something.

mod cleanup;
mod context;
mod error;
mod log;
mod mirror;
mod retry;
mod run;
mod stage_in;
mod sync;
mod updates;

use std::ffi::OsString;
use std::io::{Read as _, Write as _};
use std::process::ExitCode;

use danlu_slurm::CLAIMED_BY_ANOTHER;
use danlu_types::api::ClaimRequest;
use rand::Rng as _;

use context::SidecarContext;
use error::{SidecarError, chain};
use retry::RetryError;

/// Has the server say whether this job of the cluster's runs the allocation. Standard input is what the cluster granted.
pub fn claim(server: OsString, rest: impl Iterator<Item = OsString>) -> ExitCode {
    let claimed = || -> Result<bool, SidecarError> {
        let (way, job) = SidecarContext::for_claim(server, rest)?;
        let mut granted = Vec::new();
        std::io::stdin().lock().take(200 << 10).read_to_end(&mut granted).map_err(SidecarError::Granted)?;
        let words: [u64; 2] = rand::rng().random();
        let request = ClaimRequest {
            allocation: way.allocation.clone(),
            job,
            nonce: format!("{:016x}{:016x}", words[0], words[1]),
            granted: String::from_utf8_lossy(&granted).into_owned(),
        };
        let ask = || way.client.allocation_claim(&request);
        match runtime()?.block_on(retry::retry_until_answered(ask)) {
            Ok(claimed) => Ok(claimed),
            // Nobody waits for it any more.
            Err(RetryError::Over) => Ok(false),
            Err(RetryError::Refused(error)) => {
                Err(SidecarError::Server { doing: "claim the allocation", source: error })
            }
        }
    };
    match claimed() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(CLAIMED_BY_ANOTHER),
        Err(error) => gave_up(&error),
    }
}

/// Runs the worker that this process of an allocation is to be, to its end, and delivers what it leaves.
pub fn run(server: OsString, rest: impl Iterator<Item = OsString>) -> ExitCode {
    let carried = || -> Result<ExitCode, SidecarError> {
        let way = SidecarContext::for_worker(server, rest)?;
        runtime()?.block_on(run::carry(&way))
    };
    carried().unwrap_or_else(|error| gave_up(&error))
}

fn runtime() -> Result<tokio::runtime::Runtime, SidecarError> {
    tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(SidecarError::Runtime)
}

fn gave_up(error: &SidecarError) -> ExitCode {
    // Standard error is the allocation's log on this node.
    let _ = writeln!(std::io::stderr(), "the sidecar gave up: {}", chain(error));
    ExitCode::FAILURE
}
