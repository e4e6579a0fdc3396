//! What is left of every node, exactly, with what it takes to undo changes and to follow them.
//!
//! Amounts are signed: a node that came back smaller than what is held of it has less than nothing, and stays so until
//! that is given back. Each node has a version, a print of its content: whoever keeps something computed from it knows by
//! one comparison whether it still holds, also when something was taken and given back since. What is undone leaves no
//! trace in the log, so that a trial costs those nothing who did not look at it; those who did are [`ChangeCursor`]s.

use super::layout::{Layout, Slot};
use super::value::mixed;
use super::{NodeId, WorkerPlacement};

#[derive(Debug, Clone)]
pub(crate) struct FleetState {
    /// Thousandths left of each device, over all devices.
    pub(crate) left: Vec<i32>,
    pub(crate) milli_cpus: Vec<i64>,
    pub(crate) bytes: Vec<i64>,
    pub(crate) versions: Vec<u64>,
    /// Counts everything that happens, undoing too.
    moment: u64,
    /// Nodes in the order in which they changed.
    log: Vec<u32>,
    /// How much of the log was dropped at its beginning.
    dropped: u64,
    /// When the log was cut, and to which length; both ascending, as a deeper cut makes a shallower one pointless.
    cuts: Vec<(u64, u64)>,
    journal: Vec<Undo>,
    /// Marks that were set and neither undone nor released.
    marks: u32,
    /// How long the log was at the first of them.
    first_mark: u64,
}

#[derive(Debug, Clone)]
struct Undo {
    part: WorkerPlacement,
    taken: bool,
}

/// A moment to come back to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    journal: usize,
    log: u64,
    depth: u32,
}

/// How far somebody has followed the changes who keeps something computed from nodes.
#[derive(Debug, Clone, Default)]
pub(crate) struct ChangeCursor {
    /// The moment, and how long the log was then.
    seen: Option<(u64, u64)>,
    /// What it saw that may yet be undone: where in the log, and which node.
    revocable: Vec<(u64, u32)>,
    /// Where it has to look again.
    stale: Vec<u32>,
}

/// Longer than any pass changes between two looks at one shape; who comes later compares versions instead.
const LONGEST_LOG: usize = 1 << 16;

impl FleetState {
    pub(crate) fn new(layout: &Layout) -> Self {
        let nodes = &layout.nodes;
        let signed = |amount: u64| i64::try_from(amount).unwrap_or(i64::MAX).min(1 << 60);
        let mut state = FleetState {
            left: vec![1000; layout.devices],
            milli_cpus: nodes.iter().map(|node| signed(node.capacity.cpus.milli)).collect(),
            bytes: nodes.iter().map(|node| signed(node.capacity.memory.0)).collect(),
            versions: (0..).take(nodes.len()).map(|node| mixed(!node)).collect(),
            moment: 0,
            log: Vec::new(),
            dropped: 0,
            cuts: Vec::new(),
            journal: Vec::new(),
            marks: 0,
            first_mark: 0,
        };
        for (_, part) in layout.foreign() {
            state.add(layout, &part, -1);
        }
        state
    }

    pub(crate) fn allocate(&mut self, layout: &Layout, part: &WorkerPlacement) {
        self.change(layout, part, true);
    }

    pub(crate) fn free(&mut self, layout: &Layout, part: &WorkerPlacement) {
        self.change(layout, part, false);
    }

    /// Whether all of it is left.
    pub(crate) fn has(&self, layout: &Layout, part: &WorkerPlacement) -> bool {
        let node = part.node.ordinal();
        let first = layout.first_device[node];
        let is_left = |position: &u8| self.left[first + usize::from(*position)] >= i32::from(part.share);
        let holds = |free: i64, amount: u64| amount == 0 || free >= i64::try_from(amount).unwrap_or(i64::MAX);
        part.devices.iter().all(is_left)
            && holds(self.milli_cpus[node], part.milli_cpus)
            && holds(self.bytes[node], part.bytes)
    }

    fn change(&mut self, layout: &Layout, part: &WorkerPlacement, taken: bool) {
        let node = part.node.ordinal();
        if node >= layout.nodes.len() {
            return;
        }
        if self.marks > 0 {
            self.journal.push(Undo { part: part.clone(), taken });
        }
        self.add(layout, part, if taken { -1 } else { 1 });
        self.note(part.node);
    }

    fn add(&mut self, layout: &Layout, part: &WorkerPlacement, sign: i32) {
        let node = part.node.ordinal();
        let (first, devices) = (layout.first_device[node], layout.nodes[node].devices.len());
        let mut version = self.versions[node];
        for &position in part.devices.iter().filter(|&&position| usize::from(position) < devices) {
            let left = &mut self.left[first + usize::from(position)];
            version = version.wrapping_sub(device_print(position, *left));
            *left = left.saturating_add(sign * i32::from(part.share));
            version = version.wrapping_add(device_print(position, *left));
        }
        let signed = |amount: u64| i64::from(sign) * i64::try_from(amount).unwrap_or(i64::MAX).min(1 << 60);
        let amounts = [(&mut self.milli_cpus[node], part.milli_cpus), (&mut self.bytes[node], part.bytes)];
        for ((free, amount), salt) in amounts.into_iter().zip([CPU_SALT, MEMORY_SALT]) {
            version = version.wrapping_sub(mixed(free.cast_unsigned() ^ salt));
            *free = free.saturating_add(signed(amount));
            version = version.wrapping_add(mixed(free.cast_unsigned() ^ salt));
        }
        self.versions[node] = version;
    }

    fn note(&mut self, node: NodeId) {
        self.moment += 1;
        if self.log.len() >= LONGEST_LOG {
            self.drop_log();
        }
        self.log.push(node.0);
    }

    /// Makes everybody look at everything again.
    fn drop_log(&mut self) {
        self.dropped += self.log.len() as u64 + 1;
        self.log.clear();
        self.cuts.clear();
    }

    pub(crate) fn mark(&mut self) -> Mark {
        if self.marks == 0 {
            self.first_mark = self.log_length();
        }
        self.marks += 1;
        Mark { journal: self.journal.len(), log: self.log_length(), depth: self.marks }
    }

    /// Undoes what was done since, and forgets marks that were set since.
    pub(crate) fn undo(&mut self, layout: &Layout, mark: Mark) {
        let has_changed = self.journal.len() > mark.journal;
        while self.journal.len() > mark.journal {
            let Some(undo) = self.journal.pop() else { break };
            self.add(layout, &undo.part, if undo.taken { 1 } else { -1 });
        }
        if has_changed {
            self.cut_log(mark.log);
        }
        self.release(mark);
    }

    fn cut_log(&mut self, length: u64) {
        self.moment += 1;
        let Some(kept) = length.checked_sub(self.dropped) else { return self.drop_log() };
        self.log.truncate(usize::try_from(kept).unwrap_or(usize::MAX));
        while self.cuts.last().is_some_and(|(_, other)| *other >= length) {
            self.cuts.pop();
        }
        self.cuts.push((self.moment, length));
    }

    /// Keeps what was done since: the mark cannot be undone any more.
    pub(crate) fn release(&mut self, mark: Mark) {
        self.marks = self.marks.min(mark.depth.saturating_sub(1));
        if self.marks == 0 {
            self.journal.clear();
        }
    }

    /// Another one after every change.
    pub(crate) fn moment(&self) -> u64 {
        self.moment
    }

    fn log_length(&self) -> u64 {
        self.dropped + self.log.len() as u64
    }

    /// The log from there on; it was not dropped.
    fn since(&self, from: u64) -> &[u32] {
        let from = usize::try_from(from - self.dropped).unwrap_or(usize::MAX);
        self.log.get(from..).unwrap_or(&[])
    }

    /// How much of the log is still what it was at that moment, when it had that length.
    fn untouched_since(&self, moment: u64, length: u64) -> u64 {
        let first = self.cuts.partition_point(|(at, _)| *at <= moment);
        self.cuts.get(first).map_or(length, |(_, cut)| length.min(*cut))
    }

    /// What new jobs could take of each device of a slot, into `into`.
    pub(crate) fn levels(&self, layout: &Layout, slot: &Slot, into: &mut Vec<u16>) {
        let first = layout.first_device[slot.node];
        into.clear();
        into.extend(slot.positions.iter().zip(&slot.usable).map(|(&position, &usable)| {
            let left = self.left[first + usize::from(position)].clamp(0, 1000);
            if usable && slot.open { u16::try_from(left).unwrap_or(0) } else { 0 }
        }));
    }
}

impl ChangeCursor {
    /// Nodes that may have changed since this was last asked; nothing where nobody remembers, and all may have.
    pub(crate) fn catch_up(&mut self, state: &FleetState) -> Option<&[u32]> {
        self.stale.clear();
        let Some((moment, length)) = self.seen.replace((state.moment, state.log_length())) else {
            // What it sees now may be undone as well.
            let from = state.first_mark.max(state.dropped);
            self.note(state, from, state.since(from));
            return None;
        };
        if moment == state.moment {
            return Some(&self.stale);
        }
        let untouched = state.untouched_since(moment, length);
        let undone = self.revocable.partition_point(|(at, _)| *at < untouched);
        self.stale.extend(self.revocable.drain(undone..).map(|(_, node)| node));
        if untouched < state.dropped {
            return None;
        }
        let new = state.since(untouched);
        self.note(state, untouched, new);
        self.stale.extend_from_slice(new);
        Some(&self.stale)
    }

    /// Remembers which nodes it sees as a trial left them.
    fn note(&mut self, state: &FleetState, from: u64, nodes: &[u32]) {
        if state.marks == 0 {
            self.revocable.clear();
        } else {
            self.revocable.extend((from..).zip(nodes.iter().copied()));
        }
    }

    /// Everything is looked at next time.
    pub(crate) fn forget(&mut self) {
        *self = ChangeCursor::default();
    }
}

const CPU_SALT: u64 = 0x5bd1_e995 << 32;
const MEMORY_SALT: u64 = 0x1b87_3593 << 32;

fn device_print(position: u8, left: i32) -> u64 {
    mixed(u64::from(left.cast_unsigned()) << 16 | u64::from(position))
}
