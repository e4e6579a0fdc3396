//! The simulated engine: the whole conformance suite, without a process and without waiting; which engine is held to what;
//! and faults as they are planned.

use std::fmt::Write;
use std::sync::Arc;

use danlu_core::job::WorkerEnd;
use danlu_core::launch::{RunLayout, StopOrder};
use danlu_engine::conformance::{
    BEHAVIOURS, EXEMPTIONS, EngineKind, ProgramStep, Site, TestProgram, TestWorker, promised,
};
use danlu_engine::sim::{Call, CallFault, SimCluster};
use danlu_engine::{Engine, ObservedState};
use danlu_types::{Bytes, Cpus, DeviceKind, Node, NodeCapacity, NodeName, Reason, Span, Topology};
use jiff::Timestamp;

mod conforms {
    use super::site;

    danlu_engine::conformance_tests!(Sim, site();
        site() =>
            a_lost_node_is_told_from_a_program_that_fails,
            a_lost_launcher_leaves_no_daemon,
            a_worker_that_takes_too_much_memory_is_ended);
}

fn node(name: &str) -> Node {
    Node {
        name: NodeName(name.to_owned()),
        architecture: "x86_64".to_owned(),
        capacity: NodeCapacity { cpus: Cpus::whole(64), memory: Bytes(512 << 30) },
        devices: Vec::new(),
        labels: std::collections::BTreeMap::new(),
        cordoned: None,
        address: "127.0.0.1".to_owned(),
        topology: Topology::default(),
        simulated: true,
        foreign: Vec::new(),
    }
}

fn cluster() -> Arc<SimCluster> {
    SimCluster::new(vec![node("n1"), node("n2")], Timestamp::UNIX_EPOCH)
}

fn site_on(cluster: &Arc<SimCluster>) -> Site {
    let (opened, lost) = (cluster.clone(), cluster.clone());
    let layout = RunLayout { data: "/nowhere".into() };
    let site =
        Site::above(Arc::new(cluster.clone()), layout, move || Arc::new(opened.engine()) as Arc<dyn Engine>);
    let nodes = ["n1", "n2"].map(|name| NodeName(name.to_owned())).to_vec();
    site.with_nodes_to_lose(nodes, move |node| lost.lose_node(node)).simulated()
}

fn site() -> Site {
    site_on(&cluster())
}

#[test]
fn which_engine_is_held_to_what() {
    let mut table = String::new();
    for behaviour in BEHAVIOURS {
        let held =
            EngineKind::ALL.map(|kind| if promised(kind).contains(&behaviour) { kind.as_str() } else { "-" });
        writeln!(table, "{behaviour:58} {:6}{:6}{}", held[0], held[1], held[2]).unwrap();
    }
    for (behaviour, kind, why) in EXEMPTIONS {
        assert!(BEHAVIOURS.contains(&behaviour), "{behaviour} is no behaviour");
        writeln!(table, "\n{} need not: {behaviour}\n  {why}", kind.as_str()).unwrap();
    }
    insta::assert_snapshot!(table);
}

#[tokio::test]
async fn time_passes_only_when_somebody_says_so() {
    let cluster = cluster();
    let site = site_on(&cluster);
    let engine = site.engine();
    let day = Span::from_seconds(24 * 3600);
    let draft = site.job(&TestProgram::new([ProgramStep::Sleep(day)]));
    engine.launch(&draft.launch_file(0)).await.unwrap();
    cluster.advance(Span { milliseconds: day.milliseconds - 1 });
    assert!(matches!(site.seen(&*engine, draft.worker(0)).await, ObservedState::Running { .. }));
    cluster.advance(Span { milliseconds: 1 });
    assert!(matches!(site.seen(&*engine, draft.worker(0)).await, ObservedState::Ended { .. }));
}

#[tokio::test]
async fn planned_faults_come_in_their_order_and_then_no_more() {
    let cluster = cluster();
    let site = site_on(&cluster);
    let engine = site.engine();
    let draft = site.job(&TestProgram::new([ProgramStep::append("count", "ran")]));
    cluster.plan_faults(Call::Launch, [CallFault::Refused, CallFault::Unanswered]);
    let file = draft.launch_file(0);
    assert!(engine.launch(&file).await.unwrap_err().is_transient());
    assert_eq!(site.seen(&*engine, draft.worker(0)).await, ObservedState::Unknown);
    assert!(engine.launch(&file).await.unwrap_err().is_transient());
    engine.launch(&file).await.unwrap();
    assert_eq!(site.until_ended(&*engine, draft.worker(0)).await, WorkerEnd::Succeeded);
    assert_eq!(site.until_written(draft.job, "count").await, "ran");
    assert_eq!(cluster.offences(), [""; 0]);
}

#[tokio::test]
async fn what_waits_for_a_lost_node_says_so_and_starts_when_it_is_back() {
    let cluster = cluster();
    let site = site_on(&cluster);
    let engine = site.engine();
    cluster.lose_node(&NodeName("n1".to_owned()));
    let draft = site.job(&TestProgram::forever());
    engine.launch(&draft.launch_file(0)).await.unwrap();
    cluster.advance(Span::from_seconds(3600));
    let seen = engine.observe(danlu_engine::Which::All).await.unwrap().remove(0);
    assert_eq!(
        (seen.seen, seen.remark),
        (ObservedState::Preparing, Some(Reason::ClusterPending { detail: "node n1 is down".to_owned() }))
    );
    cluster.restore_node(&NodeName("n1".to_owned()));
    site.until_running(&*engine, draft.worker(0)).await;
    engine.signal(draft.worker(0), &StopOrder { grace: Span::default() }).await.unwrap();
    assert_eq!(site.until_ended(&*engine, draft.worker(0)).await, WorkerEnd::Stopped);
}

#[tokio::test]
async fn what_must_never_be_is_written_down() {
    let cluster = cluster();
    let site = site_on(&cluster);
    let engine = site.engine();
    let first =
        TestWorker { devices: vec![site.device(DeviceKind::Nvidia, 3)], ..site.job(&TestProgram::forever()) };
    let again = TestWorker { attempt: 2, devices: Vec::new(), ..first.clone() };
    let other = TestWorker { devices: first.devices.clone(), ..site.job(&TestProgram::forever()) };
    for draft in [&first, &again, &other] {
        engine.launch(&draft.launch_file(0)).await.unwrap();
    }
    insta::assert_snapshot!(cluster.offences().join("\n"), @r"
    worker 1.2.0 starts while 1.1.0 still runs
    workers 2.1.0 and 1.1.0 share a device of n1
    ");
}
