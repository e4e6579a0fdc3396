//! The launcher without a server: one command, on this machine, watched by whoever started it.
//!
//! It is the launcher of a worker like any other, with a run folder of its own; only its output and its interruptions go to
//! the terminal. Several machines meet in a folder that they share.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use danlu_core::job::{ProcessExit, WorkerEnd};
use danlu_core::launch::{
    Gang, LAUNCH_FILE, LaunchFile, LaunchOptions, Limits, PYTHON_HELPER, PYTHON_HELPER_NAME, RankPlan,
    WorkerFolders,
};
use danlu_core::view::worker_reason;
use danlu_types::{AttemptNumber, Device, Framework, JobId, Node, Rank, Span, WorkerId, WorkerIndex};
use thiserror::Error;

use crate::error::chain;
use crate::rendezvous;
use crate::worker::Audience;

/// What to run here.
#[derive(Debug, Clone)]
pub struct StandaloneRequest {
    /// This machine.
    pub node: Node,
    pub devices: Vec<Device>,
    pub framework: Framework,
    /// Processes on this machine.
    pub ranks: u32,
    /// For `/bin/sh -c`.
    pub command: String,
    pub working_directory: PathBuf,
    pub grace: Span,
    /// Whether ranks are bound to processors.
    pub binding: bool,
    /// This machine among several; alone when absent.
    pub party: Option<MultiNode>,
}

#[derive(Debug, Clone)]
pub struct MultiNode {
    pub nodes: u32,
    pub node_rank: u32,
    /// A folder that all machines see.
    pub folder: PathBuf,
    /// How long to wait for the others.
    pub timeout: Span,
}

/// How it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StandaloneExit {
    /// 0, the first failed rank's, 130 where it was interrupted, or 125 where nothing ran.
    pub code: i32,
    /// What went wrong, if something did.
    pub failure: Option<String>,
}

#[derive(Debug, Error)]
pub enum StandaloneError {
    #[error("cannot prepare the run folder `{}`", path.display())]
    RunFolder { path: PathBuf, source: io::Error },
    #[error(
        "`{}` is there already: another run uses this folder, or did; give each run a folder of its own",
        .0.display()
    )]
    FolderInUse(PathBuf),
    #[error("the launcher gave up: {0}")]
    Launcher(String),
}

const INTERRUPTED: i32 = 130;
const NOTHING_RAN: i32 = 125;

/// Runs it to its end, with an empty folder `run` for its files. The process must have one thread only.
pub fn run(request: &StandaloneRequest, run: &Path) -> Result<StandaloneExit, StandaloneError> {
    let launch = launch_file(request, run);
    let own = rendezvous::word(&launch.folders.gang, launch.worker.worker.0);
    if request.party.is_some() && own.exists() {
        return Err(StandaloneError::FolderInUse(own));
    }
    prepare(&launch, run).map_err(|source| StandaloneError::RunFolder { path: run.to_owned(), source })?;
    let exit = crate::run_to_the_end(run, Audience::Terminal)
        .map_err(|error| StandaloneError::Launcher(chain(&error)));
    if let Some(party) = &request.party {
        rendezvous::leave(&party.folder, party.node_rank, party.nodes);
    }
    Ok(ending(&exit?))
}

fn ending(exit: &WorkerEnd) -> StandaloneExit {
    let code = match exit {
        WorkerEnd::Succeeded => 0,
        WorkerEnd::Stopped | WorkerEnd::Requeued { .. } => INTERRUPTED,
        WorkerEnd::Failed(failure) => failure.exit.map_or(NOTHING_RAN, ProcessExit::shell_code),
    };
    let failure = matches!(exit, WorkerEnd::Failed(_)).then(|| worker_reason(exit).to_string());
    StandaloneExit { code, failure }
}

fn prepare(launch: &LaunchFile, run: &Path) -> io::Result<()> {
    fs::create_dir_all(run)?;
    let python = run.join("python");
    fs::create_dir_all(&python)?;
    fs::write(python.join(PYTHON_HELPER_NAME), PYTHON_HELPER)?;
    fs::write(run.join(LAUNCH_FILE), serde_json::to_vec(launch).map_err(io::Error::other)?)
}

fn launch_file(request: &StandaloneRequest, run: &Path) -> LaunchFile {
    let party = request.party.as_ref();
    let (nodes, node_rank) = party.map_or((1, 0), |party| (party.nodes, party.node_rank));
    let ranks = (0..request.ranks)
        .map(|local_rank| RankPlan { rank: Rank(node_rank * request.ranks + local_rank), local_rank })
        .collect();
    LaunchFile {
        worker: WorkerId {
            // No server gave it a number; this one is not used twice at a time.
            job: JobId(u64::from(std::process::id())),
            attempt: AttemptNumber(1),
            worker: WorkerIndex(node_rank),
        },
        job_name: "launch".to_owned(),
        owner: std::env::var("USER").unwrap_or_default(),
        workspace: "default".to_owned(),
        node: request.node.name.clone(),
        address: request.node.address.clone(),
        framework: request.framework,
        command: request.command.clone(),
        setup: None,
        working_directory: Some(request.working_directory.clone()),
        checkpoint: None,
        env: BTreeMap::new(),
        gang: Gang { workers: nodes, timeout: party.map_or(Span::from_seconds(0), |party| party.timeout) },
        ranks,
        world_size: nodes * request.ranks,
        devices: request.devices.clone(),
        topology: request.node.topology.clone(),
        limits: Limits {
            cpus: request.node.capacity.cpus,
            memory: None,
            shared_memory: None,
            processes: None,
        },
        options: LaunchOptions { binding: request.binding, ..LaunchOptions::default() },
        max_time: None,
        grace: request.grace,
        folders: WorkerFolders {
            run: run.to_owned(),
            gang: party.map_or_else(|| run.to_owned(), |party| party.folder.clone()),
            checkpoint: run.join("checkpoint"),
            output: request.working_directory.clone(),
            code: None,
            python: Some(run.join("python")),
            hints: run.join("hints.sock"),
        },
        user: None,
        access: None,
        sandbox: None,
        unsuitable: Vec::new(),
        secrets: Vec::new(),
    }
}
