//! What can go wrong between a program and the server.

use std::error::Error as StdError;
use std::io;
use std::path::PathBuf;

use danlu_types::fingerprint::FingerprintError;
use danlu_types::{Problem, ProblemCode};
use thiserror::Error;

use crate::ProfileName;

type Cause = Box<dyn StdError + Send + Sync>;

#[derive(Debug, Error)]
pub enum ClientError {
    #[error("cannot reach the server at {address}")]
    Unreachable { address: String, source: Cause },
    /// The server understood and said no.
    #[error("{}", .0.detail)]
    Problem(Box<Problem>),
    #[error("the answer to {request} was not understood")]
    Protocol { request: String, source: Cause },
    #[error("no server has run with the data folder `{}`", .0.display())]
    NoServer(PathBuf),
    #[error("cannot read `{}`", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("`{}` is not what a server writes there", path.display())]
    BadServerFile { path: PathBuf, source: serde_json::Error },
    #[error("profile `{0}` not found")]
    NoProfile(ProfileName),
    #[error("invalid profile name `{0}`: use letters, digits, `-` and `_`")]
    BadProfileName(String),
    #[error("DANLU_FINGERPRINT is not what it should be")]
    BadFingerprint(#[source] FingerprintError),
    #[error("cannot read `{}`, to upload it", path.display())]
    Upload { path: PathBuf, source: io::Error },
}

impl ClientError {
    /// What the person can do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            ClientError::Unreachable { address, .. } if address.starts_with("https://") => Some(
                "is it running, and is its certificate one you trust? `danlu up --tls` shows the fingerprint that \
                 `danlu login --fingerprint` takes"
                    .to_owned(),
            ),
            ClientError::NoProfile(name) => {
                Some(format!("`danlu profiles` lists them; `danlu login NAME --profile {name}` makes this one"))
            }
            ClientError::Unreachable { .. } => {
                Some("is the server running? start it with `danlu up`".to_owned())
            }
            ClientError::NoServer(_) => Some(
                "start one with `danlu up`, or say where it is: `--data FOLDER`, or DANLU_SERVER and DANLU_TOKEN"
                    .to_owned(),
            ),
            ClientError::Problem(problem) => problem.hint.clone().or_else(|| {
                (problem.code == ProblemCode::Unauthenticated).then(|| {
                    "the token is in the server's data folder; pass it with `--data FOLDER` or DANLU_TOKEN"
                        .to_owned()
                })
            }),
            ClientError::Unreadable { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
                Some("the token can only be read by the user who runs the server".to_owned())
            }
            _ => None,
        }
    }

    pub fn is_not_found(&self) -> bool {
        matches!(self, ClientError::Problem(problem) if problem.code == ProblemCode::NotFound)
    }

    /// Whether there is no server to talk to, rather than one that said no.
    pub fn is_unreachable(&self) -> bool {
        matches!(self, ClientError::Unreachable { .. } | ClientError::NoServer(_))
    }

    /// Whether the same request may succeed a little later.
    pub fn is_passing(&self) -> bool {
        match self {
            ClientError::Unreachable { .. } => true,
            ClientError::Problem(problem) => problem.code == ProblemCode::Unavailable,
            _ => false,
        }
    }

    pub(crate) fn protocol(request: impl Into<String>, source: impl Into<Cause>) -> Self {
        ClientError::Protocol { request: request.into(), source: source.into() }
    }
}
