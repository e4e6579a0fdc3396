//! Finding devices, CPUs and memory for a whole gang.
//!
//! Workers of a gang are equal, and what one node can hold does not depend on the others: so counting how many workers
//! each node has room for decides whether the gang fits, and filling nodes in any order of preference then succeeds.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use danlu_types::JobSpec;

use crate::layout::{Free, Layout, signed};

/// What each worker of a gang asks of its node.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ask {
    pub(crate) workers: usize,
    pub(crate) devices: u32,
    pub(crate) milli_cpus: i64,
    /// 0 where the job sets no limit: what it will use is not known, so nothing is set aside for it.
    pub(crate) bytes: i64,
}

/// Where one worker goes: a node's ordinal, and the indices of devices there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pick {
    pub(crate) node: usize,
    pub(crate) devices: Vec<u32>,
}

/// What a whole gang runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hardware {
    CpuOnly,
    /// Devices of this model.
    Model(usize),
}

/// Smaller is better: one island rather than several, then few devices left over, then the order of the inventory.
type Preference = (bool, u32, usize);

impl Ask {
    pub(crate) fn of(spec: &JobSpec) -> Self {
        Ask {
            workers: spec.workers as usize,
            devices: spec.devices.count.devices(),
            milli_cpus: signed(spec.cpus.milli),
            bytes: spec.memory.map_or(0, |memory| signed(memory.0)),
        }
    }
}

/// Takes room for the whole gang out of `free`, or nothing at all.
///
/// The gang runs on one of `models`: collectives across models are slow where they work at all. The model with the
/// fewest free devices that can hold the gang is taken, so that the rarer one is not broken up; then the first.
pub(crate) fn place_gang(layout: &Layout, free: &mut Free, ask: &Ask, models: &[usize]) -> Option<Vec<Pick>> {
    let choice = choose_hardware(layout, free, ask, models)?;
    let mut nodes: BinaryHeap<Reverse<Preference>> = (0..layout.nodes.len())
        .filter(|&node| room(layout, free, ask, node, choice) > 0)
        .map(|node| Reverse(preference(layout, free, ask, node, choice)))
        .collect();
    let mut picks = Vec::with_capacity(ask.workers);
    while picks.len() < ask.workers {
        let Reverse((_, _, node)) = nodes.pop().expect("the nodes' room was counted before filling them");
        let devices = match choice {
            Hardware::CpuOnly => Vec::new(),
            Hardware::Model(model) => take_devices(layout, free, node, model, ask.devices),
        };
        free.milli_cpus[node] -= ask.milli_cpus;
        free.bytes[node] -= ask.bytes;
        picks.push(Pick { node, devices });
        if room(layout, free, ask, node, choice) > 0 {
            nodes.push(Reverse(preference(layout, free, ask, node, choice)));
        }
    }
    Some(picks)
}

/// Whether the gang would fit, taking nothing.
pub(crate) fn fits(layout: &Layout, free: &Free, ask: &Ask, models: &[usize]) -> bool {
    choose_hardware(layout, free, ask, models).is_some()
}

/// How many workers all nodes together have room for.
pub(crate) fn total_room(layout: &Layout, free: &Free, ask: &Ask, hardware: Hardware) -> usize {
    let rooms = (0..layout.nodes.len()).map(|node| room(layout, free, ask, node, hardware));
    rooms.fold(0, usize::saturating_add)
}

/// How many workers of the gang one node has room for.
pub(crate) fn room(layout: &Layout, free: &Free, ask: &Ask, node: usize, hardware: Hardware) -> usize {
    let by_devices = match hardware {
        Hardware::CpuOnly => usize::MAX,
        Hardware::Model(model) => (layout.free_on(free, node, Some(model)) / ask.devices.max(1)) as usize,
    };
    let by_amount = |free: i64, each: i64| match each {
        ..=0 => usize::MAX,
        _ => usize::try_from(free / each).unwrap_or(0),
    };
    let by_cpus = by_amount(free.milli_cpus[node], ask.milli_cpus);
    let by_memory = by_amount(free.bytes[node], ask.bytes);
    by_devices.min(by_cpus).min(by_memory)
}

fn choose_hardware(layout: &Layout, free: &Free, ask: &Ask, models: &[usize]) -> Option<Hardware> {
    let holds = |hardware: &Hardware| total_room(layout, free, ask, *hardware) >= ask.workers;
    if ask.devices == 0 {
        return Some(Hardware::CpuOnly).filter(holds);
    }
    let mut models = models.to_vec();
    models.sort_by_key(|&model| (layout.free_of(free, model), model));
    models.into_iter().map(Hardware::Model).find(holds)
}

fn preference(layout: &Layout, free: &Free, ask: &Ask, node: usize, hardware: Hardware) -> Preference {
    let left = layout.free_on(free, node, None) - ask.devices;
    let several_islands = match hardware {
        Hardware::CpuOnly => false,
        Hardware::Model(model) => !layout.nodes[node]
            .islands
            .clone()
            .any(|island| layout.islands[island].model == model && count(free, island) >= ask.devices),
    };
    (several_islands, left, node)
}

/// As few islands as possible: whole large ones first, and the rest from the smallest that suffices.
fn take_devices(layout: &Layout, free: &mut Free, node: usize, model: usize, wanted: u32) -> Vec<u32> {
    let islands: Vec<usize> =
        layout.nodes[node].islands.clone().filter(|&island| layout.islands[island].model == model).collect();
    let mut devices = Vec::new();
    let mut missing = wanted;
    while missing > 0 {
        let smallest_sufficient = islands
            .iter()
            .filter(|&&island| count(free, island) >= missing)
            .min_by_key(|&&island| (count(free, island), island));
        let largest = islands.iter().max_by_key(|&&island| (count(free, island), Reverse(island)));
        let Some(&island) = smallest_sufficient.or(largest).filter(|&&island| count(free, island) > 0) else {
            unreachable!("the node's free devices were counted before taking them")
        };
        while missing > 0 && free.islands[island] != 0 {
            let bit = free.islands[island].trailing_zeros();
            free.islands[island] &= !(1 << bit);
            devices.push(layout.islands[island].devices[bit as usize]);
            missing -= 1;
        }
    }
    devices.sort_unstable();
    devices
}

fn count(free: &Free, island: usize) -> u32 {
    free.islands[island].count_ones()
}
