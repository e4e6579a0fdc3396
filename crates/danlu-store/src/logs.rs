//! Reading of log files: pages, ends and searches over the ranks of a job, merged by time.
//!
//! The files are `danlu_core::log`'s: append-only, one line of text for each line that a rank printed. We only read, with
//! plain blocking calls; whoever is async wraps them. A run folder belongs to the user's program, so its files are
//! hostile: links are not followed, what is no plain file is refused, and no line makes us hold more than its due.
//!
//! Lines of different ranks are ordered by (time, attempt, rank). Lines of one rank keep the order in which they were
//! written, even where its clock was set back. Invariants, whatever the limits:
//!
//! - following `next` from page to page gives every complete line exactly once;
//! - a line without its line feed is still being written, and is not given;
//! - a line that cannot be decoded is what a crash of the machine left of one: it is counted, but not given.

mod backward;
mod count;
mod cursor;
mod file;
mod follow;
mod forward;
mod merge;
mod pattern;
mod records;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use danlu_types::api::{LogLine, LogStream};
use danlu_types::{AttemptNumber, Rank, WorkerIndex};
use jiff::Timestamp;

pub use count::LineCounts;
pub use follow::LogFollower;
pub use pattern::Pattern;
pub use records::{Records, last_records, records};

/// The log of one rank in one attempt. It need not exist yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogSource {
    pub path: PathBuf,
    pub attempt: AttemptNumber,
    pub worker: WorkerIndex,
    pub rank: Rank,
}

/// Lines, and where to go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogPage {
    pub lines: Vec<LogLine>,
    /// Where the lines begin, for a tail before it; none where the logs begin too, and for searches.
    pub before: Option<String>,
    /// Where the next page begins: valid also when there is no more now, because a live log may grow.
    pub next: String,
    /// Whether more was there when we looked.
    pub more: bool,
}

#[derive(Debug, thiserror::Error)]
pub enum LogError {
    #[error("could not read the log `{path}`")]
    Read {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("`{path}` is not a plain file")]
    NotAFile { path: PathBuf },
    /// Not one of ours, or not for these logs.
    #[error("the cursor is not one that these logs gave")]
    BadCursor,
    #[error("invalid regular expression")]
    BadPattern {
        #[source]
        source: Box<regex::Error>,
    },
}

/// Texts in one answer, together, at most: a page of the longest lines stays small.
const LARGEST_PAGE_BYTES: usize = 8 << 20;
/// What one search reads before it answers with what it has found so far, and where to go on.
const SEARCH_BYTES: u64 = 256 << 20;

/// Up to `limit` lines from the cursor on, or from the beginning. Costs what it returns, and one read per source.
pub fn page(sources: &[LogSource], cursor: Option<&str>, limit: usize) -> Result<LogPage, LogError> {
    page_from(sources, cursor::read(sources, cursor)?, limit)
}

/// Up to `limit` lines of one source from its line `number` on. Costs a look at everything before it (counting line feeds).
pub fn page_at(source: &LogSource, number: u64, limit: usize) -> Result<LogPage, LogError> {
    page_from(std::slice::from_ref(source), vec![count::position_of(&source.path, number)?], limit)
}

fn page_from(
    sources: &[LogSource],
    mut positions: Vec<cursor::Position>,
    limit: usize,
) -> Result<LogPage, LogError> {
    let before = beginning(sources, &positions);
    let merged = merge::merge(sources, &mut positions, limit, u64::MAX, |_| true)?;
    let next = cursor::write(sources, &positions);
    Ok(LogPage { lines: merged.lines, before, next, more: merged.more })
}

/// Lines begin here; nothing where that is the beginning of every log.
fn beginning(sources: &[LogSource], begins: &[cursor::Position]) -> Option<String> {
    let is_all = begins.iter().all(|position| position.offset == 0);
    (!is_all).then(|| cursor::write(sources, begins))
}

/// Up to `limit` lines that the pattern finds, from the cursor on.
///
/// An answer may hold few lines or none and yet say `more`: it reads so much at a time and no further. Where a rank's
/// clock was set back, lines of different ranks may be ordered differently than in a page.
pub fn search(
    sources: &[LogSource],
    pattern: &Pattern,
    cursor: Option<&str>,
    limit: usize,
) -> Result<LogPage, LogError> {
    let mut positions = cursor::read(sources, cursor)?;
    let merged = merge::merge(sources, &mut positions, limit, SEARCH_BYTES, |text| pattern.is_match(text))?;
    let next = cursor::write(sources, &positions);
    Ok(LogPage { lines: merged.lines, before: None, next, more: merged.more })
}

/// The last `count` lines, or the last before the place that an earlier answer's `before` names; `next` is where they
/// end, for whoever wants to follow. `more` is never true.
///
/// Following `before` from answer to answer gives every complete line exactly once, as following `next` does.
/// Lines are read from the end in blocks. Their numbers cost a look at what `counts` does not know yet: the whole file
/// at the first time (counting line feeds, about 3 GB/s), what has been added since at the next.
pub fn tail(
    sources: &[LogSource],
    before: Option<&str>,
    count: usize,
    counts: &LineCounts,
) -> Result<LogPage, LogError> {
    let ends = before.map(|cursor| cursor::read(sources, Some(cursor))).transpose()?;
    let tail = backward::tail(sources, ends.as_deref(), count, counts)?;
    let before = beginning(sources, &tail.begins);
    Ok(LogPage { lines: tail.lines, before, next: cursor::write(sources, &tail.ends), more: false })
}

impl LogSource {
    fn line(&self, number: u64, at: Timestamp, stream: LogStream, text: &[u8]) -> LogLine {
        LogLine {
            attempt: self.attempt,
            worker: self.worker,
            rank: self.rank,
            number,
            at,
            stream,
            text: String::from_utf8_lossy(text).into_owned(),
        }
    }
}

impl LogError {
    fn reading(path: &Path) -> impl FnOnce(std::io::Error) -> LogError {
        move |source| LogError::Read { path: path.to_owned(), source }
    }
}
