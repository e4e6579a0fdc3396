//! Made-up machines for laptops, demos and tests: `danlu up --simulate 2x8:ascend:910B3,1x8:nvidia:A100-80G`.
//!
//! Workers of a simulated node run as processes of this machine, with the environment that real devices would give.
//! Processors and memory are therefore offered generously: they are not really there, and what a worker may use of
//! this machine is held by its limits.

use std::collections::BTreeMap;
use std::net::IpAddr;

use danlu_types::{Bytes, Cpus, Device, DeviceKind, Health, Node, NodeCapacity, NodeName, Topology, Wiring};

use crate::inventory;

const MOST_NODES: u32 = 10_000;
const MOST_DEVICES_PER_NODE: u32 = 64;
const LONGEST_WORD: usize = 40;

const NODE_CPUS: Cpus = Cpus::whole(192);
const NODE_MEMORY: Bytes = Bytes(1536 << 30);

/// Memory of the models people ask for most, in GiB.
const MEMORY_BY_MODEL: [(&str, u64); 12] = [
    ("910A", 32),
    ("910B1", 64),
    ("910B2", 64),
    ("910B3", 64),
    ("910B4", 32),
    ("A3", 64),
    ("A100-80G", 80),
    ("A100-40G", 40),
    ("H100", 80),
    ("H200", 141),
    ("V100", 32),
    ("A10", 24),
];
const OTHER_MEMORY: u64 = 64;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SimulateError {
    #[error(
        "`{0}` is not a simulated machine; write `host`, or nodes, devices, kind and model as in `2x8:ascend:910B3`"
    )]
    Form(String),
    #[error("`{0}` is not a device kind; write `nvidia` or `ascend`")]
    Kind(String),
    #[error("`{0}` is not a model; write letters, digits, `-`, `_` and `.`, at most {LONGEST_WORD} of them")]
    Model(String),
    #[error("`{0}` asks for {1} devices per node; write 1 to {MOST_DEVICES_PER_NODE}")]
    Devices(String, u64),
    #[error("`{0}` makes {1} nodes in all; write 1 to {MOST_NODES}")]
    Nodes(String, u64),
    #[error(
        "`@{0}` is not a label; write a name and a value of letters, digits, `-`, `_` and `.`, as in `@rack=r1`"
    )]
    Label(String),
    #[error("`host` is named twice; write it once")]
    HostTwice,
}

/// Reads a comma-separated list such as `host,2x8:ascend:910B3@rack=r1@zone=a`. This machine's own node is offered only where `host`
/// asks for it: a demo with simulated devices should not have its jobs land elsewhere.
pub fn parse(text: &str) -> Result<Vec<Node>, SimulateError> {
    parse_with(text, inventory::host)
}

fn parse_with(text: &str, host: impl Fn() -> Node) -> Result<Vec<Node>, SimulateError> {
    let mut nodes: Vec<Node> = Vec::new();
    let mut made_of_model: BTreeMap<String, u32> = BTreeMap::new();
    for item in text.split(',').map(str::trim) {
        if item == "host" {
            if nodes.iter().any(|node| !node.simulated) {
                return Err(SimulateError::HostTwice);
            }
            nodes.push(host());
            continue;
        }
        let group = Group::parse(item)?;
        let in_all = group.nodes.saturating_add(nodes.len() as u64);
        if group.nodes == 0 || in_all > u64::from(MOST_NODES) {
            return Err(SimulateError::Nodes(shown(item), in_all));
        }
        let stem = format!("sim-{}-{}", group.kind, group.model.to_ascii_lowercase());
        let made = made_of_model.entry(stem.clone()).or_default();
        for _ in 0..group.nodes {
            let ordinal = u32::try_from(nodes.len()).unwrap_or(MOST_NODES);
            nodes.push(group.node(NodeName(format!("{stem}-{made}")), ordinal));
            *made += 1;
        }
    }
    Ok(nodes)
}

/// One item of the list: equal machines.
struct Group<'a> {
    nodes: u64,
    devices: u32,
    kind: DeviceKind,
    model: &'a str,
    labels: BTreeMap<String, String>,
}

impl<'a> Group<'a> {
    fn parse(item: &'a str) -> Result<Self, SimulateError> {
        let form = || SimulateError::Form(shown(item));
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        let is_word = |text: &str| !text.is_empty() && text.len() <= LONGEST_WORD && text.bytes().all(fits);
        let mut parts = item.split('@');
        let item = parts.next().unwrap_or_default();
        let mut labels = BTreeMap::new();
        for label in parts {
            let Some((name, value)) =
                label.split_once('=').filter(|(name, value)| is_word(name) && is_word(value))
            else {
                return Err(SimulateError::Label(shown(label)));
            };
            labels.insert(name.to_owned(), value.to_owned());
        }
        let [amounts, kind, model] = item.split(':').collect::<Vec<_>>()[..] else { return Err(form()) };
        let (nodes, devices) = amounts.split_once('x').ok_or_else(form)?;
        // `u64`, so that a merely large number is answered with the limit and not with the form.
        let number = |text: &str| text.parse::<u64>().map_err(|_| form());
        let (nodes, devices) = (number(nodes)?, number(devices)?);
        let kind = kind.parse().map_err(|_| SimulateError::Kind(shown(kind)))?;
        if !is_word(model) {
            return Err(SimulateError::Model(shown(model)));
        }
        let devices = u32::try_from(devices)
            .ok()
            .filter(|devices| (1..=MOST_DEVICES_PER_NODE).contains(devices))
            .ok_or_else(|| SimulateError::Devices(shown(item), devices))?;
        Ok(Group { nodes, devices, kind, model, labels })
    }

    fn node(&self, name: NodeName, ordinal: u32) -> Node {
        let known = MEMORY_BY_MODEL.iter().find(|(model, _)| model.eq_ignore_ascii_case(self.model));
        let memory = Bytes(known.map_or(OTHER_MEMORY, |(_, gibibytes)| *gibibytes) << 30);
        let device = |index| Device {
            index,
            kind: self.kind,
            model: self.model.to_owned(),
            memory,
            island: index / self.island_size(),
            health: Health::Ok,
            wiring: Wiring { address: self.device_address(ordinal, index), ..Wiring::default() },
        };
        Node {
            name,
            // Its workers are processes of this machine, whatever such a node would be in a machine room.
            architecture: std::env::consts::ARCH.to_owned(),
            capacity: NodeCapacity { cpus: NODE_CPUS, memory: NODE_MEMORY },
            devices: (0..self.devices).map(device).collect(),
            address: "127.0.0.1".to_owned(),
            labels: self.labels.clone(),
            cordoned: None,
            topology: Topology::default(),
            simulated: true,
            foreign: Vec::new(),
        }
    }

    /// Ascend devices of different nodes reach each other by addresses of their own, which rank tables name. Those here are nobody's;
    /// they are the same at each start.
    fn device_address(&self, ordinal: u32, index: u32) -> Option<IpAddr> {
        let [_, _, high, low] = ordinal.to_be_bytes();
        let last = u8::try_from(index + 1).ok()?;
        (self.kind == DeviceKind::Ascend).then(|| IpAddr::from([10, high, low, last]))
    }

    /// A 910A board is two HCCS rings of four; other boards of eight reach each other directly.
    fn island_size(&self) -> u32 {
        if self.kind == DeviceKind::Ascend && self.model.eq_ignore_ascii_case("910A") { 4 } else { 8 }
    }
}

/// Enough of a hostile text to recognise it by.
fn shown(text: &str) -> String {
    text.chars().take(60).collect()
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use proptest::prelude::*;

    use super::*;

    /// Whole-state text: names every field of a node, so that a new one has to be placed here.
    fn drawn(nodes: &[Node]) -> String {
        let mut text = String::new();
        for node in nodes {
            let Node {
                name,
                architecture: _,
                capacity,
                devices,
                address,
                labels,
                cordoned,
                topology: _,
                simulated,
                foreign,
            } = node;
            assert_eq!((cordoned, foreign.len()), (&None, 0));
            let NodeCapacity { cpus, memory } = capacity;
            writeln!(
                text,
                "{name} at {address}, {cpus} cores, {memory}, simulated: {simulated}{}",
                labelled(labels)
            )
            .unwrap();
            let islands: Vec<String> = devices.iter().map(|device| device.island.to_string()).collect();
            if let Some(Device { index: _, kind, model, memory, island: _, health, wiring: _ }) =
                devices.first()
            {
                let islands = islands.join("");
                let count = devices.len();
                writeln!(text, "  {count} × {kind} {model} {memory} {health:?}, islands {islands}").unwrap();
            }
        }
        text
    }

    fn labelled(labels: &BTreeMap<String, String>) -> String {
        labels.iter().fold(String::new(), |text, (name, value)| text + ", " + name + "=" + value)
    }

    fn read(text: &str) -> Result<String, String> {
        let host = || Node {
            name: NodeName("desk".to_owned()),
            architecture: "x86_64".to_owned(),
            capacity: NodeCapacity { cpus: Cpus::whole(4), memory: Bytes(8 << 30) },
            devices: Vec::new(),
            address: "127.0.0.1".to_owned(),
            labels: BTreeMap::new(),
            cordoned: None,
            topology: Topology::default(),
            simulated: false,
            foreign: Vec::new(),
        };
        parse_with(text, host).map(|nodes| drawn(&nodes)).map_err(|error| error.to_string())
    }

    #[test]
    fn machines_are_made_as_written() {
        insta::assert_snapshot!(read("host,2x8:ascend:910B3,1x8:nvidia:A100-80G, 1x8:npu:910A,1x2:ascend:910b3,1x16:ascend:X9@rack=r1@zone=a").unwrap(), @r"
        desk at 127.0.0.1, 4 cores, 8Gi, simulated: false
        sim-ascend-910b3-0 at 127.0.0.1, 192 cores, 1536Gi, simulated: true
          8 × ascend 910B3 64Gi Ok, islands 00000000
        sim-ascend-910b3-1 at 127.0.0.1, 192 cores, 1536Gi, simulated: true
          8 × ascend 910B3 64Gi Ok, islands 00000000
        sim-nvidia-a100-80g-0 at 127.0.0.1, 192 cores, 1536Gi, simulated: true
          8 × nvidia A100-80G 80Gi Ok, islands 00000000
        sim-ascend-910a-0 at 127.0.0.1, 192 cores, 1536Gi, simulated: true
          8 × ascend 910A 32Gi Ok, islands 00001111
        sim-ascend-910b3-2 at 127.0.0.1, 192 cores, 1536Gi, simulated: true
          2 × ascend 910b3 64Gi Ok, islands 00
        sim-ascend-x9-0 at 127.0.0.1, 192 cores, 1536Gi, simulated: true, rack=r1, zone=a
          16 × ascend X9 64Gi Ok, islands 0000000011111111
        ");
    }

    #[test]
    fn simulated_npus_have_addresses_that_nobody_shares() {
        let nodes = parse("2x8:ascend:910A,1x8:nvidia:H100,300x64:ascend:910B3").unwrap();
        let addresses = |at: usize| nodes[at].devices.iter().filter_map(|device| device.wiring.address);
        assert_eq!(addresses(1).next(), Some(IpAddr::from([10, 0, 1, 1])));
        assert_eq!(addresses(2).count(), 0, "NVIDIA devices have none");
        let all: Vec<IpAddr> = (0..nodes.len()).flat_map(addresses).collect();
        let different: std::collections::BTreeSet<&IpAddr> = all.iter().collect();
        assert_eq!((all.len(), different.len()), (302 * 64 - 2 * 56, 302 * 64 - 2 * 56));
    }

    #[test]
    fn what_cannot_be_made_is_refused_with_what_could() {
        let refused: Vec<String> = [
            "",
            "8",
            "2x8",
            "2x8:ascend",
            "-1x8:ascend:910B3",
            "2x8:tpu:v4",
            "2x8:ascend:",
            "2x8:ascend:9 10",
            "2x8:ascend:910B3@rack",
            "2x8:ascend:910B3@rack=",
            "2x8:ascend:910B3@rack=r 1",
            "0x8:ascend:910B3",
            "2x0:ascend:910B3",
            "2x65:ascend:910B3",
            "10001x8:ascend:910B3",
            "9999x8:ascend:910B3,2x8:ascend:910B3",
            "18446744073709551615x8:ascend:910B3,host",
            "99999999999999999999x8:ascend:910B3",
            "host,host",
        ]
        .into_iter()
        .map(|text| read(text).unwrap_err())
        .collect();
        insta::assert_snapshot!(refused.join("\n"), @r"
        `` is not a simulated machine; write `host`, or nodes, devices, kind and model as in `2x8:ascend:910B3`
        `8` is not a simulated machine; write `host`, or nodes, devices, kind and model as in `2x8:ascend:910B3`
        `2x8` is not a simulated machine; write `host`, or nodes, devices, kind and model as in `2x8:ascend:910B3`
        `2x8:ascend` is not a simulated machine; write `host`, or nodes, devices, kind and model as in `2x8:ascend:910B3`
        `-1x8:ascend:910B3` is not a simulated machine; write `host`, or nodes, devices, kind and model as in `2x8:ascend:910B3`
        `tpu` is not a device kind; write `nvidia` or `ascend`
        `` is not a model; write letters, digits, `-`, `_` and `.`, at most 40 of them
        `9 10` is not a model; write letters, digits, `-`, `_` and `.`, at most 40 of them
        `@rack` is not a label; write a name and a value of letters, digits, `-`, `_` and `.`, as in `@rack=r1`
        `@rack=` is not a label; write a name and a value of letters, digits, `-`, `_` and `.`, as in `@rack=r1`
        `@rack=r 1` is not a label; write a name and a value of letters, digits, `-`, `_` and `.`, as in `@rack=r1`
        `0x8:ascend:910B3` makes 0 nodes in all; write 1 to 10000
        `2x0:ascend:910B3` asks for 0 devices per node; write 1 to 64
        `2x65:ascend:910B3` asks for 65 devices per node; write 1 to 64
        `10001x8:ascend:910B3` makes 10001 nodes in all; write 1 to 10000
        `2x8:ascend:910B3` makes 10001 nodes in all; write 1 to 10000
        `18446744073709551615x8:ascend:910B3` makes 18446744073709551615 nodes in all; write 1 to 10000
        `99999999999999999999x8:ascend:910B3` is not a simulated machine; write `host`, or nodes, devices, kind and model as in `2x8:ascend:910B3`
        `host` is named twice; write it once
        ");
    }

    proptest! {
        #[test]
        fn no_text_makes_the_reader_panic(text in ".{0,60}") {
            let _ = read(&text);
        }

        #[test]
        fn names_and_device_numbers_are_never_doubled(a in 1u32..5, b in 1u32..5, devices in 1u32..20) {
            let nodes = parse(&format!("{a}x{devices}:ascend:910B3,{b}x4:nvidia:H100,{b}x2:npu:910b3")).unwrap();
            let names: std::collections::BTreeSet<_> = nodes.iter().map(|node| &node.name).collect();
            prop_assert_eq!(names.len(), nodes.len());
            for node in &nodes {
                prop_assert!(node.devices.iter().map(|device| device.index).eq(0..u32::try_from(node.devices.len()).unwrap()));
            }
        }
    }
}
