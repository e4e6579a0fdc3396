//! What is to come, by time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use danlu_types::{AttemptNumber, JobId};
use jiff::Timestamp;

/// By time, then in order of arrival: two things at one moment happen in the order in which they were planned.
#[derive(Debug, Default)]
pub(super) struct Agenda {
    entries: BinaryHeap<Reverse<(Timestamp, u64, Item)>>,
    arrivals: u64,
    /// Entries that are not drawn by dice: those never end, so they do not keep a simulation going.
    planned: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Item {
    /// By position in the list of jobs.
    Submit(usize),
    /// By position in the list of interventions.
    Happens(usize),
    /// The attempt has run its course.
    Finished(JobId, AttemptNumber),
    /// What is left of the attempt has ended, as it was told to.
    Stopped(JobId, AttemptNumber),
    /// A plan may come out differently although nothing has happened.
    Wake,
    /// Something fails by chance.
    Breaks(PlannedFault),
    /// Something that failed by chance is there again.
    Mended(PlannedFault),
}

/// A node, or one device of it, by their positions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PlannedFault {
    pub(super) node: usize,
    pub(super) device: Option<usize>,
}

impl Item {
    fn by_chance(self) -> bool {
        matches!(self, Item::Breaks(_))
    }
}

impl Agenda {
    pub(super) fn put(&mut self, at: Timestamp, item: Item) {
        self.planned += usize::from(!item.by_chance());
        self.entries.push(Reverse((at, self.arrivals, item)));
        self.arrivals += 1;
    }

    pub(super) fn next_time(&self) -> Option<Timestamp> {
        self.entries.peek().map(|Reverse((at, _, _))| *at)
    }

    /// The next item, if it is due at `now`.
    pub(super) fn take_due(&mut self, now: Timestamp) -> Option<Item> {
        if self.next_time()? > now {
            return None;
        }
        let Reverse((_, _, item)) = self.entries.pop()?;
        self.planned -= usize::from(!item.by_chance());
        Some(item)
    }

    pub(super) fn only_chance_is_left(&self) -> bool {
        self.planned == 0
    }
}
