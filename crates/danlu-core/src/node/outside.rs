//! Devices that are in use by processes outside Danlu, told from readings.
//!
//! A device in the hands of a live attempt is never judged: whatever runs there, no other job gets it. On a device that nobody
//! holds, every process is an outside one, except what a job of ours may have left for a moment: for [`SETTLING`] after a
//! release, only a process counts that can be looked into and belongs to no job. A false alarm would keep devices idle, so what
//! is not certain is given that time.

use std::collections::{BTreeMap, BTreeSet};

use danlu_types::{
    Bytes, Cpus, Device, DeviceKind, DeviceProcess, Family, ForeignHold, ForeignKind, JobId, Node, NodeName,
    Reading,
};
use jiff::{SignedDuration, Timestamp};

/// How long after a job's end its processes may still be listed, and its memory still be counted: readings are a few seconds
/// old, and drivers take their time to free what a killed process had.
pub const SETTLING: SignedDuration = SignedDuration::from_secs(15);

/// Drivers and their firmware use some memory of an idle device: 3.3 of 64 GiB on a 910B, half a gibibyte on an NVIDIA device.
const IDLE_SHARE: u64 = 8;
const IDLE_LEAST: Bytes = Bytes(4 << 30);

/// What the server knows of its own jobs.
#[derive(Debug, Clone, Default)]
pub struct OwnUse {
    /// The devices that live attempts hold.
    pub held: BTreeMap<NodeName, BTreeSet<u32>>,
    /// The jobs with a live attempt.
    pub live: BTreeSet<JobId>,
    /// When an attempt last gave a device back.
    pub released: BTreeMap<(NodeName, u32), Timestamp>,
}

/// Who uses devices of the node that no job holds, each user once, ordered by process.
#[must_use]
pub fn outside_use(
    node: &Node,
    readings: &BTreeMap<u32, Reading>,
    own: &OwnUse,
    now: Timestamp,
) -> Vec<ForeignHold> {
    let held = own.held.get(&node.name);
    let mut found: BTreeMap<(ForeignKind, i32), ForeignHold> = BTreeMap::new();
    for device in &node.devices {
        let Some(reading) = readings.get(&device.index) else { continue };
        if held.is_some_and(|held| held.contains(&device.index)) {
            continue;
        }
        let released = own.released.get(&(node.name.clone(), device.index));
        let is_settling = released.is_some_and(|at| now.duration_since(*at) < SETTLING);
        let outside = |process: &&DeviceProcess| match process.job {
            Some(job) => !own.live.contains(&job) && !is_settling,
            None => process.user.is_some() || !is_settling,
        };
        let mut add = |kind, pid: i32, name: &str, user: &str| {
            let job = if kind == ForeignKind::Process { pid.to_string() } else { String::new() };
            let hold = found.entry((kind, pid)).or_insert_with(|| ForeignHold {
                kind,
                job,
                name: name.to_owned(),
                user: user.to_owned(),
                devices: Vec::new(),
                cpus: Cpus::default(),
                memory: Bytes(0),
                until: None,
            });
            if !hold.devices.contains(&device.index) {
                hold.devices.push(device.index);
            }
        };
        for process in reading.processes.iter().filter(outside) {
            let user = process.user.as_deref().unwrap_or("another container");
            add(ForeignKind::Process, process.pid, &process.name, user);
        }
        if reading.processes.is_empty() && !is_settling && is_memory_in_use(device, reading) {
            add(ForeignKind::UnknownProcess, 0, "unknown process", "unknown");
        }
    }
    found.into_values().collect()
}

/// More than an idle device uses. The small chips are not judged by it: their memory is that of the little computer on the card.
fn is_memory_in_use(device: &Device, reading: &Reading) -> bool {
    let is_small = device.kind == DeviceKind::Ascend
        && matches!(Family::of(&device.model), Some(Family::Small | Family::Inference) | None);
    let idle = Bytes(device.memory.0 / IDLE_SHARE).max(IDLE_LEAST);
    !is_small && device.memory.0 > 0 && reading.memory_used.is_some_and(|used| used > idle)
}

#[cfg(test)]
mod tests {
    use danlu_types::{Health, NodeCapacity, Topology, Wiring};

    use super::*;

    const GIB: u64 = 1 << 30;

    fn node(model: &str) -> Node {
        let device = |index| Device {
            index,
            kind: DeviceKind::Ascend,
            model: model.to_owned(),
            memory: Bytes(64 * GIB),
            island: 0,
            health: Health::Ok,
            wiring: Wiring::default(),
        };
        Node {
            name: NodeName("a".to_owned()),
            architecture: String::new(),
            capacity: NodeCapacity { cpus: Cpus::whole(1), memory: Bytes(0) },
            devices: (0..4).map(device).collect(),
            labels: BTreeMap::new(),
            cordoned: None,
            address: String::new(),
            topology: Topology::default(),
            simulated: false,
            foreign: Vec::new(),
        }
    }

    fn process(pid: i32, user: Option<&str>, job: Option<u64>) -> DeviceProcess {
        DeviceProcess {
            pid,
            name: "python".to_owned(),
            user: user.map(str::to_owned),
            memory: None,
            job: job.map(JobId),
        }
    }

    fn reading(processes: Vec<DeviceProcess>, gibibytes: u64) -> Reading {
        Reading { processes, memory_used: Some(Bytes(gibibytes * GIB)), ..Reading::default() }
    }

    fn shown(readings: &BTreeMap<u32, Reading>, own: &OwnUse, second: i64) -> String {
        let now = Timestamp::UNIX_EPOCH + SignedDuration::from_secs(second);
        let of =
            |hold: ForeignHold| format!("{} {} of {}: {:?}\n", hold.job, hold.name, hold.user, hold.devices);
        outside_use(&node("910B3"), readings, own, now).into_iter().map(of).collect()
    }

    #[test]
    fn issue_15_a_device_that_a_process_outside_danlu_uses_is_in_use_and_says_by_whom() {
        let readings = BTreeMap::from([
            (0, reading(vec![process(7, Some("eve"), None)], 30)),
            (1, reading(vec![process(7, Some("eve"), None), process(8, None, None)], 30)),
            (2, reading(Vec::new(), 20)),
            (3, reading(Vec::new(), 4)),
        ]);
        insta::assert_snapshot!(shown(&readings, &OwnUse::default(), 0), @r"
        7 python of eve: [0, 1]
        8 python of another container: [1]
         unknown process of unknown: [2]
        ");
    }

    #[test]
    fn our_own_processes_are_never_outside_ones() {
        let name = NodeName("a".to_owned());
        let own = OwnUse {
            held: BTreeMap::from([(name.clone(), BTreeSet::from([0]))]),
            live: BTreeSet::from([JobId(5)]),
            released: BTreeMap::from([((name, 2), Timestamp::UNIX_EPOCH)]),
        };
        let readings = BTreeMap::from([
            // Held: whatever is there, as the processes of a container whose environment nobody may read.
            (0, reading(vec![process(1, None, None), process(2, Some("amy"), None)], 60)),
            // Of a live job, on a device that it was not given.
            (1, reading(vec![process(3, Some("amy"), Some(5))], 1)),
            // Just given back: a process that is gone, one of the ended job.
            (2, reading(vec![process(4, None, None), process(5, Some("amy"), Some(4))], 60)),
        ]);
        assert_eq!(shown(&readings, &own, 1), "");
        // What is still there later does use the device.
        assert_eq!(shown(&readings, &own, 60), "4 python of another container: [2]\n5 python of amy: [2]\n");
    }

    #[test]
    fn an_outside_process_that_can_be_looked_into_counts_at_once_after_a_release() {
        let released = BTreeMap::from([((NodeName("a".to_owned()), 0), Timestamp::UNIX_EPOCH)]);
        let own = OwnUse { released, ..OwnUse::default() };
        let eve = BTreeMap::from([(0, reading(vec![process(7, Some("eve"), None)], 30))]);
        assert_eq!(shown(&eve, &own, 1), "7 python of eve: [0]\n");
        let memory = BTreeMap::from([(0, reading(Vec::new(), 30))]);
        assert_eq!(shown(&memory, &own, 1), "", "a driver takes its time to free memory");
    }

    #[test]
    fn memory_alone_says_nothing_of_small_chips() {
        let readings = BTreeMap::from([(0, reading(Vec::new(), 30))]);
        let now = Timestamp::UNIX_EPOCH;
        for small in ["310P3", "310", "310B4"] {
            assert_eq!(outside_use(&node(small), &readings, &OwnUse::default(), now), [], "{small}");
        }
    }
}
