//! How many lines are before a place in a file.

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use super::LogError;
use super::cursor::Position;
use super::file::{self, Facts};

/// Remembers, for each file, one place and its number, so that the next count starts there and not at the beginning.
/// Shared by all readers of a process; what it forgets is counted again.
#[derive(Debug, Default)]
pub struct LineCounts {
    known: Mutex<HashMap<PathBuf, LineCountCache>>,
}

#[derive(Debug, Clone, Copy)]
struct LineCountCache {
    /// Of the file that was counted; another may have taken its path.
    identity: (u64, u64),
    position: Position,
}

/// More files than that are not looked at again soon.
const MOST_FILES: usize = 4096;
const BLOCK: usize = 256 << 10;

impl LineCounts {
    pub fn new() -> Self {
        Self::default()
    }

    /// The number of the line that begins at `offset`.
    pub(super) fn number_at(
        &self,
        path: &Path,
        file: &File,
        facts: Facts,
        offset: u64,
    ) -> Result<u64, LogError> {
        let known = self.lock().get(path).copied();
        let from = match known {
            Some(known) if known.identity == facts.identity && known.position.offset <= facts.length => {
                known.position
            }
            _ => Position::default(),
        };
        let count = |begin, end| count_line_feeds(file, begin, end).map_err(LogError::reading(path));
        let number = if from.offset <= offset {
            from.number + count(from.offset, offset)?
        } else {
            from.number.saturating_sub(count(offset, from.offset)?)
        };
        let mut known = self.lock();
        if known.len() >= MOST_FILES {
            known.clear();
        }
        let position = Position { offset, number };
        known.insert(path.to_owned(), LineCountCache { identity: facts.identity, position });
        Ok(number)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<PathBuf, LineCountCache>> {
        // What is inside is a cache: good whatever happened to who held it.
        self.known.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// Where the line of this number begins; the end of the last complete line where there are not so many.
pub(super) fn position_of(path: &Path, number: u64) -> Result<Position, LogError> {
    let mut position = Position::default();
    let Some((file, facts)) = file::open(path)? else { return Ok(position) };
    let mut block = vec![0; BLOCK];
    let mut read = 0;
    while position.number < number && read < facts.length {
        let count = file.read_at(&mut block, read).map_err(LogError::reading(path))?;
        if count == 0 {
            break;
        }
        let wanted = usize::try_from(number - position.number).unwrap_or(usize::MAX);
        for line_feed in memchr::memchr_iter(b'\n', &block[..count]).take(wanted) {
            position = Position { offset: read + line_feed as u64 + 1, number: position.number + 1 };
        }
        read += count as u64;
    }
    Ok(position)
}

fn count_line_feeds(file: &File, mut begin: u64, end: u64) -> std::io::Result<u64> {
    let mut block = vec![0; BLOCK.min(usize::try_from(end - begin).unwrap_or(BLOCK))];
    let mut line_feeds = 0;
    while begin < end {
        let wanted = block.len().min(usize::try_from(end - begin).unwrap_or(BLOCK));
        let count = file.read_at(&mut block[..wanted], begin)?;
        if count == 0 {
            break;
        }
        line_feeds += memchr::memchr_iter(b'\n', &block[..count]).count() as u64;
        begin += count as u64;
    }
    Ok(line_feeds)
}
