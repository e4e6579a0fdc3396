//! One story for each rule of the simulated world, readable as its documentation.

use danlu_sim::{Faults, Happening, Intervention, Scenario, SimJob, simulate};
use danlu_types::{
    Amounts, DeviceCount, DeviceKind, JobSpec, Node, Retry, RetryCause, Sharing, Span, Workspace,
};

use crate::story::{minutes, node, spec};

fn two_nodes() -> Vec<Node> {
    ["a", "b"].map(|name| node(name, 8, DeviceKind::Ascend, "910B3", 64)).to_vec()
}

fn patient(spec: JobSpec) -> JobSpec {
    JobSpec { retry: Retry { limit: 9, on: vec![RetryCause::NodeLost, RetryCause::DeviceError] }, ..spec }
}

/// Interrupted at 50 minutes, after checkpoints at 20 and 40: ten minutes are lost, a minute goes into the restart.
/// Its twin saves nothing and begins anew.
#[test]
fn preemption_loses_the_work_since_the_last_checkpoint() {
    let careful = SimJob {
        checkpoint_every: Some(minutes(20)),
        restart_cost: minutes(1),
        takes_to_stop: Span::from_seconds(20),
        ..SimJob::succeeding(minutes(0), spec("careful", 1, "ascend:8"), minutes(60))
    };
    let careless =
        SimJob { spec: spec("careless", 1, "ascend:8"), checkpoint_every: None, ..careful.clone() };
    let urgent = SimJob::succeeding(minutes(50), spec("urgent", 2, "ascend:8"), minutes(5));
    let preempt = |job| Intervention { at: minutes(50), what: Happening::Preempt { job, for_job: 2 } };
    let urgent = SimJob { spec: JobSpec { priority: Some(9), ..urgent.spec.clone() }, ..urgent };
    let report = simulate(Scenario {
        nodes: two_nodes(),
        jobs: vec![careful, careless, urgent],
        interventions: vec![preempt(0), preempt(1)],
        ..Scenario::default()
    });
    insta::assert_snapshot!(report);
}

/// The grace is the longest a job may take to stop, whatever it would like.
#[test]
fn a_job_that_is_slow_to_stop_is_killed_after_its_grace() {
    let slow = SimJob {
        takes_to_stop: minutes(10),
        ..SimJob::succeeding(minutes(0), spec("slow", 1, "ascend:8"), minutes(60))
    };
    let stop = Intervention { at: minutes(5), what: Happening::Stop { job: 0 } };
    let report = simulate(Scenario {
        nodes: two_nodes(),
        jobs: vec![slow],
        interventions: vec![stop],
        ..Scenario::default()
    });
    insta::assert_snapshot!(report);
}

#[test]
fn a_device_that_breaks_takes_its_holder_along_and_is_not_given_out_until_it_is_mended() {
    let job =
        |name, at, runs| SimJob::succeeding(minutes(at), patient(spec(name, 1, "ascend:8")), minutes(runs));
    let a = || node("a", 8, DeviceKind::Ascend, "910B3", 64).name;
    let report = simulate(Scenario {
        nodes: two_nodes(),
        jobs: vec![job("first", 0, 60), job("second", 1, 30), job("third", 2, 10)],
        interventions: vec![
            Intervention { at: minutes(10), what: Happening::DeviceBroke { node: a(), device: 3 } },
            Intervention { at: minutes(90), what: Happening::DeviceMended { node: a(), device: 3 } },
        ],
        ..Scenario::default()
    });
    insta::assert_snapshot!(report);
}

/// Faults come at times that the seed decides, and stop mattering once every job has ended.
#[test]
fn nodes_and_devices_fail_by_chance_and_come_back() {
    let jobs = (0..6).map(|number| SimJob {
        checkpoint_every: Some(minutes(30)),
        restart_cost: minutes(1),
        ..SimJob::succeeding(minutes(0), patient(spec(&format!("job-{number}"), 1, "ascend:4")), minutes(300))
    });
    let faults: Faults = "mtbf=12h,device-mtbf=6d,repair=1h,seed=7".parse().unwrap();
    let world =
        Scenario { nodes: two_nodes(), jobs: jobs.collect(), faults: Some(faults), ..Scenario::default() };
    let other_seed = Scenario { faults: Some(Faults { seed: 8, ..faults }), ..world.clone() };
    assert_ne!(simulate(world.clone()), simulate(other_seed));
    insta::assert_snapshot!(simulate(world));
}

/// A simulation ends although faults never do and a job waits for ever.
#[test]
fn a_job_that_is_held_for_ever_does_not_keep_the_faults_going() {
    let hold = Intervention { at: minutes(0), what: Happening::Hold { job: 0 } };
    let report = simulate(Scenario {
        nodes: two_nodes(),
        jobs: vec![SimJob::succeeding(minutes(0), spec("held", 2, "ascend:8"), minutes(1)); 2],
        interventions: vec![hold],
        faults: Some("mtbf=1h".parse().unwrap()),
        ..Scenario::default()
    });
    assert_eq!((report.jobs[0].outcome, report.jobs[1].outcome.is_some()), (None, true));
}

/// `speech` lies idle, so `vision` borrows its node; when `speech` comes it gets its own back, and the borrower goes on
/// from its checkpoint later. Without lending `vision` would have waited for its own node.
#[test]
fn idle_guarantees_are_lent_and_taken_back() {
    let one_node = Amounts { ascend: Some(DeviceCount::whole(8)), ..Amounts::default() };
    let workspace =
        |name: &str| (name.to_owned(), Workspace { guaranteed: one_node, ..Workspace::default() });
    let sharing = |lending| Sharing {
        lending,
        minimum_run_time: minutes(5),
        workspaces: [workspace("vision"), workspace("speech")].into_iter().collect(),
        ..Sharing::default()
    };
    let job = |name: &str, workspace: &str, at, runs| SimJob {
        checkpoint_every: Some(minutes(20)),
        restart_cost: minutes(1),
        ..SimJob::succeeding(
            minutes(at),
            JobSpec { workspace: workspace.to_owned(), preemptible: true, ..spec(name, 1, "ascend:8") },
            minutes(runs),
        )
    };
    let jobs =
        vec![job("first", "vision", 0, 90), job("borrower", "vision", 1, 60), job("owner", "speech", 31, 30)];
    let report = |lending| {
        simulate(Scenario {
            nodes: two_nodes(),
            sharing: sharing(lending),
            jobs: jobs.clone(),
            ..Scenario::default()
        })
    };
    insta::assert_snapshot!(format!("with lending\n{}\nwithout\n{}", report(true), report(false)));
}

/// Nothing of a gang starts until all of it can, and what is lost of one worker is lost of all.
#[test]
fn a_gang_loses_its_work_as_one() {
    let gang = SimJob {
        checkpoint_every: Some(minutes(15)),
        takes_to_stop: Span::from_seconds(30),
        ..SimJob::succeeding(minutes(0), patient(spec("gang", 2, "ascend:8")), minutes(60))
    };
    let b = || node("b", 8, DeviceKind::Ascend, "910B3", 64).name;
    let report = simulate(Scenario {
        nodes: two_nodes(),
        jobs: vec![gang],
        interventions: vec![
            Intervention { at: minutes(40), what: Happening::NodeLost { node: b() } },
            Intervention { at: minutes(60), what: Happening::NodeBack { node: b() } },
        ],
        ..Scenario::default()
    });
    insta::assert_snapshot!(report);
}
