//! `scontrol --oneliner --details show node`: the machines on offer.

use std::collections::BTreeMap;

use danlu_types::{Bytes, Cpus, Device, DeviceKind, Health, Node, NodeCapacity, NodeName, Topology, Wiring};

use super::gres::{Gres, numbered, parse_gres};
use super::settings::SlurmSettings;

/// The words before `=` of a node's record that begin a value we read, or end one that may hold blanks.
const KEYS: [&str; 26] = [
    "NodeName",
    "Arch",
    "CoresPerSocket",
    "CPUAlloc",
    "CPUEfctv",
    "CPUTot",
    "CPULoad",
    "AvailableFeatures",
    "ActiveFeatures",
    "Gres",
    "GresDrain",
    "GresUsed",
    "NodeAddr",
    "NodeHostName",
    "Port",
    "Version",
    "OS",
    "RealMemory",
    "AllocMem",
    "State",
    "ThreadsPerCore",
    "Partitions",
    "MemSpecLimit",
    "BootTime",
    "Reason",
    "Comment",
];

/// Of the states that Slurm joins with `+`, those in which a node starts nothing.
const NOT_USABLE: [&str; 11] = [
    "DOWN",
    "DRAIN",
    "DRAINING",
    "DRAINED",
    "FAIL",
    "FAILING",
    "ERROR",
    "MAINT",
    "NOT_RESPONDING",
    "UNKNOWN",
    "FUTURE",
];

/// Those in which what ran there is gone, or nobody knows.
const AWAY: [&str; 6] = ["DOWN", "ERROR", "FAIL", "NOT_RESPONDING", "POWERED_DOWN", "UNKNOWN"];

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeRecord {
    pub name: String,
    pub address: String,
    pub architecture: String,
    pub cpus: u64,
    pub memory: Bytes,
    pub gres: Vec<Gres>,
    /// Labels of resources of which Slurm says which of them a job has: those with device files.
    pub numbered: Vec<String>,
    pub features: Vec<String>,
    pub partitions: Vec<String>,
    /// `IDLE`, `DRAIN`; a star for one that does not answer is written out.
    pub states: Vec<String>,
    pub reason: Option<String>,
}

impl NodeRecord {
    /// Whether what ran there can have been lost.
    pub fn is_away(&self) -> bool {
        self.states.iter().any(|state| AWAY.contains(&state.as_str()))
    }
}

/// What of a node's devices is which resource of Slurm's: devices are counted through, resources each from 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GresSlot {
    /// `gpu:a100`, as `--gres` wants it.
    pub label: String,
    pub first: u32,
    pub count: u32,
    /// Whether Slurm says which of them a job has.
    pub is_numbered: bool,
}

/// The nodes of an answer; what is no node's record is passed over.
pub fn parse_nodes(text: &str) -> Vec<NodeRecord> {
    text.lines().filter_map(parse_record).collect()
}

fn parse_record(line: &str) -> Option<NodeRecord> {
    let fields = fields(line);
    let word = |key: &str| fields.get(key).copied().filter(|value| !is_nothing(value));
    let number = |key: &str| word(key).and_then(|value| value.parse::<u64>().ok());
    let list = |key: &str| -> Vec<String> {
        word(key).map(|value| value.split(',').map(str::to_owned).collect()).unwrap_or_default()
    };
    let name = word("NodeName").filter(|name| is_host(name))?.to_owned();
    // Of a cut line the rest is not to be trusted.
    let state = word("State")?;
    let mut states: Vec<String> = state
        .split('+')
        .map(|part| part.trim_end_matches(['*', '~', '#', '!', '%', '$', '@', '^', '-']).to_owned())
        .filter(|part| !part.is_empty())
        .collect();
    if state.contains('*') && !states.iter().any(|word| word == "NOT_RESPONDING") {
        states.push("NOT_RESPONDING".to_owned());
    }
    let megabytes = number("RealMemory")?.saturating_sub(number("MemSpecLimit").unwrap_or(0));
    Some(NodeRecord {
        address: word("NodeAddr").filter(|address| is_host(address)).unwrap_or(&name).to_owned(),
        architecture: word("Arch").unwrap_or_default().to_owned(),
        cpus: number("CPUEfctv").or_else(|| number("CPUTot"))?,
        memory: Bytes(megabytes.saturating_mul(1 << 20)),
        gres: word("Gres").map(parse_gres).unwrap_or_default(),
        numbered: word("GresUsed").map(numbered).unwrap_or_default(),
        features: list("ActiveFeatures"),
        partitions: list("Partitions"),
        states,
        reason: word("Reason").map(str::to_owned),
        name,
    })
}

/// The values by their keys. A value reaches to the next key that we know, and the first of a key counts.
fn fields(line: &str) -> BTreeMap<&str, &str> {
    let mut begins: Vec<(usize, &str)> = Vec::new();
    let mut at = 0;
    for word in line.split(' ') {
        // After a reason only a comment follows; all else in it is what a person wrote.
        let in_reason = begins.last().is_some_and(|(_, key)| *key == "Reason");
        if let Some((key, _)) = word.split_once('=')
            && (if in_reason { key == "Comment" } else { KEYS.contains(&key) })
        {
            begins.push((at, key));
        }
        at += word.len() + 1;
    }
    let mut fields = BTreeMap::new();
    for (index, (begin, key)) in begins.iter().enumerate() {
        let end = begins.get(index + 1).map_or(line.len(), |(next, _)| *next);
        let value = line[begin + key.len() + 1..end].trim();
        // Keys that we do not know follow those that we do; only reasons may hold blanks.
        let value = if *key == "Reason" { value } else { value.split(' ').next().unwrap_or_default() };
        fields.entry(*key).or_insert(value);
    }
    fields
}

fn is_nothing(value: &str) -> bool {
    matches!(value, "" | "(null)" | "N/A" | "None")
}

fn is_host(text: &str) -> bool {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "_-.:".contains(letter);
    text.len() <= 253 && text.chars().all(plain)
}

/// The node as schedulers are to see it, and which resource each of its devices is.
pub fn node(record: &NodeRecord, settings: &SlurmSettings) -> (Node, Vec<GresSlot>) {
    let (mut devices, mut slots): (Vec<Device>, Vec<GresSlot>) = (Vec::new(), Vec::new());
    for gres in &record.gres {
        let Some((kind, model, memory)) = meaning(gres, settings) else { continue };
        let first = u32::try_from(devices.len()).unwrap_or(u32::MAX);
        devices.extend((0..gres.count).map(|number| Device {
            index: first.saturating_add(number),
            kind,
            model: model.clone(),
            memory,
            island: 0,
            health: Health::Ok,
            wiring: Wiring::default(),
        }));
        let (label, count) = (gres.label(), gres.count);
        let is_numbered = record.numbered.contains(&label);
        slots.push(GresSlot { label, first, count, is_numbered });
    }
    let labels = record.features.iter().map(|feature| match feature.split_once('=') {
        Some((key, value)) => (key.to_owned(), value.to_owned()),
        None => (feature.clone(), "true".to_owned()),
    });
    let node = Node {
        name: NodeName(record.name.clone()),
        architecture: record.architecture.clone(),
        capacity: NodeCapacity {
            cpus: Cpus { milli: record.cpus.saturating_mul(1000) },
            memory: record.memory,
        },
        devices,
        labels: labels.collect(),
        cordoned: cordoned(record),
        address: record.address.clone(),
        topology: Topology::default(),
        simulated: false,
        foreign: Vec::new(),
    };
    (node, slots)
}

fn meaning(gres: &Gres, settings: &SlurmSettings) -> Option<(DeviceKind, String, Bytes)> {
    let label = gres.label();
    let rule = settings.gres.iter().find(|rule| rule.gres == label);
    let rule = rule.or_else(|| settings.gres.iter().find(|rule| rule.gres == gres.name));
    let own = || gres.model.as_deref().unwrap_or(&gres.name).to_ascii_uppercase();
    if let Some(rule) = rule {
        return Some((rule.kind, rule.model.clone().unwrap_or_else(own), rule.memory));
    }
    match gres.name.as_str() {
        "gpu" => Some((DeviceKind::Nvidia, own(), Bytes::default())),
        "npu" => Some((DeviceKind::Ascend, own(), Bytes::default())),
        _ => None,
    }
}

/// Why nothing may start there, in Slurm's words.
fn cordoned(record: &NodeRecord) -> Option<String> {
    let states: Vec<String> = record
        .states
        .iter()
        .filter(|state| NOT_USABLE.contains(&state.as_str()))
        .map(|state| state.to_ascii_lowercase())
        .collect();
    if states.is_empty() {
        return None;
    }
    let because = record.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
    Some(format!("Slurm says {}{because}", states.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    // One record as each release writes it, the last by 26.05 itself; the values are made up.
    const RELEASES: &str = include_str!("fixtures/nodes.txt");

    #[test]
    fn the_records_of_all_releases_are_read() {
        let mut shown = Vec::new();
        for record in parse_nodes(RELEASES) {
            let (node, slots) = node(&record, &SlurmSettings::default());
            let models: Vec<String> = slots
                .iter()
                .map(|slot| format!("{}x{} from {}", slot.count, slot.label, slot.first))
                .collect();
            shown.push(format!(
                "{} at {} ({}): {} CPUs, {}, [{}], labels {:?}, in {:?}, {}",
                node.name,
                node.address,
                node.architecture,
                node.capacity.cpus,
                node.capacity.memory,
                models.join(", "),
                node.labels,
                record.partitions,
                node.cordoned.as_deref().unwrap_or("open"),
            ));
        }
        insta::assert_snapshot!(shown.join("\n"), @r#"
        old1 at old1 (x86_64): 64 CPUs, 250Gi, [4xgpu:v100 from 0], labels {}, in ["main", "low"], open
        mid2 at 10.0.0.2 (aarch64): 188 CPUs, 1000000Mi, [8xnpu:910b from 0, 2xgpu:a100 from 8], labels {"ib": "true", "rack": "r1"}, in ["npu"], open
        new3 at new3.cluster (x86_64): 128 CPUs, 2000000Mi, [8xgpu:h100 from 0], labels {"nvlink": "true"}, in ["main"], Slurm says drain: new fans State=IDLE [root@2025-03-02T09:00:00]
        new4 at new4 (x86_64): 128 CPUs, 64000Mi, [], labels {}, in ["main"], Slurm says down, not_responding: Not responding [slurm@2026-05-02T09:00:00]
        new5 at 127.0.0.1 (x86_64): 64 CPUs, 500Gi, [8xgpu:a100 from 0, 16xnpu:910b from 8], labels {}, in ["main", "low"], Slurm says drain: new fans = old=fans [root@2026-11-18T18:47:42]
        "#);
    }

    #[test]
    fn a_site_says_what_its_resources_are() {
        let settings: SlurmSettings = serde_json::from_str(
            r#"{"gres": [{"gres": "gpu:910b", "kind": "ascend", "model": "910B3", "memory": "64Gi"}, {"gres": "gpu", "kind": "nvidia"}]}"#,
        )
        .unwrap();
        let record = parse_record(
            "NodeName=n1 CPUTot=8 Gres=gpu:910b:2,gpu:h100:1,tape:3 RealMemory=1000 State=IDLE Partitions=main",
        );
        let (node, slots) = node(&record.unwrap(), &settings);
        let shown: Vec<String> = node
            .devices
            .iter()
            .map(|device| format!("{} {} {} {}", device.index, device.kind, device.model, device.memory))
            .collect();
        insta::assert_snapshot!(shown.join("\n"), @r"
        0 ascend 910B3 64Gi
        1 ascend 910B3 64Gi
        2 nvidia H100 0
        ");
        assert_eq!(slots.len(), 2);
    }

    #[test]
    fn a_reason_is_not_taken_for_a_state() {
        let line = "NodeName=n1 CPUTot=8 RealMemory=10 State=IDLE+DRAIN Partitions=a \
                    Reason=State=IDLE Gres=gpu:99 really [root@2026-01-01T00:00:00]";
        let record = parse_record(line).unwrap();
        assert_eq!(record.states, ["IDLE", "DRAIN"]);
        assert!(record.gres.is_empty());
        assert_eq!(
            record.reason.as_deref(),
            Some("State=IDLE Gres=gpu:99 really [root@2026-01-01T00:00:00]")
        );
    }

    proptest! {
        #[test]
        fn no_record_is_too_strange(text in "(.|\n){0,300}") {
            for record in parse_nodes(&text) {
                let _ = node(&record, &SlurmSettings::default());
            }
        }

        #[test]
        fn nor_one_that_was_cut(at in 0_usize..4000) {
            let cut = RELEASES.char_indices().map(|(index, _)| index).nth(at).unwrap_or(RELEASES.len());
            for record in parse_nodes(&RELEASES[..cut]) {
                let _ = node(&record, &SlurmSettings::default());
            }
        }
    }
}
