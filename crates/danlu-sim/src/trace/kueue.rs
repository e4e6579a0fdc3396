//! The scenario of Kueue's baseline performance test, made rather than read.
//!
//! Five cohorts of six queues. A queue is guaranteed 20 units, may borrow 100 more from its cohort, and gets 350 small
//! (1 unit, 200 ms), 100 medium (5 units, 500 ms) and 50 large jobs (20 units, 1 s), larger ones with higher priority.
//! Kueue counts quota only, so a cohort is one node of 120 processor cores, and its jobs choose that node.

use std::collections::BTreeMap;

use danlu_types::{
    Amounts, Bytes, Cpus, JobSpec, Node, NodeCapacity, NodeName, NodeSelection, Sharing, Span, Topology,
    Workspace,
};

use super::{Trace, from_first_submission};
use crate::measure::CLASS_LABEL;
use crate::story::SimJob;

const COHORTS: u32 = 5;
const QUEUES: u32 = 6;
const GUARANTEED: u64 = 20;
const BORROWED: u64 = 100;

struct Class {
    name: &'static str,
    jobs: u64,
    units: u64,
    runs: Span,
    /// One is submitted so often.
    every: Span,
    priority: u8,
}

const CLASSES: [Class; 3] = [
    Class {
        name: "small",
        jobs: 350,
        units: 1,
        runs: Span { milliseconds: 200 },
        every: Span { milliseconds: 100 },
        priority: 3,
    },
    Class {
        name: "medium",
        jobs: 100,
        units: 5,
        runs: Span { milliseconds: 500 },
        every: Span { milliseconds: 500 },
        priority: 5,
    },
    Class {
        name: "large",
        jobs: 50,
        units: 20,
        runs: Span { milliseconds: 1000 },
        every: Span { milliseconds: 1200 },
        priority: 7,
    },
];

/// The 15,000 jobs with their cluster.
pub fn generate() -> Trace {
    let mut jobs = Vec::new();
    let mut workspaces = BTreeMap::new();
    for cohort in 1..=COHORTS {
        for queue in 1..=QUEUES {
            let name = format!("cohort-{cohort}-queue-{queue}");
            let of = |units| Amounts { cpus: Some(Cpus::whole(units)), ..Amounts::default() };
            let workspace = Workspace {
                guaranteed: of(GUARANTEED),
                limit: of(GUARANTEED + BORROWED),
                ..Workspace::default()
            };
            jobs.extend(CLASSES.iter().flat_map(|class| class_jobs(class, cohort, &name)));
            workspaces.insert(name, workspace);
        }
    }
    from_first_submission(&mut jobs);
    Trace {
        name: "kueue baseline".to_owned(),
        nodes: (1..=COHORTS).map(node).collect(),
        sharing: Sharing { minimum_run_time: Span::default(), workspaces, ..Sharing::default() },
        jobs,
        interventions: Vec::new(),
        notes: vec![
            "Kueue's baseline: 5 cohorts × 6 queues × 500 jobs; 66 s of work for each cohort's 120 units"
                .to_owned(),
            "priorities 50, 100 and 200 are 3, 5 and 7; preempted jobs stop at once and begin anew"
                .to_owned(),
        ],
    }
}

fn class_jobs<'a>(class: &'a Class, cohort: u32, queue: &'a str) -> impl Iterator<Item = SimJob> + 'a {
    (0..class.jobs).map(move |number| {
        let spec = JobSpec {
            name: format!("{}-{number}", class.name),
            workspace: queue.to_owned(),
            cpus: Cpus::whole(class.units),
            priority: Some(class.priority),
            preemptible: true,
            nodes: NodeSelection { labels: cohort_label(cohort), ..NodeSelection::default() },
            labels: BTreeMap::from([(CLASS_LABEL.to_owned(), class.name.to_owned())]),
            ..JobSpec::of_command("true")
        };
        let submit_at = Span { milliseconds: class.every.milliseconds * number };
        SimJob { owner: queue.to_owned(), ..SimJob::succeeding(submit_at, spec, class.runs) }
    })
}

fn node(cohort: u32) -> Node {
    Node {
        name: NodeName(format!("cohort-{cohort}")),
        architecture: "x86_64".to_owned(),
        capacity: NodeCapacity { cpus: Cpus::whole(u64::from(QUEUES) * GUARANTEED), memory: Bytes(1 << 40) },
        devices: Vec::new(),
        labels: cohort_label(cohort),
        cordoned: None,
        address: String::new(),
        topology: Topology::default(),
        simulated: true,
        foreign: Vec::new(),
    }
}

fn cohort_label(cohort: u32) -> BTreeMap<String, String> {
    BTreeMap::from([("cohort".to_owned(), cohort.to_string())])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_work_of_a_cohort_takes_66_seconds_of_its_120_units() {
        let trace = generate();
        assert_eq!((trace.jobs.len(), trace.nodes.len(), trace.sharing.workspaces.len()), (15_000, 5, 30));
        let of_cohort = trace.jobs.iter().filter(|job| job.spec.nodes.labels["cohort"] == "1");
        let work: u64 =
            of_cohort.map(|job| job.spec.cpus.milli * job.parts[0].runs.milliseconds / 1000).sum();
        assert_eq!(work, 120 * 66_000);
    }
}
