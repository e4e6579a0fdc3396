//! The `openb` trace of Alibaba's GPU clusters (2023): a list of nodes, and lists of pods that ask for shares of devices.
//!
//! It is read for [`crate::place`], which asks where pods go and not when: so pods are shapes, and their times are ignored.

use std::collections::BTreeMap;
use std::io::BufRead;

use danlu_sched::{DeviceAsk, Shape};
use danlu_types::{
    Bytes, Cpus, Device, DeviceCount, DeviceKind, Health, Node, NodeCapacity, NodeName, Topology, Wiring,
};

use super::TraceError;
use super::csv::{Row, Table, shown};

const NODE_COLUMNS: [&str; 5] = ["sn", "cpu_milli", "memory_mib", "gpu", "model"];
const POD_COLUMNS: [&str; 5] = ["name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli"];
const MORE_POD_COLUMNS: [&str; 6] =
    ["gpu_spec", "qos", "pod_phase", "creation_time", "deletion_time", "scheduled_time"];

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
