//! The whole environment of a rank, for the jobs people run.

use std::collections::BTreeMap;
use std::fmt::Write;

use danlu_core::launch::{
    LaunchFile, Present, Rendezvous, RunLayout, launch_file, mpi_hostfile, pod_env, rank_environment,
    scheduler_environment,
};
use danlu_core::{Grant, Trigger};
use danlu_types::{
    Bytes, Compat, Cpus, Device, DeviceCount, DeviceKind, DeviceRequest, Framework, Health, JobSpec, Node,
    NodeCapacity, NodeName, RankTableUse, RanksPerWorker, Topology, Wiring, WorkerIndex,
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
        foreign: Vec::new(),
    }
}

/// The launch file of worker `worker`, which holds the given devices, and where it meets the others.
fn launch(spec: JobSpec, devices: &[u32], worker: u32, resume: bool) -> (LaunchFile, Rendezvous) {
    let kind = spec.devices.kind.unwrap_or(DeviceKind::Nvidia);
    let node = node("node-b", kind, "any");
    let grant = Grant {
        node: node.name.clone(),
        devices: devices.to_vec(),
        share: 1000,
        cpus: spec.cpus,
        memory: spec.memory.unwrap_or_default(),
    };
    let workers = spec.workers;
    let grants = vec![grant; workers as usize];
    let job = after(&submitted(spec), [Trigger::Place { grants }]);
    let layout = RunLayout { data: "/var/lib/danlu".into() };
    let launch = launch_file(&job, job.active().unwrap(), WorkerIndex(worker), &node, &layout).unwrap();
    let present = |index| Present {
        address: format!("10.0.0.{}", index + 1),
        port: 29500,
        node: None,
        super_pod: None,
        devices: Vec::new(),
    };
    let rendezvous = Rendezvous {
        address: "10.0.0.1".to_owned(),
        port: 29500,
        resume,
        workers: (0..launch.world_workers()).map(present).collect(),
        interface: Some("eth0".to_owned()),
        rank_table: None,
    };
    (launch, rendezvous)
}

fn lines(env: BTreeMap<String, String>) -> String {
    env.into_iter().fold(String::new(), |mut out, (name, value)| {
        writeln!(out, "{name}={value}").unwrap();
        out
    })
}

/// The environment of one rank of worker `worker`.
fn environment(spec: JobSpec, devices: &[u32], worker: u32, local_rank: usize, resume: bool) -> String {
    let (launch, rendezvous) = launch(spec, devices, worker, resume);
    lines(rank_environment(&launch, &rendezvous, &launch.ranks[local_rank]))
}

/// The environment of the last rank of the last worker for each kind of device and each size of job, without what is the
/// same for all of them.
fn environments(framework: Framework, change: impl Fn(JobSpec) -> JobSpec) -> String {
    let mut out = String::new();
    let kinds =
        [("Processors", None), ("NVIDIA", Some(DeviceKind::Nvidia)), ("Ascend", Some(DeviceKind::Ascend))];
    for (label, kind) in kinds {
        for (workers, count) in [(1, 1), (1, 8), (2, 8)] {
            if kind.is_none() && count > 1 && workers == 1 {
                continue;
            }
            let ranks = kind.is_none().then_some(RanksPerWorker::Count(count));
            let spec = JobSpec {
                cpus: Cpus::whole(96),
                ranks,
                ..job(workers, framework, kind, if kind.is_some() { count } else { 0 })
            };
            let devices: Vec<u32> = if kind.is_some() { (16 - count..16).collect() } else { Vec::new() };
            let (launch, mut rendezvous) = launch(change(spec), &devices, workers - 1, false);
            let tables: &[Option<&str>] = if kind == Some(DeviceKind::Ascend) && launch.world_size > 1 {
                &[None, Some("/var/lib/danlu/runs/7/1/1/hccl.json")]
            } else {
                &[None]
            };
            for table in tables {
                rendezvous.rank_table = table.map(Into::into);
                let with = if table.is_some() { ", with a rank table" } else { "" };
                writeln!(out, "# {label}: {workers} × {count}{with}").unwrap();
                let mut env = rank_environment(&launch, &rendezvous, launch.ranks.last().unwrap());
                env.retain(|name, _| !name.starts_with("DANLU_") || name == "DANLU_HOSTFILE");
                env.retain(|name, _| {
                    !["TMPDIR", "PYTHONUNBUFFERED", "OMP_NUM_THREADS"].contains(&name.as_str())
                });
                writeln!(out, "{}", lines(env)).unwrap();
            }
        }
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
fn every_framework_on_every_device() {
    let all = [
        ("pytorch", Framework::Pytorch),
        ("tensorflow", Framework::Tensorflow),
        ("mindspore", Framework::Mindspore),
        ("mpi", Framework::Mpi),
        ("none", Framework::None),
    ];
    for (name, framework) in all {
        insta::assert_snapshot!(format!("environment_{name}"), environments(framework, |spec| spec));
    }
}

#[test]
fn one_process_per_worker_starts_the_others_itself() {
    let per_worker = |spec| JobSpec { ranks: Some(RanksPerWorker::PerWorker), ..spec };
    for (name, framework) in [("torchrun", Framework::Pytorch), ("msrun", Framework::Mindspore)] {
        insta::assert_snapshot!(format!("environment_{name}"), environments(framework, per_worker));
    }
}

#[test]
fn a_rank_table_is_used_by_every_framework_where_the_job_insists() {
    for framework in [Framework::Pytorch, Framework::Tensorflow, Framework::Mindspore] {
        let spec = job(2, framework, Some(DeviceKind::Ascend), 8);
        let spec = JobSpec { rank_table: RankTableUse::Always, ..spec };
        let (launch, mut rendezvous) = launch(spec, &[0, 1, 2, 3, 4, 5, 6, 7], 1, false);
        rendezvous.rank_table = Some("/hccl.json".into());
        let env = rank_environment(&launch, &rendezvous, &launch.ranks[2]);
        assert_eq!(env["RANK_TABLE_FILE"], "/hccl.json");
        assert_eq!((&*env["RANK_ID"], &*env["RANK_SIZE"], &*env["DEVICE_ID"]), ("10", "16", "2"));
        assert!(!env.keys().any(|name| name.starts_with("CM_") || name.starts_with("MS_")), "{env:?}");
    }
}

#[test]
fn the_two_ways_of_tensorflow_exclude_each_other() {
    for table in [None, Some("/hccl.json".into())] {
        let spec = job(2, Framework::Tensorflow, Some(DeviceKind::Ascend), 8);
        let (launch, mut rendezvous) = launch(spec, &[0, 1, 2, 3, 4, 5, 6, 7], 0, false);
        rendezvous.rank_table = table;
        let env = rank_environment(&launch, &rendezvous, &launch.ranks[0]);
        let has = |prefix: &str| env.keys().any(|name| name.starts_with(prefix));
        assert_eq!(has("CM_"), !(has("RANK_ID") || has("RANK_TABLE_FILE") || has("RANK_SIZE")), "{env:?}");
    }
}

#[test]
fn the_scheduler_of_mindspore_is_nobodys_rank() {
    let spec = |env: &[(&str, &str)]| JobSpec {
        env: env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
        ..job(2, Framework::Mindspore, Some(DeviceKind::Ascend), 2)
    };
    let of = |spec: JobSpec, worker| {
        let (launch, rendezvous) = launch(spec, &[0, 1], worker, false);
        scheduler_environment(&launch, &rendezvous)
    };
    let env = of(spec(&[]), 0).unwrap();
    let shown: Vec<String> = env
        .iter()
        .filter(|(name, _)| name.starts_with("MS_"))
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    insta::assert_snapshot!(shown.join("\n"), @r"
    MS_ROLE=MS_SCHED
    MS_SCHED_HOST=10.0.0.1
    MS_SCHED_PORT=29500
    MS_WORKER_IP=10.0.0.2
    MS_WORKER_NUM=4
    ");
    assert!(!env.contains_key("RANK") && !env.contains_key("DEVICE_ID"));
    assert_eq!(of(spec(&[]), 1), None, "only the first worker's launcher runs one");
    assert_eq!(of(spec(&[("MS_ROLE", "MS_WORKER")]), 0), None, "a user who plays the roles is left alone");
    let alone = JobSpec { workers: 1, ranks: Some(RanksPerWorker::PerWorker), ..spec(&[]) };
    assert_eq!(of(alone, 0), None, "msrun runs its own");
}

#[test]
fn other_platforms_names_are_there_when_asked_for() {
    for compat in [Compat::Modelarts, Compat::Dlc, Compat::Apulis, Compat::Slurm] {
        let name = format!("compat_{compat:?}").to_lowercase();
        let plain = job(2, Framework::Pytorch, Some(DeviceKind::Ascend), 8);
        let devices: Vec<u32> = (8..16).collect();
        let before = environment(plain.clone(), &devices, 1, 0, false);
        let after = environment(JobSpec { compat: vec![compat], ..plain }, &devices, 1, 0, false);
        let new: Vec<&str> = after.lines().filter(|line| !before.lines().any(|old| old == *line)).collect();
        insta::assert_snapshot!(name, new.join("\n"));
    }
}

#[test]
fn workers_that_are_not_together_are_worlds_of_their_own() {
    let spec = JobSpec { together: false, ..job(3, Framework::Pytorch, Some(DeviceKind::Nvidia), 8) };
    let environment = environment(spec, &[0, 1, 2, 3, 4, 5, 6, 7], 2, 5, false);
    for line in
        ["RANK=5", "WORLD_SIZE=8", "GROUP_RANK=0", "DANLU_WORKER=2", "DANLU_WORKERS=3", "DANLU_RANK=21"]
    {
        assert!(environment.lines().any(|found| found == line), "{line} is not in\n{environment}");
    }
}

#[test]
fn a_part_of_a_card_is_named_by_its_own_name() {
    let spec = job(1, Framework::Pytorch, Some(DeviceKind::Nvidia), 2);
    let (mut launch, rendezvous) = launch(spec, &[0, 1], 0, false);
    launch.devices[0].wiring.uuid = Some("GPU-8f3a".to_owned());
    launch.devices[1].wiring.uuid = Some("MIG-77c1".to_owned());
    let env = rank_environment(&launch, &rendezvous, &launch.ranks[0]);
    assert_eq!(env["CUDA_VISIBLE_DEVICES"], "0,MIG-77c1");
}

#[test]
fn files_beside_the_environment() {
    let spec = job(2, Framework::Mpi, Some(DeviceKind::Nvidia), 8);
    let (launch, rendezvous) = launch(spec, &[0, 1, 2, 3, 4, 5, 6, 7], 1, false);
    insta::assert_snapshot!(mpi_hostfile(&launch, &rendezvous), @r"
    10.0.0.1 slots=8
    10.0.0.2 slots=8
    ");
    let env = [("RANK", "3"), ("WHO", "it's me")].map(|(name, value)| (name.to_owned(), value.to_owned()));
    insta::assert_snapshot!(pod_env(&env.into()), @r"export WHO='it'\''s me'");
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
