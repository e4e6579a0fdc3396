//! What promises do to the books as time goes by: they collect what they are owed as soon as it is free, begin, and end.

use std::collections::BTreeMap;
use std::sync::Arc;

use danlu_types::ForeignHold;
use jiff::Timestamp;

use super::Scheduler;
use super::reserve::PendingStart;
use super::running::foreign_end;
use crate::fleet::{Fleet, NodeId, Placement, WorkerPlacement};

#[derive(Debug)]
pub(super) struct Future {
    promises: Vec<Pending>,
    /// By node, who lacks something there, in the order of the promises, and which of what it lacks that is. Many jobs
    /// end before a large one fits, most of them where nobody lacks anything.
    lacking: BTreeMap<NodeId, Vec<(usize, usize)>>,
    /// When which promise begins or ends, the latest first.
    events: Vec<(Timestamp, usize, Event)>,
    departures: Departures,
    /// How many of them have happened.
    departed: usize,
    /// What was done to the accounts.
    done: Vec<(usize, Event)>,
}

/// When jobs that are none of ours should end, and what they hold of a node; the soonest first.
pub(super) type Departures = Arc<[(Timestamp, Placement)]>;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Begin,
    End,
}

#[derive(Debug)]
struct Pending {
    promise: Arc<PendingStart>,
    /// What it has been given beyond what was withheld for it.
    collected: Vec<WorkerPlacement>,
    /// What it still lacks.
    lacks: Vec<WorkerPlacement>,
}

impl Future {
    pub(super) fn new(promises: Vec<Arc<PendingStart>>, departures: Departures) -> Self {
        let mut events: Vec<(Timestamp, usize, Event)> = Vec::new();
        for (at, promise) in promises.iter().enumerate() {
            events.extend(promise.from.map(|from| (from, at, Event::Begin)));
            events.push((promise.until, at, Event::End));
        }
        events.sort_unstable_by(|one, other| other.cmp(one));
        let pending = |promise: Arc<PendingStart>| {
            let withheld = &promise.withheld.parts;
            let lacks = promise.placement.parts.iter().zip(withheld).map(|(all, has)| rest(all, has));
            let lacks =
                if promise.is_whole() { Vec::new() } else { lacks.filter(has_anything).collect::<Vec<_>>() };
            Pending { collected: Vec::new(), lacks, promise }
        };
        let promises: Vec<Pending> = promises.into_iter().map(pending).collect();
        let mut lacking: BTreeMap<NodeId, Vec<(usize, usize)>> = BTreeMap::new();
        for (at, Pending { lacks, .. }) in promises.iter().enumerate() {
            for (which, lack) in lacks.iter().enumerate() {
                lacking.entry(lack.node).or_default().push((at, which));
            }
        }
        Future { promises, lacking, events, departures, departed: 0, done: Vec::new() }
    }

    /// When something happens next.
    pub(super) fn next(&self) -> Option<Timestamp> {
        let event = self.events.last().map(|(at, _, _)| *at);
        event.into_iter().chain(self.next_departure()).min()
    }

    fn next_departure(&self) -> Option<Timestamp> {
        self.departures.get(self.departed).map(|(at, _)| *at)
    }

    /// Lets it happen.
    pub(super) fn step(&mut self, scheduler: &mut Scheduler) {
        let next = self.next();
        if next.is_some() && self.next_departure() == next {
            self.depart(&mut scheduler.fleet);
            return;
        }
        let Some((_, at, event)) = self.events.pop() else { return };
        let pending = &mut self.promises[at];
        match event {
            Event::Begin => scheduler.enter(&pending.promise.entry),
            Event::End => {
                scheduler.strike(&pending.promise.entry);
                let mut freed = pending.promise.withheld.clone();
                freed.parts.append(&mut pending.collected);
                pending.lacks.clear();
                scheduler.fleet.free(&freed);
                self.collect(&mut scheduler.fleet, Some(&freed));
            }
        }
        self.done.push((at, event));
    }

    /// Frees what those hold that end next.
    fn depart(&mut self, fleet: &mut Fleet) {
        let (departures, next) = (Arc::clone(&self.departures), self.next_departure());
        for (_, freed) in departures[self.departed..].iter().take_while(|(at, _)| Some(*at) == next) {
            self.departed += 1;
            fleet.free(freed);
            self.collect(fleet, Some(freed));
        }
    }

    /// Gives promises what they lack of what has become free; where that is known, only there.
    pub(super) fn collect(&mut self, fleet: &mut Fleet, freed: Option<&Placement>) {
        let Some(freed) = freed else {
            self.lacking.values().for_each(|owed| hand_out(&mut self.promises, owed, fleet));
            return;
        };
        for part in &freed.parts {
            if let Some(owed) = self.lacking.get(&part.node) {
                hand_out(&mut self.promises, owed, fleet);
            }
        }
    }

    /// Puts the accounts back; the fleet is put back by its own mark.
    pub(super) fn undo(self, scheduler: &mut Scheduler) {
        for (at, event) in self.done.into_iter().rev() {
            let entry = &self.promises[at].promise.entry;
            match event {
                Event::Begin => scheduler.strike(entry),
                Event::End => scheduler.enter(entry),
            }
        }
    }
}

pub(super) fn departures(fleet: &Fleet, now: Timestamp) -> Departures {
    let departure = |(hold, part): (&ForeignHold, WorkerPlacement)| {
        Some((foreign_end(hold.until?, now), Placement { alternative: 0, kind: None, parts: vec![part] }))
    };
    let mut departures: Vec<_> = fleet.foreign().filter_map(departure).collect();
    departures.sort_by_key(|(end, _)| *end);
    departures.into()
}

/// Gives those who lack something of one node what is free there.
fn hand_out(promises: &mut [Pending], owed: &[(usize, usize)], fleet: &mut Fleet) {
    for &(at, which) in owed {
        let Pending { promise, collected, lacks } = &mut promises[at];
        // One that has ended lacks nothing any more.
        let Some(lack) = lacks.get_mut(which).filter(|lack| has_anything(lack)) else { continue };
        let one = Placement { parts: vec![lack.clone()], ..promise.placement };
        for found in fleet.withhold(&one).parts.into_iter().filter(has_anything) {
            *lack = rest(lack, &found);
            collected.push(found);
        }
    }
}

/// What of a part is missing.
fn rest(all: &WorkerPlacement, has: &WorkerPlacement) -> WorkerPlacement {
    WorkerPlacement {
        devices: all.devices.iter().filter(|device| !has.devices.contains(device)).copied().collect(),
        milli_cpus: all.milli_cpus.saturating_sub(has.milli_cpus),
        bytes: all.bytes.saturating_sub(has.bytes),
        ..*all
    }
}

fn has_anything(part: &WorkerPlacement) -> bool {
    !part.devices.is_empty() || part.milli_cpus > 0 || part.bytes > 0
}
