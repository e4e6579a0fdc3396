//! The complete lines of one file from a place on.

use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use super::LogError;
use super::cursor::Position;
use super::file::{LONGEST_RECORD, Reopened};

#[derive(Debug)]
pub(super) struct LineReader<'a> {
    path: &'a Path,
    reader: BufReader<Reopened<'a>>,
    /// Where the next line begins.
    position: Position,
    record: Vec<u8>,
}

/// A complete line that is not too long, without its line feed, and where it begins.
#[derive(Debug)]
pub(super) struct LogRecord<'l> {
    pub(super) begins: Position,
    pub(super) bytes: &'l [u8],
}

impl<'a> LineReader<'a> {
    pub(super) fn new(path: &'a Path, position: Position, buffer: usize) -> Self {
        let reader = BufReader::with_capacity(buffer, Reopened { path, offset: position.offset });
        LineReader { path, reader, position, record: Vec::new() }
    }

    pub(super) fn position(&self) -> Position {
        self.position
    }

    /// The next line; `None` where the next is not complete yet.
    pub(super) fn next(&mut self) -> Result<Option<LogRecord<'_>>, LogError> {
        loop {
            let begins = self.position;
            let read = self.read_line().map_err(LogError::reading(self.path))?;
            let Some(length) = read else { return Ok(None) };
            self.position = Position { offset: begins.offset + length, number: begins.number + 1 };
            if length <= LONGEST_RECORD as u64 {
                // `self.record` ends with the line feed.
                return Ok(Some(LogRecord { begins, bytes: &self.record[..self.record.len() - 1] }));
            }
        }
    }

    /// Reads up to and including the next line feed into `record`, but no more than a line may have. How many bytes
    /// there were; `None` if the file ends first.
    fn read_line(&mut self) -> io::Result<Option<u64>> {
        self.record.clear();
        let limit = LONGEST_RECORD as u64 + 1;
        let mut length = self.reader.by_ref().take(limit).read_until(b'\n', &mut self.record)? as u64;
        if self.record.ends_with(b"\n") {
            return Ok(Some(length));
        }
        if length < limit {
            return Ok(None);
        }
        loop {
            let block = self.reader.fill_buf()?;
            if block.is_empty() {
                return Ok(None);
            }
            let line_feed = memchr::memchr(b'\n', block);
            let used = line_feed.map_or(block.len(), |at| at + 1);
            self.reader.consume(used);
            length += used as u64;
            if line_feed.is_some() {
                return Ok(Some(length));
            }
        }
    }
}
