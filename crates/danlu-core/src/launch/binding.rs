//! Which processors each rank of a worker is bound to.
//!
//! Nobody hands out single processors: a worker has a quota, and any of the machine's processors. So a worker that has less
//! than the machine is only brought near its devices, onto all processors of their memory node; to cut those into pieces
//! would put it onto the same pieces as its neighbours. A worker that has the whole machine is cut into even pieces.

use std::collections::{BTreeMap, BTreeSet};

use danlu_types::Topology;

use super::LaunchFile;

/// Reads the kernel's lists, `0-3,8,10-11`; what cannot be read is left out.
pub fn processor_list(text: &str) -> BTreeSet<usize> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        // A list of a machine that cannot be: refused rather than filled.
        (first <= last && last < 65_536).then_some(first..=last)
    };
    text.split(',').filter_map(range).flatten().collect()
}

/// The processors of each rank, in their order; `None` where ranks are better left to the kernel. `allowed`: what the
/// launcher itself may use.
pub fn bind_ranks(launch: &LaunchFile, allowed: &BTreeSet<usize>) -> Option<Vec<BTreeSet<usize>>> {
    let (ranks, quota) = (launch.ranks.len(), usize::try_from(launch.limits.cpus.milli / 1000).ok()?);
    if !launch.options.binding || ranks == 0 || quota < ranks {
        return None;
    }
    let has_machine = quota >= allowed.len();
    let near = near_devices(launch, allowed);
    match (near, has_machine) {
        (Some(near), false) => Some(near),
        (Some(near), true) => Some(cut(near)),
        (None, true) if ranks > 1 => Some(cut(vec![allowed.clone(); ranks])),
        (None, _) => None,
    }
    // A piece without a processor is no piece.
    .filter(|sets| sets.iter().all(|set| !set.is_empty()))
}

/// For each rank the processors of the memory node nearest to its device; `None` unless known for all.
fn near_devices(launch: &LaunchFile, allowed: &BTreeSet<usize>) -> Option<Vec<BTreeSet<usize>>> {
    if !launch.is_rank_per_device() {
        return None;
    }
    launch
        .devices
        .iter()
        .map(|device| node_processors(&launch.topology, device.wiring.numa?, allowed))
        .collect()
}

fn node_processors(topology: &Topology, node: u32, allowed: &BTreeSet<usize>) -> Option<BTreeSet<usize>> {
    let own: BTreeSet<usize> =
        processor_list(topology.numa.get(&node)?).intersection(allowed).copied().collect();
    (!own.is_empty()).then_some(own)
}

/// Ranks with the same processors share them evenly, in pieces that lie together.
fn cut(sets: Vec<BTreeSet<usize>>) -> Vec<BTreeSet<usize>> {
    let mut sharers: BTreeMap<BTreeSet<usize>, usize> = BTreeMap::new();
    for set in &sets {
        *sharers.entry(set.clone()).or_default() += 1;
    }
    let mut taken: BTreeMap<BTreeSet<usize>, usize> = BTreeMap::new();
    sets.into_iter()
        .map(|set| {
            let (total, count) = (set.len(), sharers[&set]);
            let place = taken.entry(set.clone()).or_default();
            let (from, to) = (*place * total / count, (*place + 1) * total / count);
            *place += 1;
            set.into_iter().skip(from).take(to - from).collect()
        })
        .collect()
}
