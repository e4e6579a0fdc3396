//! Ways to put a worker on a slot, as they are kept for every shape and slot.

use std::collections::BTreeMap;

use super::tier::{Blocks, TIERS, Tiers};

/// One way to put a worker on a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Move {
    /// By how much less is expected to be left over, in thousandths summed over the lanes; [`NO_WAY`] where it is none.
    pub(crate) gain: i32,
    pub(crate) pattern: u16,
}

/// The ways worth considering: the best on a device in use (by its level), and one on idle devices. Devices in use break up
/// the same blocks whichever it is, so that the best of them does not depend on prices. Kept for every shape and slot, and
/// therefore packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Moves {
    gains: [i32; 2],
    patterns: [u16; 2],
    /// What is left of the device in use before.
    pub(crate) level: u16,
    pub(crate) known: MoveBound,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MoveBound {
    NoRoom,
    /// There is room; nobody asked for more yet.
    Unseen,
    /// No way is better than the one given.
    AtMost,
    Exactly,
}

pub(crate) const NO_WAY: Move = Move { gain: i32::MIN, pattern: NOTHING_BROKEN };

impl Moves {
    pub(crate) const NO_ROOM: Moves = Moves::new(MoveBound::NoRoom, NO_WAY, 0, NO_WAY);

    pub(crate) const UNSEEN: Moves = Moves::new(MoveBound::Unseen, NO_WAY, 0, NO_WAY);

    const fn new(known: MoveBound, used: Move, level: u16, idle: Move) -> Self {
        let (gains, patterns) = ([used.gain, idle.gain], [used.pattern, idle.pattern]);
        Moves { gains, patterns, level, known }
    }

    pub(crate) fn at_most(gain: i32) -> Self {
        Moves::new(MoveBound::AtMost, NO_WAY, 0, Move { gain, pattern: NOTHING_BROKEN })
    }

    pub(crate) fn exactly(used: Option<(Move, u16)>, idle: Option<Move>) -> Self {
        let (used, level) = used.unwrap_or((NO_WAY, 0));
        Moves::new(MoveBound::Exactly, used, level, idle.unwrap_or(NO_WAY))
    }

    pub(crate) fn used(&self) -> Move {
        Move { gain: self.gains[0], pattern: self.patterns[0] }
    }

    pub(crate) fn idle(&self) -> Move {
        Move { gain: self.gains[1], pattern: self.patterns[1] }
    }
}

/// Which blocks a move breaks up, as a number: there are few such patterns, and each has its cost.
#[derive(Debug, Clone)]
pub(crate) struct Patterns {
    numbers: BTreeMap<Blocks, u16>,
    blocks: Vec<Blocks>,
    costs: Vec<i32>,
}

pub(crate) const NOTHING_BROKEN: u16 = 0;

impl Default for Patterns {
    fn default() -> Self {
        let nothing = [0; TIERS];
        Patterns { numbers: [(nothing, NOTHING_BROKEN)].into(), blocks: vec![nothing], costs: vec![0] }
    }
}

impl Patterns {
    pub(crate) fn number(&mut self, blocks: Blocks, tiers: &Tiers, prices: &[i32; TIERS]) -> u16 {
        *self.numbers.entry(blocks).or_insert_with(|| {
            self.blocks.push(blocks);
            self.costs.push(tiers.cost(&blocks, prices));
            u16::try_from(self.blocks.len() - 1).unwrap_or(NOTHING_BROKEN)
        })
    }

    pub(crate) fn cost(&self, pattern: u16) -> i32 {
        self.costs[usize::from(pattern)]
    }

    pub(crate) fn reprice(&mut self, tiers: &Tiers, prices: &[i32; TIERS]) {
        self.costs = self.blocks.iter().map(|blocks| tiers.cost(blocks, prices)).collect();
    }
}
