//! Shapes by number: each is known once, and forgotten when nobody needs it.

use std::collections::BTreeSet;

use super::{Fleet, Interned, ShapeId};
use crate::shape::Shape;

impl Fleet {
    pub fn shape(&mut self, shape: &Shape) -> ShapeId {
        if let Some(id) = self.ids.get(shape) {
            return *id;
        }
        let views = vec![None; shape.alternatives.len()];
        let interned = Interned { shape: shape.clone(), views, could_ever_fit: None };
        let at = self.vacant.pop().unwrap_or(self.shapes.len());
        match self.shapes.get_mut(at) {
            Some(vacant) => *vacant = interned,
            None => self.shapes.push(interned),
        }
        let id = ShapeId(u32::try_from(at).unwrap_or(u32::MAX));
        self.ids.insert(shape.clone(), id);
        self.value.put_shape(at, &self.layout, shape);
        id
    }

    /// How many shapes it knows.
    pub fn shape_count(&self) -> usize {
        self.ids.len()
    }

    /// Forgets shapes until so many are left, those first of which the fewest arrived. Those in use stay, and those that
    /// are expected to come: whoever holds the number of another must not use it any more.
    pub fn forget_shapes(&mut self, in_use: &BTreeSet<ShapeId>, most: usize) {
        let drawn = self.value.drawn();
        let is_idle = |id: &&ShapeId| !in_use.contains(id) && !drawn.contains(&id.ordinal());
        let mut idle: Vec<(u64, usize)> = self
            .ids
            .values()
            .filter(is_idle)
            .map(|id| (self.value.weight(id.ordinal()), id.ordinal()))
            .collect();
        idle.sort_unstable();
        for (_, at) in idle.into_iter().take(self.ids.len().saturating_sub(most)) {
            let interned = &mut self.shapes[at];
            self.views -= interned.views.iter().filter(|view| view.is_some()).count();
            interned.views.fill(None);
            self.ids.remove(&interned.shape);
            self.value.forget_shape(at);
            self.vacant.push(at);
        }
    }
}
