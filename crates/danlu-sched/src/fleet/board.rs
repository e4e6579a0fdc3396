//! How the devices of one model on one node hang together, and which of them a worker may get.
//!
//! Ascend boards have rules that the collective library enforces: what breaks them does not run at all. The rules are
//! those of Huawei's own scheduler (mind-cluster) and of HCCL's documentation. NVIDIA boards have preferences only: the
//! devices of one NVLink island first, and others where no island suffices.
//!
//! Everything here is a pure function of what is left of each device, in thousandths and in the order of the devices'
//! numbers. Invariant: [`Board::pick`] succeeds exactly where [`Board::room`] is not 0, and lowers it by one.

use danlu_types::device::WHOLE_DEVICE;
use danlu_types::{DeviceCount, DeviceKind, Family};

/// What one worker needs of a board.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Need {
    pub devices: u32,
    /// Of each of them, in thousandths; less than a whole only of one device.
    pub share: u16,
    /// Whether it is the only worker of its job: some boards have other rules for gangs.
    pub alone: bool,
}

/// The rules of a board.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Board {
    /// No rules: any number of devices, from as few islands as possible. All of NVIDIA; Ascend 910B × 8 (a full mesh)
    /// and what we have no rules of.
    Any,
    /// The first Ascend 910: rings of four; 1, 2 or 4 of one ring, or 8 as two whole rings; one process per device.
    RingsOfFour,
    /// Ascend 910B × 16: two rings of eight; up to 8 of one ring, larger even numbers as halves of both.
    RingsOfEight,
    /// Ascend A3: modules of two dies; single workers may have one die, everybody else has whole modules.
    Modules,
}

/// Cards free in a ring, from 1 to 4, in order of preference for a request of so many: mind-cluster's `module910x8`.
/// A single card goes where it breaks up least: into a ring's last place, then into one already of odd size.
const RING_PREFERENCE: [(u32, &[u32]); 3] = [(1, &[1, 3, 2, 4]), (2, &[2, 4, 3]), (4, &[4])];

const WHOLE: u16 = 1000;
const _: () = assert!(WHOLE as u32 == WHOLE_DEVICE, "a device has as many thousandths here as elsewhere");

impl Need {
    pub fn new(count: DeviceCount, workers: u32) -> Self {
        // Of no device a whole: nothing is shared.
        let share = if count.is_none() { WHOLE } else { u16::try_from(count.share()).unwrap_or(WHOLE) };
        Need { devices: count.devices(), share, alone: workers <= 1 }
    }

    pub fn is_share(self) -> bool {
        self.devices > 0 && self.share < WHOLE
    }
}

impl Board {
    pub fn of(kind: DeviceKind, model: &str, devices: usize) -> Self {
        if kind != DeviceKind::Ascend {
            return Board::Any;
        }
        match Family::of(model) {
            Some(Family::First) => Board::RingsOfFour,
            Some(Family::A2) if devices > 8 => Board::RingsOfEight,
            Some(Family::A3) => Board::Modules,
            Some(Family::A2 | Family::A5 | Family::Small | Family::Inference) | None => Board::Any,
        }
    }

    /// Whether this board gives a worker so many devices at all, were they all idle.
    pub fn accepts(self, need: Need) -> bool {
        match self {
            Board::Any => true,
            // HCCL: no two processes on one device of this generation.
            Board::RingsOfFour => matches!(need.devices, 0 | 1 | 2 | 4 | 8) && !need.is_share(),
            Board::RingsOfEight => {
                need.devices <= 8 || (need.devices <= 16 && need.devices.is_multiple_of(2))
            }
            Board::Modules => need.devices.is_multiple_of(2) || (need.devices == 1 && need.alone),
        }
    }

    /// What [`Board::accepts`], as it stands in sentences; nothing where every number is fine.
    pub fn counts(self) -> Option<&'static str> {
        match self {
            Board::Any => None,
            Board::RingsOfFour => Some("1, 2, 4 or 8 whole devices"),
            Board::RingsOfEight => Some("1 to 8, 10, 12, 14 or 16 devices"),
            Board::Modules => Some("1 device (in jobs of one worker) or an even number of devices"),
        }
    }

    /// How many such workers could be given devices, one after the other.
    pub(crate) fn room(self, left: &[u16], need: Need) -> u32 {
        if need.devices == 0 {
            return u32::MAX;
        }
        if !self.accepts(need) {
            return 0;
        }
        if need.is_share() {
            return left.iter().map(|left| u32::from(left / need.share.max(1))).sum();
        }
        let half = need.devices / 2;
        match self {
            Board::RingsOfFour if need.devices == 8 => {
                u32::from(left.len() == 8 && left.iter().all(|&left| left == WHOLE))
            }
            Board::RingsOfFour => left.chunks(4).map(|ring| idle(ring) / need.devices).sum(),
            Board::RingsOfEight if need.devices <= 8 => {
                left.chunks(8).map(|ring| idle(ring) / need.devices).sum()
            }
            Board::RingsOfEight if need.alone => count(opposite_pairs(left)) / half,
            Board::RingsOfEight => {
                left.chunks(8).map(idle).min().filter(|_| left.len() == 16).unwrap_or(0) / half
            }
            Board::Modules if need.devices > 1 => count(idle_modules(left)) / half,
            Board::Any | Board::Modules => idle(left) / need.devices,
        }
    }

    /// Chooses idle devices for one worker that asks for whole ones, as positions in `left`; nothing where there is no
    /// room. `islands` says which island each device is of.
    pub(crate) fn pick(self, left: &[u16], islands: &[u32], need: Need) -> Option<Vec<u8>> {
        let half = (need.devices / 2) as usize;
        let whole = Need { share: WHOLE, ..need };
        if need.devices == 0 || self.room(left, whole) == 0 {
            return None;
        }
        let positions: Vec<usize> = match self {
            Board::Any => pick_from_islands(left, islands, need.devices as usize),
            Board::RingsOfFour if need.devices == 8 => (0..8).collect(),
            Board::RingsOfFour => {
                let (_, preferred) = RING_PREFERENCE.iter().find(|(devices, _)| *devices == need.devices)?;
                let rank = |ring: &[u16]| preferred.iter().position(|&free| free == idle(ring));
                pick_from_ring(left, 4, need.devices as usize, rank)?
            }
            Board::RingsOfEight if need.devices <= 8 => {
                let rank = |ring: &[u16]| idle(ring).checked_sub(need.devices).map(|rest| rest as usize);
                pick_from_ring(left, 8, need.devices as usize, rank)?
            }
            Board::RingsOfEight if need.alone => {
                opposite_pairs(left).take(half).flat_map(|position| [position, position + 8]).collect()
            }
            Board::RingsOfEight => {
                let ring = |first: usize| idle_positions(left, first..first + 8).take(half);
                ring(0).chain(ring(8)).collect()
            }
            Board::Modules if need.devices > 1 => {
                idle_modules(left).take(half).flat_map(|module| [2 * module, 2 * module + 1]).collect()
            }
            // A single die goes into a module that is broken up already, if there is one.
            Board::Modules => {
                let halves = |&position: &usize| left.get(position ^ 1).is_none_or(|&other| other != WHOLE);
                let all = || idle_positions(left, 0..left.len());
                all().find(halves).or_else(|| all().next()).into_iter().collect()
            }
        };
        let mut positions: Vec<u8> =
            positions.into_iter().filter_map(|position| u8::try_from(position).ok()).collect();
        positions.sort_unstable();
        Some(positions)
    }
}

fn idle(left: &[u16]) -> u32 {
    count(left.iter().filter(|&&left| left == WHOLE))
}

fn count<T>(items: impl Iterator<Item = T>) -> u32 {
    u32::try_from(items.count()).unwrap_or(u32::MAX)
}

fn idle_positions(left: &[u16], within: std::ops::Range<usize>) -> impl Iterator<Item = usize> {
    within.filter(|&position| left.get(position) == Some(&WHOLE))
}

/// Positions of the first ring whose counterpart in the second is idle too.
fn opposite_pairs(left: &[u16]) -> impl Iterator<Item = usize> {
    idle_positions(left, 0..8).filter(|&position| left.get(position + 8) == Some(&WHOLE))
}

fn idle_modules(left: &[u16]) -> impl Iterator<Item = usize> {
    let whole = |module: &usize| idle_positions(left, 2 * module..2 * module + 2).count() == 2;
    (0..left.len() / 2).filter(whole)
}

/// The lowest idle devices of the ring that ranks lowest; a ring without a rank is not taken.
fn pick_from_ring(
    left: &[u16],
    size: usize,
    devices: usize,
    rank: impl Fn(&[u16]) -> Option<usize>,
) -> Option<Vec<usize>> {
    let rings = left.chunks(size).enumerate();
    let (_, ring) = rings.filter_map(|(at, ring)| rank(ring).map(|rank| (rank, at))).min()?;
    Some(idle_positions(left, ring * size..ring * size + size).take(devices).collect())
}

/// As few islands as possible: the smallest that suffices, or else whole large ones first and the rest from the smallest
/// that suffices.
fn pick_from_islands(left: &[u16], islands: &[u32], devices: usize) -> Vec<usize> {
    let mut free: Vec<(u32, Vec<usize>)> = Vec::new();
    for position in idle_positions(left, 0..left.len()) {
        let island = islands.get(position).copied().unwrap_or(0);
        match free.iter_mut().find(|(number, _)| *number == island) {
            Some((_, positions)) => positions.push(position),
            None => free.push((island, vec![position])),
        }
    }
    let mut picked = Vec::with_capacity(devices);
    while picked.len() < devices && !free.is_empty() {
        let missing = devices - picked.len();
        let sizes = free.iter().enumerate().map(|(at, (_, positions))| (positions.len(), at));
        let enough = sizes.clone().filter(|(size, _)| *size >= missing).min();
        // Of equally large islands the first.
        let largest = sizes.max_by_key(|&(size, at)| (size, std::cmp::Reverse(at)));
        let Some((_, at)) = enough.or(largest) else { break };
        let (_, positions) = free.swap_remove(at);
        picked.extend(positions.into_iter().take(missing));
        free.sort_unstable_by_key(|(number, _)| *number);
    }
    picked
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: &[u32] = &[0; 16];

    fn need(devices: u32, alone: bool) -> Need {
        Need { devices, share: WHOLE, alone }
    }

    /// `#` is held, `.` is idle.
    fn left(text: &str) -> Vec<u16> {
        text.chars().filter(|c| *c != ' ').map(|c| if c == '.' { WHOLE } else { 0 }).collect()
    }

    fn picked(board: Board, devices: u32, alone: bool, text: &str) -> String {
        match board.pick(&left(text), NONE, need(devices, alone)) {
            Some(positions) => format!("{positions:?}"),
            None => "none".to_owned(),
        }
    }

    #[test]
    fn boards_are_told_by_model_and_number() {
        for (model, devices, board) in [
            ("910A", 8, Board::RingsOfFour),
            ("Ascend910ProB", 8, Board::RingsOfFour),
            ("910B", 8, Board::RingsOfFour),
            ("910B3", 8, Board::Any),
            ("Ascend 910B2C", 16, Board::RingsOfEight),
            ("Ascend910", 16, Board::Modules),
            // The dies of an A3, however many of them a node shows.
            ("Ascend910", 8, Board::Modules),
            ("910", 8, Board::RingsOfFour),
            ("A3", 16, Board::Modules),
            ("A2", 16, Board::RingsOfEight),
            ("A2", 8, Board::Any),
            ("910_9391", 16, Board::Modules),
            ("310P3", 8, Board::Any),
        ] {
            assert_eq!(Board::of(DeviceKind::Ascend, model, devices), board, "{model} × {devices}");
        }
        assert_eq!(Board::of(DeviceKind::Nvidia, "910A", 8), Board::Any);
    }

    #[test]
    fn counts_that_hccl_refuses_are_refused() {
        let accepted = |board: Board, alone| {
            let counts: Vec<u32> = (1..=16).filter(|&devices| board.accepts(need(devices, alone))).collect();
            counts
        };
        assert_eq!(accepted(Board::RingsOfFour, true), [1, 2, 4, 8]);
        assert_eq!(accepted(Board::RingsOfEight, true), [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16]);
        assert_eq!(accepted(Board::Modules, true), [1, 2, 4, 6, 8, 10, 12, 14, 16]);
        assert_eq!(accepted(Board::Modules, false), [2, 4, 6, 8, 10, 12, 14, 16]);
        assert!(!Board::RingsOfFour.accepts(Need { devices: 1, share: 500, alone: true }));
    }

    #[test]
    fn a_ring_of_four_is_preferred_by_what_is_free_in_it() {
        let board = Board::RingsOfFour;
        assert_eq!(picked(board, 1, true, ".... ###."), "[7]", "the last place before all else");
        assert_eq!(picked(board, 1, true, "..## #..."), "[5]", "of three rather than of two");
        assert_eq!(picked(board, 1, true, ".... ##.."), "[6]", "of two rather than of four");
        assert_eq!(picked(board, 2, true, "...# ...."), "[4, 5]", "of four rather than of three");
        assert_eq!(picked(board, 2, true, ".#.# ...."), "[0, 2]");
        assert_eq!(picked(board, 2, true, ".### ###."), "none", "never across rings");
        assert_eq!(picked(board, 4, true, "...# ...."), "[4, 5, 6, 7]");
        assert_eq!(picked(board, 8, true, ".... ...."), "[0, 1, 2, 3, 4, 5, 6, 7]");
        assert_eq!(picked(board, 8, true, ".... ...#"), "none");
    }

    #[test]
    fn sixteen_devices_are_two_rings_of_eight() {
        let board = Board::RingsOfEight;
        assert_eq!(picked(board, 3, true, "........ ####...."), "[12, 13, 14]", "the tighter ring");
        assert_eq!(picked(board, 6, true, "####.... ####...."), "none");
        assert_eq!(picked(board, 10, true, ".....### ###....."), "none", "not five opposite pairs");
        assert_eq!(picked(board, 10, false, ".....### ###....."), "[0, 1, 2, 3, 4, 11, 12, 13, 14, 15]");
        assert_eq!(picked(board, 10, true, "#......# #......."), "[1, 2, 3, 4, 5, 9, 10, 11, 12, 13]");
    }

    #[test]
    fn modules_of_two_dies_are_not_broken_up() {
        let board = Board::Modules;
        assert_eq!(picked(board, 1, true, ".. #. .."), "[3]");
        assert_eq!(picked(board, 1, true, ".. ## .."), "[0]");
        assert_eq!(picked(board, 1, false, ".. ## .."), "none");
        assert_eq!(picked(board, 4, false, ".. #. .. .#"), "[0, 1, 4, 5]");
        assert_eq!(picked(board, 4, false, ".. #. .# .#"), "none");
    }

    #[test]
    fn devices_come_from_few_islands() {
        let islands = [0, 0, 0, 0, 1, 1, 1, 1];
        let pick = |text, devices| Board::Any.pick(&left(text), &islands, need(devices, true)).unwrap();
        assert_eq!(pick("........", 2), [0, 1]);
        assert_eq!(pick("....##..", 2), [6, 7], "the smallest island that suffices");
        assert_eq!(pick("..##....", 5), [0, 4, 5, 6, 7]);
    }
}
