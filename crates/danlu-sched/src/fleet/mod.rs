//! Nodes and devices as placement sees them, and where a gang goes.
//!
//! A [`Fleet`] keeps what is left of every node and answers, for a [`Shape`], how many workers fit and where a whole
//! gang should go. It knows no jobs, no queue and no time: who may start when is decided above. The same calls in the same
//! order give the same answers.
//!
//! Rules: a gang runs on one kind and model of device. Alternatives are tried in order. Workers of a gang may share a
//! node. A share goes to one device; whole devices must be idle. Cordoned nodes and failed devices take nothing new.

mod board;
mod gang;
mod layout;
mod shapes;
mod state;
mod totals;
mod trial;
mod value;
mod view;

use std::collections::BTreeMap;

use danlu_types::{DeviceKind, ForeignHold, Node};

pub use self::board::{Board, Need};
pub use self::gang::KindSet;
use self::layout::Layout;
use self::state::FleetState;
pub use self::state::Mark;
pub use self::totals::Totals;
pub use self::trial::Shortage;
use self::value::Value;
use self::view::View;
use crate::shape::Shape;

/// The nodes of an engine with what is left of them.
#[derive(Debug, Clone)]
pub struct Fleet {
    layout: Layout,
    state: FleetState,
    value: Value,
    shapes: Vec<Interned>,
    ids: BTreeMap<Shape, ShapeId>,
    /// Numbers of shapes that were forgotten.
    vacant: Vec<usize>,
    /// How many views are kept.
    views: usize,
    /// Counts what is asked, to forget what nobody asks about.
    questions: u64,
}

/// What is kept of each alternative of each shape is some 50 to 100 bytes for each slot; beyond this many, what was not
/// asked about for longest is forgotten.
const MOST_CELLS: usize = 4_000_000;

#[derive(Debug, Clone)]
struct Interned {
    shape: Shape,
    /// One for each alternative, once it was asked about.
    views: Vec<Option<Box<View>>>,
    could_ever_fit: Option<bool>,
}

/// A shape that a fleet knows; other fleets number theirs otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ShapeId(u32);

/// A node's ordinal in the inventory given to [`Fleet::new`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub u32);

/// What one worker holds.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct WorkerPlacement {
    pub node: NodeId,
    /// Positions in the node's list of devices, ascending.
    pub devices: Vec<u8>,
    /// Of each of them, in thousandths.
    pub share: u16,
    pub milli_cpus: u64,
    pub bytes: u64,
}

/// Where a gang goes: one part for each worker.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Placement {
    /// Which alternative of the shape.
    pub alternative: usize,
    /// What it runs on; nothing if only on processors.
    pub kind: Option<DeviceKind>,
    pub parts: Vec<WorkerPlacement>,
}

/// What a placement must respect besides what is free.
#[derive(Debug, Clone, Copy)]
pub struct PlacementConstraints<'a> {
    pub avoid: &'a [NodeId],
    /// Device kinds it may take, as a quota may forbid some.
    pub kinds: KindSet,
}

impl PlacementConstraints<'_> {
    /// Anything goes.
    pub const NONE: PlacementConstraints<'static> = PlacementConstraints { avoid: &[], kinds: KindSet::ALL };
}

impl ShapeId {
    pub(crate) fn ordinal(self) -> usize {
        self.0 as usize
    }
}

impl NodeId {
    pub fn ordinal(self) -> usize {
        self.0 as usize
    }

    fn new(ordinal: usize) -> Self {
        NodeId(u32::try_from(ordinal).unwrap_or(u32::MAX))
    }
}

impl Fleet {
    /// All of it idle.
    pub fn new(nodes: &[Node]) -> Self {
        let layout = Layout::new(nodes);
        let state = FleetState::new(&layout);
        let value = Value::new(&layout);
        Fleet {
            layout,
            state,
            value,
            shapes: Vec::new(),
            ids: BTreeMap::new(),
            vacant: Vec::new(),
            views: 0,
            questions: 0,
        }
    }

    pub fn nodes(&self) -> &[Node] {
        &self.layout.nodes
    }

    /// What jobs hold that are none of ours.
    pub(crate) fn foreign(&self) -> impl Iterator<Item = (&ForeignHold, WorkerPlacement)> {
        self.layout.foreign()
    }

    pub fn shape_of(&self, id: ShapeId) -> &Shape {
        &self.shapes[id.ordinal()].shape
    }

    /// One gang of this shape arrived: what arrives often is what room is kept for.
    pub fn learn(&mut self, shape: ShapeId) {
        let workers = self.shapes[shape.ordinal()].shape.workers;
        self.value.learn(shape.ordinal(), workers);
    }

    /// Takes the tightest place from now on, whatever arrived and arrives.
    pub fn expect_nothing(&mut self) {
        self.value.expect_nothing();
    }

    /// How many workers fit now, on the best alternative and model; racks are not looked at.
    pub fn room(&mut self, shape: ShapeId, wish: &PlacementConstraints<'_>) -> u32 {
        let alternatives = 0..self.shapes[shape.ordinal()].views.len();
        let rooms = alternatives.map(|alternative| {
            self.refresh(shape, alternative);
            let rooms = gang::pool_rooms(&self.layout, self.view(shape, alternative), wish);
            u32::try_from(rooms.into_iter().max().unwrap_or(0)).unwrap_or(u32::MAX)
        });
        rooms.max().unwrap_or(0)
    }

    /// Whether the whole gang fits now.
    pub fn fits(&mut self, shape: ShapeId, wish: &PlacementConstraints<'_>) -> bool {
        (0..self.shapes[shape.ordinal()].views.len()).any(|alternative| {
            self.refresh(shape, alternative);
            self.fits_on(shape, alternative, wish)
        })
    }

    /// Whether the gang would fit if nobody held anything, no device had failed and no node were cordoned.
    pub fn could_ever_fit(&mut self, shape: ShapeId) -> bool {
        if let Some(known) = self.shapes[shape.ordinal()].could_ever_fit {
            return known;
        }
        let fits = self.fits_when_all_is_well(&self.shapes[shape.ordinal()].shape);
        self.shapes[shape.ordinal()].could_ever_fit = Some(fits);
        fits
    }

    /// Finds room for the whole gang and takes it, or does nothing.
    pub fn place(&mut self, shape: ShapeId, wish: &PlacementConstraints<'_>) -> Option<Placement> {
        (0..self.shapes[shape.ordinal()].views.len())
            .find_map(|alternative| self.place_on(shape, alternative, wish))
    }

    /// Records what is found to be held, as after a restart: it may be more than there is.
    pub fn allocate(&mut self, placement: &Placement) {
        for part in &placement.parts {
            self.take_part(part);
        }
    }

    pub fn free(&mut self, placement: &Placement) {
        for part in &placement.parts {
            self.state.free(&self.layout, part);
        }
    }

    /// Remembers this moment, until it is undone or released; marks are nested.
    pub fn mark(&mut self) -> Mark {
        self.state.mark()
    }

    /// Undoes what was taken and given back since. What was learned stays learned.
    pub fn undo(&mut self, mark: Mark) {
        self.state.undo(&self.layout, mark);
    }

    /// Keeps what was taken and given back since. A mark that is neither undone nor released costs memory.
    pub fn release(&mut self, mark: Mark) {
        self.state.release(mark);
    }

    fn take_part(&mut self, part: &WorkerPlacement) {
        self.state.allocate(&self.layout, part);
    }

    /// Brings what is kept of this alternative up to date.
    fn refresh(&mut self, id: ShapeId, alternative: usize) {
        if self.shapes[id.ordinal()].views[alternative].is_none() {
            self.make_view(id, alternative);
        }
        self.questions += 1;
        if let Some(view) = &mut self.shapes[id.ordinal()].views[alternative] {
            view.asked = self.questions;
            view.refresh(&self.layout, &self.state);
        }
    }

    fn make_view(&mut self, id: ShapeId, alternative: usize) {
        if (self.views + 1) * self.layout.slots.len() > MOST_CELLS && self.views > 0 {
            let all = self.shapes.iter_mut().flat_map(|interned| &mut interned.views);
            let oldest = all.filter(|view| view.is_some());
            if let Some(view) = oldest.min_by_key(|view| view.as_ref().map(|view| view.asked)) {
                *view = None;
                self.views -= 1;
            }
        }
        let interned = &mut self.shapes[id.ordinal()];
        let view = View::new(&self.layout, &interned.shape, &interned.shape.alternatives[alternative]);
        interned.views[alternative] = Some(Box::new(view));
        self.views += 1;
    }

    fn view(&self, id: ShapeId, alternative: usize) -> &View {
        self.shapes[id.ordinal()].views[alternative]
            .as_deref()
            .expect("it was refreshed before it is looked at")
    }
}

#[cfg(test)]
impl Fleet {
    /// Everything that is only kept to save time.
    fn forget_caches(&mut self) {
        self.value.forget_caches();
        self.shapes.iter_mut().for_each(|interned| interned.views.fill(None));
        self.views = 0;
    }
}

#[cfg(test)]
mod tests {
    use danlu_types::{Bytes, Cpus, DeviceCount, DeviceKind};

    use super::*;
    use crate::shape::DeviceAsk;

    fn ask(milli: u32, workers: u32, cpus: u64, gibibytes: u64) -> Shape {
        Shape {
            workers,
            alternatives: vec![DeviceAsk {
                kind: Some(DeviceKind::Nvidia),
                models: Vec::new(),
                count: DeviceCount::from_milli(milli).unwrap(),
            }],
            cpus: Cpus { milli: cpus },
            memory: Bytes(gibibytes << 30),
            architecture: None,
            labels: BTreeMap::new(),
            same_rack: false,
        }
    }

    struct Dice(u64);

    impl Dice {
        fn roll(&mut self, sides: u64) -> u64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) % sides
        }

        fn pick<T: Copy>(&mut self, from: &[T]) -> T {
            from[usize::try_from(self.roll(from.len() as u64)).unwrap()]
        }
    }

    /// Trials within trials: some are undone, some kept, and shapes are asked about at any time.
    #[test]
    fn a_fleet_that_forgets_its_caches_counts_the_same_rooms_through_trials() {
        let mut fleet = Fleet::new(&crate::cluster::test_nodes(12));
        let mut dice = Dice(3);
        let (mut held, mut marks) = (Vec::new(), Vec::new());
        for _ in 0..2000 {
            let shape = ask(dice.pick(&[250, 500, 1000, 2000, 4000]), 1, 500 * (1 + dice.roll(8)), 1);
            let shape = fleet.shape(&shape);
            match dice.roll(6) {
                0 | 1 => held.extend(fleet.place(shape, &PlacementConstraints::NONE)),
                2 if !held.is_empty() => {
                    let which = usize::try_from(dice.roll(held.len() as u64)).unwrap();
                    let placement = held.swap_remove(which);
                    fleet.free(&placement);
                }
                3 => marks.push((fleet.mark(), held.clone())),
                4 if dice.roll(2) == 0 => {
                    if let Some((mark, before)) = marks.pop() {
                        fleet.undo(mark);
                        held = before;
                    }
                }
                4 => {
                    if let Some((mark, _)) = marks.pop() {
                        fleet.release(mark);
                    }
                }
                _ => {
                    let mut other = fleet.clone();
                    other.forget_caches();
                    assert_eq!(
                        fleet.room(shape, &PlacementConstraints::NONE),
                        other.room(shape, &PlacementConstraints::NONE)
                    );
                }
            }
        }
    }

    /// What is kept to save time changes nothing else.
    #[test]
    fn a_fleet_that_forgets_its_caches_places_the_same() {
        let nodes = crate::cluster::test_nodes(12);
        let (mut one, mut other) = (Fleet::new(&nodes), Fleet::new(&nodes));
        let mut dice = Dice(7);
        for _ in 0..300 {
            let milli = dice.pick(&[250, 500, 1000, 1000, 2000, 4000]);
            let workers = 1 + u32::try_from(dice.roll(2)).unwrap();
            let shape = ask(milli, workers, 500 * (1 + dice.roll(8)), 1 + dice.roll(4));
            let (first, second) = (one.shape(&shape), other.shape(&shape));
            one.learn(first);
            other.learn(second);
            other.forget_caches();
            assert_eq!(
                one.place(first, &PlacementConstraints::NONE),
                other.place(second, &PlacementConstraints::NONE)
            );
        }
    }
}
