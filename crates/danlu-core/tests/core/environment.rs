//! The whole environment of a rank, for the jobs people run.

use std::collections::BTreeMap;
use std::fmt::Write;

use danlu_core::launch::{Rendezvous, RunLayout, launch_file, rank_environment};
use danlu_core::{Event, Grant};
use danlu_types::{
    Bytes, Cpus, Device, DeviceCount, DeviceKind, DeviceRequest, Framework, Health, JobSpec, Node,
    NodeCapacity, NodeName, RanksPerWorker, Topology, Wiring, WorkerIndex,
};

use crate::builders::{after, submitted};

fn node(name: &str, kind: DeviceKind, model: &str) -> Node {
    let device = |index| Device {
        index,
        kind,
        model: model.to_owned(),
        memory: Bytes(64 << 30),
        island: 0,
        health: Health::Ok,
        wiring: Wiring::default(),
    };
    Node {
        name: NodeName(name.to_owned()),
        architecture: "x86_64".to_owned(),
        capacity: NodeCapacity { cpus: Cpus::whole(192), memory: Bytes(1 << 40) },
        devices: (0..16).map(device).collect(),
        address: "10.0.0.2".to_owned(),
        labels: BTreeMap::new(),
        cordoned: None,
        topology: Topology::default(),
        simulated: true,
    }
}

/// The environment of one rank of worker `worker`, which holds the given devices.
fn environment(spec: JobSpec, devices: &[u32], worker: u32, local_rank: usize, resume: bool) -> String {
    let kind = spec.devices.kind.unwrap_or(DeviceKind::Nvidia);
    let node = node("node-b", kind, "any");
    let grant = Grant {
        node: node.name.clone(),
        devices: devices.to_vec(),
        share: 1000,
        cpus: spec.cpus,
        memory: spec.memory.unwrap_or_default(),
    };
    let grants = vec![grant; spec.workers as usize];
    let job = after(&submitted(spec), [Event::Place { grants }]);
    let layout = RunLayout { data: "/var/lib/danlu".into() };
    let launch = launch_file(&job, job.active().unwrap(), WorkerIndex(worker), &node, &layout).unwrap();
    let rendezvous = Rendezvous { address: "10.0.0.1".to_owned(), port: 29500, resume };
    let mut out = String::new();
    for (name, value) in rank_environment(&launch, &rendezvous, &launch.ranks[local_rank]) {
        writeln!(out, "{name}={value}").unwrap();
    }
    out
}

fn job(workers: u32, framework: Framework, kind: Option<DeviceKind>, count: u32) -> JobSpec {
    let devices = DeviceRequest { kind, model: None, count: DeviceCount::whole(count) };
    JobSpec { name: "train".to_owned(), workers, framework, devices, ..JobSpec::of_command("true") }
}

macro_rules! assert_environment {
    ($environment:expr) => {
        let environment = $environment;
        insta::assert_snapshot!(environment);
    };
}

#[test]
fn one_process_on_processors_sees_no_device() {
    assert_environment!(environment(job(1, Framework::None, None, 0), &[], 0, 0, false));
}

#[test]
fn two_workers_of_two_ranks_on_processors() {
    let ranks = Some(RanksPerWorker::Count(2));
    let spec = JobSpec { ranks, cpus: Cpus::whole(8), ..job(2, Framework::None, None, 0) };
    assert_environment!(environment(spec, &[], 1, 1, false));
}

#[test]
fn pytorch_on_two_workers_of_eight_nvidia() {
    let spec = JobSpec { cpus: Cpus::whole(96), ..job(2, Framework::Pytorch, Some(DeviceKind::Nvidia), 8) };
    assert_environment!(environment(spec, &[0, 1, 2, 3, 4, 5, 6, 7], 1, 3, false));
}

#[test]
fn mindspore_on_two_workers_of_eight_ascend() {
    let spec = JobSpec { cpus: Cpus::whole(96), ..job(2, Framework::Mindspore, Some(DeviceKind::Ascend), 8) };
    assert_environment!(environment(spec, &[8, 9, 10, 11, 12, 13, 14, 15], 1, 3, true));
}

#[test]
fn the_users_own_variables_win_except_over_danlus() {
    let env = [("MASTER_PORT", "1234"), ("GLOG_v", "3"), ("DANLU_RANK", "9"), ("OMP_NUM_THREADS", "7")];
    let env = env.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    assert_environment!(environment(JobSpec { env, ..job(1, Framework::None, None, 0) }, &[], 0, 0, false));
}

#[test]
fn every_rank_of_a_job_has_a_number_of_its_own() {
    let spec = job(3, Framework::Pytorch, Some(DeviceKind::Nvidia), 4);
    let line = |worker, rank, name: &str| {
        let environment = environment(spec.clone(), &[0, 1, 2, 3], worker, rank, false);
        let start = format!("{name}=");
        environment.lines().find_map(|line| line.strip_prefix(&start).map(str::to_owned)).unwrap()
    };
    let ranks: Vec<String> = (0..3)
        .flat_map(|worker| (0..4).map(move |rank| (worker, rank)))
        .map(|(worker, rank)| line(worker, rank, "RANK"))
        .collect();
    assert_eq!(ranks, (0..12).map(|rank| rank.to_string()).collect::<Vec<_>>());
    assert_eq!(line(2, 3, "WORLD_SIZE"), "12");
}

#[test]
fn ranks_follow_the_alternative_that_was_granted() {
    let spec = || JobSpec {
        any_of: vec!["nvidia:8".parse().unwrap(), "nvidia:2".parse().unwrap()],
        ..job(2, Framework::Pytorch, None, 0)
    };
    let value = |devices: &[u32], name: &str| {
        let environment = environment(spec(), devices, 1, 1, false);
        let start = format!("{name}=");
        environment.lines().find_map(|line| line.strip_prefix(&start).map(str::to_owned)).unwrap()
    };
    assert_eq!(
        (value(&[0, 1, 2, 3, 4, 5, 6, 7], "WORLD_SIZE"), value(&[4, 5], "WORLD_SIZE")),
        ("16".into(), "4".into())
    );
    assert_eq!((value(&[4, 5], "RANK"), value(&[4, 5], "CUDA_VISIBLE_DEVICES")), ("3".into(), "4,5".into()));
}

#[test]
fn a_share_of_a_device_is_one_visible_device_and_one_rank() {
    let half = JobSpec { devices: "nvidia:0.5".parse().unwrap(), ..job(1, Framework::Pytorch, None, 0) };
    let environment = environment(half, &[3], 0, 0, false);
    for line in ["WORLD_SIZE=1", "CUDA_VISIBLE_DEVICES=3", "LOCAL_WORLD_SIZE=1"] {
        assert!(environment.lines().any(|found| found == line), "{line} is not in\n{environment}");
    }
}
