//! Whether the server can do its work: room on the disk, a database that is whole, and the reserve for when there is no room.
//!
//! When the disk of the data folder is full, submissions are refused, and what makes room must work all the same: stops,
//! deletions, the ends of jobs. They need a few kilobytes, so the data folder keeps some files that hold nothing
//! (`reserve-N`). Each is removed when a write that matters finds no room, and made again when there is room. Several
//! small ones rather than a large one, because whoever fills the disk takes what is given up within moments: a stop that
//! was overtaken has another try.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use nix::fcntl::posix_fallocate;
use nix::sys::statvfs::statvfs;
use tokio::sync::Notify;

use crate::folder::{LEAST_ROOM_BYTES, lack_of_room, read_only};
use crate::measures::Measures;

const PIECES: usize = 4;
/// Many times what the largest commit writes.
const LARGEST_PIECE_BYTES: u64 = 4 << 20;
/// On a small disk, a piece is at most this part of it.
const LARGEST_PART_OF_DISK: u64 = 64;

#[derive(Debug)]
pub(crate) struct ServerHealth {
    data: PathBuf,
    /// What will not pass by itself, and why the server takes no new jobs because of it.
    found: Mutex<Option<String>>,
    pub(crate) measures: Measures,
    /// The database could not say whether it took a change of something that is also kept in memory.
    pub(crate) doubt: Notify,
    /// For tests: changes are written, and their answers lost.
    #[cfg(test)]
    pub(crate) loses_answers: std::sync::atomic::AtomicBool,
}

impl ServerHealth {
    pub(crate) fn new(data: &Path) -> Self {
        ServerHealth {
            data: data.to_owned(),
            found: Mutex::default(),
            measures: Measures::default(),
            doubt: Notify::new(),
            #[cfg(test)]
            loses_answers: std::sync::atomic::AtomicBool::default(),
        }
    }

    /// Everything that keeps the server from its work, for readiness.
    pub(crate) fn problems(&self) -> Vec<String> {
        let disk = read_only(&self.data).or_else(|| lack_of_room(&self.data));
        self.found().clone().into_iter().chain(disk).collect()
    }

    /// That nothing can be written, if so.
    pub(crate) fn read_only(&self) -> Option<String> {
        read_only(&self.data)
    }

    /// Why new jobs are not taken now, if so.
    pub(crate) fn objection(&self) -> Option<String> {
        self.problems().into_iter().next()
    }

    /// Notes something that only a person can mend. The first counts: others follow from it.
    pub(crate) fn note(&self, problem: String) {
        let mut found = self.found();
        if found.is_none() {
            tracing::error!("{problem}");
            *found = Some(problem);
        }
    }

    /// Free bytes and all of the disk of the data folder, where that can be told.
    pub(crate) fn room(&self) -> Option<(u64, u64)> {
        disk(&self.data).map(|disk| (disk.free, disk.total))
    }

    /// Whether the next write may well fail for want of room.
    pub(crate) fn is_tight(&self) -> bool {
        disk(&self.data).is_some_and(|disk| disk.free < LEAST_ROOM_BYTES)
    }

    /// Gives up a piece of the reserve if the disk is full. True if there is room now that was not there before.
    pub(crate) fn make_room(&self) -> bool {
        let Some(disk) = disk(&self.data).filter(|disk| disk.free < disk.piece) else { return false };
        let given_up = self.pieces().find(|piece| std::fs::remove_file(piece).is_ok());
        if given_up.is_some() {
            tracing::warn!(
                disk.free_bytes = disk.free,
                "the disk of the data folder is full: gave up a part of the reserve"
            );
        }
        given_up.is_some()
    }

    /// Makes the missing parts of the reserve while there is plenty of room.
    pub(crate) fn keep_reserve(&self) {
        for piece in self.pieces() {
            let Some(disk) = disk(&self.data) else { return };
            let plenty = 2 * LEAST_ROOM_BYTES.min(disk.total / 4) + disk.piece;
            if disk.free < plenty || piece.exists() {
                continue;
            }
            let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&piece);
            if let Err(error) = made.and_then(|file| allocate(&file, disk.piece)) {
                tracing::debug!("could not make {}: {error}", piece.display());
                let _ = std::fs::remove_file(&piece);
                return;
            }
        }
    }

    fn pieces(&self) -> impl Iterator<Item = PathBuf> {
        (1..=PIECES).map(|number| self.data.join(format!("reserve-{number}")))
    }

    fn found(&self) -> MutexGuard<'_, Option<String>> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Blocks on the disk, which a file with a hole would not have.
fn allocate(file: &File, bytes: u64) -> std::io::Result<()> {
    let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
    posix_fallocate(file, 0, bytes)?;
    Ok(())
}

struct Disk {
    total: u64,
    free: u64,
    /// How large a piece of the reserve is here.
    piece: u64,
}

fn disk(path: &Path) -> Option<Disk> {
    let found = statvfs(path).ok()?;
    let total = found.blocks() * found.fragment_size();
    let piece = LARGEST_PIECE_BYTES.min(total / LARGEST_PART_OF_DISK);
    Some(Disk { total, free: found.blocks_available() * found.fragment_size(), piece })
}
