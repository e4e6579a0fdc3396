//! An afternoon on two machines.

use std::collections::BTreeMap;

use danlu_core::job::WorkerFailure;
use danlu_core::{FailureCause, WorkerEnd};
use danlu_sim::{Happening, Intervention, Scenario, SimJob, WorkerScript, simulate};
use danlu_types::{
    Bytes, Cpus, Device, DeviceKind, HeadOfLine, Health, JobSpec, Node, NodeCapacity, NodeName, Retry,
    RetryCause, Sharing, Span, Topology, Wiring, Workspace,
};

pub(crate) fn node(name: &str, devices: u32, kind: DeviceKind, model: &str, cpus: u64) -> Node {
    let device = |index| Device {
        index,
        kind,
        model: model.to_owned(),
        memory: Bytes(64 << 30),
        island: index / 4,
        health: Health::Ok,
        wiring: Wiring::default(),
    };
    Node {
        name: NodeName(name.to_owned()),
        architecture: "aarch64".to_owned(),
        capacity: NodeCapacity { cpus: Cpus::whole(cpus), memory: Bytes(64 << 30) },
        devices: (0..devices).map(device).collect(),
        address: "127.0.0.1".to_owned(),
        labels: BTreeMap::new(),
        cordoned: None,
        topology: Topology::default(),
        simulated: true,
        foreign: Vec::new(),
    }
}

pub(crate) fn lost() -> WorkerEnd {
    let failure =
        WorkerFailure { cause: FailureCause::NodeLost, rank: None, exit: None, detail: String::new() };
    WorkerEnd::Failed(failure)
}

pub(crate) fn minutes(count: u64) -> Span {
    Span::from_seconds(60 * count)
}

pub(crate) fn spec(name: &str, workers: u32, devices: &str) -> JobSpec {
    let devices = devices.parse().unwrap();
    JobSpec { name: name.to_owned(), workers, devices, ..JobSpec::of_command("true") }
}

#[test]
fn an_afternoon_on_two_machines() {
    let nodes = ["a", "b"].map(|name| node(name, 8, DeviceKind::Ascend, "910B3", 64)).to_vec();
    let patient = JobSpec {
        retry: Retry { limit: 2, on: vec![RetryCause::NodeLost] },
        ..spec("patient", 1, "ascend:4")
    };
    let urgent = JobSpec { priority: Some(9), ..spec("urgent", 1, "ascend:8") };
    let endless = JobSpec { max_time: Some(minutes(20)), ..spec("endless", 1, "ascend:1") };
    let jobs = vec![
        SimJob::succeeding(minutes(0), spec("first", 1, "ascend:8"), minutes(60)),
        SimJob {
            parts: vec![
                WorkerScript { runs: minutes(10), exit: lost() },
                WorkerScript { runs: minutes(30), exit: WorkerEnd::Succeeded },
            ],
            ..SimJob::succeeding(minutes(1), patient, minutes(0))
        },
        // Waits for both machines; what comes later may not take them from under it.
        SimJob::succeeding(minutes(2), spec("gang", 2, "ascend:8"), minutes(30)),
        SimJob::succeeding(minutes(3), spec("small", 1, "ascend:1"), minutes(5)),
        SimJob::succeeding(minutes(4), spec("no-devices", 1, "0"), minutes(5)),
        SimJob::succeeding(minutes(30), urgent, minutes(15)),
        SimJob::succeeding(minutes(31), endless, minutes(500)),
        SimJob::succeeding(minutes(32), spec("too-large", 1, "ascend:16"), minutes(5)),
        SimJob {
            takes_to_stop: Span::from_seconds(20),
            ..SimJob::succeeding(minutes(33), spec("unwanted", 1, "ascend:2"), minutes(500))
        },
    ];
    let stop = Intervention { at: minutes(140), what: Happening::Stop { job: 8 } };
    let strict = Workspace { head_of_line: HeadOfLine::Strict, ..Workspace::default() };
    let workspaces = [("default".to_owned(), strict)].into_iter().collect();
    let sharing = Sharing { workspaces, ..Sharing::default() };
    let report =
        simulate(Scenario { nodes, sharing, jobs, interventions: vec![stop], ..Scenario::default() });
    insta::assert_snapshot!(report);
}

#[test]
fn a_lost_node_takes_its_gang_along_and_comes_back() {
    let nodes = ["a", "b"].map(|name| node(name, 8, DeviceKind::Ascend, "910B3", 64)).to_vec();
    let retry = Retry { limit: 1, on: vec![RetryCause::NodeLost] };
    let gang = JobSpec { retry, ..spec("gang", 2, "ascend:8") };
    let jobs = vec![
        SimJob::succeeding(minutes(0), gang, minutes(60)),
        SimJob::succeeding(minutes(1), spec("small", 1, "ascend:4"), minutes(5)),
    ];
    let node = NodeName("b".to_owned());
    let interventions = vec![
        Intervention { at: minutes(10), what: Happening::NodeLost { node: node.clone() } },
        Intervention { at: minutes(40), what: Happening::NodeBack { node } },
    ];
    let report = simulate(Scenario { nodes, jobs, interventions, ..Scenario::default() });
    insta::assert_snapshot!(report);
}
