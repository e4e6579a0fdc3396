//! A log file that waits for the disk rather than lose a line.
//!
//! Records are gathered and written by one `write` for each chunk read, straight to the kernel: nothing of the log is in
//! our memory when the launcher is killed, except while the disk is full.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::Path;

use danlu_core::log::encode;
use danlu_types::api::LogStream;
use jiff::Timestamp;

/// While the disk is full, this much is kept in memory; then the rank's pipe fills and the rank waits in `write`.
const MOST_PENDING_BYTES: usize = 1 << 20;

#[derive(Debug)]
pub(crate) struct Spool {
    file: File,
    pending: Vec<u8>,
}

/// What a write came to.
#[derive(Debug)]
pub(crate) enum Written {
    All,
    /// Worth trying again: no space, or read-only for now. The records are kept.
    Later(io::Error),
    /// Hopeless: the records were dropped.
    Never(io::Error),
}

impl Spool {
    /// Appends to the file at `path`, so that several spools of one file do not overwrite each other.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        Ok(Spool { file, pending: Vec::new() })
    }

    pub(crate) fn record(&mut self, at: Timestamp, stream: LogStream, text: &[u8]) {
        encode(&mut self.pending, at, stream, text);
    }

    pub(crate) fn is_full(&self) -> bool {
        self.pending.len() >= MOST_PENDING_BYTES
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    pub(crate) fn write(&mut self) -> Written {
        let mut done = 0;
        let outcome = loop {
            match self.file.write(&self.pending[done..]) {
                Ok(0) if done == self.pending.len() => break Written::All,
                Ok(0) => break Written::Never(ErrorKind::WriteZero.into()),
                Ok(bytes) => {
                    done += bytes;
                    if done == self.pending.len() {
                        break Written::All;
                    }
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if is_passing(&error) => break Written::Later(error),
                Err(error) => break Written::Never(error),
            }
        };
        match outcome {
            Written::Later(_) => drop(self.pending.drain(..done)),
            Written::All | Written::Never(_) => self.pending.clear(),
        }
        // A burst should not cost memory for the rest of the job.
        if self.pending.is_empty() && self.pending.capacity() > MOST_PENDING_BYTES {
            self.pending = Vec::new();
        }
        outcome
    }
}

/// A person or a retention rule can mend it while we wait.
pub(crate) fn is_passing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::StorageFull
            | ErrorKind::QuotaExceeded
            | ErrorKind::ReadOnlyFilesystem
            | ErrorKind::OutOfMemory
            | ErrorKind::WouldBlock
    )
}
