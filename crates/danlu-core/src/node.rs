//! What is known of a node beyond what its engine says: that an administrator wants it left alone, that a device of it
//! keeps failing the jobs it is given to.

use std::collections::{BTreeMap, BTreeSet};

use danlu_types::{AttemptNumber, Device, Health, JobId, Node, NodeName, Reading};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::job::{AttemptEnd, FailureCause, Job};

mod outside;

pub use outside::{OwnUse, SETTLING, outside_use};

/// So many attempts have to fail on a device, within [`WITHIN`], before it is taken out of service. They have to be of several
/// people, and the device's own readings bad: what a program prints is no proof, and anybody may print it.
pub const FAILURES: usize = 3;
pub const OWNERS: usize = 2;
pub const WITHIN: SignedDuration = SignedDuration::from_hours(24);

/// Kept in the store, and laid over the engine's inventory.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct NodeOverride {
    /// Why nothing new may start there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cordoned: Option<String>,
    /// Devices that nobody is given, with the reason.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub out_of_service: BTreeMap<u32, String>,
    /// When a person put a device back; what failed before that no longer counts.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub restored: BTreeMap<u32, Timestamp>,
}

/// How devices are doing, by their node and their number on it.
pub type Readings = BTreeMap<NodeName, BTreeMap<u32, Reading>>;

impl NodeOverride {
    pub fn is_empty(&self) -> bool {
        *self == NodeOverride::default()
    }

    /// The node as schedulers are to see it.
    pub fn lay_over(&self, node: &mut Node) {
        if let Some(why) = &self.cordoned {
            node.cordoned = Some(why.clone());
        }
        for device in node.devices.iter_mut().filter(|device| self.out_of_service.contains_key(&device.index))
        {
            device.health = Health::Failed;
        }
    }
}

/// An attempt that a device error ended, with the devices of the worker that met it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceFailure {
    pub job: JobId,
    pub owner: String,
    pub attempt: AttemptNumber,
    pub at: Timestamp,
    pub node: NodeName,
    pub devices: Vec<u32>,
}

/// The device errors among a job's attempts.
pub fn device_failures(job: &Job) -> impl Iterator<Item = DeviceFailure> + '_ {
    job.past.iter().filter_map(|past| {
        let AttemptEnd::Failed { worker, failure } = &past.verdict else { return None };
        let grant = &past.attempt.workers.get(worker.0 as usize)?.grant;
        (failure.cause == FailureCause::DeviceError).then(|| DeviceFailure {
            job: job.id,
            owner: job.owner.clone(),
            attempt: past.attempt.number,
            at: past.ended_at,
            node: grant.node.clone(),
            devices: grant.devices.clone(),
        })
    })
}

/// The devices that have failed too often lately and still are in service, each with the reason to take it out.
pub fn worn_out(
    failures: &[DeviceFailure],
    notes: &BTreeMap<NodeName, NodeOverride>,
    nodes: &[Node],
    now: Timestamp,
) -> Vec<(NodeName, u32, String)> {
    let since = now.checked_sub(WITHIN).unwrap_or(Timestamp::MIN);
    let mut counts: BTreeMap<(&NodeName, u32), Vec<&DeviceFailure>> = BTreeMap::new();
    let is_ill = |name: &NodeName, index: u32| {
        let node = nodes.iter().find(|node| node.name == *name);
        let device = node.and_then(|node| node.devices.iter().find(|device| device.index == index));
        device.is_some_and(|device| device.health != Health::Ok)
    };
    for failure in failures.iter().filter(|failure| failure.at >= since) {
        let note = notes.get(&failure.node);
        for device in &failure.devices {
            let is_out = note.is_some_and(|note| note.out_of_service.contains_key(device));
            let is_forgiven =
                note.and_then(|note| note.restored.get(device)).is_some_and(|at| *at >= failure.at);
            if !is_out && !is_forgiven {
                counts.entry((&failure.node, *device)).or_default().push(failure);
            }
        }
    }
    let owners = |failures: &[&DeviceFailure]| {
        failures.iter().map(|failure| &failure.owner).collect::<BTreeSet<_>>().len()
    };
    let worn = counts.into_iter().filter(|((node, device), failures)| {
        failures.len() >= FAILURES && owners(failures) >= OWNERS && is_ill(node, *device)
    });
    worn.map(|((node, device), failures)| {
        let mut jobs: Vec<JobId> = failures.iter().map(|failure| failure.job).collect();
        let attempts = jobs.len();
        jobs.dedup();
        let jobs: Vec<String> = jobs.iter().map(ToString::to_string).collect();
        let why = format!(
            "its readings are bad, and {attempts} attempts on it ended with a device error within a day: of jobs {}",
            jobs.join(", ")
        );
        (node.clone(), device, why)
    })
    .collect()
}

/// The devices that live attempts hold, by node.
pub fn devices_held<'a>(jobs: impl Iterator<Item = &'a Job>) -> BTreeMap<NodeName, BTreeSet<u32>> {
    let mut held: BTreeMap<NodeName, BTreeSet<u32>> = BTreeMap::new();
    for worker in jobs.filter_map(Job::active).flat_map(|attempt| &attempt.workers) {
        held.entry(worker.grant.node.clone()).or_default().extend(&worker.grant.devices);
    }
    held
}

/// When attempts that have ended gave each device back, the last of them.
pub fn devices_released<'a>(jobs: impl Iterator<Item = &'a Job>) -> BTreeMap<(NodeName, u32), Timestamp> {
    let mut released: BTreeMap<(NodeName, u32), Timestamp> = BTreeMap::new();
    for past in jobs.flat_map(|job| &job.past) {
        for grant in past.attempt.workers.iter().map(|worker| &worker.grant) {
            for device in &grant.devices {
                let last = released.entry((grant.node.clone(), *device)).or_insert(past.ended_at);
                *last = past.ended_at.max(*last);
            }
        }
    }
    released
}

/// Moves what others hold off the devices that jobs of ours hold, to others of the same model. The cluster decides which
/// device is whose when a job starts, so that ours may have been planned on one that it gave to somebody else, and has
/// another; how many are left is true only if each counts once.
pub fn keep_apart(node: &mut Node, ours: &BTreeSet<u32>) {
    let mut taken = ours.clone();
    for hold in &node.foreign {
        taken.extend(&hold.devices);
    }
    let mut given: BTreeSet<u32> = ours.clone();
    for hold in &mut node.foreign {
        let mut devices = Vec::with_capacity(hold.devices.len());
        for index in &hold.devices {
            let is_free = given.insert(*index);
            let mut alike = || {
                let wanted = node.devices.iter().find(|device| device.index == *index)?;
                let same = |device: &&Device| device.kind == wanted.kind && device.model == wanted.model;
                let mut free = node.devices.iter().rev().filter(same).map(|device| device.index);
                free.find(|other| taken.insert(*other))
            };
            let kept = if is_free { Some(*index) } else { alike() };
            given.extend(kept);
            devices.extend(kept);
        }
        devices.sort_unstable();
        hold.devices = devices;
    }
}

/// The nodes as a newer inventory has them, and the names of those that differ: opened, closed, new, or held by others.
/// What a node has is not changed under jobs that run there; one that is missing is closed.
#[must_use]
pub fn renewed(nodes: &[Node], inventory: Vec<Node>) -> (Vec<Node>, Vec<NodeName>) {
    let mut found: BTreeMap<NodeName, Node> =
        inventory.into_iter().map(|node| (node.name.clone(), node)).collect();
    let missing = || Some("it is missing from the engine's last inventory".to_owned());
    let mut renewed = Vec::with_capacity(nodes.len());
    let mut changed = Vec::new();
    for node in nodes {
        let new = match found.remove(&node.name) {
            Some(found) => following(node, found),
            None => Node { cordoned: missing(), ..node.clone() },
        };
        if new != *node {
            changed.push(node.name.clone());
        }
        renewed.push(new);
    }
    changed.extend(found.keys().cloned());
    renewed.extend(found.into_values());
    (renewed, changed)
}

/// The node as the inventory has it now. Inventories know nothing of the health that devices were read to have.
fn following(node: &Node, found: Node) -> Node {
    let health = |device: &Device| {
        let same =
            |old: &&Device| (old.index, old.kind, &old.model) == (device.index, device.kind, &device.model);
        node.devices.iter().find(same).map(|old| old.health)
    };
    let devices = found.devices.iter().map(|device| {
        let read = health(device).filter(|_| device.health == Health::Ok);
        Device { health: read.unwrap_or(device.health), ..device.clone() }
    });
    let devices = devices.collect();
    Node { devices, ..found }
}

/// The nodes when nobody can tell how devices are doing: those that exist are unknown, and given to nobody until they are read
/// again.
#[must_use]
pub fn without_readings(mut nodes: Vec<Node>) -> Vec<Node> {
    for node in nodes.iter_mut().filter(|node| !node.simulated) {
        for device in &mut node.devices {
            device.health = Health::Unknown;
        }
    }
    nodes
}

/// The nodes with their devices as healthy as they were just read to be. A device that is not among the readings of its
/// node did not answer, and is given to nobody until it does; nodes without readings stay as they are.
#[must_use]
pub fn with_readings(mut nodes: Vec<Node>, readings: &Readings) -> Vec<Node> {
    for node in &mut nodes {
        let Some(readings) = readings.get(&node.name) else { continue };
        for device in &mut node.devices {
            device.health = readings.get(&device.index).map_or(Health::Failed, |reading| reading.health);
        }
    }
    nodes
}

#[cfg(test)]
mod tests {
    use danlu_types::{Bytes, Cpus, DeviceKind, ForeignHold, ForeignKind, NodeCapacity, Topology, Wiring};

    use super::*;

    #[test]
    fn a_device_is_as_healthy_as_it_was_read_to_be_and_failed_if_it_does_not_answer() {
        let device = |index| Device {
            index,
            kind: DeviceKind::Ascend,
            model: "910B3".to_owned(),
            memory: Bytes(0),
            island: 0,
            health: Health::Ok,
            wiring: Wiring::default(),
        };
        let node = |name: &str| Node {
            name: NodeName(name.to_owned()),
            architecture: "aarch64".to_owned(),
            capacity: NodeCapacity { cpus: Cpus::whole(1), memory: Bytes(0) },
            devices: (0..3).map(device).collect(),
            labels: BTreeMap::new(),
            cordoned: None,
            address: "127.0.0.1".to_owned(),
            topology: Topology::default(),
            simulated: false,
            foreign: Vec::new(),
        };
        let ill = Reading { health: Health::Warning, ..Reading::default() };
        let of_a = BTreeMap::from([(0, Reading::default()), (1, ill)]);
        let readings = Readings::from([(NodeName("a".to_owned()), of_a)]);
        let read = with_readings(vec![node("a"), node("b")], &readings);
        let health: Vec<_> = read[0].devices.iter().map(|device| device.health).collect();
        assert_eq!(health, [Health::Ok, Health::Warning, Health::Failed]);
        assert_eq!(read[1], node("b"), "nothing was read of it");
    }

    #[test]
    fn what_others_hold_is_counted_beside_ours() {
        let device = |index| Device {
            index,
            kind: DeviceKind::Nvidia,
            model: if index < 8 { "A100" } else { "V100" }.to_owned(),
            memory: Bytes(0),
            island: 0,
            health: Health::Ok,
            wiring: Wiring::default(),
        };
        let hold = |job: &str, devices: &[u32]| ForeignHold {
            kind: ForeignKind::ClusterJob,
            job: job.to_owned(),
            name: String::new(),
            user: String::new(),
            devices: devices.to_vec(),
            cpus: Cpus::default(),
            memory: Bytes(0),
            until: None,
        };
        let apart = |foreign: Vec<ForeignHold>, ours: &[u32]| {
            let mut node = Node {
                name: NodeName("a".to_owned()),
                architecture: String::new(),
                capacity: NodeCapacity { cpus: Cpus::whole(1), memory: Bytes(0) },
                devices: (0..10).map(device).collect(),
                labels: BTreeMap::new(),
                cordoned: None,
                address: String::new(),
                topology: Topology::default(),
                simulated: false,
                foreign,
            };
            keep_apart(&mut node, &ours.iter().copied().collect());
            node.foreign.into_iter().map(|hold| hold.devices).collect::<Vec<_>>()
        };
        assert_eq!(apart(vec![hold("1", &[0, 1]), hold("2", &[2])], &[4, 5]), [vec![0, 1], vec![2]]);
        assert_eq!(apart(vec![hold("1", &[0, 1]), hold("2", &[2])], &[0, 2]), [vec![1, 7], vec![6]]);
        assert_eq!(apart(vec![hold("1", &[0, 1, 2, 3, 4, 5])], &[0, 1]), [vec![2, 3, 4, 5, 6, 7]]);
        assert_eq!(apart(vec![hold("1", &[8, 9])], &[8]), [vec![9]], "another model is no room for it");
        assert_eq!(apart(vec![hold("1", &[3]), hold("2", &[3])], &[]), [vec![3], vec![7]]);
    }

    fn hours(hours: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_hours(hours)
    }

    fn failure(job: u64, hour: i64, devices: &[u32]) -> DeviceFailure {
        let node = NodeName("a".to_owned());
        DeviceFailure {
            job: JobId(job),
            owner: if job == 1 { "amy" } else { "bob" }.to_owned(),
            attempt: AttemptNumber(1),
            at: hours(hour),
            node,
            devices: devices.to_vec(),
        }
    }

    fn ill_node(health: Health) -> Node {
        let device = |index| Device {
            index,
            kind: DeviceKind::Ascend,
            model: "910B3".to_owned(),
            memory: Bytes(0),
            island: 0,
            health,
            wiring: Wiring::default(),
        };
        Node {
            name: NodeName("a".to_owned()),
            architecture: String::new(),
            capacity: NodeCapacity { cpus: Cpus::whole(1), memory: Bytes(0) },
            devices: (0..3).map(device).collect(),
            labels: BTreeMap::new(),
            cordoned: None,
            address: String::new(),
            topology: Topology::default(),
            simulated: false,
            foreign: Vec::new(),
        }
    }

    #[test]
    fn issue_15_what_programs_print_never_condemns_a_device() {
        let failures = [failure(1, 0, &[1]), failure(2, 1, &[1]), failure(3, 2, &[1])];
        let notes = BTreeMap::new();
        let well = [ill_node(Health::Ok)];
        assert_eq!(worn_out(&failures, &notes, &well, hours(3)), [], "the device itself is well");
        let of_one = [failure(2, 0, &[1]), failure(3, 1, &[1]), failure(4, 2, &[1])];
        let ill = [ill_node(Health::Warning)];
        assert_eq!(worn_out(&of_one, &notes, &ill, hours(3)), [], "all are of one person");
        assert_eq!(worn_out(&failures, &notes, &ill, hours(3)).len(), 1);
    }

    fn worn(failures: &[DeviceFailure], note: NodeOverride, hour: i64) -> Vec<u32> {
        let notes = BTreeMap::from([(NodeName("a".to_owned()), note)]);
        worn_out(failures, &notes, &[ill_node(Health::Warning)], hours(hour))
            .into_iter()
            .map(|(_, device, _)| device)
            .collect()
    }

    #[test]
    fn a_device_that_fails_three_attempts_in_a_day_is_worn_out() {
        let failures = [failure(1, 0, &[0, 1]), failure(2, 5, &[1, 2]), failure(3, 23, &[1])];
        assert_eq!(worn(&failures, NodeOverride::default(), 23), [1]);
        assert_eq!(worn(&failures, NodeOverride::default(), 25), [0; 0], "the first is more than a day ago");
        assert_eq!(worn(&failures[..2], NodeOverride::default(), 23), [0; 0]);
        let ill = [ill_node(Health::Warning)];
        let reason = &worn_out(&failures, &BTreeMap::new(), &ill, hours(23))[0].2;
        insta::assert_snapshot!(reason, @"its readings are bad, and 3 attempts on it ended with a device error within a day: of jobs 1, 2, 3");
    }

    #[test]
    fn a_newer_inventory_opens_and_closes_nodes_and_forgets_none() {
        let node = |name: &str, cordoned: Option<&str>| Node {
            name: NodeName(name.to_owned()),
            architecture: String::new(),
            capacity: danlu_types::NodeCapacity {
                cpus: danlu_types::Cpus::whole(1),
                memory: danlu_types::Bytes(1),
            },
            devices: Vec::new(),
            labels: BTreeMap::new(),
            cordoned: cordoned.map(str::to_owned),
            address: String::new(),
            topology: danlu_types::Topology::default(),
            simulated: false,
            foreign: Vec::new(),
        };
        let before = [node("a", None), node("b", Some("drained")), node("c", None), node("d", None)];
        let after = vec![node("e", None), node("d", None), node("b", None), node("a", Some("down"))];
        let (nodes, changed) = renewed(&before, after);
        let shown: Vec<String> = nodes
            .iter()
            .map(|node| format!("{}: {}", node.name, node.cordoned.as_deref().unwrap_or("open")))
            .collect();
        insta::assert_snapshot!(shown.join("\n"), @r"
        a: down
        b: open
        c: it is missing from the engine's last inventory
        d: open
        e: open
        ");
        let changed: Vec<&str> = changed.iter().map(|name| name.0.as_str()).collect();
        assert_eq!(changed, ["a", "b", "c", "e"]);
    }

    #[test]
    fn what_a_node_has_is_followed_and_the_health_of_its_devices_is_kept() {
        let device = |index, health| Device {
            index,
            kind: DeviceKind::Nvidia,
            model: "A100".to_owned(),
            memory: Bytes(0),
            island: 0,
            health,
            wiring: Wiring::default(),
        };
        let node = |devices: Vec<Device>, rack: &str, cpus| Node {
            name: NodeName("a".to_owned()),
            architecture: String::new(),
            capacity: NodeCapacity { cpus: Cpus::whole(cpus), memory: Bytes(0) },
            devices,
            labels: [("rack".to_owned(), rack.to_owned())].into(),
            cordoned: None,
            address: String::new(),
            topology: Topology::default(),
            simulated: false,
            foreign: Vec::new(),
        };
        let before = [node(vec![device(0, Health::Failed), device(1, Health::Ok)], "r1", 8)];
        let after = node(vec![device(0, Health::Ok)], "r9", 4);
        let (nodes, changed) = renewed(&before, vec![after]);
        assert_eq!(nodes, [node(vec![device(0, Health::Failed)], "r9", 4)]);
        assert_eq!(changed.len(), 1);
    }

    #[test]
    fn what_is_out_stays_as_it_is_and_what_was_put_back_starts_anew() {
        let failures = [failure(1, 0, &[1]), failure(2, 5, &[1]), failure(3, 6, &[1])];
        let out = NodeOverride { out_of_service: [(1, "why".to_owned())].into(), ..NodeOverride::default() };
        assert_eq!(worn(&failures, out, 7), [0; 0]);
        let restored = NodeOverride { restored: [(1, hours(5))].into(), ..NodeOverride::default() };
        assert_eq!(worn(&failures, restored, 7), [0; 0]);
    }
}
