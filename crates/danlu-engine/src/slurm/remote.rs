//! What is different where nodes share no disk with the server: sidecars are submitted in the launchers' place, with a token,
//! and the program may have to be fetched.

use std::ffi::OsStr;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use danlu_core::launch::UnixUser;
use danlu_slurm::{
    AllocationRequest, NodeProgram, SidecarConfig, SlurmSettings, TOKEN_VARIABLE, sidecar_folder,
};
use danlu_types::{AttemptNumber, JobId, WorkerId};
use data_encoding::HEXLOWER;
use sha2::{Digest as _, Sha256};

use super::session::SessionTarget;
use crate::files;

/// By which the sidecars of an attempt are known to the server.
pub trait SidecarTokens: fmt::Debug + Send + Sync {
    fn token(&self, job: JobId, attempt: AttemptNumber) -> String;
}

#[derive(Debug, Clone)]
pub struct SidecarOptions {
    pub tokens: Arc<dyn SidecarTokens>,
    /// Of the server's certificate, where nobody else vouches for it.
    pub fingerprint: Option<String>,
    /// Where the server finds the programs that nodes fetch, each under its digest.
    pub programs: PathBuf,
}

#[derive(Debug)]
pub(super) struct Remote {
    sidecar: SidecarConfig,
    tokens: Arc<dyn SidecarTokens>,
}

impl Remote {
    /// `own` is the program of this server: what nodes run where the settings name none.
    pub(super) fn new(settings: &SlurmSettings, options: SidecarOptions, own: &OsStr) -> io::Result<Self> {
        let SidecarOptions { tokens, fingerprint, programs } = options;
        let program = match &settings.program {
            Some(program) => NodeProgram::At(program.display().to_string()),
            None if fingerprint.is_some() => {
                let text = "nodes fetch nothing from a server whose certificate only its fingerprint vouches for: set \
                            `program`, or use a certificate that they trust";
                return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
            }
            None => NodeProgram::Fetched(lay_down(Path::new(own), &programs)?),
        };
        let server = settings.server.as_deref().unwrap_or_default().trim_end_matches('/').to_owned();
        let sidecar = SidecarConfig { server, fingerprint, work: settings.work.clone(), program };
        Ok(Remote { sidecar, tokens })
    }

    pub(super) fn secret(&self, worker: WorkerId) -> (&'static str, String) {
        (TOKEN_VARIABLE, self.tokens.token(worker.job, worker.attempt))
    }

    /// Where a sidecar keeps its worker, and itself.
    pub(super) fn session_place(&self, order: &AllocationRequest, worker: WorkerId) -> SessionTarget {
        let work = self.sidecar_of(order.user.as_ref()).work;
        let folder = sidecar_folder(&work, &order.name, worker.worker);
        SessionTarget { program: folder.join("danlu"), run: folder.join("run"), user: order.user.clone() }
    }

    /// Every user has a folder of their own, which nobody else can enter.
    pub(super) fn sidecar_of(&self, user: Option<&UnixUser>) -> SidecarConfig {
        let mut sidecar = self.sidecar.clone();
        if let Some(user) = user {
            sidecar.work = format!("{}-{}", sidecar.work.display(), user.name).into();
        }
        sidecar
    }
}

/// Keeps a copy of the program under its digest. Orders name it so, and those that wait in Slurm's queue while the server is
/// upgraded still find theirs.
fn lay_down(program: &Path, programs: &Path) -> io::Result<String> {
    let (mut hashing, mut file, mut piece) = (Sha256::new(), File::open(program)?, vec![0; 1 << 20]);
    loop {
        match file.read(&mut piece)? {
            0 => break,
            read => hashing.update(&piece[..read]),
        }
    }
    let digest = HEXLOWER.encode(&hashing.finalize());
    let place = programs.join(&digest);
    if !place.try_exists()? {
        files::make_folder(programs)?;
        let draft = programs.join(format!(".{digest}.draft"));
        fs::copy(program, &draft)?;
        fs::rename(draft, place)?;
    }
    Ok(digest)
}
