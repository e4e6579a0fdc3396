//! The lock that a launcher holds for as long as it lives.
//!
//! The engine takes the lock, then has the launcher started with the locked file as its standard input. A lock made by
//! `flock` belongs to the open file, not to a process: the launcher holds it from its first moment to its last without
//! knowing of it, and the kernel frees it however the launcher dies. So there is no moment at which a launcher runs and
//! its lock is free, and a machine that was switched off finds every lock free.
//!
//! The locked file is the launcher's log, and what it holds is the second half: it is empty until a launcher was started,
//! and then begins with a line that says so. A server that is killed between lock and start leaves a free lock and an
//! empty file, which means *never started*. One killed between start and note leaves a held lock. If that launcher then
//! dies before its first status and without a word it counts as never started too, which is safe because a launcher
//! writes its status before it starts anything.
//!
//! Alternatives: a process number in a file has the window that this closes; asking `/proc` for a launcher with this
//! run folder among its arguments costs a walk over all processes, and any program could pretend.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use danlu_core::log::{LAUNCHER_LOG, LAUNCHER_STARTED, encode};
use danlu_types::api::LogStream;
use jiff::Timestamp;

/// What an attempt to take a worker's lock came to.
#[derive(Debug)]
pub(super) enum Hold {
    /// There is no such file: nothing was ever started here.
    Missing,
    /// Somebody has it: the launcher lives.
    Held,
    Taken(Taken),
}

/// The lock in our hands: no launcher lives, and none can be started by anybody else.
#[derive(Debug)]
pub(super) struct Taken {
    file: File,
    handed_over: bool,
}

impl Hold {
    /// Takes the lock if it is free, making the file if need be.
    pub(super) fn take(run: &Path) -> io::Result<Hold> {
        let mut options = OpenOptions::new();
        options.read(true).append(true).create(true).mode(0o600);
        Self::lock(options.open(run.join(LAUNCHER_LOG))?)
    }

    /// Takes the lock if it is free, changing nothing on disk, so that it works where the disk is read-only.
    pub(super) fn probe(run: &Path) -> io::Result<Hold> {
        match File::open(run.join(LAUNCHER_LOG)) {
            Ok(file) => Self::lock(file),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Hold::Missing),
            Err(error) => Err(error),
        }
    }

    fn lock(file: File) -> io::Result<Hold> {
        match file.try_lock() {
            Ok(()) => Ok(Hold::Taken(Taken { file, handed_over: false })),
            Err(TryLockError::WouldBlock) => Ok(Hold::Held),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

impl Taken {
    /// True once a launcher was started with this lock.
    pub(super) fn was_started(&self) -> io::Result<bool> {
        Ok(self.file.metadata()?.len() > 0)
    }

    /// The same open file, to become a launcher's standard input, output and error.
    pub(super) fn for_launcher(&self) -> io::Result<File> {
        self.file.try_clone()
    }

    /// Leaves the lock to whoever has [`Taken::for_launcher`] now and starts the launcher.
    pub(super) fn leave(mut self) {
        self.handed_over = true;
    }

    /// Leaves the lock to the launcher that was just started with [`Taken::for_launcher`]. It may have died at once, and
    /// written its last words before our note.
    pub(super) fn hand_over(mut self, pid: u32) {
        self.handed_over = true;
        let mut line = Vec::new();
        encode(&mut line, Timestamp::now(), LogStream::Danlu, format!("{LAUNCHER_STARTED}{pid}").as_bytes());
        if let Err(error) = self.file.write_all(&line) {
            // Costs nothing unless that launcher dies before its first status: then it is started once more.
            tracing::warn!(launcher.pid = pid, %error, "could not note the start of a launcher");
        }
    }
}

impl Drop for Taken {
    /// Unlocks by word and not by closing: a program that this process starts at the same moment has a copy of the
    /// descriptor until its `exec`, and would hold the lock that long. Handed over, the lock must *not* be undone: it
    /// is the launcher's, and unlocking any copy unlocks them all.
    fn drop(&mut self) {
        if !self.handed_over {
            // Closing unlocks too, only perhaps later.
            let _ = self.file.unlock();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    fn taken(hold: Hold) -> Taken {
        match hold {
            Hold::Taken(taken) => taken,
            other => panic!("expected a free lock, found {other:?}"),
        }
    }

    #[test]
    fn a_program_holds_its_lock_until_it_ends_and_no_longer() {
        let run = tempfile::tempdir().unwrap();
        assert!(matches!(Hold::probe(run.path()).unwrap(), Hold::Missing));
        let lock = taken(Hold::take(run.path()).unwrap());
        assert!(!lock.was_started().unwrap());
        assert!(matches!(Hold::probe(run.path()).unwrap(), Hold::Held));

        // `sleep` knows nothing of locks; its standard input is all it takes.
        let stdin = Stdio::from(lock.for_launcher().unwrap());
        let mut program = Command::new("sleep").arg("600").stdin(stdin).spawn().unwrap();
        lock.hand_over(program.id());
        assert!(matches!(Hold::take(run.path()).unwrap(), Hold::Held));

        program.kill().unwrap();
        program.wait().unwrap();
        assert!(taken(Hold::probe(run.path()).unwrap()).was_started().unwrap());
    }

    #[test]
    fn a_lock_that_is_let_go_is_free_at_once_though_others_have_copies() {
        let run = tempfile::tempdir().unwrap();
        let lock = taken(Hold::take(run.path()).unwrap());
        let copy = lock.for_launcher().unwrap();
        drop(lock);
        assert!(!taken(Hold::take(run.path()).unwrap()).was_started().unwrap());
        drop(copy);
    }
}
