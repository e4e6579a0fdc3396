//! The course of a sidecar: bring, start the launcher, carry, and tell the end last.

use std::process::{ExitCode, ExitStatus, Stdio};

use danlu_core::synced_files::LAUNCHER_ENDED_FILE;
use danlu_slurm::TOKEN_VARIABLE;
use nix::unistd::Pid;
use tokio::net::UnixDatagram;
use tokio::process::{Child, Command};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

use crate::context::SidecarContext;
use crate::error::SidecarError;
use crate::log::Notes;
use crate::mirror::Mirror;
use crate::retry::RetryError;
use crate::stage_in::{Brought, StagedInputs};
use crate::sync::Trees;
use crate::updates::UpdateListener;

pub(crate) async fn carry(way: &SidecarContext) -> Result<ExitCode, SidecarError> {
    let _taken = take_signals()?;
    match Voyage::begin(way).await {
        Ok(voyage) => voyage.go(way).await,
        // Nobody waits for this worker any more: nothing is run.
        Err(None) => Ok(ExitCode::SUCCESS),
        Err(Some(error)) => Err(error),
    }
}

/// A cluster that ends a job signals all of its processes. The launcher heeds that; the sidecar still has to deliver what comes
/// of it.
fn take_signals() -> Result<[Signal; 3], SidecarError> {
    let take = |kind| signal(kind).map_err(SidecarError::Runtime);
    Ok([take(SignalKind::terminate())?, take(SignalKind::interrupt())?, take(SignalKind::hangup())?])
}

/// A worker with all that it needs, before it is started.
struct Voyage {
    staged_inputs: StagedInputs,
    notes: Notes,
    mirror: Mirror,
    trees: Trees,
    /// Where the launcher hints.
    hints: UnixDatagram,
    heard: String,
}

impl Voyage {
    async fn begin(way: &SidecarContext) -> Brought<Self> {
        let staged_inputs = StagedInputs::bring(way).await?;
        let launch = &staged_inputs.launch;
        let notes = Notes::new(&launch.folders.run);
        let mut trees = Trees::new(way.client.clone(), launch, notes.clone());
        let mirror = Mirror::new(way.client.clone(), launch, notes.clone(), trees.arrived());
        trees.fetch().await?;
        let hints = listen(&staged_inputs)
            .map_err(|source| SidecarError::Folder { path: launch.folders.hints.clone(), source })?;
        let listener =
            UpdateListener { client: &way.client, staged_inputs: &staged_inputs, notes: notes.clone() };
        let heard = match listener.first().await {
            Ok(heard) => heard,
            Err(RetryError::Over) => {
                let _ = staged_inputs.remove(way);
                return Err(None);
            }
            Err(RetryError::Refused(source)) => {
                return Err(Some(SidecarError::Server { doing: "say what there is to hear", source }));
            }
        };
        Ok(Voyage { staged_inputs, notes, mirror, trees, hints, heard })
    }

    async fn go(mut self, way: &SidecarContext) -> Result<ExitCode, SidecarError> {
        let mut launcher = start(&self.staged_inputs).map_err(SidecarError::Launcher)?;
        let number = launcher.id().and_then(|id| i32::try_from(id).ok()).unwrap_or_default();
        let (end, ended) = watch::channel(false);
        let wait = async {
            let status = launcher.wait().await;
            let mark = self.staged_inputs.launch.folders.run.join(LAUNCHER_ENDED_FILE);
            if let Err(error) = std::fs::write(mark, "ended\n") {
                self.notes.add(format_args!("cannot write down that the launcher has ended: {error}"));
            }
            end.send_replace(true);
            status
        };
        let listener = UpdateListener {
            client: &way.client,
            staged_inputs: &self.staged_inputs,
            notes: self.notes.clone(),
        };
        let work = async {
            tokio::join!(wait, self.mirror.run(ended.clone(), &self.hints), self.trees.run(ended.clone()))
        };
        let (status, mirrored, synced) = tokio::select! {
            done = work => done,
            never = listener.listen(self.heard, Pid::from_raw(number)) => match never {},
        };
        if self.trees.is_incomplete {
            let folder = self.staged_inputs.folder.display();
            self.notes
                .add(format_args!("not all could be delivered; what is left is on the node in `{folder}`"));
        }
        let told = match mirrored.and(synced) {
            Ok(()) => self.mirror.tell_the_end().await,
            Err(refusal) => Err(refusal),
        };
        let is_told = match told {
            Ok(is_told) => is_told,
            // That the end had arrived, and its answer had not; or nobody waits for it.
            Err(RetryError::Over) => true,
            Err(RetryError::Refused(source)) => {
                return Err(SidecarError::Server { doing: "hear the worker's end", source });
            }
        };
        if is_told && !self.trees.is_incomplete {
            // What stays in the way of nobody is no reason to fail.
            let _ = self.staged_inputs.remove(way);
        }
        Ok(if is_told && status.as_ref().is_ok_and(ExitStatus::success) {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        })
    }
}

fn start(staged_inputs: &StagedInputs) -> std::io::Result<Child> {
    Command::new(std::env::current_exe()?)
        .arg("slurm-worker")
        .arg(staged_inputs.allocation())
        .arg("beside-sidecar")
        .env_remove(TOKEN_VARIABLE)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .spawn()
}

/// The path may be longer than the address of a socket.
fn listen(staged_inputs: &StagedInputs) -> std::io::Result<UnixDatagram> {
    let folder = std::fs::File::open(&staged_inputs.folder)?;
    let name = staged_inputs.launch.folders.hints.file_name().unwrap_or_default();
    let number = std::os::fd::AsRawFd::as_raw_fd(&folder).to_string();
    UnixDatagram::bind(std::path::Path::new("/proc/self/fd").join(number).join(name))
}
