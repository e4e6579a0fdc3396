//! What everybody wants to know of a slot's present content, worked out once per change.

use super::super::board::Board;
use super::super::layout::{Layout, Slot};
use super::super::state::FleetState;
use super::sample::mixed;
use super::tier::{Blocks, TIERS, Tiers, idle};

#[derive(Debug, Clone)]
pub(crate) struct Brief {
    version: Option<u64>,
    /// Stands for what the devices hold; see [`fingerprint`].
    pub(crate) print: u64,
    /// Stands for everything: slots with equal ones are as good as each other.
    pub(crate) content: u64,
    pub(crate) idle: u32,
    /// Thousandths of devices.
    pub(crate) free: u32,
    pub(crate) blocks: Blocks,
    /// What is expected to be left over, once somebody asked.
    pub(crate) left_over: Option<i32>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Briefs {
    of_slots: Vec<Brief>,
    /// What is left of each device, slot after slot.
    levels: Vec<u16>,
    first: Vec<usize>,
    scratch: Vec<u16>,
}

impl Briefs {
    pub(crate) fn new(layout: &Layout) -> Self {
        let mut first = vec![0];
        for slot in &layout.slots {
            first.push(first.last().copied().unwrap_or(0) + slot.positions.len());
        }
        let brief = Brief {
            version: None,
            print: 0,
            content: 0,
            idle: 0,
            free: 0,
            blocks: [0; TIERS],
            left_over: None,
        };
        Briefs {
            of_slots: vec![brief; layout.slots.len()],
            levels: vec![0; first.last().copied().unwrap_or(0)],
            first,
            scratch: Vec::new(),
        }
    }

    /// After this everything is worked out anew.
    pub(crate) fn forget(&mut self) {
        for brief in &mut self.of_slots {
            brief.version = None;
        }
    }

    pub(crate) fn of(&mut self, layout: &Layout, state: &FleetState, tiers: &Tiers, at: usize) -> &mut Brief {
        let slot = &layout.slots[at];
        let version = Some(state.versions[slot.node]);
        let brief = &mut self.of_slots[at];
        if brief.version != version {
            state.levels(layout, slot, &mut self.scratch);
            let levels = &self.scratch;
            let idle = idle(levels);
            let print = fingerprint(slot.board, levels);
            let (milli_cpus, bytes) = (state.milli_cpus[slot.node], state.bytes[slot.node]);
            let model = layout.model_of[at] as u64;
            *brief = Brief {
                version,
                print,
                content: ordered(slot.board, levels)
                    .unwrap_or(print)
                    .wrapping_add(mixed(milli_cpus.cast_unsigned() ^ (model << 48)))
                    .wrapping_add(mixed(!bytes.cast_unsigned())),
                idle,
                free: levels.iter().map(|&level| u32::from(level)).sum(),
                blocks: tiers.blocks(slot, levels, idle, milli_cpus, bytes),
                left_over: None,
            };
            self.levels[self.first[at]..self.first[at + 1]].copy_from_slice(levels);
        }
        brief
    }

    /// Of a slot whose brief is up to date.
    pub(crate) fn levels(&self, at: usize) -> &[u16] {
        &self.levels[self.first[at]..self.first[at + 1]]
    }

    pub(crate) fn known(&self, at: usize) -> &Brief {
        &self.of_slots[at]
    }

    pub(crate) fn known_mut(&mut self, at: usize) -> &mut Brief {
        &mut self.of_slots[at]
    }
}

/// A device by what is left of it; one that is used up counts for nothing.
pub(crate) fn level_print(level: u16) -> u64 {
    if level == 0 { 0 } else { mixed(u64::from(level) << 17) }
}

/// Equal where devices that the board's rules do not tell apart are swapped. Sums of well mixed numbers, so that one
/// changed device changes it by a difference. Two contents with one print are a matter of 1 in 2⁶⁴ and would cost a
/// slightly worse choice, nothing else.
pub(crate) fn fingerprint(board: Board, levels: &[u16]) -> u64 {
    let sum = |levels: &[u16]| levels.iter().fold(0, |sum: u64, &level| sum.wrapping_add(level_print(level)));
    let groups =
        |size: usize| levels.chunks(size).fold(0, |all: u64, group| all.wrapping_add(mixed(sum(group))));
    match board {
        Board::Any => sum(levels),
        Board::RingsOfFour => groups(4),
        Board::Modules => groups(2),
        // Positions opposite each other belong together, and each to its ring.
        Board::RingsOfEight => levels
            .iter()
            .zip(0_u64..)
            .fold(0, |all: u64, (&level, at)| all.wrapping_add(mixed(level_print(level) ^ (at + 1)))),
    }
}

/// Where the board has rules, which device it is may matter to what is done next.
fn ordered(board: Board, levels: &[u16]) -> Option<u64> {
    let print = || levels.iter().fold(1, |print, &level| mixed(print ^ (u64::from(level) << 32)));
    (board != Board::Any).then(print)
}

/// A slot as one would leave it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SlotContent<'a> {
    pub(crate) slot: &'a Slot,
    pub(crate) print: u64,
    pub(crate) milli_cpus: i64,
    pub(crate) bytes: i64,
}
