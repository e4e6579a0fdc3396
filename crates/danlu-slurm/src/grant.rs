//! Which worker one stands in, and which devices Slurm gave it.

use danlu_core::launch::HeldGres;
use danlu_types::Device;

use super::gres::{Gres, parse_gres};
use super::hostlist::expand;
use super::order::{AllocationRequest, RequestedWorker};

/// Where a process of an allocation finds itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskLocation {
    /// `SLURMD_NODENAME`.
    pub node: String,
    /// `SLURM_NODEID`: its node's number among those of the allocation.
    pub node_number: usize,
    /// `SLURM_LOCALID`: its number among those of the allocation on this node.
    pub local: usize,
    /// `CUDA_VISIBLE_DEVICES` as Slurm set it. Where a site shuts devices off with cgroups these are the numbers by which
    /// a program sees its own, and the others are not.
    pub visible: Option<String>,
}

impl TaskLocation {
    /// As Slurm says it in the environment of each process that it starts.
    pub fn from_environment(variable: impl Fn(&str) -> Option<String>) -> Self {
        let number = |name| variable(name).and_then(|text| text.parse().ok()).unwrap_or_default();
        TaskLocation {
            node: variable("SLURMD_NODENAME").unwrap_or_default(),
            node_number: number("SLURM_NODEID"),
            local: number("SLURM_LOCALID"),
            visible: variable("CUDA_VISIBLE_DEVICES"),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Granted<'a> {
    pub worker: &'a RequestedWorker,
    /// Its devices, with the numbers by which programs on the node know them.
    pub devices: Vec<Device>,
    /// The same by Slurm's count, where it has said that.
    pub held: Vec<HeldGres>,
}

/// `None` where the order has no worker for this place. `details` is what `scontrol --details show job` said.
///
/// Slurm decides which devices of a node a job gets; it hands out numbers only for those with device files. For the
/// others the planned ones are taken, which are nobody else's among Danlu's jobs unless Slurm has chosen the node too.
pub fn granted<'a>(order: &'a AllocationRequest, place: &TaskLocation, details: &str) -> Option<Granted<'a>> {
    let planned = match order.delegated {
        None => place.node.as_str(),
        Some(_) => order.nodes().get(place.node_number).copied()?,
    };
    let here = order.workers_on(planned);
    let worker = *here.get(place.local)?;
    let given = gres_on(details, &place.node);
    let (mut devices, mut held) = (Vec::new(), Vec::new());
    for need in &worker.needs {
        let needed = |other: &&RequestedWorker| -> usize {
            let same = other.needs.iter().filter(|it| it.label == need.label);
            same.map(|it| it.devices.len()).sum()
        };
        let before: usize = here[..place.local].iter().map(&needed).sum();
        let on_node: usize = here.iter().map(needed).sum();
        let all_visible =
            || place.visible.as_deref().filter(|_| need.label.split(':').next() == Some("gpu")).map(numbers);
        let listed = given.iter().filter(|gres| gres.label() == need.label || gres.name == need.label);
        let listed: Vec<u32> = listed.flat_map(|gres| gres.indices.clone()).collect();
        let visible = all_visible().filter(|all| all.len() == on_node);
        let own = |numbers: &Vec<u32>| numbers.get(before..before + need.devices.len()).map(<[u32]>::to_vec);
        let by_slurm = own(&listed).or_else(|| visible.as_ref().and_then(own));
        held.extend(by_slurm.map(|indices| HeldGres { label: need.label.clone(), indices }));
        let own = own(visible.as_ref().unwrap_or(&listed));
        for (at, device) in need.devices.iter().enumerate() {
            let index = own.as_ref().map_or(device.index.saturating_sub(need.first), |own| own[at]);
            devices.push(Device { index, ..device.clone() });
        }
    }
    Some(Granted { worker, devices, held })
}

/// What the job has on a node: from lines such as `Nodes=n[1-2] CPU_IDs=0-3 Mem=400 GRES=gpu:a100:2(IDX:0-1)`.
fn gres_on(details: &str, node: &str) -> Vec<Gres> {
    for line in details.lines() {
        let mut words = line.split_whitespace();
        let Some(nodes) = words.next().and_then(|word| word.strip_prefix("Nodes=")) else { continue };
        if !expand(nodes).is_some_and(|nodes| nodes.iter().any(|name| name == node)) {
            continue;
        }
        let gres =
            words.find_map(|word| word.strip_prefix("GRES=").or_else(|| word.strip_prefix("GRES_IDX=")));
        return gres.map(parse_gres).unwrap_or_default();
    }
    Vec::new()
}

fn numbers(text: &str) -> Vec<u32> {
    let numbers: Option<Vec<u32>> = text.split(',').map(|part| part.trim().parse().ok()).collect();
    numbers.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use danlu_types::{Bytes, DeviceKind, Health, Wiring};
    use proptest::prelude::*;

    use super::super::order::{GresNeed, order_of};
    use super::*;

    // As Slurm 22.05 says it of a job on three nodes, two of which got the same.
    const DETAILS: &str = "JobId=17 JobName=danlu-7.1-ab\n   NumNodes=3 NumCPUs=6 NumTasks=6 CPUs/Task=1\n   \
        JOB_GRES=gpu:a100:12\n     Nodes=n[1-2] CPU_IDs=0-1 Mem=200 GRES=gpu:a100:4(IDX:0-1,6-7),npu:910b:2(IDX:3,5)\n     \
        Nodes=n3 CPU_IDs=0-1 Mem=200 GRES=gpu:a100:4(IDX:2-5)\n   Command=(null)\n";

    fn need(label: &str, kind: DeviceKind, planned: &[u32], first: u32) -> GresNeed {
        let device = |index: &u32| Device {
            index: *index,
            kind,
            model: "any".to_owned(),
            memory: Bytes(0),
            island: 0,
            health: Health::Ok,
            wiring: Wiring::default(),
        };
        GresNeed { label: label.to_owned(), devices: planned.iter().map(device).collect(), first }
    }

    fn order(needs: impl Fn(u32) -> Vec<GresNeed>) -> AllocationRequest {
        let worker = |index: u32| RequestedWorker {
            worker: format!("7.1.{index}").parse().unwrap(),
            node: format!("n{}", index / 2 + 1),
            run: "/run".into(),
            needs: needs(index),
        };
        order_of((0..6).map(worker).collect())
    }

    fn shown(order: &AllocationRequest, details: &str, visible: Option<&str>) -> String {
        let mut lines = Vec::new();
        for (node_number, node) in ["n1", "n2", "n3", "n4"].into_iter().enumerate() {
            for local in 0..3 {
                let (node, visible) = (node.to_owned(), visible.map(str::to_owned));
                let place = TaskLocation { node, node_number, local, visible };
                let Some(found) = granted(order, &place, details) else { continue };
                let devices: Vec<u32> = found.devices.iter().map(|device| device.index).collect();
                lines.push(format!("{}/{local}: {} {devices:?}", place.node, found.worker.worker));
            }
        }
        lines.join("\n")
    }

    #[test]
    fn workers_on_one_node_share_what_slurm_gave_it() {
        let order = order(|_| vec![need("gpu:a100", DeviceKind::Nvidia, &[0, 1], 0)]);
        insta::assert_snapshot!(shown(&order, DETAILS, None), @r"
        n1/0: 7.1.0 [0, 1]
        n1/1: 7.1.1 [6, 7]
        n2/0: 7.1.2 [0, 1]
        n2/1: 7.1.3 [6, 7]
        n3/0: 7.1.4 [2, 3]
        n3/1: 7.1.5 [4, 5]
        ");
    }

    #[test]
    fn where_slurm_gives_no_numbers_the_planned_ones_count() {
        let order = order(|index| vec![need("npu:910b", DeviceKind::Ascend, &[8 + index], 8)]);
        insta::assert_snapshot!(shown(&order, DETAILS, None), @r"
        n1/0: 7.1.0 [3]
        n1/1: 7.1.1 [5]
        n2/0: 7.1.2 [3]
        n2/1: 7.1.3 [5]
        n3/0: 7.1.4 [4]
        n3/1: 7.1.5 [5]
        ");
    }

    #[test]
    fn what_programs_see_goes_before_what_slurm_counts() {
        let order = order(|_| vec![need("gpu:a100", DeviceKind::Nvidia, &[0, 1], 0)]);
        let seen = shown(&order, DETAILS, Some("0,1,2,3"));
        assert!(seen.starts_with("n1/0: 7.1.0 [0, 1]\nn1/1: 7.1.1 [2, 3]"), "{seen}");
        // Names of devices are none of ours to hand on.
        assert_eq!(shown(&order, DETAILS, Some("GPU-1,GPU-2,GPU-3,GPU-4")), shown(&order, DETAILS, None));
    }

    #[test]
    fn where_slurm_chose_the_nodes_their_order_says_who_one_is() {
        let workers = order(|_| vec![need("gpu:a100", DeviceKind::Nvidia, &[4, 5], 0)]);
        let order = AllocationRequest { delegated: Some(super::super::Delegated::default()), ..workers };
        let place = |node_number, node: &str, local| {
            let (node, visible) = (node.to_owned(), Some("0,1,2,3".to_owned()));
            TaskLocation { node, node_number, local, visible }
        };
        let shown = |place: TaskLocation| {
            let found = granted(&order, &place, DETAILS)?;
            let devices: Vec<u32> = found.devices.iter().map(|device| device.index).collect();
            let held: Vec<String> =
                found.held.iter().map(|held| format!("{} {:?}", held.label, held.indices)).collect();
            Some(format!("{} sees {devices:?}, holds {}", found.worker.worker, held.join(" ")))
        };
        // Planned for n1, n2 and n3.
        insta::assert_snapshot!(shown(place(0, "n3", 1)).unwrap(), @"7.1.1 sees [2, 3], holds gpu:a100 [4, 5]");
        insta::assert_snapshot!(shown(place(2, "n1", 0)).unwrap(), @"7.1.4 sees [0, 1], holds gpu:a100 [0, 1]");
        assert_eq!(shown(place(3, "n1", 0)), None, "there are three");
    }

    proptest! {
        #[test]
        fn no_answer_is_too_strange(details in "(.|\n){0,200}", visible in ".{0,40}", local in 0_usize..4) {
            let order = order(|_| vec![need("gpu:a100", DeviceKind::Nvidia, &[0, 1], 0)]);
            let place = TaskLocation { node: "n1".to_owned(), node_number: 0, local, visible: Some(visible) };
            if let Some(found) = granted(&order, &place, &details) {
                prop_assert_eq!(found.devices.len(), 2);
            }
        }
    }
}
