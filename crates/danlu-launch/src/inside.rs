//! Work on the job's behalf that takes what the job decides: memory, time and room on the disk. A process of its own does it,
//! inside the worker's limits and as its user, so that what it costs is the job's.

use std::fs::File;
use std::io::{self, Read, Write};
use std::sync::Arc;

use danlu_device::spawn::{self, ChildPlacement, ChildSetup};
use nix::errno::Errno;
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{Pid, getpid};
use thiserror::Error;

use crate::user::WorkerUser;

const LONGEST_ANSWER: u64 = 4096;

#[derive(Debug, Error)]
pub(crate) enum InsideError {
    #[error("cannot start a process for it")]
    Start(#[source] io::Error),
    /// What went wrong, in its own words.
    #[error("{0}")]
    Failed(String),
    #[error("it was killed by {0}; most likely the job's memory limit is too small for it")]
    Killed(Signal),
    #[error("it ended without a word")]
    Silent,
}

/// Runs `work` to its end in a copy of this process. This one waits, and does nothing else.
pub(crate) fn run(
    user: &WorkerUser,
    join: &Arc<[File]>,
    work: impl FnOnce() -> Result<(), String>,
) -> Result<(), InsideError> {
    let (mut answer, mut says) = io::pipe().map_err(InsideError::Start)?;
    let launcher = getpid();
    let Some(pid) = spawn::fork().map_err(InsideError::Start)? else {
        drop(answer);
        let setup = ChildSetup {
            join: Arc::clone(join),
            die_with_parent: true,
            become_user: user.for_child(),
            umask: user.umask(),
            ..ChildSetup::of(ChildPlacement::Group)
        };
        let done = spawn::settle(&setup, launcher).map_err(|error| error.to_string()).and_then(|()| work());
        // Where nobody listens, nobody is to be told.
        let _ = says.write_all(done.err().unwrap_or_else(|| DONE.to_owned()).as_bytes());
        #[expect(
            clippy::disallowed_methods,
            reason = "nothing of the launcher's is to be tidied up by its copy"
        )]
        std::process::exit(0);
    };
    drop(says);
    let mut text = Vec::new();
    let read = answer.by_ref().take(LONGEST_ANSWER).read_to_end(&mut text);
    let ended = loop {
        match waitpid(Pid::from_raw(pid), None) {
            Err(Errno::EINTR) => {}
            ended => break ended,
        }
    };
    read.map_err(InsideError::Start)?;
    match (ended, String::from_utf8_lossy(&text).into_owned()) {
        (_, text) if text == DONE => Ok(()),
        (Ok(WaitStatus::Signaled(_, signal, _)), _) => Err(InsideError::Killed(signal)),
        (_, text) if text.is_empty() => Err(InsideError::Silent),
        (_, text) => Err(InsideError::Failed(text)),
    }
}

/// No error reads like this.
const DONE: &str = "\0";
