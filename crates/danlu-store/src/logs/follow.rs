//! New lines as they come.

use danlu_types::api::LogLine;

use super::cursor::{self, Position};
use super::{LogError, LogSource, merge};

/// A place in each of some logs, which moves with what it gives. Nothing is open between polls.
#[derive(Debug, Clone)]
pub struct LogFollower {
    sources: Vec<LogSource>,
    positions: Vec<Position>,
}

impl LogFollower {
    /// From a page's `next`, or from the beginning.
    pub fn new(sources: Vec<LogSource>, cursor: Option<&str>) -> Result<Self, LogError> {
        let positions = cursor::read(&sources, cursor)?;
        Ok(LogFollower { sources, positions })
    }

    /// Follows one more log from its beginning; one that is followed already is left where it is.
    pub fn add(&mut self, source: LogSource) {
        if !self.sources.contains(&source) {
            self.sources.push(source);
            self.positions.push(Position::default());
        }
    }

    /// Up to `limit` lines that were completed since the last poll; ask again at once while it gives any.
    pub fn poll(&mut self, limit: usize) -> Result<Vec<LogLine>, LogError> {
        Ok(merge::merge(&self.sources, &mut self.positions, limit, u64::MAX, |_| true)?.lines)
    }

    /// Where a page would go on.
    pub fn cursor(&self) -> String {
        cursor::write(&self.sources, &self.positions)
    }
}
