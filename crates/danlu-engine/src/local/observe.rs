//! What has become of a worker, telling it to end, and forgetting it.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::time::{Duration, Instant};

use danlu_core::job::{FailureCause, WorkerEnd, WorkerFailure};
use danlu_core::launch::{
    LAUNCH_FILE, LauncherState, LauncherStatus, ProcessIdentity, SECRETS_FILE, SECRETS_FOLDER, STOP_FILE,
    StopOrder,
};
use danlu_core::log::{LAUNCHER_LOG, LAUNCHER_STARTED, decode};
use danlu_core::report::REPORT_FILE;
use danlu_device::process;
use danlu_types::WorkerId;
use jiff::Timestamp;
use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::Workers;
use super::lock::{Hold, Taken};
use crate::{Observation, ObservedState, files};

/// The engine's own word on a worker whose launcher died without one: a [`LauncherState::Ended`]. It is not written
/// into the launcher's status, because neither side writes the other's files.
const VERDICT_FILE: &str = "verdict.json";
/// A killed process lets go of its locks within moments, unless it waits for a device or a network disk.
const LOCK_PATIENCE: Duration = Duration::from_secs(2);
const LOCK_PAUSE: Duration = Duration::from_millis(2);
/// Enough of a dying launcher's last words.
const LONGEST_DETAIL: usize = 500;

impl Workers {
    /// What the launcher last said, if that can be understood and is about this worker.
    pub(super) fn status(&self, worker: WorkerId) -> io::Result<Option<LauncherStatus>> {
        files::read_status(&self.layout.run_folder(worker), worker)
    }

    pub(super) fn observe(&self, worker: WorkerId) -> io::Result<Observation> {
        let _guard = self.guard(worker);
        let mut seen = self.look(worker)?;
        if let ObservedState::Running { report, .. } = &mut seen {
            *report = files::read(&self.layout.run_folder(worker).join(REPORT_FILE))?.map(Box::new);
        }
        let trouble = match &seen {
            ObservedState::Running { .. } | ObservedState::Preparing => self.trouble(worker)?,
            _ => None,
        };
        Ok(Observation { trouble, ..Observation::new(worker, seen) })
    }

    /// Why a live launcher does nothing for its worker.
    fn trouble(&self, worker: WorkerId) -> io::Result<Option<String>> {
        let Some(status) = self.status(worker)? else { return Ok(None) };
        let pid = status.launcher.pid;
        if process::is_stopped(pid) {
            let text = format!(
                "its launcher (process {pid}) is stopped, so its limits do not hold; `kill -CONT {pid}` has it go on"
            );
            return Ok(Some(text));
        }
        Ok(files::long_silence(&self.layout.run_folder(worker)).map(|age| {
            let minutes = age.as_secs() / 60;
            format!("its launcher (process {pid}) has shown no sign of life for {minutes} minutes: it may hang, or the disk takes nothing")
        }))
    }

    /// Writes the order, then wakes the launcher. In this order, and with a launcher that writes its first status
    /// before it looks for orders, one of the two always sees the other. A worker whose launch was begun and not brought
    /// to its start is never started once an order lies there.
    pub(super) fn signal(&self, worker: WorkerId, order: &StopOrder) -> io::Result<()> {
        let _guard = self.guard(worker);
        let status = self.status(worker)?;
        let has_ended = status.as_ref().is_some_and(|status| ended(&status.phase).is_some());
        if has_ended || !self.marker(worker).try_exists()? {
            return Ok(());
        }
        let run = self.layout.run_folder(worker);
        let standing: Option<StopOrder> = files::read(&run.join(STOP_FILE))?;
        let mut written = Ok(());
        if standing.is_none_or(|standing| order.grace < standing.grace) {
            written = files::replace(&run, STOP_FILE, &serde_json::to_vec(order)?);
        }
        // Read again: the launcher may have come up while the order was written.
        match (self.launcher(worker, self.status(worker)?.as_ref()), written) {
            // Where no order can be written, the signal is one: for the grace that the job asked for. A worker whose launcher
            // is still to come is another matter, because it must not start.
            (Some(launcher), Err(error)) if error.kind() == ErrorKind::ReadOnlyFilesystem => {
                kill_launcher(&run, launcher, Signal::SIGTERM)
            }
            (_, Err(error)) => Err(error),
            (Some(launcher), Ok(())) => kill_launcher(&run, launcher, Signal::SIGTERM),
            (None, Ok(())) => Ok(()),
        }
    }

    /// For a launcher that does not do what it was told, such as one that somebody has stopped with SIGSTOP: kills it and
    /// all that is left of its worker, and gives the verdict for it.
    pub(super) fn kill(&self, worker: WorkerId, exit: &WorkerEnd) -> io::Result<bool> {
        let _guard = self.guard(worker);
        if !self.marker(worker).try_exists()? {
            return Ok(false);
        }
        let status = self.status(worker)?;
        if status.as_ref().is_some_and(|status| ended(&status.phase).is_some()) {
            return Ok(false);
        }
        let run = self.layout.run_folder(worker);
        if let Some(launcher) = self.launcher(worker, status.as_ref()) {
            kill_launcher(&run, launcher, Signal::SIGKILL)?;
        }
        self.sweep(worker);
        let deadline = Instant::now() + LOCK_PATIENCE;
        loop {
            match Hold::probe(&run)? {
                Hold::Taken(lock) => {
                    self.look_at_dead(worker, &lock, Some(exit))?;
                    return Ok(true);
                }
                Hold::Missing => return Ok(false),
                Hold::Held if Instant::now() > deadline => {
                    return Err(io::Error::new(ErrorKind::TimedOut, "its launcher outlives a kill"));
                }
                Hold::Held => std::thread::sleep(LOCK_PAUSE),
            }
        }
    }

    /// The marker goes last: whatever fails before it is tried again.
    pub(super) fn release(&self, worker: WorkerId) -> io::Result<()> {
        let _guard = self.guard(worker);
        let marker = self.marker(worker);
        if !marker.try_exists()? {
            return Ok(());
        }
        if let ObservedState::Preparing | ObservedState::Running { .. } = self.look(worker)? {
            return Err(io::Error::new(ErrorKind::ResourceBusy, "its launcher still runs"));
        }
        match self.status(worker)? {
            Some(status) => {
                kill_launcher(&self.layout.run_folder(worker), status.launcher, Signal::SIGKILL)?;
            }
            // Never came up, so it has not taken them.
            None => self.forget_secrets(worker)?,
        }
        self.remove_group(worker)?;
        files::remove(&marker)
    }

    /// The table of the module above. The caller has the worker's guard.
    fn look(&self, worker: WorkerId) -> io::Result<ObservedState> {
        let marker = self.marker(worker);
        if !marker.try_exists()? {
            return Ok(ObservedState::Unknown);
        }
        let run = self.layout.run_folder(worker);
        let status = self.status(worker)?;
        if let Some(ended) = status.as_ref().and_then(|status| ended(&status.phase)) {
            return Ok(ended);
        }
        match Hold::probe(&run)? {
            Hold::Held => match &status {
                Some(status) if !process::is_alive(status.launcher) => self.look_at_stray(worker, status),
                _ => Ok(last_word(status.as_ref())),
            },
            Hold::Taken(lock) => self.look_at_dead(worker, &lock, None),
            Hold::Missing => {
                if !run.join(LAUNCH_FILE).try_exists()? {
                    // Somebody removed the folder: nothing is left to launch or to tell.
                    files::remove(&marker)?;
                }
                Ok(ObservedState::Unknown)
            }
        }
    }

    /// The launcher is dead but its lock is held: a child of it got hold of its standard input. Without that child the
    /// lock is free.
    fn look_at_stray(&self, worker: WorkerId, status: &LauncherStatus) -> io::Result<ObservedState> {
        self.sweep(worker);
        match Hold::probe(&self.layout.run_folder(worker))? {
            Hold::Taken(lock) => self.look_at_dead(worker, &lock, None),
            Hold::Held | Hold::Missing => Ok(last_word(Some(status))),
        }
    }

    /// No launcher lives, and with the lock in hand none can come up: the moment for a verdict. Whoever killed it says
    /// `with` which.
    fn look_at_dead(
        &self,
        worker: WorkerId,
        lock: &Taken,
        with: Option<&WorkerEnd>,
    ) -> io::Result<ObservedState> {
        let run = self.layout.run_folder(worker);
        // Read again: it may have ended in good order between our first reading and its death.
        let status = self.status(worker)?;
        if let Some(ended) = status.as_ref().and_then(|status| ended(&status.phase)) {
            return Ok(ended);
        }
        if let Some(ended) = self.verdict(worker)?.as_ref().and_then(ended) {
            return Ok(ended);
        }
        let told_to_stop = files::read::<StopOrder>(&run.join(STOP_FILE))?.is_some();
        if status.is_none() && !lock.was_started()? && !told_to_stop && with.is_none() {
            return Ok(ObservedState::Unknown);
        }
        if !self.sweep(worker) {
            tracing::warn!(worker.id = %worker, "processes of worker {worker} outlive their launcher and a kill");
            return Ok(last_word(status.as_ref()));
        }
        self.forget_secrets(worker)?;
        let exit = if let Some(exit) = with {
            exit.clone()
        } else if told_to_stop {
            WorkerEnd::Stopped
        } else {
            let detail = if status.is_none() {
                self.last_words(worker)
            } else {
                "its processes were ended".to_owned()
            };
            WorkerEnd::Failed(WorkerFailure {
                cause: FailureCause::LauncherLost,
                rank: None,
                exit: None,
                detail,
            })
        };
        let running_since = match status.as_ref().map(|status| &status.phase) {
            Some(LauncherState::Running { since, .. }) => Some(*since),
            _ => None,
        };
        let verdict = LauncherState::Ended { running_since, at: Timestamp::now(), exit };
        match files::replace(&run, VERDICT_FILE, &serde_json::to_vec(&verdict)?) {
            Ok(()) => Ok(ended(&verdict).unwrap_or(ObservedState::Unknown)),
            Err(error) => {
                // Others are to be seen nevertheless. This one stays as it was until the disk takes the verdict.
                tracing::warn!(worker.id = %worker, %error, "could not write the verdict on worker {worker}");
                Ok(last_word(status.as_ref()))
            }
        }
    }

    /// The verdict that was given on the worker, if one was.
    pub(super) fn verdict(&self, worker: WorkerId) -> io::Result<Option<LauncherState>> {
        files::read(&self.layout.run_folder(worker).join(VERDICT_FILE))
    }

    /// What a launcher would have removed at its end, or on its way up.
    fn forget_secrets(&self, worker: WorkerId) -> io::Result<()> {
        let run = self.layout.run_folder(worker);
        files::remove(&run.join(SECRETS_FILE))?;
        files::remove_secrets(&run.join(SECRETS_FOLDER), worker)
    }

    /// The worker's launcher by its status; by the note of its start where there is none yet, or it was lost.
    fn launcher(&self, worker: WorkerId, status: Option<&LauncherStatus>) -> Option<ProcessIdentity> {
        if let Some(status) = status {
            return Some(status.launcher);
        }
        let log = files::read_bytes(&self.layout.run_folder(worker).join(LAUNCHER_LOG)).ok().flatten()?;
        let pid = log.split(|byte| *byte == b'\n').find_map(|line| {
            let (_, _, text) = decode(line)?;
            std::str::from_utf8(text).ok()?.strip_prefix(LAUNCHER_STARTED)?.parse().ok()
        });
        process::identity(pid?)
    }

    /// Why a launcher died before its first status: usually the last line it printed.
    fn last_words(&self, worker: WorkerId) -> String {
        let log = fs::read(self.layout.run_folder(worker).join(LAUNCHER_LOG)).unwrap_or_default();
        let mut words =
            log.split(|byte| *byte == b'\n').map(|line| decode(line).map_or(line, |(_, _, text)| text));
        let own = |text: &&[u8]| !text.is_empty() && !text.starts_with(LAUNCHER_STARTED.as_bytes());
        let text = words.rfind(own).unwrap_or_default();
        String::from_utf8_lossy(text).chars().take(LONGEST_DETAIL).collect()
    }
}

fn ended(phase: &LauncherState) -> Option<ObservedState> {
    match phase {
        LauncherState::Preparing | LauncherState::Running { .. } => None,
        LauncherState::Ended { running_since, at, exit } => {
            Some(ObservedState::Ended { running_since: *running_since, at: *at, exit: exit.clone() })
        }
    }
}

/// What to say of a worker that has not ended.
fn last_word(status: Option<&LauncherStatus>) -> ObservedState {
    match status.map(|status| &status.phase) {
        Some(LauncherState::Running { since, .. }) => ObservedState::Running { since: *since, report: None },
        Some(LauncherState::Preparing | LauncherState::Ended { .. }) | None => ObservedState::Preparing,
    }
}

/// Sends a signal to the launcher of this very run folder, if it lives; one that is gone is no error. Its number could be
/// another process's only if it died and the kernel went once around all numbers between the look and the signal.
///
/// What a status says is not enough: it lies where the job's programs can write, and the one in a *copy* of a data folder
/// names a launcher that works for the original. Its own is known by the lock that it has as its standard input.
fn kill_launcher(run: &Path, launcher: ProcessIdentity, signal: Signal) -> io::Result<()> {
    // Never a process group, never everybody.
    if launcher.pid <= 1
        || !process::is_alive(launcher)
        || !process::has_as_standard_input(launcher.pid, &run.join(LAUNCHER_LOG))
    {
        return Ok(());
    }
    match kill(Pid::from_raw(launcher.pid), signal) {
        Ok(()) | Err(Errno::ESRCH) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}
