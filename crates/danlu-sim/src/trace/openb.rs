//! The `openb` trace of Alibaba's GPU clusters (2023): a list of nodes, and lists of pods that ask for shares of devices.
//!
//! [`read_pods`] is for [`crate::place`], which asks where pods go and not when: pods are shapes there, and their times are
//! ignored. [`read`] is for a replay in time: a pod arrives when it was created, and works as long as it was there after
//! it was scheduled.

use std::collections::BTreeMap;
use std::io::BufRead;

use danlu_sched::{DeviceAsk, Shape};
use danlu_types::{
    Bytes, Cpus, Device, DeviceCount, DeviceKind, DeviceRequest, Health, JobSpec, Node, NodeCapacity,
    NodeName, Span, Topology, Wiring,
};

use super::csv::{Row, Table, shown};
use super::{Assumptions, Trace, TraceError, from_first_submission};
use crate::story::SimJob;

const NODE_COLUMNS: [&str; 5] = ["sn", "cpu_milli", "memory_mib", "gpu", "model"];
const POD_COLUMNS: [&str; 5] = ["name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli"];
const MORE_POD_COLUMNS: [&str; 6] =
    ["gpu_spec", "qos", "pod_phase", "creation_time", "deletion_time", "scheduled_time"];

const TIMED_POD_COLUMNS: [&str; 8] = [
    "name",
    "cpu_milli",
    "memory_mib",
    "num_gpu",
    "gpu_milli",
    "creation_time",
    "deletion_time",
    "scheduled_time",
];
const MORE_TIMED_POD_COLUMNS: [&str; 3] = ["gpu_spec", "qos", "pod_phase"];

/// A machine with more is a broken file.
const MOST_DEVICES: u32 = 64;

/// Reads `openb_node_list_gpu_node.csv`.
pub fn read_nodes(file: &str, input: impl BufRead) -> Result<Vec<Node>, TraceError> {
    let mut table = Table::new(file, input, &NODE_COLUMNS, &[])?;
    let mut nodes = Vec::new();
    while let Some(row) = table.next_row()? {
        nodes.push(read_node(&row)?);
    }
    Ok(nodes)
}

/// Reads one of the `openb_pod_list_*.csv`; each pod is a gang of one.
pub fn read_pods(file: &str, input: impl BufRead) -> Result<Vec<Shape>, TraceError> {
    let mut table = Table::new(file, input, &POD_COLUMNS, &MORE_POD_COLUMNS)?;
    let mut pods = Vec::new();
    while let Some(row) = table.next_row()? {
        pods.push(read_pod(&row)?);
    }
    Ok(pods)
}

/// Reads the same as jobs that arrive in time, for these nodes.
pub fn read(
    file: &str,
    input: impl BufRead,
    nodes: Vec<Node>,
    assumptions: &Assumptions,
) -> Result<Trace, TraceError> {
    let mut table = Table::new(file, input, &TIMED_POD_COLUMNS, &MORE_TIMED_POD_COLUMNS)?;
    let (mut jobs, mut never_ran) = (Vec::new(), 0);
    while let Some(row) = table.next_row()? {
        match read_job(&row, assumptions)? {
            Some(job) => jobs.push(job),
            None => never_ran += 1,
        }
    }
    from_first_submission(&mut jobs);
    let notes = vec![
        format!("{} pods of `{file}`, each a job of one worker that cannot be preempted", jobs.len()),
        format!("{never_ran} pods that were never scheduled, or are not known to have ended, are left out"),
        assumptions.note(),
    ];
    Ok(Trace { name: file.to_owned(), nodes, jobs, notes, ..Trace::default() })
}

/// So many times as many nodes, evenly over the list.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "positive, and the cast saturates"
)]
pub fn scaled(nodes: &[Node], scale: f64) -> Vec<Node> {
    let copies = |at: usize| ((at + 1) as f64 * scale) as usize - (at as f64 * scale) as usize;
    let copy = |node: &Node, number: usize| match number {
        0 => node.clone(),
        _ => Node { name: NodeName(format!("{}-{}", node.name.0, number + 1)), ..node.clone() },
    };
    nodes
        .iter()
        .enumerate()
        .flat_map(|(at, node)| (0..copies(at)).map(move |number| copy(node, number)))
        .collect()
}

/// Nothing of a pod that never ran.
fn read_job(row: &Row<'_>, assumptions: &Assumptions) -> Result<Option<SimJob>, TraceError> {
    let seconds = |column: &str| row.number::<u64>(column, "seconds, such as `427061`");
    let created: u64 = number(row, "creation_time")?;
    let (Some(scheduled), Some(deleted)) = (seconds("scheduled_time")?, seconds("deletion_time")?) else {
        return Ok(None);
    };
    if deleted < scheduled || scheduled < created {
        let problem = format!("is {deleted}; a pod is created, scheduled and deleted in this order");
        return Err(row.wrong("deletion_time", problem));
    }
    let shape = read_pod(row)?;
    let mut spec = JobSpec::of_command("true");
    row.required("name")?.clone_into(&mut spec.name);
    if let Some(ask) = shape.alternatives.first() {
        let models = ask.models.join("|");
        let model = (!models.is_empty()).then_some(models);
        spec.devices = DeviceRequest { kind: ask.kind, model, count: ask.count };
    }
    (spec.cpus, spec.memory) = (shape.cpus, Some(shape.memory));
    let runs = Span::from_seconds(deleted - scheduled);
    let mut job = SimJob::succeeding(Span::from_seconds(created), spec, runs);
    assumptions.apply(&mut job);
    Ok(Some(job))
}

fn read_node(row: &Row<'_>) -> Result<Node, TraceError> {
    let count: u32 = number(row, "gpu")?;
    if count > MOST_DEVICES {
        return Err(row.wrong("gpu", format!("is {count}; a machine has at most {MOST_DEVICES}")));
    }
    let model = row.required("model")?;
    let device = |index| Device {
        index,
        kind: DeviceKind::Nvidia,
        model: model.to_owned(),
        memory: Bytes(0),
        // The trace says nothing of NVLink.
        island: 0,
        health: Health::Ok,
        wiring: Wiring::default(),
    };
    Ok(Node {
        name: NodeName(row.required("sn")?.to_owned()),
        architecture: "x86_64".to_owned(),
        capacity: NodeCapacity { cpus: cpus(row)?, memory: memory(row)? },
        devices: (0..count).map(device).collect(),
        labels: BTreeMap::new(),
        cordoned: None,
        address: String::new(),
        topology: Topology::default(),
        simulated: true,
        foreign: Vec::new(),
    })
}

fn read_pod(row: &Row<'_>) -> Result<Shape, TraceError> {
    let devices: u32 = number(row, "num_gpu")?;
    let share: u32 = number(row, "gpu_milli")?;
    let milli = match devices {
        0 => 0,
        1 => share,
        _ if share == 1000 => devices.saturating_mul(1000),
        _ => {
            let problem = format!("is {share}; pods with several devices have 1000 of each");
            return Err(row.wrong("gpu_milli", problem));
        }
    };
    let count = DeviceCount::from_milli(milli).ok_or_else(|| {
        row.wrong("gpu_milli", format!("is {milli}; write at most 1000, the whole of one device"))
    })?;
    let models = row.text("gpu_spec").unwrap_or("").split('|').filter(|model| !model.is_empty());
    Ok(Shape {
        workers: 1,
        alternatives: vec![DeviceAsk {
            kind: (!count.is_none()).then_some(DeviceKind::Nvidia),
            models: models.map(shown).collect(),
            count,
        }],
        cpus: cpus(row)?,
        memory: memory(row)?,
        architecture: None,
        labels: BTreeMap::new(),
        same_rack: false,
    })
}

fn cpus(row: &Row<'_>) -> Result<Cpus, TraceError> {
    Ok(Cpus { milli: number(row, "cpu_milli")? })
}

fn memory(row: &Row<'_>) -> Result<Bytes, TraceError> {
    Ok(Bytes(number::<u64>(row, "memory_mib")?.saturating_mul(1 << 20)))
}

fn number<T: std::str::FromStr>(row: &Row<'_>, column: &str) -> Result<T, TraceError> {
    row.required(column)?;
    let number = row.number(column, "a whole number, such as `1000`")?;
    number.ok_or_else(|| row.wrong(column, "is empty, but needed".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_and_pods_are_read_by_the_names_of_columns() {
        let text = "sn,cpu_milli,memory_mib,gpu,model\nn0,64000,262144,2,P100\n";
        let nodes = read_nodes("nodes.csv", text.as_bytes()).unwrap();
        assert_eq!((nodes[0].name.0.as_str(), nodes[0].devices.len()), ("n0", 2));
        assert_eq!(nodes[0].capacity.memory, Bytes(256 << 30));
        let text = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos\n\
                    a,6000,12288,1,460,,LS\nb,1000,1,2,1000,V100M16|V100M32,LS\nc,1000,1,0,0,,BE\n";
        let pods = read_pods("pods.csv", text.as_bytes()).unwrap();
        let counts: Vec<u32> = pods.iter().map(|pod| pod.alternatives[0].count.milli()).collect();
        assert_eq!(counts, [460, 2000, 0]);
        assert_eq!(pods[1].alternatives[0].models, ["V100M16", "V100M32"]);
    }

    #[test]
    fn pods_in_time_arrive_when_created_and_work_as_long_as_they_were_scheduled() {
        let text = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n\
                    late,6000,12288,1,460,,LS,Running,160,400,190\n\
                    first,1000,1024,2,1000,V100M16|V100M32,LS,Succeeded,100,130,100\n\
                    never,1000,1,0,0,,BE,Pending,110,500,\n";
        let trace = read("pods.csv", text.as_bytes(), Vec::new(), &Assumptions::default()).unwrap();
        let [first, late] = &trace.jobs[..] else { panic!("two jobs") };
        assert_eq!((first.submit_at, first.parts[0].runs), (Span::default(), Span::from_seconds(30)));
        assert_eq!((late.submit_at, late.parts[0].runs), (Span::from_seconds(60), Span::from_seconds(210)));
        assert_eq!(first.spec.devices, "nvidia:V100M16|V100M32:2".parse().unwrap());
        assert_eq!((late.spec.devices.count.milli(), late.spec.cpus), (460, Cpus::whole(6)));
        assert!(trace.notes[1].starts_with("1 pods"), "{:?}", trace.notes);
        let error = |times: &str| {
            let text =
                text.lines().next().unwrap().to_owned() + &format!("\nx,1,1,0,0,,LS,Running,{times}\n");
            read("pods.csv", text.as_bytes(), Vec::new(), &Assumptions::default()).unwrap_err().to_string()
        };
        insta::assert_snapshot!(error("soon,2,1"), @"`pods.csv` line 2, column `creation_time`: `soon` is not a number; write a whole number, such as `1000`");
        insta::assert_snapshot!(error("1,2,3"), @"`pods.csv` line 2, column `deletion_time`: is 2; a pod is created, scheduled and deleted in this order");
    }

    #[test]
    fn fewer_or_more_nodes_are_taken_evenly() {
        let text = "sn,cpu_milli,memory_mib,gpu,model\na,1,1,1,T4\nb,1,1,1,T4\nc,1,1,1,T4\nd,1,1,1,T4\n";
        let nodes = read_nodes("nodes.csv", text.as_bytes()).unwrap();
        let names = |scale| scaled(&nodes, scale).iter().map(|node| node.name.0.clone()).collect::<Vec<_>>();
        assert_eq!(names(0.5), ["b", "d"]);
        assert_eq!(names(1.5), ["a", "b", "b-2", "c", "d", "d-2"]);
    }

    #[test]
    fn errors_say_where() {
        let error = |text: &str| read_pods("pods.csv", text.as_bytes()).unwrap_err().to_string();
        let header = "name,cpu_milli,memory_mib,num_gpu,gpu_milli\n";
        insta::assert_snapshot!(error("name,memory_mib,num_gpu,gpu_milli\n"), @"`pods.csv` line 1: the header has no column `cpu_milli`; needed are `name`, `cpu_milli`, `memory_mib`, `num_gpu`, `gpu_milli`");
        insta::assert_snapshot!(error(&format!("{header}a,1000,x,1,10\n")), @"`pods.csv` line 2, column `memory_mib`: `x` is not a number; write a whole number, such as `1000`");
        insta::assert_snapshot!(error(&format!("{header}a,1000,1,,10\n")), @"`pods.csv` line 2, column `num_gpu`: is empty, but needed");
        insta::assert_snapshot!(error(&format!("{header}a,1000,1,2,500\n")), @"`pods.csv` line 2, column `gpu_milli`: is 500; pods with several devices have 1000 of each");
        insta::assert_snapshot!(error(&format!("{header}a,1000,1,1,1500\n")), @"`pods.csv` line 2, column `gpu_milli`: is 1500; write at most 1000, the whole of one device");
    }
}
