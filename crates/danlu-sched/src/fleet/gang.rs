//! Where a whole gang goes.
//!
//! Workers of a gang are equal, and what one node can hold does not depend on the others: so the rooms decide whether the
//! gang fits, and filling nodes in any order then succeeds. A gang of several workers talks, so it is kept together:
//! on one node if one holds it, otherwise on as few as possible, in one rack if one holds it.

use danlu_types::DeviceKind;

use super::layout::{Layout, Slot};
use super::view::View;
use super::{Fleet, NodeId, Placement, PlacementConstraints, ShapeId, WorkerPlacement};

/// Slots among which a gang may choose.
struct Scope<'a> {
    wish: &'a PlacementConstraints<'a>,
    /// Whether each pool of the view holds the whole gang.
    pools: Vec<bool>,
    bunch: Option<usize>,
}

impl Fleet {
    pub(super) fn place_on(
        &mut self,
        id: ShapeId,
        alternative: usize,
        wish: &PlacementConstraints<'_>,
    ) -> Option<Placement> {
        self.refresh(id, alternative);
        let workers = self.shapes[id.ordinal()].shape.workers;
        if workers == 1 && wish.is_none() {
            let view = self.shapes[id.ordinal()].views[alternative].as_deref_mut()?;
            view.appraise(&self.layout, &self.state, &mut self.value);
            let slot = view.best(&self.layout, &self.state, &mut self.value)?;
            let (_, parts) = self.fill(id, alternative, slot, 1)?;
            return Some(self.placement_on(id, alternative, slot, parts));
        }
        let scope = self.scope(id, alternative, wish)?;
        let mark = self.mark();
        let placed = if workers == 1 {
            let open = self.open(id, alternative, &scope);
            self.best(id, alternative, &open, 1).and_then(|slot| self.fill(id, alternative, slot, 1))
        } else {
            self.place_gang(id, alternative, &scope, workers)
        };
        let Some((slot, parts)) = placed else {
            self.undo(mark);
            return None;
        };
        self.release(mark);
        Some(self.placement_on(id, alternative, slot, parts))
    }

    fn placement_on(
        &self,
        id: ShapeId,
        alternative: usize,
        slot: usize,
        parts: Vec<WorkerPlacement>,
    ) -> Placement {
        let model = self.layout.slots[slot].model.filter(|_| self.view(id, alternative).need.devices > 0);
        let kind = model.map(|model| self.layout.kind_of(model));
        Placement { alternative, kind, parts }
    }

    /// What may be chosen from, if that holds the gang at all.
    fn scope<'a>(
        &self,
        id: ShapeId,
        alternative: usize,
        wish: &'a PlacementConstraints<'a>,
    ) -> Option<Scope<'a>> {
        let shape = &self.shapes[id.ordinal()].shape;
        let view = self.view(id, alternative);
        let workers = u64::from(shape.workers);
        let rooms = pool_rooms(&self.layout, view, wish);
        let mut scope =
            Scope { wish, pools: rooms.iter().map(|&room| room >= workers).collect(), bunch: None };
        if !scope.pools.contains(&true) {
            return None;
        }
        if shape.workers > 1 && (shape.same_rack || self.layout.has_racks) {
            let on_one_node = largest(&self.layout, view, &scope) >= shape.workers;
            if !on_one_node {
                scope.bunch = tightest_bunch(&self.layout, view, &scope, workers);
                if scope.bunch.is_none() && shape.same_rack {
                    return None;
                }
            }
        }
        Some(scope)
    }

    pub(super) fn fits_on(&self, id: ShapeId, alternative: usize, wish: &PlacementConstraints<'_>) -> bool {
        self.scope(id, alternative, wish).is_some()
    }

    fn place_gang(
        &mut self,
        id: ShapeId,
        alternative: usize,
        scope: &Scope<'_>,
        workers: u32,
    ) -> Option<(usize, Vec<WorkerPlacement>)> {
        let mut parts = Vec::with_capacity(workers as usize);
        let mut first = None;
        let mut open = self.open(id, alternative, scope);
        while let Some(missing) =
            workers.checked_sub(u32::try_from(parts.len()).ok()?).filter(|missing| *missing > 0)
        {
            let view = self.view(id, alternative);
            let most = open.iter().map(|&at| view.rooms[at]).max()?;
            let slot = self.best(id, alternative, &open, most.min(missing))?;
            let view = self.view(id, alternative);
            let room = view.rooms[slot];
            if first.is_none() {
                first = Some(slot);
                let pool = view.pool(&self.layout.slots[slot]);
                open.retain(|&at| view.pool(&self.layout.slots[at]) == pool);
            }
            let (_, filled) = self.fill(id, alternative, slot, room.min(missing))?;
            parts.extend(filled);
            self.refresh(id, alternative);
        }
        Some((first?, parts))
    }

    /// Slots with room among which it may choose.
    fn open(&self, id: ShapeId, alternative: usize, scope: &Scope<'_>) -> Vec<usize> {
        let view = self.view(id, alternative);
        let slots = self.layout.slots.iter().zip(&view.rooms).enumerate();
        slots
            .filter(|(_, (slot, room))| **room > 0 && scope.admits(&self.layout, view, slot))
            .map(|(at, _)| at)
            .collect()
    }

    /// The best of these slots with room for so many workers; of equals the first.
    fn best(&mut self, id: ShapeId, alternative: usize, open: &[usize], workers: u32) -> Option<usize> {
        let view = self.shapes[id.ordinal()].views[alternative].as_deref_mut()?;
        view.appraise(&self.layout, &self.state, &mut self.value);
        loop {
            let roomy = open.iter().filter(|at| view.rooms[**at] >= workers.max(1));
            let best = *roomy.min_by_key(|at| (std::cmp::Reverse(view.scores[**at]), **at))?;
            if !view.settle(&self.layout, &self.state, &mut self.value, best) {
                return Some(best);
            }
        }
    }

    /// Puts so many workers on a slot that has room for them.
    fn fill(
        &mut self,
        id: ShapeId,
        alternative: usize,
        slot: usize,
        workers: u32,
    ) -> Option<(usize, Vec<WorkerPlacement>)> {
        let mut parts = Vec::with_capacity(workers as usize);
        for worker in 0..workers {
            if worker > 0 {
                self.refresh(id, alternative);
            }
            let devices = self.choose_devices(id, alternative, slot)?;
            let shape = &self.shapes[id.ordinal()].shape;
            let part = WorkerPlacement {
                node: NodeId::new(self.layout.slots[slot].node),
                devices,
                share: self.view(id, alternative).need.share,
                milli_cpus: shape.cpus.milli,
                bytes: shape.memory.0,
            };
            self.take_part(&part);
            parts.push(part);
        }
        Some((slot, parts))
    }

    /// Positions on the node.
    fn choose_devices(&mut self, id: ShapeId, alternative: usize, at: usize) -> Option<Vec<u8>> {
        let view = self.shapes[id.ordinal()].views[alternative].as_deref_mut()?;
        view.appraise(&self.layout, &self.state, &mut self.value);
        view.settle(&self.layout, &self.state, &mut self.value, at);
        let slot = &self.layout.slots[at];
        let need = view.need;
        if need.devices == 0 {
            return Some(Vec::new());
        }
        let mut levels = Vec::new();
        self.state.levels(&self.layout, slot, &mut levels);
        let chosen = if need.is_share() {
            let level = view.used_level(&self.value, at);
            match level.and_then(|level| levels.iter().position(|other| *other == level)) {
                Some(device) => vec![u8::try_from(device).ok()?],
                None => slot.board.pick(&levels, &slot.islands, need)?,
            }
        } else {
            slot.board.pick(&levels, &slot.islands, need)?
        };
        let mut positions: Vec<u8> =
            chosen.into_iter().map(|device| slot.positions[usize::from(device)]).collect();
        positions.sort_unstable();
        Some(positions)
    }
}

fn largest(layout: &Layout, view: &View, scope: &Scope<'_>) -> u32 {
    let slots = layout.slots.iter().zip(&view.rooms);
    slots.filter(|(slot, _)| scope.admits(layout, view, slot)).map(|(_, room)| *room).max().unwrap_or(0)
}

/// Of the racks that hold the gang the one with the least room, so that larger ones stay free.
fn tightest_bunch(layout: &Layout, view: &View, scope: &Scope<'_>, workers: u64) -> Option<usize> {
    let mut rooms = view.bunches.clone();
    let mut open = vec![false; rooms.len()];
    for (at, slot) in layout.slots.iter().enumerate() {
        let bunch = view.bunch(layout, slot);
        if scope.admits(layout, view, slot) {
            open[bunch] = true;
        } else if scope.wish.avoids(slot.node) {
            rooms[bunch] -= u64::from(view.rooms[at]);
        }
    }
    let holding = rooms.iter().enumerate().filter(|(at, room)| open[*at] && **room >= workers);
    holding.min_by_key(|(at, room)| (**room, *at)).map(|(at, _)| at)
}

/// Room in each pool, without what the wish rules out.
pub(super) fn pool_rooms(layout: &Layout, view: &View, wish: &PlacementConstraints<'_>) -> Vec<u64> {
    let mut rooms = view.pools.clone();
    for (at, node) in wish.avoid.iter().enumerate() {
        if node.ordinal() >= layout.nodes.len() || wish.avoid[..at].contains(node) {
            continue;
        }
        for at in layout.of_node[node.ordinal()].clone() {
            rooms[view.pool(&layout.slots[at])] -= u64::from(view.rooms[at]);
        }
    }
    if view.need.devices > 0 {
        for (model, room) in rooms.iter_mut().enumerate() {
            let allowed = wish.kinds.contains(layout.kind_of(model));
            *room = if allowed { *room } else { 0 };
        }
    }
    rooms
}

impl Scope<'_> {
    fn admits(&self, layout: &Layout, view: &View, slot: &Slot) -> bool {
        self.pools.get(view.pool(slot)).is_some_and(|open| *open)
            && self.bunch.is_none_or(|bunch| view.bunch(layout, slot) == bunch)
            && !self.wish.avoids(slot.node)
    }
}

impl PlacementConstraints<'_> {
    fn is_none(&self) -> bool {
        self.avoid.is_empty() && self.kinds == KindSet::ALL
    }

    fn avoids(&self, node: usize) -> bool {
        self.avoid.iter().any(|avoided| avoided.ordinal() == node)
    }
}

/// Device kinds, as a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct KindSet(u8);

impl KindSet {
    pub const ALL: KindSet = KindSet(u8::MAX);
    pub const NONE: KindSet = KindSet(0);

    pub fn contains(self, kind: DeviceKind) -> bool {
        self.0 & (1 << kind as u8) != 0
    }

    #[must_use]
    pub fn with(self, kind: DeviceKind) -> Self {
        KindSet(self.0 | (1 << kind as u8))
    }

    #[must_use]
    pub fn without(self, kind: DeviceKind) -> Self {
        KindSet(self.0 & !(1 << kind as u8))
    }
}

impl FromIterator<DeviceKind> for KindSet {
    fn from_iter<I: IntoIterator<Item = DeviceKind>>(kinds: I) -> Self {
        kinds.into_iter().fold(KindSet::NONE, KindSet::with)
    }
}
