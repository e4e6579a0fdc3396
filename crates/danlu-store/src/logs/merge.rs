//! Lines of several sources in one order: a merge of the lines that each source would give next.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use danlu_core::log;
use danlu_types::api::LogLine;
use danlu_types::{AttemptNumber, Rank};
use jiff::Timestamp;

use super::cursor::Position;
use super::forward::LineReader;
use super::{LARGEST_PAGE_BYTES, LogError, LogSource};

#[derive(Debug)]
pub(super) struct Merged {
    pub(super) lines: Vec<LogLine>,
    pub(super) more: bool,
}

/// A line of a source, in the order of lines of different sources.
#[derive(Debug)]
pub(super) struct Ordered<T> {
    pub(super) at: Timestamp,
    pub(super) attempt: AttemptNumber,
    pub(super) rank: Rank,
    /// The index of the source. In a heap each source has one line, so no two are equal.
    pub(super) source: usize,
    pub(super) value: T,
}

/// Up to `limit` lines whose text is accepted, from `positions` on, which are moved behind what was given. Stops early
/// after reading `budget` bytes.
pub(super) fn merge(
    sources: &[LogSource],
    positions: &mut [Position],
    limit: usize,
    budget: u64,
    accept: impl Fn(&[u8]) -> bool,
) -> Result<Merged, LogError> {
    let buffer = buffer_size(sources.len());
    let mut readers: Vec<LineReader> = sources
        .iter()
        .zip(&*positions)
        .map(|(source, position)| LineReader::new(&source.path, *position, buffer))
        .collect();
    let mut heads = Heads { sources, accept, left: budget, by_order: BinaryHeap::new(), exhausted: false };
    for (index, reader) in readers.iter_mut().enumerate() {
        heads.advance(index, reader)?;
    }

    let mut lines = Vec::new();
    let mut bytes = 0;
    while !heads.exhausted && lines.len() < limit && bytes < LARGEST_PAGE_BYTES {
        let Some(Reverse(Ordered { source, value: (line, _), .. })) = heads.by_order.pop() else { break };
        bytes += line.text.len();
        lines.push(line);
        heads.advance(source, &mut readers[source])?;
    }

    for (position, reader) in positions.iter_mut().zip(&readers) {
        *position = reader.position();
    }
    let more = heads.exhausted || !heads.by_order.is_empty();
    for Reverse(Ordered { source, value: (_, begins), .. }) in heads.by_order {
        positions[source] = begins;
    }
    Ok(Merged { lines, more })
}

struct Heads<'a, Accept> {
    sources: &'a [LogSource],
    accept: Accept,
    /// How many bytes may still be read.
    left: u64,
    /// The line that each source would give next, and where it begins.
    by_order: BinaryHeap<Reverse<Ordered<(LogLine, Position)>>>,
    /// Set when the budget is spent: some source may not have its head here, so no order can be told.
    exhausted: bool,
}

impl<Accept: Fn(&[u8]) -> bool> Heads<'_, Accept> {
    /// Finds the source's next accepted line.
    fn advance(&mut self, index: usize, reader: &mut LineReader) -> Result<(), LogError> {
        let source = &self.sources[index];
        while self.left > 0 {
            let Some(record) = reader.next()? else { return Ok(()) };
            self.left = self.left.saturating_sub(record.bytes.len() as u64 + 1);
            // Most lines of a search end here, before their time is read.
            if record.bytes.get(log::PREFIX_BYTES..).is_none_or(|text| !(self.accept)(text)) {
                continue;
            }
            let Some((at, stream, text)) = log::decode(record.bytes) else { continue };
            let begins = record.begins;
            let line = source.line(begins.number, at, stream, text);
            let (attempt, rank) = (source.attempt, source.rank);
            let value = (line, begins);
            self.by_order.push(Reverse(Ordered { at, attempt, rank, source: index, value }));
            return Ok(());
        }
        self.exhausted = true;
        Ok(())
    }
}

impl<T> Ordered<T> {
    fn key(&self) -> (Timestamp, AttemptNumber, Rank, usize) {
        (self.at, self.attempt, self.rank, self.source)
    }
}

impl<T> PartialEq for Ordered<T> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<T> Eq for Ordered<T> {}

impl<T> PartialOrd for Ordered<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Ordered<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

/// Few sources read in large blocks; a thousand together hold no more than 8 MB.
fn buffer_size(sources: usize) -> usize {
    ((4 << 20) / sources.max(1)).clamp(8 << 10, 128 << 10)
}
