//! Microsoft's Philly trace (Jeon et al., ATC'19), replayed as the Helios study (Hu et al., SC'21) did.
//!
//! The file has the columns `timestamp,duration,num_gpus,gpu_time,cluster`, with durations in seconds and the virtual
//! cluster (VC) under `cluster`. Taken are the jobs of the eleven VCs that were submitted from 2017-10-01 to
//! 2017-11-30; each VC is a workspace with as many 8-GPU nodes as the study gave it, times a factor.

use std::collections::BTreeMap;
use std::io::BufRead;

use danlu_types::{
    Amounts, Bytes, Cpus, Device, DeviceCount, DeviceKind, DeviceRequest, Health, JobSpec, Node,
    NodeCapacity, NodeName, Sharing, Span, Topology, Wiring, Workspace,
};
use jiff::civil::{Date, DateTime, date};

use super::csv::{Row, Table, shown};
use super::{Assumptions, Trace, TraceError, from_first_submission};
use crate::story::SimJob;

const GPUS_PER_NODE: u32 = 8;

/// The VCs with their 8-GPU nodes.
const VIRTUAL_CLUSTERS: [(&str, u32); 11] = [
    ("6214e9", 64),
    ("7f04ca", 32),
    ("11cb48", 16),
    ("b436b2", 64),
    ("ee9e8c", 64),
    ("e13805", 16),
    ("6c71a0", 32),
    ("2869ce", 16),
    ("ed69ec", 8),
    ("103959", 8),
    ("0e4a51", 32),
];

const FIRST_DAY: Date = date(2017, 10, 1);
const LAST_DAY: Date = date(2017, 11, 30);

/// Reads the trace, on so many times the nodes.
pub fn read(
    file: &str,
    input: impl BufRead,
    scale: f64,
    assumptions: &Assumptions,
) -> Result<Trace, TraceError> {
    let columns = ["timestamp", "duration", "num_gpus", "cluster"];
    let mut table = Table::new(file, input, &columns, &["gpu_time"])?;
    let mut jobs = Vec::new();
    let mut left_out = 0u64;
    while let Some(row) = table.next_row()? {
        match job(&row, assumptions)? {
            Some(job) => jobs.push(job),
            None => left_out += 1,
        }
    }
    from_first_submission(&mut jobs);
    let notes = vec![
        format!(
            "Philly: {} jobs of 11 virtual clusters, submitted from {FIRST_DAY} to {LAST_DAY}; {left_out} others are left out",
            jobs.len()
        ),
        "more than 8 GPUs are the fewest equal workers that fit 8-GPU nodes: 16 as 2 × 8, 12 as 2 × 6"
            .to_owned(),
        assumptions.note(),
    ];
    Ok(Trace {
        name: "philly".to_owned(),
        nodes: nodes(scale),
        sharing: sharing(scale),
        jobs,
        interventions: Vec::new(),
        notes,
    })
}

/// Lets VCs use each other's idle GPUs: what each is guaranteed stays, the limits fall.
pub fn lend(sharing: &mut Sharing) {
    sharing.lending = true;
    for workspace in sharing.workspaces.values_mut() {
        workspace.limit = Amounts::default();
    }
}

/// Ties the jobs of each VC to nodes of its own, as the study did. Without this a VC's share is counted in GPUs of any
/// node, so that what one leaves free of a node is of use to another.
pub fn partition(trace: &mut Trace) {
    for job in &mut trace.jobs {
        job.spec.nodes.labels = label(&job.spec.workspace);
    }
    trace.notes.push("each virtual cluster has nodes of its own".to_owned());
}

fn label(cluster: &str) -> BTreeMap<String, String> {
    BTreeMap::from([("vc".to_owned(), cluster.to_owned())])
}

/// Every VC by itself: it is guaranteed its own GPUs, and never gets more.
pub fn sharing(scale: f64) -> Sharing {
    let workspace = |(name, size): (&str, u32)| {
        let gpus = DeviceCount::whole(scaled(size, scale) * GPUS_PER_NODE);
        let amounts = Amounts { nvidia: Some(gpus), ..Amounts::default() };
        (name.to_owned(), Workspace { guaranteed: amounts, limit: amounts, ..Workspace::default() })
    };
    Sharing {
        lending: false,
        workspaces: VIRTUAL_CLUSTERS.into_iter().map(workspace).collect(),
        ..Sharing::default()
    }
}

fn nodes(scale: f64) -> Vec<Node> {
    let of = |(cluster, size): (&'static str, u32)| {
        (0..scaled(size, scale)).map(move |number| node(cluster, number))
    };
    VIRTUAL_CLUSTERS.into_iter().flat_map(of).collect()
}

fn node(cluster: &str, number: u32) -> Node {
    let device = |index| Device {
        index,
        kind: DeviceKind::Nvidia,
        model: "GPU".to_owned(),
        memory: Bytes(24 << 30),
        island: 0,
        health: Health::Ok,
        wiring: Wiring::default(),
    };
    Node {
        name: NodeName(format!("{cluster}-{number:02}")),
        architecture: "x86_64".to_owned(),
        capacity: NodeCapacity { cpus: Cpus::whole(64), memory: Bytes(512 << 30) },
        devices: (0..GPUS_PER_NODE).map(device).collect(),
        labels: label(cluster),
        cordoned: None,
        address: String::new(),
        topology: Topology::default(),
        simulated: true,
        foreign: Vec::new(),
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "positive, and the cast saturates"
)]
fn scaled(nodes: u32, scale: f64) -> u32 {
    ((f64::from(nodes) * scale).round() as u32).max(1)
}

/// `None` if the job is of another time or another VC.
fn job(row: &Row<'_>, assumptions: &Assumptions) -> Result<Option<SimJob>, TraceError> {
    let submitted = submitted(row)?;
    let duration = duration(row)?;
    let accepted = "a number of GPUs such as `8`";
    row.required("num_gpus")?;
    let gpus: u32 = row.number("num_gpus", accepted)?.unwrap_or(0);
    if gpus > 4096 {
        return Err(row.wrong("num_gpus", format!("{gpus} is more than 4096; write {accepted}")));
    }
    let cluster = row.required("cluster")?;
    let known = VIRTUAL_CLUSTERS.iter().any(|(name, _)| *name == cluster);
    let within = (FIRST_DAY..=LAST_DAY).contains(&submitted.date());
    if !known || !within || gpus == 0 {
        return Ok(None);
    }
    let (workers, each) = gang(gpus);
    let spec = JobSpec {
        name: format!("line-{}", row.line),
        workspace: cluster.to_owned(),
        workers,
        devices: DeviceRequest {
            kind: Some(DeviceKind::Nvidia),
            model: None,
            count: DeviceCount::whole(each),
        },
        preemptible: true,
        ..JobSpec::of_command("true")
    };
    let since = submitted.duration_since(FIRST_DAY.at(0, 0, 0, 0)).as_millis();
    let submit_at = Span { milliseconds: u64::try_from(since).unwrap_or(0) };
    let mut job = SimJob { owner: cluster.to_owned(), ..SimJob::succeeding(submit_at, spec, duration) };
    assumptions.apply(&mut job);
    Ok(Some(job))
}

fn submitted(row: &Row<'_>) -> Result<DateTime, TraceError> {
    let text = row.required("timestamp")?;
    text.parse().map_err(|_| {
        let problem = format!("`{}` is not a time; write one such as `2017-10-09 07:01:55`", shown(text));
        row.wrong("timestamp", problem)
    })
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked to be in range")]
fn duration(row: &Row<'_>) -> Result<Span, TraceError> {
    let text = row.required("duration")?;
    let seconds = text.parse::<f64>().ok().filter(|seconds| (0.0..=1e9).contains(seconds));
    let seconds = seconds.ok_or_else(|| {
        let problem = format!("`{}` is not a number of seconds; write one such as `66.0`", shown(text));
        row.wrong("duration", problem)
    })?;
    Ok(Span { milliseconds: (seconds * 1000.0).round() as u64 })
}

/// Workers, and GPUs for each: as few equal workers as fit the nodes.
fn gang(gpus: u32) -> (u32, u32) {
    let fewest = gpus.div_ceil(GPUS_PER_NODE);
    let workers = (fewest..=gpus).find(|workers| gpus.is_multiple_of(*workers)).unwrap_or(gpus);
    (workers, gpus / workers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gangs_are_as_few_equal_workers_as_fit() {
        let expected = [(1, (1, 1)), (8, (1, 8)), (12, (2, 6)), (16, (2, 8)), (24, (3, 8)), (11, (11, 1))];
        for (gpus, workers) in expected {
            assert_eq!(gang(gpus), workers, "{gpus}");
        }
    }

    #[test]
    fn the_window_and_the_virtual_clusters_choose_the_jobs() {
        let text = "timestamp,duration,num_gpus,gpu_time,cluster\n\
                    2017-09-30 23:59:59,60.0,1,60.0,6214e9\n\
                    2017-10-01 00:00:10,60.5,1,60.5,6214e9\n\
                    2017-10-01 00:00:20,60.0,16,960.0,ee9e8c\n\
                    2017-10-02 00:00:00,60.0,1,60.0,795a4c\n\
                    2017-12-01 00:00:00,60.0,1,60.0,6214e9\n";
        let trace = read("philly.csv", text.as_bytes(), 0.35, &Assumptions::default()).unwrap();
        let told: Vec<_> = trace
            .jobs
            .iter()
            .map(|job| (job.submit_at, job.spec.workspace.as_str(), job.spec.workers, job.parts[0].runs))
            .collect();
        let expected = [
            (Span::default(), "6214e9", 1, Span { milliseconds: 60_500 }),
            (Span::from_seconds(10), "ee9e8c", 2, Span::from_seconds(60)),
        ];
        assert_eq!(told, expected);
        // 22 + 11 + 6 + 22 + 22 + 6 + 11 + 6 + 3 + 3 + 11
        assert_eq!(trace.nodes.len(), 123);
        assert_eq!(trace.sharing.workspaces["6214e9"].limit.nvidia, Some(DeviceCount::whole(176)));
    }

    #[test]
    fn bad_rows_are_named_with_what_would_be_right() {
        let said = |row: &str| {
            let text = format!("timestamp,duration,num_gpus,gpu_time,cluster\n{row}\n");
            read("philly.csv", text.as_bytes(), 1.0, &Assumptions::default()).unwrap_err().to_string()
        };
        insta::assert_snapshot!(said("yesterday,60,1,60,a"), @"`philly.csv` line 2, column `timestamp`: `yesterday` is not a time; write one such as `2017-10-09 07:01:55`");
        insta::assert_snapshot!(said("2017-10-09 07:01:55,-1,1,60,a"), @"`philly.csv` line 2, column `duration`: `-1` is not a number of seconds; write one such as `66.0`");
        insta::assert_snapshot!(said("2017-10-09 07:01:55,60,many,60,a"), @"`philly.csv` line 2, column `num_gpus`: `many` is not a number; write a number of GPUs such as `8`");
        insta::assert_snapshot!(said("2017-10-09 07:01:55,60,1,60,"), @"`philly.csv` line 2, column `cluster`: is empty, but needed");
    }
}
