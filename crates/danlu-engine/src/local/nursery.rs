//! The engine's side of a nursery: the process whose copies become launchers (`danlu_launch::serve`).
//!
//! To copy a process that runs costs less than to start a program, and a launcher starts with every worker. The nursery
//! is started with the first worker, again where it died, and ends with this process, of whatever that dies; its
//! launchers stay. It decides nothing: the lock that goes with each request says whether a launcher lives, also for one
//! that was asked for and never started ([`super::hold`]).

use std::ffi::OsString;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use danlu_device::channel::Channel;
use danlu_types::WorkerId;

use super::hold::Taken;
use super::start::detached;
use crate::hints::Hints;

#[derive(Debug)]
pub(super) struct Nursery {
    program: Vec<OsString>,
    hints: Arc<Hints>,
    open: Mutex<Option<Arc<Channel>>>,
}

impl Nursery {
    pub(super) fn new(program: Vec<OsString>, hints: Arc<Hints>) -> Self {
        Nursery { program, hints, open: Mutex::default() }
    }

    /// Asks for a launcher that holds this lock.
    pub(super) fn launch(&self, worker: WorkerId, run: &Path, lock: &Taken) -> io::Result<()> {
        let mut request = worker.to_string().into_bytes();
        request.push(0);
        request.extend_from_slice(run.as_os_str().as_bytes());
        let log = lock.for_launcher()?;
        let ask = |channel: &Channel| channel.send(&request, Some(log.as_fd()));

        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.as_ref().is_some_and(|channel| ask(channel).is_ok()) {
            return Ok(());
        }
        let channel = self.start()?;
        ask(&channel)?;
        *open = Some(channel);
        Ok(())
    }

    fn start(&self) -> io::Result<Arc<Channel>> {
        let (channel, theirs) = Channel::pair()?;
        let nursery =
            detached(&self.program)?.stdin(theirs).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        let channel = Arc::new(channel);
        let (reading, hints) = (Arc::clone(&channel), Arc::clone(&self.hints));
        std::thread::Builder::new()
            .name("nursery".to_owned())
            .spawn(move || read_ends(&reading, &hints, nursery))?;
        Ok(channel)
    }
}

impl Drop for Nursery {
    fn drop(&mut self) {
        let open = self.open.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(channel) = open {
            channel.close();
        }
    }
}

/// Each message names a worker whose launcher has ended. How it ended does not matter: the lock is free, and whoever
/// follows the hint looks.
fn read_ends(channel: &Channel, hints: &Hints, mut nursery: Child) {
    while let Ok(Some(message)) = channel.receive() {
        if let Some(worker) = std::str::from_utf8(&message.text).ok().and_then(|text| text.parse().ok()) {
            hints.add(worker);
        }
    }
    // It ends with the channel, or has ended before.
    let _ = nursery.wait();
}
