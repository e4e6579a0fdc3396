//! The engine's side of a fork server: the process whose copies become launchers (`danlu_launch::serve`).
//!
//! To copy a process that runs costs less than to start a program, and a launcher starts with every worker. The fork server
//! is started with the first worker, again where it died, and ends with this process, of whatever that dies; its
//! launchers stay. It decides nothing: the lock that goes with each request says whether a launcher lives, also for one
//! that was asked for and never started ([`super::lock`]).
//!
//! A fork server that lives and does not answer is killed and replaced. Nobody waits for its answers: requests that are
//! answered by nothing for too long are found when the next launcher is asked for, at the latest when the worker that
//! waits for its launcher is launched again.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use danlu_device::channel::Channel;
use danlu_device::limits;
use danlu_types::WorkerId;

use super::lock::Taken;
use super::start::detached;
use crate::hints::Hints;

/// A copy takes a millisecond; on a machine that is busy beyond reason, a second.
const LONGEST_SILENCE: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(super) struct ForkServerClient {
    program: Vec<OsString>,
    /// What its launchers find of ours, besides the usual.
    environment: Vec<String>,
    hints: Arc<Hints>,
    open: Mutex<Option<Open>>,
}

/// A fork server that runs.
#[derive(Debug)]
struct Open {
    channel: Arc<Channel>,
    process: Arc<Mutex<Child>>,
    /// What was asked for and not answered, oldest first.
    unanswered: Arc<Mutex<VecDeque<(WorkerId, Instant)>>>,
}

impl ForkServerClient {
    pub(super) fn new(program: Vec<OsString>, environment: Vec<String>, hints: Arc<Hints>) -> Self {
        ForkServerClient { program, environment, hints, open: Mutex::default() }
    }

    /// Ends a fork server that has not answered for too long. Its requests go with it: where no launcher was started for one,
    /// the worker's lock is free again.
    pub(super) fn end_if_silent(&self) {
        let mut open = lock(&self.open);
        let silent = open.as_ref().and_then(|open| {
            let oldest = lock(&open.unanswered).front().map(|(_, asked)| asked.elapsed());
            oldest.filter(|silent| *silent > LONGEST_SILENCE)
        });
        let (Some(silent), Some(ended)) = (silent, open.take_if(|_| silent.is_some())) else { return };
        tracing::warn!(
            "the process that starts launchers has not answered for {} s: it is replaced",
            silent.as_secs()
        );
        // Gone already is as good.
        let _ = lock(&ended.process).kill();
        ended.channel.close();
    }

    /// Asks for a launcher that holds this lock.
    pub(super) fn launch(&self, worker: WorkerId, run: &Path, taken: &Taken) -> io::Result<()> {
        let mut request = worker.to_string().into_bytes();
        request.push(0);
        request.extend_from_slice(run.as_os_str().as_bytes());
        let log = taken.for_launcher()?;
        let ask = |open: &Open| {
            // Before it is asked: the answer may be quicker than we are.
            lock(&open.unanswered).push_back((worker, Instant::now()));
            let asked = open.channel.send(&request, Some(log.as_fd()));
            if asked.is_err() {
                lock(&open.unanswered).retain(|(asked, _)| *asked != worker);
            }
            asked
        };

        let mut open = lock(&self.open);
        match open.as_ref().map(ask) {
            Some(Ok(())) => return Ok(()),
            // It lives and does not read. Asked again in a while, and replaced if that goes on.
            Some(Err(error)) if error.kind() == ErrorKind::WouldBlock => return Err(error),
            Some(Err(_)) | None => {}
        }
        let new = self.start()?;
        ask(&new)?;
        *open = Some(new);
        Ok(())
    }

    fn start(&self) -> io::Result<Open> {
        let (channel, theirs) = Channel::pair()?;
        let fork_server = detached(&self.program, &self.environment)?
            .stdin(theirs)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        // Before it is asked for anything, so that every launcher and rank has it.
        if let Err(error) = limits::restore_open_files(fork_server.id()) {
            tracing::warn!("programs of jobs may open more files than they expect: {error}");
        }
        let open = Open {
            channel: Arc::new(channel),
            process: Arc::new(Mutex::new(fork_server)),
            unanswered: Arc::default(),
        };
        let reading = Open {
            channel: Arc::clone(&open.channel),
            process: Arc::clone(&open.process),
            unanswered: Arc::clone(&open.unanswered),
        };
        let hints = Arc::clone(&self.hints);
        std::thread::Builder::new()
            .name("nursery".to_owned())
            .spawn(move || read_answers(&reading, &hints))?;
        Ok(open)
    }
}

impl Drop for ForkServerClient {
    fn drop(&mut self) {
        if let Some(open) = lock(&self.open).take() {
            open.channel.close();
        }
    }
}

/// Each message names a worker: with a plus, one whose launcher has been started; without, one whose launcher has ended.
/// How it ended does not matter: the lock is free, and whoever follows the hint looks.
fn read_answers(open: &Open, hints: &Hints) {
    while let Ok(Some(message)) = open.channel.receive() {
        let Ok(text) = std::str::from_utf8(&message.text) else { continue };
        match text.strip_prefix('+') {
            Some(started) => {
                // It answers in order, and an answer may have been lost while nobody read.
                let started = started.parse().ok();
                let mut unanswered = lock(&open.unanswered);
                if let Some(at) = unanswered.iter().position(|(worker, _)| Some(*worker) == started) {
                    unanswered.drain(..=at);
                }
            }
            None => {
                if let Ok(worker) = text.parse() {
                    hints.add(worker);
                }
            }
        }
    }
    // It ends with the channel, or has ended before.
    let _ = lock(&open.process).wait();
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
