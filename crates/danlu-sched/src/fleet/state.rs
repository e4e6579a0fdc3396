//! What is left of every node, exactly, with what it takes to undo changes and to follow them.
//!
//! Amounts are signed: a node that came back smaller than what is held of it has less than nothing, and stays so until
//! that is given back. Each change stamps the node with a version that stands for exactly this content of this node, so
//! that whoever keeps something computed from it knows by one comparison whether it still holds; undoing brings the old
//! version back with the old content.

use super::layout::{Layout, Slot};
use super::{NodeId, Part};

#[derive(Debug, Clone)]
pub(crate) struct State {
    /// Thousandths left of each device, over all devices.
    pub(crate) left: Vec<i32>,
    pub(crate) milli_cpus: Vec<i64>,
    pub(crate) bytes: Vec<i64>,
    pub(crate) versions: Vec<u64>,
    next_version: u64,
    /// Nodes in the order in which they changed.
    log: Vec<u32>,
    /// How much of the log was dropped at its beginning.
    dropped: u64,
    journal: Vec<Undo>,
    /// Marks that were set and neither undone nor released.
    marks: u32,
}

#[derive(Debug, Clone)]
struct Undo {
    part: Part,
    taken: bool,
    version: u64,
}

/// A moment to come back to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    journal: usize,
    depth: u32,
}

/// Longer than any pass changes between two looks at one shape; who comes later compares versions instead.
const LONGEST_LOG: usize = 1 << 16;

impl State {
    pub(crate) fn new(layout: &Layout) -> Self {
        let nodes = &layout.nodes;
        let signed = |amount: u64| i64::try_from(amount).unwrap_or(i64::MAX).min(1 << 60);
        State {
            left: vec![1000; layout.devices],
            milli_cpus: nodes.iter().map(|node| signed(node.capacity.cpus.milli)).collect(),
            bytes: nodes.iter().map(|node| signed(node.capacity.memory.0)).collect(),
            versions: (0..).take(nodes.len()).collect(),
            next_version: nodes.len() as u64,
            log: Vec::new(),
            dropped: 0,
            journal: Vec::new(),
            marks: 0,
        }
    }

    pub(crate) fn take(&mut self, layout: &Layout, part: &Part) {
        self.change(layout, part, true);
    }

    pub(crate) fn give_back(&mut self, layout: &Layout, part: &Part) {
        self.change(layout, part, false);
    }

    fn change(&mut self, layout: &Layout, part: &Part, taken: bool) {
        let node = part.node.ordinal();
        if node >= layout.nodes.len() {
            return;
        }
        if self.marks > 0 {
            self.journal.push(Undo { part: part.clone(), taken, version: self.versions[node] });
        }
        self.add(layout, part, if taken { -1 } else { 1 });
        self.versions[node] = self.next_version;
        self.next_version += 1;
        self.note(part.node);
    }

    fn add(&mut self, layout: &Layout, part: &Part, sign: i32) {
        let node = part.node.ordinal();
        let (first, devices) = (layout.first_device[node], layout.nodes[node].devices.len());
        for &position in part.devices.iter().filter(|&&position| usize::from(position) < devices) {
            let left = &mut self.left[first + usize::from(position)];
            *left = left.saturating_add(sign * i32::from(part.share));
        }
        let signed = |amount: u64| i64::from(sign) * i64::try_from(amount).unwrap_or(i64::MAX).min(1 << 60);
        self.milli_cpus[node] = self.milli_cpus[node].saturating_add(signed(part.milli_cpus));
        self.bytes[node] = self.bytes[node].saturating_add(signed(part.bytes));
    }

    fn note(&mut self, node: NodeId) {
        if self.log.len() >= LONGEST_LOG {
            self.dropped += self.log.len() as u64;
            self.log.clear();
        }
        self.log.push(node.0);
    }

    pub(crate) fn mark(&mut self) -> Mark {
        self.marks += 1;
        Mark { journal: self.journal.len(), depth: self.marks }
    }

    /// Undoes what was done since, and forgets marks that were set since. Calls `changed` for each node touched.
    pub(crate) fn undo(&mut self, layout: &Layout, mark: Mark, mut changed: impl FnMut(&State, NodeId)) {
        while self.journal.len() > mark.journal {
            let Some(undo) = self.journal.pop() else { break };
            self.add(layout, &undo.part, if undo.taken { 1 } else { -1 });
            self.versions[undo.part.node.ordinal()] = undo.version;
            self.note(undo.part.node);
            changed(self, undo.part.node);
        }
        self.release(mark);
    }

    /// Keeps what was done since: the mark cannot be undone any more.
    pub(crate) fn release(&mut self, mark: Mark) {
        self.marks = self.marks.min(mark.depth.saturating_sub(1));
        if self.marks == 0 {
            self.journal.clear();
        }
    }

    /// How many changes there were so far.
    pub(crate) fn moment(&self) -> u64 {
        self.dropped + self.log.len() as u64
    }

    /// Nodes changed since that moment; nothing where nobody remembers.
    pub(crate) fn changed_since(&self, moment: u64) -> Option<&[u32]> {
        let from = moment.checked_sub(self.dropped)?;
        self.log.get(usize::try_from(from).ok()?..)
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
