//! Workers as processes of this machine.
//!
//! Each worker has a launcher of its own, detached from the server, and a run folder through which the two speak
//! (`danlu_core::launch`). The server may die at any line; what it left is told from the disk and from locks alone:
//!
//! | marker in `live/` | launcher's lock | status or note of a start | means |
//! |---|---|---|---|
//! | no  | –    | –    | unknown: never launched, or released |
//! | yes | free | none | never started: unknown, so that it is launched (again) |
//! | yes | held | –    | alive: what its status says, or preparing before the first |
//! | yes | free | some | the launcher is gone: what its last status says if that is an end, else a verdict of ours |
//!
//! Invariants:
//! - A launcher is started only by a holder of its worker's lock, and the lock passes to it without a gap ([`lock`]):
//!   a worker is never started twice, and never forgotten.
//! - A verdict on a lost launcher is given only with the lock in hand, after nothing of the worker is left, and only
//!   once it is on disk: later looks say the same.
//! - A launcher's end is its last word. Logs and outputs are complete before it, so a launcher that is still around
//!   when its worker is released may be killed.
//! - One engine at a time works on a data folder; its server sees to that. Within it, [`Workers::guard`] lets one
//!   thread at a time decide about a worker.

mod fork_server_client;
mod lock;
mod observe;
mod offer;
mod readings;
mod start;
mod sweep;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use danlu_core::job::WorkerEnd;
use danlu_core::launch::{LaunchFile, LauncherState, RunLayout, SESSION_KEY, SESSION_SOCKET, StopOrder};
use danlu_core::node::Readings;
use danlu_device::cgroup::{self, Groups};
use danlu_types::session::{Frame, FrameKind};
use danlu_types::{Node, NodeName, WorkerId};
use tokio::io::AsyncWriteExt as _;
use tokio::net::UnixStream;
use tokio::task::{JoinHandle, spawn_blocking};

use crate::hints::{self, Hints};
use crate::{Engine, EngineError, Observation, Which, WorkerStream, files};
use fork_server_client::ForkServerClient;
use offer::LocalInventory;
pub use offer::{Offered, offered_nodes};
use readings::Sensors;
use start::StartedBy;

#[derive(Debug, Clone)]
pub struct LocalOptions {
    /// An absolute path; the folder is made if need be.
    pub data: PathBuf,
    pub launchers: Launchers,
    /// Of this process's environment, what workers find besides the usual
    /// ([`danlu_core::launch::is_passed_on`]): `NAME` or `PREFIX*`.
    pub environment: Vec<String>,
    /// What to offer.
    pub offered: Offered,
}

/// A disk that is full or read-only is no reason not to start: what runs can be seen, and stopped.
fn go_on_without(error: io::Error, what: &str) -> io::Result<()> {
    let is_disk = matches!(
        error.kind(),
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::ReadOnlyFilesystem
    );
    if !is_disk {
        return Err(error);
    }
    tracing::warn!("{what}: {error}");
    Ok(())
}

/// How launchers come to be: the program and its leading arguments.
#[derive(Debug, Clone)]
pub enum Launchers {
    /// A program that becomes a launcher whenever it is asked to (`danlu_launch::serve`): what a server uses.
    Nursery(Vec<OsString>),
    /// A program for each worker; its run folder is added to the arguments. It need not be one of ours.
    Programs(Vec<OsString>),
}

#[derive(Debug)]
pub struct LocalEngine {
    offer: Arc<LocalInventory>,
    workers: Arc<Workers>,
    hints: Arc<Hints>,
    listener: JoinHandle<()>,
    sensors: Arc<Sensors>,
}

impl LocalEngine {
    /// Opens the engine on a data folder and listens for hints; what runs there already is found by `observe`. Must be
    /// called within a tokio runtime.
    pub fn new(options: LocalOptions) -> Result<Self, EngineError> {
        let LocalOptions { data, launchers, environment, offered } = options;
        let failed = |doing| move |source| EngineError::Host { doing, source };
        if !data.is_absolute() {
            let source = io::Error::new(ErrorKind::InvalidInput, "its data folder is not an absolute path");
            return Err(failed("set up the local engine")(source));
        }
        let layout = RunLayout { data };
        files::make_folder(&layout.live_folder()).map_err(failed("make the folder of live workers"))?;
        files::lay_down_python(&layout.python_folder())
            .or_else(|error| go_on_without(error, "`danlu.py` is not up to date"))
            .map_err(failed("lay down `danlu.py`"))?;
        let hints = Arc::new(Hints::default());
        let listener = match hints::listen(&layout.hints_socket(), Arc::clone(&hints)) {
            Ok(listener) => listener,
            Err(error) => {
                // The periodic look at all workers finds everything that hints would tell earlier.
                go_on_without(
                    error,
                    "launchers cannot say that something changed, which is seen a second later",
                )
                .map_err(failed("listen for launchers' hints"))?;
                tokio::spawn(async {})
            }
        };
        let launchers = match launchers {
            Launchers::Nursery(program) => {
                StartedBy::ForkServer(ForkServerClient::new(program, environment, Arc::clone(&hints)))
            }
            Launchers::Programs(program) => StartedBy::Program { program, environment },
        };
        let sensors = Arc::new(Sensors::of(&offered.nodes, layout.clone()));
        let workers = Workers {
            layout,
            launchers,
            groups: Groups::detect(),
            guards: std::array::from_fn(|_| Mutex::default()),
            hints: Arc::clone(&hints),
        };
        let offer = Arc::new(LocalInventory::of(offered, Arc::clone(&sensors)));
        Ok(LocalEngine { offer, workers: Arc::new(workers), hints, listener, sensors })
    }

    /// What cannot be held of workers' limits on this machine, and what to do about it.
    pub fn limitation(&self) -> Option<String> {
        self.workers.groups.limitation()
    }

    /// Runs file and process work on a thread where it may block.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Workers) -> Result<T, EngineError> + Send + 'static,
    ) -> Result<T, EngineError> {
        let workers = Arc::clone(&self.workers);
        let done = spawn_blocking(move || work(&workers)).await;
        // Fails only where the runtime is shutting down or `work` panicked.
        done.unwrap_or_else(|error| {
            Err(EngineError::Host { doing: "finish what was begun", source: io::Error::other(error) })
        })
    }
}

impl Drop for LocalEngine {
    /// Launchers go on, and are found again; only nobody listens to them.
    fn drop(&mut self) {
        self.listener.abort();
        // Each data folder has a group of its own, and there may be many over the years.
        if let Some(group) =
            cgroup::open(&self.workers.groups, &cgroup::folder_group_name(&self.workers.layout.data))
        {
            group.remove_if_empty();
        }
    }
}

#[async_trait]
impl Engine for LocalEngine {
    async fn inventory(&self) -> Result<Vec<Node>, EngineError> {
        let offer = Arc::clone(&self.offer);
        self.blocking(move |_| Ok(offer.nodes())).await
    }

    fn inventory_changes(&self) -> bool {
        self.offer.was_incomplete()
    }

    fn notices(&self) -> BTreeMap<NodeName, String> {
        self.offer.notices()
    }

    async fn readings(&self) -> Result<Readings, EngineError> {
        let sensors = Arc::clone(&self.sensors);
        self.blocking(move |_| sensors.read()).await
    }

    async fn launch(&self, launch: &LaunchFile) -> Result<(), EngineError> {
        let worker = launch.worker;
        let failed = move |source| EngineError::Worker { doing: "launch", worker, source };
        if launch.folders.run != self.workers.layout.run_folder(worker) {
            let text = "its launch file names a run folder outside the engine's data folder";
            return Err(failed(io::Error::new(ErrorKind::InvalidInput, text)));
        }
        let bytes = serde_json::to_vec(launch).map_err(|error| failed(error.into()))?;
        let values: Vec<&str> = launch.secrets.iter().map(|secret| secret.value.as_str()).collect();
        let secrets = serde_json::to_vec(&values).map_err(|error| failed(error.into()))?;
        let secrets = (!values.is_empty()).then_some(secrets);
        let user = launch.user.clone();
        self.blocking(move |workers| {
            workers.launch(worker, &bytes, secrets.as_deref(), user.as_ref()).map_err(failed)
        })
        .await
    }

    async fn observe(&self, which: Which<'_>) -> Result<Vec<Observation>, EngineError> {
        let these = match which {
            Which::All => None,
            Which::These(these) => Some(these.to_vec()),
        };
        self.blocking(move |workers| {
            let these = match these {
                Some(these) => these,
                None => files::live_workers(&workers.layout)
                    .map_err(|source| EngineError::Host { doing: "list the live workers", source })?,
            };
            let observe = |worker: WorkerId| match workers.observe(worker) {
                Ok(observation) => observation,
                Err(error) => Observation::unreadable(worker, &error),
            };
            Ok(these.into_iter().map(observe).collect())
        })
        .await
    }

    async fn signal(&self, worker: WorkerId, order: &StopOrder) -> Result<(), EngineError> {
        let order = order.clone();
        let failed = move |source| EngineError::Worker { doing: "stop", worker, source };
        self.blocking(move |workers| workers.signal(worker, &order).map_err(failed)).await
    }

    async fn kill(&self, worker: WorkerId, exit: &WorkerEnd) -> Result<bool, EngineError> {
        let exit = exit.clone();
        let failed = move |source| EngineError::Worker { doing: "kill", worker, source };
        self.blocking(move |workers| workers.kill(worker, &exit).map_err(failed)).await
    }

    async fn release(&self, worker: WorkerId) -> Result<(), EngineError> {
        let failed = move |source| EngineError::Worker { doing: "release", worker, source };
        self.blocking(move |workers| workers.release(worker).map_err(failed)).await
    }

    async fn connect(&self, worker: WorkerId) -> Result<Box<dyn WorkerStream>, EngineError> {
        let not_reachable = |why| EngineError::NotReachable { worker, why };
        let failed = |source| EngineError::Worker { doing: "connect to", worker, source };
        if !self.workers.marker(worker).exists() {
            return Err(not_reachable("it does not run here"));
        }
        match self.workers.status(worker).map_err(failed)?.map(|status| status.phase) {
            None => return Err(not_reachable("it is only being started")),
            Some(LauncherState::Ended { .. }) => return Err(not_reachable("it has ended")),
            Some(LauncherState::Preparing | LauncherState::Running { .. }) => {}
        }
        let run = self.workers.layout.run_folder(worker);
        let (_open, path) = files::socket_path(&run, SESSION_SOCKET).map_err(failed)?;
        match UnixStream::connect(&path).await {
            Ok(mut stream) => {
                // It was there before the socket.
                if let Some(key) = files::read::<String>(&run.join(SESSION_KEY)).map_err(failed)? {
                    stream.write_all(&Frame::new(FrameKind::Key, key).encode()).await.map_err(failed)?;
                }
                Ok(Box::new(stream))
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {
                Err(not_reachable("its launcher does not listen yet"))
            }
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
                Err(not_reachable("its launcher is gone"))
            }
            Err(error) => Err(failed(error)),
        }
    }

    async fn changed(&self) -> Vec<WorkerId> {
        self.hints.take().await
    }
}

/// The workers of one data folder. Everything here blocks; each method that decides something takes the worker's guard.
#[derive(Debug)]
struct Workers {
    layout: RunLayout,
    launchers: StartedBy,
    groups: Groups,
    /// Shared by workers that fall together: a guard each would have to be kept for each worker that ever was.
    guards: [Mutex<()>; 64],
    hints: Arc<Hints>,
}

impl Workers {
    fn guard(&self, worker: WorkerId) -> MutexGuard<'_, ()> {
        let place = worker.job.0.wrapping_mul(31).wrapping_add(u64::from(worker.worker.0));
        let index = usize::try_from(place % self.guards.len() as u64).unwrap_or_default();
        self.guards[index].lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn marker(&self, worker: WorkerId) -> PathBuf {
        self.layout.live_folder().join(worker.to_string())
    }
}
