//! What keeps a sidecar from its work for good.

use std::error::Error;
use std::io;
use std::path::PathBuf;

use danlu_client::ClientError;
use thiserror::Error;

#[derive(Debug, Error)]
pub(crate) enum SidecarError {
    #[error("this command is for scripts that Danlu submits: {0}")]
    Usage(&'static str),
    #[error("cannot start the event loop")]
    Runtime(#[source] io::Error),
    #[error("cannot read what the cluster granted")]
    Granted(#[source] io::Error),
    #[error("the server would not {doing}")]
    Server { doing: &'static str, source: ClientError },
    #[error("the server's {what} is not what a server of this release writes")]
    Form { what: &'static str, source: serde_json::Error },
    #[error("the order has no worker for task {local} on node `{node}`; is this run by Slurm?")]
    NoWorker { node: String, local: usize },
    #[error("the code that arrived is not the code that the job names")]
    WrongCode,
    #[error("cannot prepare `{}`", path.display())]
    Folder { path: PathBuf, source: io::Error },
    #[error("cannot start the launcher")]
    Launcher(#[source] io::Error),
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
