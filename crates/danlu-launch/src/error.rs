//! What can keep a worker from running.

use std::error::Error;
use std::io;
use std::path::PathBuf;

use danlu_core::job::{FailureCause, WorkerEnd, WorkerFailure};
use danlu_core::launch::NoRankTable;
use danlu_objects::ObjectsError;
use danlu_types::Rank;
use thiserror::Error;

use crate::inside::InsideError;

/// The launcher cannot even say what became of its worker.
#[derive(Debug, Error)]
pub(crate) enum LauncherError {
    #[error("cannot enter the run folder")]
    RunFolder(#[source] io::Error),
    #[error("cannot read the launch file")]
    LaunchFile(#[source] io::Error),
    #[error("the launch file is not what an engine of this release writes")]
    LaunchFileForm(#[source] serde_json::Error),
    #[error("cannot read which devices the worker was given")]
    Given(#[source] io::Error),
    #[error("which devices the worker was given is not what a program of this release writes")]
    GivenForm(#[source] serde_json::Error),
    #[error("cannot take charge of signals and orphans")]
    Signals(#[source] nix::Error),
    #[error("cannot start the event loop")]
    Runtime(#[source] io::Error),
    #[error("cannot write the last status")]
    LastStatus(#[source] io::Error),
}

/// A worker that could not be started.
#[derive(Debug, Error)]
pub(crate) enum StartError {
    #[error("cannot make the folder `{}`", path.display())]
    Folder { path: PathBuf, source: io::Error },
    #[error("cannot write `{}`", path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("the working directory `{}` is not a folder of this machine; `code: .` in the job file, or `--code .`, takes the files along", .0.display())]
    WorkingDirectory(PathBuf),
    #[error("the checkpoint `{}` is not a path below the working directory", .0.display())]
    CheckpointPath(PathBuf),
    #[error("the code holds files at `{}`, which is to be the checkpoint's folder", .0.display())]
    CheckpointTaken(PathBuf),
    #[error("cannot link the checkpoint to `{}`", path.display())]
    CheckpointLink { path: PathBuf, source: io::Error },
    #[error("cannot unpack the code")]
    Code(#[source] ObjectsError),
    #[error("cannot unpack the code")]
    Unpack(#[source] InsideError),
    #[error("could not take over the job's secrets")]
    Secrets(#[source] io::Error),
    #[error("could not act as the user that the job runs as")]
    User(#[source] io::Error),
    #[error("cannot reserve a port for the ranks to meet")]
    Port(#[source] io::Error),
    #[error("cannot tell the other workers that this one is here")]
    Present(#[source] io::Error),
    #[error("cannot open the log of rank {rank}")]
    Log { rank: Rank, source: io::Error },
    #[error("cannot open the worker's cgroup")]
    Group(#[source] io::Error),
    #[error("cannot close the data folder to the job; `danlu up --open-data-folder` leaves it open")]
    Closure(#[source] io::Error),
    #[error("cannot start rank {rank}")]
    Rank { rank: Rank, source: io::Error },
    #[error("the ranks cannot be given the rank table that the job needs")]
    RankTable(#[source] NoRankTable),
    #[error("cannot start the scheduler of MindSpore's cluster")]
    Scheduler(#[source] io::Error),
    #[error("cannot start the setup script")]
    Setup(#[source] io::Error),
}

/// Why a worker ended before its ranks ran.
#[derive(Debug)]
pub(crate) enum StartAborted {
    Stopped,
    Failed(WorkerFailure),
}

impl From<StartAborted> for WorkerEnd {
    fn from(halt: StartAborted) -> Self {
        match halt {
            StartAborted::Stopped => WorkerEnd::Stopped,
            StartAborted::Failed(failure) => WorkerEnd::Failed(failure),
        }
    }
}

impl From<StartError> for StartAborted {
    fn from(error: StartError) -> Self {
        let cause = FailureCause::StartFailed;
        StartAborted::Failed(WorkerFailure { cause, rank: None, exit: None, detail: chain(&error) })
    }
}

/// The error and its causes in one line.
pub(crate) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text = format!("{text}: {cause}");
        next = cause.source();
    }
    text
}
