//! Signals to the launcher, and the ends of its children.
//!
//! Only [`Children::reap`] waits for processes: it takes every one that ended, ours or an orphan that came to us. Nothing
//! else may, so neither tokio's nor the standard library's way of waiting for a child is used.

use std::collections::HashMap;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::Mutex;
use std::time::Duration;

use danlu_core::job::ProcessExit;
use danlu_device::cgroup::WorkerGroup;
use danlu_device::process;
use danlu_device::spawn::{self, Reaped};
use nix::sys::prctl;
use nix::sys::signal::{SigSet, Signal, kill};
use nix::unistd::{Pid, getpid};
use tokio::signal::unix::{self, SignalKind};
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::error::LauncherError;
use crate::worker::Audience;

/// Takes charge of orphans, and holds signals back until [`Signals::new`] can take them: an order to stop may come in
/// our first millisecond. Before anything is started.
pub(crate) fn hold_signals() -> Result<(), LauncherError> {
    taken().thread_block().map_err(LauncherError::Signals)?;
    prctl::set_child_subreaper(true).map_err(LauncherError::Signals)
}

/// Asks to look for an order. Slurm sends a signal to all processes of a worker at once, and ranks ignore this one unless
/// they ask for it.
const LOOK: Signal = Signal::SIGURG;

fn taken() -> SigSet {
    [Signal::SIGCHLD, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGINT, LOOK].into_iter().collect()
}

/// What a signal asks the launcher to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SignalEvent {
    /// Someone ended: [`Children::reap`].
    Reap,
    /// The worker is to stop, whether or not there is an order that says how.
    Order,
    /// There is an order to stop, or will be once the disk shows it.
    Look,
}

#[derive(Debug)]
pub(crate) struct Signals {
    child: unix::Signal,
    terminate: unix::Signal,
    look: unix::Signal,
    /// Taken, and acted upon only where somebody watches: otherwise the end of a terminal is not the worker's.
    terminal: [unix::Signal; 2],
    audience: Audience,
}

impl Signals {
    pub(crate) fn new(audience: Audience) -> io::Result<Self> {
        let signals = Signals {
            child: unix::signal(SignalKind::child())?,
            terminate: unix::signal(SignalKind::terminate())?,
            look: unix::signal(SignalKind::from_raw(LOOK as i32))?,
            terminal: [unix::signal(SignalKind::hangup())?, unix::signal(SignalKind::interrupt())?],
            audience,
        };
        taken().thread_unblock()?;
        Ok(signals)
    }

    /// Whether somebody asks the worker to end within this time.
    pub(crate) async fn is_told_within(&mut self, time: Duration) -> bool {
        timeout(time, self.terminate.recv()).await.is_ok()
    }

    pub(crate) async fn next(&mut self) -> SignalEvent {
        let [hangup, interrupt] = &mut self.terminal;
        tokio::select! {
            biased;
            _ = self.child.recv() => SignalEvent::Reap,
            _ = self.terminate.recv() => SignalEvent::Order,
            _ = self.look.recv() => SignalEvent::Look,
            _ = hangup.recv(), if self.audience == Audience::Terminal => SignalEvent::Order,
            _ = interrupt.recv(), if self.audience == Audience::Terminal => SignalEvent::Order,
        }
    }
}

/// What [`Children::reap`] found.
#[derive(Debug)]
pub(crate) struct Census {
    /// Those whom nobody watches.
    pub(crate) ended: Vec<(i32, ProcessExit)>,
    /// Whether anything of the worker still lives, however it forked.
    pub(crate) any_left: bool,
}

/// Everything below the launcher.
#[derive(Debug, Default)]
pub(crate) struct Children {
    watched: Mutex<HashMap<i32, oneshot::Sender<ProcessExit>>>,
}

impl Children {
    /// Hears of the end of `pid`. Called right after its start, before anything is awaited: nobody reaps in between.
    pub(crate) fn watch(&self, pid: i32) -> oneshot::Receiver<ProcessExit> {
        let (sender, receiver) = oneshot::channel();
        self.watched.lock().expect("no one panics while holding it").insert(pid, sender);
        receiver
    }

    /// Takes all that have ended since the last call, and tells watchers of theirs.
    pub(crate) fn reap(&self) -> Census {
        let mut ended = Vec::new();
        loop {
            match spawn::reap_any() {
                Reaped::Ended { pid, status } => {
                    let exit = exit_of(status);
                    match self.watched.lock().expect("no one panics while holding it").remove(&pid) {
                        // A session that is gone does not want to know.
                        Some(watcher) => drop(watcher.send(exit)),
                        None => ended.push((pid, exit)),
                    }
                }
                Reaped::NoneYet => return Census { ended, any_left: true },
                Reaped::NoChildren => return Census { ended, any_left: false },
            }
        }
    }
}

/// Sends a signal to everything below the launcher.
pub(crate) fn signal_all(group: &WorkerGroup, signal: Signal) {
    if signal == Signal::SIGKILL {
        // At once for all of the group, so that nobody forks away from the list below.
        let _ = group.kill();
    }
    for pid in process::descendants(getpid().as_raw()) {
        // Gone meanwhile is what we want.
        let _ = kill(Pid::from_raw(pid), signal);
    }
}

fn exit_of(status: ExitStatus) -> ProcessExit {
    match (status.code(), status.signal()) {
        (Some(code), _) => ProcessExit::Code(code),
        (None, signal) => ProcessExit::Signal(signal.unwrap_or_default()),
    }
}
