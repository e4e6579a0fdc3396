//! What is remembered of Slurm's nodes between inventories.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use danlu_core::job::WorkerLocation;
use danlu_core::launch::GivenPlace;
use danlu_slurm::{GresSlot, HoldingJob, SlurmReservation, lay_over};
use danlu_types::{Node, NodeName};

/// Added to, never replaced: an answer that was cut off is no reason to forget a node.
#[derive(Debug, Default)]
pub(super) struct NodeCache(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    /// Which resource of Slurm's each device is.
    slots: BTreeMap<NodeName, Vec<GresSlot>>,
    addresses: BTreeMap<NodeName, String>,
    reservations: Vec<SlurmReservation>,
}

impl NodeCache {
    pub(super) fn learn(&self, (node, slots): (Node, Vec<GresSlot>)) -> Node {
        let mut known = self.lock();
        known.slots.insert(node.name.clone(), slots);
        known.addresses.insert(node.name.clone(), node.address.clone());
        node
    }

    pub(super) fn slots(&self, node: &NodeName) -> Option<Vec<GresSlot>> {
        self.lock().slots.get(node).cloned()
    }

    /// Those of the newest answer there was.
    pub(super) fn reservations(&self, answer: Option<Vec<SlurmReservation>>) -> Vec<SlurmReservation> {
        let mut known = self.lock();
        if let Some(answer) = answer {
            known.reservations = answer;
        }
        known.reservations.clone()
    }

    /// Whether Slurm will say which of such devices it gave.
    pub(super) fn are_numbered(&self, node: &NodeName, devices: &[u32]) -> bool {
        let known = self.lock();
        let slots = known.slots.get(node).map_or(&[][..], Vec::as_slice);
        let is_numbered = |index: &u32| {
            let holds =
                |slot: &&GresSlot| (slot.first..slot.first.saturating_add(slot.count)).contains(index);
            slots.iter().find(holds).is_some_and(|slot| slot.is_numbered)
        };
        devices.iter().all(is_numbered)
    }

    /// Of nodes that are not reached by their name.
    pub(super) fn addresses(&self) -> BTreeMap<String, String> {
        let known = self.lock();
        let others = known.addresses.iter().filter(|(name, address)| name.0 != **address);
        others.map(|(name, address)| (name.0.clone(), address.clone())).collect()
    }

    pub(super) fn lay_over(&self, nodes: &mut [Node], jobs: &[HoldingJob]) {
        lay_over(nodes, &self.lock().slots, jobs);
    }

    /// In Danlu's numbers; `None` for a node or a device that no inventory has had yet.
    pub(super) fn whereabouts(&self, place: GivenPlace) -> Option<WorkerLocation> {
        let known = self.lock();
        let slots = known.slots.get(&place.node)?;
        let mut devices = Vec::new();
        for held in &place.held {
            let slot = slots.iter().find(|slot| slot.label == held.label)?;
            for index in &held.indices {
                devices.push(Some(slot.first + index).filter(|_| *index < slot.count)?);
            }
        }
        devices.sort_unstable();
        Some(WorkerLocation { node: place.node, devices })
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use danlu_core::launch::HeldGres;

    use super::*;

    #[test]
    fn devices_have_the_numbers_of_their_own_node() {
        let known = NodeCache::default();
        let node = NodeName("n1".to_owned());
        let slot = |label: &str, first, count| GresSlot {
            label: label.to_owned(),
            first,
            count,
            is_numbered: first == 0,
        };
        known.lock().slots.insert(node.clone(), vec![slot("gpu:a100", 0, 8), slot("npu:910b", 8, 16)]);
        let place = |held: &[(&str, &[u32])]| GivenPlace {
            node: node.clone(),
            address: "n1".to_owned(),
            held: held
                .iter()
                .map(|(label, indices)| HeldGres { label: (*label).to_owned(), indices: indices.to_vec() })
                .collect(),
        };
        let devices = |held: &[(&str, &[u32])]| known.whereabouts(place(held)).map(|found| found.devices);
        assert_eq!(devices(&[("npu:910b", &[3, 15]), ("gpu:a100", &[7])]), Some(vec![7, 11, 23]));
        assert_eq!(devices(&[]), Some(Vec::new()));
        assert_eq!(devices(&[("npu:910b", &[16])]), None);
        assert_eq!(devices(&[("gpu:h100", &[0])]), None);
        assert!(known.are_numbered(&node, &[0, 7]) && known.are_numbered(&node, &[]));
        assert!(!known.are_numbered(&node, &[7, 8]), "the one has device files, the other has none");
    }
}
