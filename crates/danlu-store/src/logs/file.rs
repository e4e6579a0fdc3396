//! Reads at a place in a file that somebody else owns.
//!
//! The file is opened for each read: a job of a thousand ranks would else need a thousand open files at once.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use danlu_core::log::{LONGEST_LINE, PREFIX_BYTES};
use nix::errno::Errno;
use nix::fcntl::OFlag;

use super::LogError;

/// A line with its line feed is never longer; what is, is damaged.
pub(super) const LONGEST_RECORD: usize = PREFIX_BYTES + LONGEST_LINE + 1;

/// Which file it is, and how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Facts {
    pub(super) identity: (u64, u64),
    pub(super) length: u64,
}

/// Opens a log; `None` where there is none yet.
pub(super) fn open(path: &Path) -> Result<Option<(File, Facts)>, LogError> {
    // Not blocking: the other end of a named pipe may never come.
    let flags = OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK;
    let file = match OpenOptions::new().read(true).custom_flags(flags.bits()).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        // What a link answers to `O_NOFOLLOW`.
        Err(error) if error.raw_os_error() == Some(Errno::ELOOP as i32) => {
            return Err(LogError::NotAFile { path: path.to_owned() });
        }
        Err(error) => return Err(LogError::reading(path)(error)),
    };
    let metadata = file.metadata().map_err(LogError::reading(path))?;
    if !metadata.is_file() {
        return Err(LogError::NotAFile { path: path.to_owned() });
    }
    let identity = (metadata.dev(), metadata.ino());
    Ok(Some((file, Facts { identity, length: metadata.len() })))
}

/// A file from `offset` on, as a [`Read`] that holds nothing open between reads.
#[derive(Debug)]
pub(super) struct Reopened<'a> {
    pub(super) path: &'a Path,
    pub(super) offset: u64,
}

impl Read for Reopened<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some((file, _)) = open(self.path).map_err(io::Error::other)? else { return Ok(0) };
        let count = file.read_at(buffer, self.offset)?;
        self.offset += count as u64;
        Ok(count)
    }
}
