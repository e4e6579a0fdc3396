//! The last lines of files, read from their ends.

use std::collections::BinaryHeap;
use std::os::unix::fs::FileExt;
use std::path::Path;

use danlu_core::log;
use danlu_types::api::LogLine;

use super::count::LineCounts;
use super::cursor::Position;
use super::file::{self, LONGEST_RECORD};
use super::merge::Ordered;
use super::{LARGEST_PAGE_BYTES, LogError, LogSource};

const BLOCK: u64 = 32 << 10;

/// Lines, and where they begin and end in each source.
#[derive(Debug)]
pub(super) struct Tail {
    pub(super) lines: Vec<LogLine>,
    pub(super) begins: Vec<Position>,
    pub(super) ends: Vec<Position>,
}

/// The last `count` lines over all sources in their order: those before the given places, or before the sources' ends.
///
/// The latest of the sources' last lines is taken until there are enough, so each rank's lines are its last ones.
pub(super) fn tail(
    sources: &[LogSource],
    before: Option<&[Position]>,
    count: usize,
    counts: &LineCounts,
) -> Result<Tail, LogError> {
    let mut readers = Vec::with_capacity(sources.len());
    let mut ends = Vec::with_capacity(sources.len());
    let mut begins = Vec::with_capacity(sources.len());
    let mut last_lines = BinaryHeap::new();
    for (index, source) in sources.iter().enumerate() {
        let mut reader = match before {
            Some(positions) => Lines::before(&source.path, positions[index]),
            None => Lines::from_end(&source.path, counts)?,
        };
        ends.push(reader.end());
        begins.push(reader.end());
        if count > 0 {
            last_lines.extend(reader.previous_line(source, index)?);
        }
        readers.push(reader);
    }
    let mut lines = Vec::new();
    let mut bytes = 0;
    while lines.len() < count && bytes < LARGEST_PAGE_BYTES {
        let Some(last) = last_lines.pop() else { break };
        let (line, begin) = last.value;
        bytes += line.text.len();
        lines.push(line);
        begins[last.source] = begin;
        last_lines.extend(readers[last.source].previous_line(&sources[last.source], last.source)?);
    }
    // A source that gave all its lines begins at its beginning, whatever cannot be decoded there.
    let unfinished: Vec<usize> = last_lines.iter().map(|last| last.source).collect();
    for (index, begin) in begins.iter_mut().enumerate() {
        if count > 0 && !unfinished.contains(&index) {
            *begin = Position::default();
        }
    }
    lines.reverse();
    Ok(Tail { lines, begins, ends })
}

/// A file's complete lines, last first.
struct Lines<'a> {
    path: &'a Path,
    /// What was read and not given: whole lines, but for the beginning of the first.
    data: Vec<u8>,
    /// Where `data` begins in the file.
    begin: u64,
    /// How many lines are in the file up to the end of `data`.
    number: u64,
}

impl<'a> Lines<'a> {
    fn from_end(path: &'a Path, counts: &LineCounts) -> Result<Self, LogError> {
        let mut lines = Lines { path, data: Vec::new(), begin: 0, number: 0 };
        let Some((file, facts)) = file::open(path)? else { return Ok(lines) };
        lines.begin = facts.length;
        // Behind the last line feed a line is still being written.
        while lines.begin > 0 {
            lines.data.clear();
            lines.prepend_block()?;
            if let Some(line_feed) = memchr::memrchr(b'\n', &lines.data) {
                lines.data.truncate(line_feed + 1);
                lines.number = counts.number_at(path, &file, facts, lines.end().offset)?;
                return Ok(lines);
            }
        }
        lines.data.clear();
        Ok(lines)
    }

    /// The lines before a place that a cursor named.
    fn before(path: &'a Path, position: Position) -> Self {
        Lines { path, data: Vec::new(), begin: position.offset, number: position.number }
    }

    /// Behind the last line that was not given.
    fn end(&self) -> Position {
        Position { offset: self.begin + self.data.len() as u64, number: self.number }
    }

    /// The line before, skipping what cannot be decoded.
    fn previous_line(
        &mut self,
        source: &LogSource,
        index: usize,
    ) -> Result<Option<Ordered<(LogLine, Position)>>, LogError> {
        while let Some(record) = self.previous_record()? {
            let Some((at, stream, text)) = log::decode(&record) else { continue };
            let value = (source.line(self.number, at, stream, text), self.end());
            return Ok(Some(Ordered {
                at,
                attempt: source.attempt,
                rank: source.rank,
                source: index,
                value,
            }));
        }
        Ok(None)
    }

    /// The bytes of the line before, without its line feed; nothing of one that is too long.
    fn previous_record(&mut self) -> Result<Option<Vec<u8>>, LogError> {
        let mut too_long = false;
        let mut record = loop {
            let before_own_line_feed = &self.data[..self.data.len().saturating_sub(1)];
            if let Some(line_feed) = memchr::memrchr(b'\n', before_own_line_feed) {
                break self.data.split_off(line_feed + 1);
            }
            if self.begin == 0 {
                break std::mem::take(&mut self.data);
            }
            if self.data.len() > LONGEST_RECORD {
                too_long = true;
                self.data.drain(..self.data.len() - 1);
            }
            self.prepend_block()?;
        };
        if record.pop().is_none() {
            return Ok(None);
        }
        // A program that rewrites its log may make every count wrong; the numbers are then its own doing.
        self.number = self.number.saturating_sub(1);
        if too_long || record.len() >= LONGEST_RECORD {
            record.clear();
        }
        Ok(Some(record))
    }

    fn prepend_block(&mut self) -> Result<(), LogError> {
        let size = BLOCK.min(self.begin);
        let mut block = vec![0; usize::try_from(size).expect("a block is small")];
        if let Some((file, _)) = file::open(self.path)? {
            file.read_exact_at(&mut block, self.begin - size).map_err(LogError::reading(self.path))?;
        }
        block.append(&mut self.data);
        self.data = block;
        self.begin -= size;
        Ok(())
    }
}
