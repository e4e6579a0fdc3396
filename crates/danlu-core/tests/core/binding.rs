//! Ranks near their devices.

use std::collections::BTreeSet;

use danlu_core::launch::{LaunchFile, RunLayout, bind_ranks, launch_file, processor_list};
use danlu_core::{Grant, Trigger};
use danlu_types::{
    Bytes, Cpus, Device, DeviceKind, Framework, Health, JobSpec, Node, NodeCapacity, NodeName,
    RanksPerWorker, Topology, Wiring, WorkerIndex,
};

use crate::builders::{after, submitted};

/// Two memory nodes of 8 processors; devices 0 to 3 hang on the second, 4 to 7 on the first.
fn launch(cpus: u64, devices: &[u32], spec: JobSpec, numa: bool) -> LaunchFile {
    let device = |index| Device {
        index,
        kind: DeviceKind::Ascend,
        model: "910A".to_owned(),
        memory: Bytes(32 << 30),
        island: index / 4,
        health: Health::Ok,
        wiring: Wiring { numa: numa.then_some(1 - index / 4), ..Wiring::default() },
    };
    let lists = [(0, "0-3,8-11".to_owned()), (1, "4-7,12-15".to_owned())];
    let node = Node {
        name: NodeName("a".to_owned()),
        architecture: "aarch64".to_owned(),
        capacity: NodeCapacity { cpus: Cpus::whole(16), memory: Bytes(1 << 40) },
        devices: (0..8).map(device).collect(),
        address: "10.0.0.2".to_owned(),
        labels: [].into(),
        cordoned: None,
        topology: Topology { numa: if numa { lists.into() } else { [].into() }, super_pod: None },
        simulated: true,
        foreign: Vec::new(),
    };
    let spec = JobSpec { cpus: Cpus::whole(cpus), framework: Framework::Pytorch, ..spec };
    let grant = Grant {
        node: node.name.clone(),
        devices: devices.to_vec(),
        share: 1000,
        cpus: spec.cpus,
        memory: Bytes(0),
    };
    let job = after(&submitted(spec), [Trigger::Place { grants: vec![grant] }]);
    let layout = RunLayout { data: "/d".into() };
    launch_file(&job, job.active().unwrap(), WorkerIndex(0), &node, &layout).unwrap()
}

fn bindings(launch: &LaunchFile) -> String {
    let allowed: BTreeSet<usize> = (0..16).collect();
    let Some(sets) = bind_ranks(launch, &allowed) else { return "left to the kernel".to_owned() };
    let line = |(rank, set): (usize, &BTreeSet<usize>)| {
        let numbers: Vec<String> = set.iter().map(usize::to_string).collect();
        format!("rank {rank}: {}", numbers.join(" "))
    };
    sets.iter().enumerate().map(line).collect::<Vec<_>>().join("\n")
}

fn job() -> JobSpec {
    JobSpec { devices: "ascend:2".parse().unwrap(), ..JobSpec::of_command("true") }
}

#[test]
fn a_worker_with_part_of_the_machine_is_brought_near_its_devices() {
    insta::assert_snapshot!(bindings(&launch(4, &[3, 4], job(), true)), @r"
    rank 0: 4 5 6 7 12 13 14 15
    rank 1: 0 1 2 3 8 9 10 11
    ");
}

#[test]
fn a_worker_with_the_whole_machine_is_cut_into_even_pieces() {
    insta::assert_snapshot!(bindings(&launch(16, &[1, 3, 4, 5], job(), true)), @r"
    rank 0: 4 5 6 7
    rank 1: 12 13 14 15
    rank 2: 0 1 2 3
    rank 3: 8 9 10 11
    ");
    insta::assert_snapshot!(bindings(&launch(16, &[0, 1, 2], job(), false)), @r"
    rank 0: 0 1 2 3 4
    rank 1: 5 6 7 8 9
    rank 2: 10 11 12 13 14 15
    ");
}

#[test]
fn nobody_is_bound_where_pieces_would_be_anothers() {
    let left = "left to the kernel";
    assert_eq!(bindings(&launch(4, &[0, 1], job(), false)), left, "unknown, and others are there");
    assert_eq!(bindings(&launch(1, &[0, 1], job(), true)), left, "less than a processor each");
    assert_eq!(bindings(&launch(16, &[0, 1], JobSpec { binding: false, ..job() }, true)), left);
    let one = JobSpec { ranks: Some(RanksPerWorker::PerWorker), ..job() };
    assert_eq!(bindings(&launch(16, &[0, 4], one, true)), left, "one process for all devices");
}

#[test]
fn lists_of_the_kernel() {
    assert_eq!(processor_list("0-2,8, 10-11\n"), [0, 1, 2, 8, 10, 11].into());
    assert_eq!(processor_list(""), [].into());
    assert_eq!(processor_list("3-1,x,5,0-99999999999"), [5].into());
}
