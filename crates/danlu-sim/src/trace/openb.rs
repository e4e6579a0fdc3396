//! The `openb` trace of Alibaba's GPU clusters (2023): a list of nodes, and lists of pods that ask for shares of devices.

use std::collections::BTreeMap;

use danlu_sched::{DeviceAsk, Shape};
use danlu_types::{Bytes, Cpus, Device, DeviceCount, DeviceKind, Health, Node, NodeCapacity, NodeName};

use super::TraceError;
use super::table::{Row, Table};

/// A node has at most as many devices; more is a broken file, not a machine.
const MOST_DEVICES: u64 = 64;

/// Reads `openb_node_list_gpu_node.csv`; `file` is for messages.
pub fn read_nodes(file: &str, text: &str) -> Result<Vec<Node>, TraceError> {
    Table::read(file, text)?.rows().map(|row| read_node(&row)).collect()
}

/// Reads one of the `openb_pod_list_*.csv`; each pod is a gang of one.
pub fn read_pods(file: &str, text: &str) -> Result<Vec<Shape>, TraceError> {
    Table::read(file, text)?.rows().map(|row| read_pod(&row)).collect()
}

fn read_node(row: &Row<'_>) -> Result<Node, TraceError> {
    let count = row.number("gpu")?;
    if count > MOST_DEVICES {
        return Err(row.wrong("gpu", row.text("gpu")?, "a number of devices of one machine"));
    }
    let model = row.text("model")?;
    let device = |index| Device {
        index,
        kind: DeviceKind::Nvidia,
        model: model.to_owned(),
        memory: Bytes(0),
        // The trace says nothing of NVLink.
        island: 0,
        health: Health::Ok,
    };
    Ok(Node {
        name: NodeName(row.text("sn")?.to_owned()),
        architecture: "x86_64".to_owned(),
        capacity: NodeCapacity { cpus: cpus(row)?, memory: memory(row)? },
        devices: (0..u32::try_from(count).unwrap_or(0)).map(device).collect(),
        labels: BTreeMap::new(),
        cordoned: None,
        address: String::new(),
        simulated: true,
    })
}

fn read_pod(row: &Row<'_>) -> Result<Shape, TraceError> {
    let milli = match row.number("num_gpu")? {
        0 => 0,
        1 => row.number("gpu_milli")?,
        // Several devices are whole ones.
        count if row.number("gpu_milli")? == 1000 => count.saturating_mul(1000),
        _ => {
            return Err(row.wrong(
                "gpu_milli",
                row.text("gpu_milli")?,
                "1000, as for every pod with several devices",
            ));
        }
    };
    let count = u32::try_from(milli).ok().and_then(DeviceCount::from_milli);
    let count = count
        .ok_or_else(|| row.wrong("gpu_milli", &milli.to_string(), "a share of a device, or whole devices"))?;
    let models = row.optional_text("gpu_spec")?.unwrap_or("").split('|').filter(|model| !model.is_empty());
    Ok(Shape {
        workers: 1,
        alternatives: vec![DeviceAsk {
            kind: (!count.is_none()).then_some(DeviceKind::Nvidia),
            models: models.map(str::to_owned).collect(),
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
    Ok(Cpus { milli: row.number("cpu_milli")? })
}

fn memory(row: &Row<'_>) -> Result<Bytes, TraceError> {
    Ok(Bytes(row.number("memory_mib")?.saturating_mul(1 << 20)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_and_pods_are_read_by_the_names_of_columns() {
        let nodes =
            read_nodes("nodes.csv", "sn,cpu_milli,memory_mib,gpu,model\nn0,64000,262144,2,P100\n").unwrap();
        assert_eq!((nodes[0].name.0.as_str(), nodes[0].devices.len()), ("n0", 2));
        assert_eq!(nodes[0].capacity.memory, Bytes(256 << 30));
        let text = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos\n\
                    a,6000,12288,1,460,,LS\nb,1000,1,2,1000,V100M16|V100M32,LS\nc,1000,1,0,0,,BE\n";
        let pods = read_pods("pods.csv", text).unwrap();
        let counts: Vec<u32> = pods.iter().map(|pod| pod.alternatives[0].count.milli()).collect();
        assert_eq!(counts, [460, 2000, 0]);
        assert_eq!(pods[1].alternatives[0].models, ["V100M16", "V100M32"]);
    }

    #[test]
    fn errors_say_where() {
        let error = |text: &str| read_pods("pods.csv", text).unwrap_err().to_string();
        let header = "name,cpu_milli,memory_mib,num_gpu,gpu_milli\n";
        insta::assert_snapshot!(error(""), @"`pods.csv` is empty; its first line should name the columns");
        insta::assert_snapshot!(error("name,memory_mib,num_gpu,gpu_milli\na,1,1,1000\n"), @"`pods.csv` has no column `cpu_milli`");
        insta::assert_snapshot!(error(&format!("{header}a,1000\n")), @"line 2 of `pods.csv` ends before column `num_gpu`");
        insta::assert_snapshot!(error(&format!("{header}a,1000,x,1,10\n")), @"line 2 of `pods.csv`: `x` in column `memory_mib` is not a whole number");
        insta::assert_snapshot!(error(&format!("{header}a,1000,1,2,500\n")), @"line 2 of `pods.csv`: `500` in column `gpu_milli` is not 1000, as for every pod with several devices");
    }
}
