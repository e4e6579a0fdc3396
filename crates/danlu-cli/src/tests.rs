//! Tables and pages as people see them.

use danlu_types::api::{
    AttemptView, DeviceView, EventView, HeldDevice, JobOutcome, JobState, JobView, NodeView, WorkerPhase,
    WorkerView,
};
use danlu_types::reason::{DeviceShortage, FailedWorker, ProcessExit, RequestedResources};
use danlu_types::{
    AttemptNumber, Bytes, Cpus, Device, DeviceCount, DeviceKind, DeviceProcess, Health, JobId, JobSpec, Node,
    NodeCapacity, NodeName, Rank, Reading, Reason, Topology, Wiring, WorkerIndex,
};
use jiff::Timestamp;

use crate::commands::{devices, jobs, nodes, show};
use crate::{table, words};

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_767_225_600 + second).unwrap()
}

fn failure(worker: Option<u32>) -> Reason {
    let (rank, exit) = (Some(Rank(3)), Some(ProcessExit::Code(1)));
    let worker = worker.map(WorkerIndex);
    Reason::Exit(FailedWorker { attempt: None, worker, rank, exit, detail: String::new() })
}

fn queued_job() -> JobView {
    let mut spec = JobSpec::of_command("python train.py");
    spec.name = "digits".to_owned();
    spec.workers = 2;
    spec.devices = "ascend:910B*:8".parse().unwrap();
    JobView {
        id: JobId(12),
        name: spec.name.clone(),
        workspace: "default".to_owned(),
        owner: "admin".to_owned(),
        state: JobState::Queued,
        outcome: None,
        reason: Reason::DevicesBusy {
            requested: RequestedResources::from(&spec),
            free: 5,
            most_on_one_node: 4,
            shortage: DeviceShortage::TooFew,
        },
        priority: 5,
        submitted_at: at(0),
        started_at: None,
        ended_at: None,
        queued_since: Some(at(0)),
        waited: danlu_types::Span::default(),
        running_since: None,
        ran: danlu_types::Span::default(),
        exit_code: None,
        generation: 1,
        progress: None,
        spec,
        attempts: Vec::new(),
    }
}

fn failed_job() -> JobView {
    let failed = failure(Some(1));
    let worker = |index: u32, reason: Reason| WorkerView {
        index: WorkerIndex(index),
        node: NodeName(format!("node-{index}")),
        devices: vec![0, 1, 2, 3],
        phase: WorkerPhase::Ended,
        running_at: Some(at(5)),
        ended_at: Some(at(190)),
        reason: Some(reason),
    };
    JobView {
        id: JobId(11),
        state: JobState::Ended,
        outcome: Some(JobOutcome::Failed),
        reason: failed.clone(),
        started_at: Some(at(5)),
        ended_at: Some(at(190)),
        queued_since: None,
        waited: danlu_types::Span::from_seconds(4),
        ran: danlu_types::Span::from_seconds(185),
        exit_code: Some(1),
        attempts: vec![AttemptView {
            number: AttemptNumber(1),
            placed_at: at(4),
            ended_at: Some(at(190)),
            reason: failed,
            workers: vec![worker(0, Reason::Stopped { by: None }), worker(1, failure(None))],
        }],
        ..queued_job()
    }
}

fn device(index: u32, health: Health) -> Device {
    Device {
        index,
        kind: DeviceKind::Ascend,
        model: "910B3".to_owned(),
        memory: Bytes(64 << 30),
        island: 0,
        health,
        wiring: Wiring::default(),
    }
}

fn user_process(pid: i32, job: Option<JobId>) -> DeviceProcess {
    let user = Some("eve".to_owned());
    DeviceProcess { pid, name: "python".to_owned(), user, memory: Some(Bytes(1 << 30)), job }
}

fn held() -> HeldDevice {
    HeldDevice {
        index: 0,
        count: DeviceCount::from_milli(500).unwrap(),
        job: Some(JobId(12)),
        job_name: "digits".to_owned(),
        owner: "admin".to_owned(),
    }
}

#[test]
fn tables_line_up() {
    let mut odd = queued_job();
    odd.id = JobId(10);
    odd.name = "炼丹\u{1b}[2J".to_owned();
    odd.spec = JobSpec::of_command("x");
    odd.state = JobState::Running;
    odd.reason = Reason::Running { workers: 1 };
    odd.started_at = Some(at(60));
    (odd.queued_since, odd.waited) = (None, danlu_types::Span::from_seconds(60));
    odd.running_since = Some(at(60));
    let jobs = jobs::jobs_table(&[queued_job(), failed_job(), odd], None, at(3_700));
    let nodes = nodes::nodes_table(&[NodeView {
        node: Node {
            name: NodeName("node-0".to_owned()),
            architecture: "aarch64".to_owned(),
            capacity: NodeCapacity { cpus: Cpus::whole(192), memory: Bytes(1536 << 30) },
            devices: vec![device(0, Health::Ok), device(1, Health::Failed)],
            address: "127.0.0.1".to_owned(),
            labels: [("rack".to_owned(), "r1".to_owned())].into(),
            cordoned: Some("new fans".to_owned()),
            topology: Topology::default(),
            simulated: true,
            foreign: Vec::new(),
        },
        used_cpus: Cpus { milli: 1500 },
        used_memory: Bytes(3 << 29),
        held: vec![held()],
        notice: None,
    }]);
    let devices = [
        DeviceView {
            node: NodeName("node-0".to_owned()),
            device: device(0, Health::Ok),
            out_of_service: None,
            held_by: Some(held()),
            holders: vec![held()],
            foreign: None,
            reading: Some(Reading {
                utilisation_percent: Some(97),
                memory_used: Some(Bytes(49_002 << 20)),
                temperature_celsius: Some(61),
                power_watts: Some(310),
                processes: vec![user_process(11, Some(JobId(12))), user_process(4711, None)],
                ..Reading::default()
            }),
        },
        DeviceView {
            node: NodeName("node-0".to_owned()),
            device: device(1, Health::Failed),
            out_of_service: Some(
                "3 attempts on it ended with a device error within a day: of job 7".to_owned(),
            ),
            held_by: None,
            holders: Vec::new(),
            foreign: None,
            reading: None,
        },
        DeviceView {
            node: NodeName("node-1".to_owned()),
            device: device(0, Health::Ok),
            out_of_service: None,
            held_by: None,
            holders: Vec::new(),
            foreign: None,
            reading: Some(Reading { health: Health::Warning, ..Reading::default() }),
        },
    ];
    let wide = devices::devices_table(&devices, true);
    let devices = devices::devices_table(&devices, false);
    let mut tables = [jobs, nodes, devices, wide];
    let text: Vec<String> = tables.iter_mut().map(|table| table::text(table.force_no_tty())).collect();
    insta::assert_snapshot!(text.join("\n\n"));
}

#[test]
fn a_job_on_one_page() {
    let event = EventView {
        number: 1,
        at: at(0),
        job: Some(JobId(11)),
        attempt: None,
        kind: "job_submitted".to_owned(),
        actor: "admin".to_owned(),
        message: "submitted by admin".to_owned(),
    };
    let page = show::page(&failed_job(), &[event], at(3_700));
    let plain = anstream::adapter::strip_str(&page).to_string();
    // Clock times depend on the machine's time zone.
    insta::assert_snapshot!(plain.replace(&words::clock(at(0)), "<clock>"));
}

/// Two runs of a small table of jobs, as `danlu sim replay` prints them.
#[test]
fn runs_side_by_side() {
    let jobs = "submit,duration,devices,workspace\n0s,1h,8,vision\n1m,2h,8,vision\n2m,10m,1,speech\n3m,1h,16,speech\n";
    let trace = danlu_sim::trace::simple::read(
        "jobs.csv",
        jobs.as_bytes(),
        &danlu_sim::trace::Assumptions::default(),
    )
    .unwrap();
    let run = |nodes: &str, name: &str| {
        let mut simulation = danlu_sim::Simulation::new(danlu_sim::Scenario {
            nodes: danlu_device::simulate::parse(nodes).unwrap(),
            jobs: trace.jobs.clone(),
            ..danlu_sim::Scenario::default()
        });
        while simulation.step() {}
        danlu_sim::Run::of(&simulation, name)
    };
    let runs = vec![run("1x8:ascend:910B3", "today"), run("2x8:ascend:910B3", "one more node")];
    let comparison = danlu_sim::Comparison::new("jobs.csv", trace.notes.clone(), runs);
    insta::assert_snapshot!(crate::commands::sim::tables(&comparison));
}
