//! What the launcher finds on its node: brought before it starts, in a folder of the worker's own.

use std::cell::RefCell;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, symlink};
use std::path::{Path, PathBuf};

use danlu_client::ClientError;
use danlu_core::launch::{
    LAUNCH_FILE, LaunchFile, PYTHON_HELPER, PYTHON_HELPER_NAME, SECRETS_FILE, WorkerFolders,
};
use danlu_slurm::{AllocationRequest, GRANTED_FILE, ORDER_FILE, TaskLocation, granted, sidecar_folder};
use danlu_types::WorkerIndex;
use data_encoding::HEXLOWER;
use serde_json::from_slice;
use sha2::{Digest as _, Sha256};

use crate::cleanup::{self, keep};
use crate::context::SidecarContext;
use crate::error::SidecarError;
use crate::retry::{RetryError, insist_if_there, retry_until_answered};

/// How often code that does not match its digest is fetched again.
const TURNS_FOR_CODE: u32 = 3;

/// A worker's folder, with what it needs in it.
#[derive(Debug)]
pub(crate) struct StagedInputs {
    pub(crate) folder: PathBuf,
    pub(crate) launch: LaunchFile,
    pub(crate) order: AllocationRequest,
    /// Keep the folder, and the program that sessions join by, where that was fetched.
    _kept: [Option<File>; 2],
}

/// What could not be brought; nothing where nobody waits for it any more.
pub(crate) type Brought<T> = Result<T, Option<SidecarError>>;

pub(crate) fn refused(doing: &'static str) -> impl Fn(RetryError) -> Option<SidecarError> {
    move |refusal| match refusal {
        RetryError::Over => None,
        RetryError::Refused(source) => Some(SidecarError::Server { doing, source }),
    }
}

impl StagedInputs {
    pub(crate) async fn bring(way: &SidecarContext) -> Brought<Self> {
        let client = &way.client;
        let order = retry_until_answered(|| client.allocation_file(&way.allocation, ORDER_FILE));
        let order = order.await.map_err(refused("hand over the order"))?;
        let order: AllocationRequest =
            from_slice(&order).map_err(|source| SidecarError::Form { what: "order", source })?;
        let details = insist_if_there(|| client.allocation_file(&way.allocation, GRANTED_FILE));
        let details = details.await.map_err(refused("say what was granted"))?.unwrap_or_default();
        let worker = own_worker(&order, &String::from_utf8_lossy(&details))?;
        let launch = retry_until_answered(|| client.worker_file(worker, LAUNCH_FILE));
        let launch = launch.await.map_err(refused("hand over the launch file"))?;
        let launch: LaunchFile =
            from_slice(&launch).map_err(|source| SidecarError::Form { what: "launch file", source })?;
        let secrets = if launch.secrets.is_empty() {
            None
        } else {
            let secrets = retry_until_answered(|| client.worker_file(worker, SECRETS_FILE));
            Some(secrets.await.map_err(refused("hand over the job's secrets"))?)
        };
        let folder = sidecar_folder(&way.work, &order.name, worker);
        let failed = |source| SidecarError::Folder { path: folder.clone(), source };
        let (launch, order) = lay_down(way, &folder, launch, order, &details, secrets).map_err(failed)?;
        // One that was not fetched is not ours to remove, and may lie on a network disk, where locks are slow or none.
        let fetched = std::env::current_exe().ok().filter(|program| program.starts_with(&way.work));
        let kept = [keep(&folder).ok(), fetched.and_then(|program| keep(&program).ok())];
        cleanup::clear(&way.work);
        let staged_inputs = StagedInputs { folder, launch, order, _kept: kept };
        staged_inputs.bring_code(way).await?;
        Ok(staged_inputs)
    }

    pub(crate) fn worker(&self) -> WorkerIndex {
        self.launch.worker.worker
    }

    /// For the launcher.
    pub(crate) fn allocation(&self) -> PathBuf {
        self.folder.join("allocation")
    }

    async fn bring_code(&self, way: &SidecarContext) -> Brought<()> {
        let Some(archive) = &self.launch.folders.code else { return Ok(()) };
        let name = archive.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let expected = name.strip_suffix(".tar.zst").unwrap_or_default();
        let failed = |source| SidecarError::Folder { path: archive.clone(), source };
        for _ in 0..TURNS_FOR_CODE {
            // From the beginning each time: an archive is small beside the time that a cut costs.
            let fetched = retry_until_answered(|| async {
                let arriving = RefCell::new((File::create(archive), Sha256::new()));
                let taken = way.client.worker_code(self.worker(), |piece| {
                    let (file, hash) = &mut *arriving.borrow_mut();
                    hash.update(piece);
                    match file {
                        Ok(file) => file.write_all(piece).map_err(ForCode::Disk),
                        Err(error) => Err(ForCode::Disk(io::Error::new(error.kind(), error.to_string()))),
                    }
                });
                match taken.await {
                    Ok(()) => Ok(Ok(arriving.into_inner().1)),
                    Err(ForCode::Disk(error)) => Ok(Err(error)),
                    Err(ForCode::Server(error)) => Err(error),
                }
            });
            let hash = fetched.await.map_err(refused("hand over the job's code"))?.map_err(failed)?;
            let found = HEXLOWER.encode(&hash.finalize());
            if found == expected {
                return Ok(());
            }
        }
        Err(Some(SidecarError::WrongCode))
    }

    /// Takes everything away.
    pub(crate) fn remove(&self, way: &SidecarContext) -> io::Result<()> {
        danlu_walk::remove(&self.folder)?;
        // The last of an order's workers on this node takes the rest along.
        let _ = fs::remove_dir(way.work.join(&self.order.name));
        let log = way.work.join(format!("{}.log", self.order.name));
        if fs::metadata(&log).is_ok_and(|about| about.len() == 0) {
            fs::remove_file(log)?;
        }
        Ok(())
    }
}

enum ForCode {
    Server(ClientError),
    Disk(io::Error),
}

impl From<ClientError> for ForCode {
    fn from(error: ClientError) -> Self {
        ForCode::Server(error)
    }
}

fn own_worker(order: &AllocationRequest, details: &str) -> Result<WorkerIndex, SidecarError> {
    let here = TaskLocation::from_environment(|name| std::env::var(name).ok());
    let found = granted(order, &here, details);
    found
        .map(|found| found.worker.worker.worker)
        .ok_or(SidecarError::NoWorker { node: here.node, local: here.local })
}

/// Lays everything but the code down, with paths of this node. Fails where the folder is there: somebody runs the worker.
fn lay_down(
    way: &SidecarContext,
    folder: &Path,
    mut launch: LaunchFile,
    mut order: AllocationRequest,
    details: &[u8],
    secrets: Option<Vec<u8>>,
) -> io::Result<(LaunchFile, AllocationRequest)> {
    DirBuilder::new().recursive(true).mode(0o700).create(way.work.join(&order.name))?;
    DirBuilder::new().mode(0o700).create(folder)?;
    for inner in ["run", "gang", "checkpoint", "output", "python", "allocation"] {
        fs::create_dir(folder.join(inner))?;
    }
    launch.folders = WorkerFolders {
        run: folder.join("run"),
        gang: folder.join("gang"),
        checkpoint: folder.join("checkpoint"),
        output: folder.join("output"),
        code: launch.folders.code.as_ref().and_then(|code| Some(folder.join(code.file_name()?))),
        python: Some(folder.join("python")),
        hints: folder.join("hints.sock"),
    };
    for worker in &mut order.workers {
        worker.run = sidecar_folder(&way.work, &order.name, worker.worker.worker).join("run");
    }
    write_private(&folder.join("run").join(LAUNCH_FILE), &serde_json::to_vec(&launch)?)?;
    if let Some(secrets) = secrets {
        write_private(&folder.join("run").join(SECRETS_FILE), &secrets)?;
    }
    write_private(&folder.join("allocation").join(ORDER_FILE), &serde_json::to_vec(&order)?)?;
    write_private(&folder.join("allocation").join(GRANTED_FILE), details)?;
    fs::write(folder.join("python").join(PYTHON_HELPER_NAME), PYTHON_HELPER)?;
    // Sessions are joined by the program that runs the worker, whatever the server's is by then.
    symlink(std::env::current_exe()?, folder.join("danlu"))?;
    Ok((launch, order))
}

fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?.write_all(bytes)
}

/// A reader sees the old file or the whole new one.
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let fresh = path.with_extension("new");
    match fs::remove_file(&fresh) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    write_private(&fresh, bytes)?;
    fs::rename(fresh, path)
}
