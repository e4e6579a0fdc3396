//! What workspaces use, borrow and lend, counted from what their jobs hold.

mod summary;

use std::collections::{BTreeMap, HashMap};

pub use summary::standings;

use crate::{Grant, Job};
use danlu_types::api::{AmountsUsed, WorkspaceView};
use danlu_types::{Amounts, Bytes, Cpus, Device, DeviceKind, Node, NodeName, Sharing};

/// NVIDIA and Ascend devices and CPUs in thousandths, memory in bytes.
type Sums = [u64; RESOURCES];

const RESOURCES: usize = 4;

/// Every workspace that is spoken of or has something running, by name.
pub fn views<'a>(
    sharing: &Sharing,
    nodes: &[Node],
    active: impl Iterator<Item = &'a Job>,
) -> Vec<WorkspaceView> {
    let kinds = kinds(nodes);
    let mut used: BTreeMap<String, Sums> =
        sharing.workspaces.keys().map(|name| (name.clone(), Sums::default())).collect();
    for job in active {
        add(used.entry(job.spec.workspace.clone()).or_default(), &held_by(job, &kinds));
    }
    let guaranteed = |name: &str| of_amounts(&sharing.workspace(name).guaranteed);
    let lent = lent(&capacity(nodes, |_| true, |_| true), &used, guaranteed);
    used.into_iter()
        .map(|(name, used)| {
            let borrowed = less(&used, &guaranteed(&name));
            WorkspaceView {
                rules: sharing.workspace(&name).clone(),
                used: shown(&used),
                borrowed: shown(&borrowed),
                lent: shown(&lent[&name]),
                name,
            }
        })
        .collect()
}

/// Guarantees that all nodes together could not make good.
pub fn overpromised(sharing: &Sharing, nodes: &[Node]) -> Vec<String> {
    let mut promised = Sums::default();
    for workspace in sharing.workspaces.values() {
        add(&mut promised, &of_amounts(&workspace.guaranteed));
    }
    let (promised, capacity) = (shown(&promised), shown(&capacity(nodes, |_| true, |_| true)));
    let over = |what: &str, promised: String, there: String, is_over: bool| {
        is_over.then(|| format!("{promised} {what} are guaranteed in all, but the nodes have {there}"))
    };
    let devices = |what, promised: f64, there: f64| {
        over(what, promised.to_string(), there.to_string(), promised > there)
    };
    [
        devices("NVIDIA devices", promised.nvidia, capacity.nvidia),
        devices("Ascend devices", promised.ascend, capacity.ascend),
        over("CPUs", promised.cpus.to_string(), capacity.cpus.to_string(), promised.cpus > capacity.cpus),
        over(
            "of memory",
            promised.memory.to_string(),
            capacity.memory.to_string(),
            promised.memory > capacity.memory,
        ),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Borrowers first use what is guaranteed to nobody; the rest is lent by those whose guarantees lie idle, each as much
/// as it has idle.
fn lent(
    capacity: &Sums,
    used: &BTreeMap<String, Sums>,
    guaranteed: impl Fn(&str) -> Sums,
) -> BTreeMap<String, Sums> {
    let mut lent: BTreeMap<String, Sums> = used.keys().map(|name| (name.clone(), Sums::default())).collect();
    for resource in 0..RESOURCES {
        let idle = |name: &str, used: &Sums| guaranteed(name)[resource].saturating_sub(used[resource]);
        let all = |amount: &dyn Fn(&str, &Sums) -> u64| -> u64 {
            used.iter().map(|(name, used)| amount(name, used)).sum()
        };
        let borrowed = all(&|name, used| used[resource].saturating_sub(guaranteed(name)[resource]));
        let unpromised = capacity[resource].saturating_sub(all(&|name, _| guaranteed(name)[resource]));
        let all_idle = all(&idle);
        let all_lent = borrowed.saturating_sub(unpromised).min(all_idle);
        for (name, used) in used {
            let share = u128::from(all_lent) * u128::from(idle(name, used)) / u128::from(all_idle.max(1));
            if let Some(lent) = lent.get_mut(name) {
                lent[resource] = u64::try_from(share).unwrap_or(u64::MAX);
            }
        }
    }
    lent
}

fn kinds(nodes: &[Node]) -> HashMap<(&NodeName, u32), DeviceKind> {
    let devices = nodes.iter().flat_map(|node| node.devices.iter().map(move |device| (node, device)));
    devices.map(|(node, device)| ((&node.name, device.index), device.kind)).collect()
}

fn sums_of(grant: &Grant, kinds: &HashMap<(&NodeName, u32), DeviceKind>) -> Sums {
    let mut sums = [0, 0, grant.cpus.milli, grant.memory.0];
    for device in &grant.devices {
        // A device that is gone counts for nothing until it is back.
        if let Some(kind) = kinds.get(&(&grant.node, *device)) {
            sums[*kind as usize] += u64::from(grant.share);
        }
    }
    sums
}

fn held_by(job: &Job, kinds: &HashMap<(&NodeName, u32), DeviceKind>) -> Sums {
    let mut held = Sums::default();
    for worker in job.active().iter().flat_map(|attempt| &attempt.workers) {
        add(&mut held, &sums_of(&worker.grant, kinds));
    }
    held
}

/// Of what is on these nodes, as much as counts.
fn capacity(nodes: &[Node], has_node: impl Fn(&Node) -> bool, has_device: impl Fn(&Device) -> bool) -> Sums {
    let mut sums = Sums::default();
    for node in nodes.iter().filter(|node| has_node(node)) {
        add(&mut sums, &[0, 0, node.capacity.cpus.milli, node.capacity.memory.0]);
        for device in node.devices.iter().filter(|device| has_device(device)) {
            sums[device.kind as usize] += u64::from(danlu_types::device::WHOLE_DEVICE);
        }
    }
    sums
}

fn of_amounts(amounts: &Amounts) -> Sums {
    let devices = |count: Option<danlu_types::DeviceCount>| count.map_or(0, |count| u64::from(count.milli()));
    [
        devices(amounts.nvidia),
        devices(amounts.ascend),
        amounts.cpus.unwrap_or_default().milli,
        amounts.memory.unwrap_or_default().0,
    ]
}

fn add(sums: &mut Sums, more: &Sums) {
    for (sum, more) in sums.iter_mut().zip(more) {
        *sum = sum.saturating_add(*more);
    }
}

fn less(sums: &Sums, other: &Sums) -> Sums {
    std::array::from_fn(|resource| sums[resource].saturating_sub(other[resource]))
}

fn shown(sums: &Sums) -> AmountsUsed {
    let [nvidia, ascend, milli_cpus, bytes] = *sums;
    AmountsUsed {
        nvidia: nvidia as f64 / 1000.0,
        ascend: ascend as f64 / 1000.0,
        cpus: Cpus { milli: milli_cpus },
        memory: Bytes(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sums(nvidia: u64) -> Sums {
        [nvidia * 1000, 0, 0, 0]
    }

    /// Each workspace as (name, guaranteed, used), on so many devices; who lends what.
    fn lending(capacity: u64, workspaces: &[(&str, u64, u64)]) -> Vec<u64> {
        let used = workspaces.iter().map(|(name, _, used)| ((*name).to_owned(), sums(*used))).collect();
        let guaranteed = |name: &str| {
            workspaces.iter().find(|(other, _, _)| *other == name).map_or(Sums::default(), |w| sums(w.1))
        };
        lent(&sums(capacity), &used, guaranteed).values().map(|lent| lent[0] / 1000).collect()
    }

    #[test]
    fn what_is_promised_to_nobody_is_borrowed_first() {
        assert_eq!(lending(8, &[("a", 4, 0), ("b", 2, 4)]), [0, 0], "two devices are guaranteed to nobody");
        assert_eq!(lending(8, &[("a", 4, 0), ("b", 4, 6)]), [2, 0]);
        assert_eq!(lending(8, &[("a", 4, 4), ("b", 4, 4)]), [0, 0]);
        assert_eq!(lending(16, &[("a", 4, 0), ("b", 4, 2), ("c", 8, 11)]), [2, 1, 0]);
        assert_eq!(lending(8, &[("a", 0, 5)]), [0]);
    }
}
