//! What this machine can give to workers: processors, memory, devices.
//!
//! The figures are what Danlu itself may use, not what the hardware has: inside a container or under `taskset` a node
//! that promised more would start jobs that can never get it. Free amounts are not asked for: what jobs hold is the
//! scheduler's knowledge, and what other programs use changes from moment to moment.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use danlu_types::{Bytes, Cpus, Node, NodeCapacity, NodeName, Topology};

use crate::ascend;
use crate::machine::Machine;
use crate::nvml;
use crate::readings::Reader;

/// A machine, what could not be found out about it, and how to ask again how its devices are doing.
#[derive(Debug)]
pub struct Inventory {
    pub node: Node,
    /// For whoever runs the machine: why devices that they know of are not offered.
    pub remarks: Vec<String>,
    /// Why devices may be missing that a later look would find: a vendor's tool or driver did not answer, or not to the end.
    pub incomplete: Option<String>,
    pub reader: Reader,
}

/// This machine as a node of the local engine. Never fails: what cannot be found out is reported as small.
pub fn host() -> Node {
    look(Machine::this()).node
}

pub fn look(machine: Machine) -> Inventory {
    let mut remarks = Vec::new();
    let mut incomplete = None;
    let nvidia = match machine.nvml.then(nvml::Library::load) {
        Some(Ok(library)) => library,
        Some(Err(remark)) => {
            incomplete = Some(remark.clone());
            remarks.push(remark);
            None
        }
        None => None,
    };
    let mut devices = Vec::new();
    if let Some(library) = &nvidia {
        let (gpus, unanswered) = library.gpus();
        devices = nvml::devices(&gpus, &machine);
        remarks.extend(unanswered);
    }
    let nvidia = nvidia.filter(|_| !devices.is_empty());
    let mut ascend = ascend::look(&machine);
    remarks.append(&mut ascend.remarks);
    incomplete = incomplete.or(ascend.incomplete.take());
    if nvidia.is_some() && !ascend.devices.is_empty() {
        // Both count from 0, and a node's devices are told apart by their numbers.
        remarks.push(format!(
            "this machine has NVIDIA and Ascend devices; its {} Ascend devices are not offered",
            ascend.devices.len()
        ));
        ascend = ascend::Ascend::default();
    }
    devices.append(&mut ascend.devices);
    let node = Node {
        name: NodeName(host_name()),
        architecture: std::env::consts::ARCH.to_owned(),
        capacity: NodeCapacity { cpus: usable_cpus(), memory: usable_memory(&machine.root) },
        devices,
        address: "127.0.0.1".to_owned(),
        labels: BTreeMap::new(),
        cordoned: None,
        topology: Topology { numa: machine.numa_nodes(), super_pod: ascend.super_pod },
        simulated: false,
        foreign: Vec::new(),
    };
    Inventory { node, remarks, incomplete, reader: Reader { machine, nvidia, ascend: ascend.numbers } }
}

fn host_name() -> String {
    let name = nix::unistd::gethostname().unwrap_or_default();
    match name.to_string_lossy() {
        name if name.is_empty() => "localhost".to_owned(),
        name => name.into_owned(),
    }
}

/// Respects the affinity mask and, rounded down, the processor quota of the cgroup.
fn usable_cpus() -> Cpus {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    Cpus::whole(cores as u64)
}

/// The machine's memory, or the smallest limit of the cgroups around this process where that is less. `root` is `/`
/// outside tests.
fn usable_memory(root: &Path) -> Bytes {
    let total = fs::read_to_string(root.join("proc/meminfo")).ok().as_deref().and_then(memory_total);
    let limits = fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
    let limit = limits.lines().filter_map(|line| cgroup_memory_limit(root, line)).min();
    Bytes(total.into_iter().chain(limit).min().unwrap_or(0))
}

fn memory_total(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

/// The smallest memory limit on the way up from the group that one line of `/proc/self/cgroup` names.
///
/// In a container without a cgroup namespace the path is the host's and is missing under our mount. Its ancestors are
/// tried all the same, so the walk ends at the mount's own root, which is the container's group.
fn cgroup_memory_limit(root: &Path, line: &str) -> Option<u64> {
    let mut fields = line.splitn(3, ':').skip(1);
    let (controllers, path) = (fields.next()?, fields.next()?);
    let (mounts, file): (&[&str], _) = if controllers.is_empty() {
        (&["sys/fs/cgroup", "sys/fs/cgroup/unified"], "memory.max")
    } else if controllers.split(',').any(|controller| controller == "memory") {
        (&["sys/fs/cgroup/memory"], "memory.limit_in_bytes")
    } else {
        return None;
    };
    let inside = Path::new(path.trim_start_matches('/'));
    let limit_at = |mount: &str, group: &Path| {
        // `max`, the word for no limit, is no number.
        fs::read_to_string(root.join(mount).join(group).join(file)).ok()?.trim().parse().ok()
    };
    mounts.iter().flat_map(|mount| inside.ancestors().filter_map(|group| limit_at(mount, group))).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    const EIGHT_GIBIBYTES: (&str, &str) = ("proc/meminfo", "MemTotal:        8388608 kB\nMemFree: 1 kB\n");

    #[test]
    fn this_machine_has_processors_and_memory() {
        let host = host();
        assert!(host.capacity.cpus >= Cpus::whole(1));
        assert!(host.capacity.memory > Bytes(1 << 20));
        assert!(!host.name.0.is_empty() && !host.simulated);
    }

    #[test]
    fn memory_is_the_machines_where_no_group_limits_it() {
        let root = machine(&[
            EIGHT_GIBIBYTES,
            ("proc/self/cgroup", "0::/user.slice\n"),
            ("sys/fs/cgroup/user.slice/memory.max", "max\n"),
        ]);
        assert_eq!(usable_memory(root.path()), Bytes(8 << 30));
    }

    #[test]
    fn the_smallest_limit_of_the_groups_above_holds() {
        let root = machine(&[
            EIGHT_GIBIBYTES,
            ("proc/self/cgroup", "0::/a/b\n"),
            ("sys/fs/cgroup/a/memory.max", "1073741824\n"),
            ("sys/fs/cgroup/a/b/memory.max", "2147483648\n"),
        ]);
        assert_eq!(usable_memory(root.path()), Bytes(1 << 30));
    }

    #[test]
    fn a_container_without_its_own_view_of_cgroups_finds_its_limit_at_the_mount() {
        let root = machine(&[
            EIGHT_GIBIBYTES,
            ("proc/self/cgroup", "4:cpu,cpuacct:/docker/x\n3:memory:/docker/x\n0::/docker/x\n"),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "536870912\n"),
        ]);
        assert_eq!(usable_memory(root.path()), Bytes(512 << 20));
    }

    #[test]
    fn version_one_writes_no_limit_as_a_huge_number() {
        let root = machine(&[
            EIGHT_GIBIBYTES,
            ("proc/self/cgroup", "3:memory:/\n"),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"),
        ]);
        assert_eq!(usable_memory(root.path()), Bytes(8 << 30));
    }

    #[test]
    fn nothing_readable_is_reported_as_nothing() {
        assert_eq!(usable_memory(machine(&[]).path()), Bytes(0));
    }
}
