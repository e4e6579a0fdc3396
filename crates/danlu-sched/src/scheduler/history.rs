//! How long jobs take, learned from those that ended.
//!
//! The best witness is the same person's job of the same name; then the workspace's jobs with as many devices; then
//! everybody's. A limit set by the person caps every guess. Nothing here knows how long a job *will* take.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use danlu_types::Span;

use super::workspaces::WorkspaceIndex;

/// What a job's length was guessed from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Witness {
    /// Earlier runs of the same person under the same name.
    SameName,
    /// Jobs of the workspace with as many devices.
    SameSize,
    /// The time limit it set itself.
    TimeLimit,
    /// Nothing at all.
    Guess,
}

/// A guess at how long a job runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Estimate {
    /// As many end sooner as later.
    pub typical: Span,
    /// Nine in ten end sooner.
    pub most: Span,
    pub witness: Witness,
}

/// However long a job is expected to run, its turn is not put off by more.
const LONGEST_HANDICAP: Span = Span::from_seconds(7 * 24 * 3600);

impl Estimate {
    /// What a job's turn is put off by: its own length, where that is more than a guess (ADR 6).
    pub(crate) fn handicap(&self) -> Span {
        if self.witness == Witness::Guess { Span::default() } else { self.typical.min(LONGEST_HANDICAP) }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Name(WorkspaceIndex, String, String),
    Size(WorkspaceIndex, u64),
}

#[derive(Debug, Default)]
pub(crate) struct History {
    lengths: BTreeMap<Key, Lengths>,
    /// Counts what was recorded.
    recorded: u64,
}

/// The last lengths, oldest first, and the two numbers drawn from them.
#[derive(Debug, Default)]
struct Lengths {
    recent: VecDeque<u64>,
    /// When the last was recorded.
    last: u64,
    typical: u64,
    most: u64,
}

/// Names and sizes that are remembered, some 50 MB; then those go that were not seen for longest.
const MOST_KEYS: usize = 1 << 16;
/// Enough for a ninth decile, few enough to follow a change of habits.
const REMEMBERED: usize = 64;
/// One earlier run of the same name says more than sixty of the same size; of the same size it takes a few.
const ENOUGH_OF_SIZE: usize = 4;
/// Without limit and without witness: a working day.
const UNKNOWN: Span = Span::from_seconds(8 * 3600);

impl History {
    pub(crate) fn record(
        &mut self,
        account: WorkspaceIndex,
        owner: &str,
        name: &str,
        milli_devices: u64,
        ran: Span,
    ) {
        self.recorded += 1;
        for key in [Key::Name(account, owner.to_owned(), name.to_owned()), Key::Size(account, milli_devices)]
        {
            let lengths = self.lengths.entry(key).or_default();
            lengths.add(ran);
            lengths.last = self.recorded;
        }
        if self.lengths.len() > MOST_KEYS {
            self.forget_the_older_half();
        }
    }

    /// Drops what is known of workspaces.
    pub(crate) fn forget(&mut self, accounts: &BTreeSet<WorkspaceIndex>) {
        self.lengths.retain(|key, _| match key {
            Key::Name(account, ..) | Key::Size(account, _) => !accounts.contains(account),
        });
    }

    fn forget_the_older_half(&mut self) {
        let mut times: Vec<u64> = self.lengths.values().map(|lengths| lengths.last).collect();
        let middle = times.len() / 2;
        let (_, middle, _) = times.select_nth_unstable(middle);
        let middle = *middle;
        self.lengths.retain(|_, lengths| lengths.last >= middle);
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.lengths.len()
    }

    pub(crate) fn estimate(
        &self,
        account: WorkspaceIndex,
        owner: &str,
        name: &str,
        milli_devices: u64,
        limit: Option<Span>,
    ) -> Estimate {
        let same_name = self.lengths.get(&Key::Name(account, owner.to_owned(), name.to_owned()));
        let same_size = self.lengths.get(&Key::Size(account, milli_devices));
        let same_size = same_size.filter(|lengths| lengths.recent.len() >= ENOUGH_OF_SIZE);
        let (lengths, witness) = match (same_name, same_size) {
            (Some(lengths), _) => (lengths, Witness::SameName),
            (None, Some(lengths)) => (lengths, Witness::SameSize),
            (None, None) => {
                let (span, witness) =
                    limit.map_or((UNKNOWN, Witness::Guess), |limit| (limit, Witness::TimeLimit));
                return Estimate { typical: span, most: span, witness };
            }
        };
        let capped = |milliseconds: u64| {
            let span = Span { milliseconds };
            limit.map_or(span, |limit| limit.min(span))
        };
        Estimate { typical: capped(lengths.typical), most: capped(lengths.most), witness }
    }
}

impl Lengths {
    fn add(&mut self, ran: Span) {
        if self.recent.len() == REMEMBERED {
            self.recent.pop_front();
        }
        self.recent.push_back(ran.milliseconds);
        let mut sorted: Vec<u64> = self.recent.iter().copied().collect();
        sorted.sort_unstable();
        self.typical = sorted[(sorted.len() - 1) / 2];
        self.most = sorted[(sorted.len() * 9).div_ceil(10) - 1];
    }
}
