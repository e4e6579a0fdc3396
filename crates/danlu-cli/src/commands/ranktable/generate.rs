//! `danlu ranktable generate`: from this machine, from names of machines and copies of their `/etc/hccn.conf`, or from
//! each machine's own table.

use std::collections::BTreeMap;
use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use danlu_device::inventory;
use danlu_device::machine::Machine;
use danlu_device::npu_smi::configured_addresses;
use danlu_ranktable::{ParsedTable, RankTable, RankedDevice, Server, Version, Weight};
use danlu_types::{DeviceKind, Family, Node};

use crate::failure::{CliError, USAGE};
use crate::output;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Nodes in rank order, as `ADDRESS` or `NAME:ADDRESS`, e.g. `10.0.0.1,10.0.0.2` [default: this machine]
    #[arg(long, value_delimiter = ',', value_name = "NODE")]
    nodes: Vec<String>,
    /// Number of devices per node, e.g. `8`; for this machine also a range, e.g. `4-7`
    #[arg(long, value_name = "DEVICES")]
    devices: Option<String>,
    /// Copies of the nodes' /etc/hccn.conf, in the order of `--nodes`
    #[arg(long, value_delimiter = ',', value_name = "FILE", requires = "nodes")]
    device_ips: Vec<PathBuf>,
    /// Rank tables of single nodes to join, in rank order
    ///
    /// This is the only way to a table of version `2.0` for several nodes: only the node itself knows the addresses in it.
    #[arg(long, value_delimiter = ',', value_name = "FILE", conflicts_with_all = ["nodes", "devices"])]
    from: Vec<PathBuf>,
    /// Hardware of the nodes, if not this machine's: `910A`, `A2`, `A3`, `310P` or a chip such as `910B3`
    #[arg(long)]
    family: Option<Family>,
    /// Version: `1.0`, `group_list`, `board_id` (MindSpore up to 0.5) or `1.2` [default: suited to the hardware]
    #[arg(long, value_name = "VERSION")]
    version: Option<Version>,
    /// Address at which other nodes reach this machine [default: its host name]
    #[arg(long, value_name = "ADDRESS", conflicts_with = "nodes")]
    server_id: Option<String>,
}

pub(crate) fn run(arguments: Arguments) -> Result<ExitCode, CliError> {
    if !arguments.from.is_empty() {
        return joined(&arguments);
    }
    let (servers, family) =
        if arguments.nodes.is_empty() { this_machine(&arguments)? } else { named_machines(&arguments)? };
    let servers = danlu_ranktable::numbered(servers);
    let version = match (arguments.version, family) {
        (Some(version), _) => version,
        (None, Some(family)) => Version::suited(family, &servers),
        (None, None) => Version::ServerList,
    };
    let table =
        danlu_ranktable::generate(servers, version).map_err(|error| CliError::new(error.to_string()))?;
    print(&table.on_architecture(std::env::consts::ARCH), family)
}

fn joined(arguments: &Arguments) -> Result<ExitCode, CliError> {
    let mut tables = Vec::new();
    for file in &arguments.from {
        let ParsedTable { table, findings } = super::read(file)?;
        for finding in findings {
            output::say(format!("{}: {finding}", file.display()));
        }
        tables.push(table);
    }
    let table = danlu_ranktable::join(tables).map_err(|error| CliError::new(error.to_string()))?;
    let table = match arguments.version {
        Some(version) => {
            danlu_ranktable::convert(table, version).map_err(|error| CliError::new(error.to_string()))?
        }
        None => table,
    };
    print(&table, arguments.family)
}

fn print(table: &RankTable, family: Option<Family>) -> Result<ExitCode, CliError> {
    let findings = danlu_ranktable::validate(table, family);
    for finding in &findings {
        output::say(finding.to_string());
    }
    if findings.iter().any(|finding| finding.weight == Weight::Wrong) {
        return Err(CliError::new("HCCL could not use this rank table, so it is not printed"));
    }
    super::write(&danlu_ranktable::render(table))
}

fn this_machine(arguments: &Arguments) -> Result<(Vec<Server>, Option<Family>), CliError> {
    let found = inventory::look(Machine::this());
    for remark in &found.remarks {
        output::say(remark);
    }
    let Node { name, devices, topology, .. } = found.node;
    let ascend: Vec<_> = devices.into_iter().filter(|device| device.kind == DeviceKind::Ascend).collect();
    let Some(first) = ascend.first() else {
        return Err(CliError::new("this machine has no Ascend devices that `npu-smi` knows of")
            .hint("name the machines instead: `danlu ranktable generate --nodes 10.0.0.1,10.0.0.2 --devices 8 --device-ips a.conf,b.conf --family 910B3`"));
    };
    let family = arguments.family.or_else(|| Family::of(&first.model));
    let wanted = match &arguments.devices {
        None => ascend.iter().map(|device| device.index).collect(),
        Some(text) => device_numbers(text)?,
    };
    let (mut chosen, mut ill) = (Vec::new(), Vec::new());
    for number in wanted {
        let device = ascend.iter().find(|device| device.index == number).ok_or_else(|| {
            let known: Vec<String> = ascend.iter().map(|device| device.index.to_string()).collect();
            CliError::new(format!("this machine has no device {number}; it has {}", known.join(", ")))
                .with_code(USAGE)
        })?;
        let super_device = device.wiring.super_device;
        chosen.push(RankedDevice {
            super_device,
            ..RankedDevice::new(device.physical(), device.wiring.address)
        });
        if !device.usable() {
            ill.push(number);
        }
    }
    if let Some(sentence) = ill_sentence(&ill) {
        // Whoever names them knows what they do.
        if arguments.devices.is_none() {
            return Err(CliError::new(sentence)
                .hint("choose the others with `--devices`, such as `--devices 0-3`; `danlu devices --local` lists them"));
        }
        output::say(sentence);
    }
    let id = arguments.server_id.clone().unwrap_or_else(|| name.to_string());
    let super_pod = topology.super_pod.map(|pod| pod.to_string());
    Ok((vec![Server { super_pod, ..Server::new(id, chosen) }], family))
}

fn ill_sentence(ill: &[u32]) -> Option<String> {
    let list: Vec<String> = ill.iter().map(ToString::to_string).collect();
    match list.len() {
        0 => None,
        1 => Some(format!("device {} is unhealthy, or its health is unknown", list[0])),
        _ => Some(format!("devices {} are unhealthy, or their health is unknown", list.join(", "))),
    }
}

fn named_machines(arguments: &Arguments) -> Result<(Vec<Server>, Option<Family>), CliError> {
    let usage = |message: String| CliError::new(message).with_code(USAGE);
    let devices = arguments.devices.as_deref().ok_or_else(|| {
        usage("`--nodes` needs `--devices`: how many each machine has, such as `--devices 8`".to_owned())
    })?;
    let devices = device_numbers(devices)?;
    let files = &arguments.device_ips;
    if !files.is_empty() && files.len() != arguments.nodes.len() {
        return Err(usage(format!(
            "`--device-ips` names {} files for {} machines; give one for each, in the same order",
            files.len(),
            arguments.nodes.len()
        )));
    }
    let mut servers = Vec::new();
    for (at, node) in arguments.nodes.iter().enumerate() {
        let addresses = match files.get(at) {
            None => BTreeMap::new(),
            Some(file) => {
                let text = fs::read_to_string(file).map_err(|error| {
                    CliError::new(format!("cannot read `{}`", file.display())).caused_by(&error)
                })?;
                let addresses = configured_addresses(&text);
                require_addresses(file, &addresses, &devices)?;
                addresses
            }
        };
        let (id, host) = name_and_address(node);
        let ranked = devices.iter().map(|&device| RankedDevice::new(device, addresses.get(&device)));
        servers.push(Server { host, ..Server::new(id, ranked) });
    }
    Ok((servers, arguments.family))
}

/// A device without an address would pass for one that needs none, and HCCL would wait for it.
fn require_addresses(
    file: &Path,
    addresses: &BTreeMap<u32, IpAddr>,
    devices: &[u32],
) -> Result<(), CliError> {
    let numbers = |devices: &mut dyn Iterator<Item = &u32>| {
        devices.map(ToString::to_string).collect::<Vec<_>>().join(", ")
    };
    let without = numbers(&mut devices.iter().filter(|device| !addresses.contains_key(device)));
    if without.is_empty() {
        return Ok(());
    }
    let failure = CliError::new(format!("`{}` has no address of device {without}", file.display()));
    Err(if addresses.is_empty() {
        failure.hint("a line of /etc/hccn.conf with an address is `address_0=192.168.1.10`")
    } else {
        let known = numbers(&mut addresses.keys());
        failure.hint(format!("it has addresses of {known}; choose among those with `--devices`"))
    })
}

/// `node-0:10.0.0.1` has both; an address of version 6 has colons of its own.
fn name_and_address(node: &str) -> (String, Option<String>) {
    match node.split_once(':') {
        Some((name, address)) if node.parse::<IpAddr>().is_err() => {
            (name.to_owned(), Some(address.to_owned()))
        }
        _ => (node.to_owned(), None),
    }
}

/// `8` is the first eight; `4-7` and `0,2` are those.
fn device_numbers(text: &str) -> Result<Vec<u32>, CliError> {
    const MOST: u32 = 64;
    let wrong = || {
        CliError::new(format!("`{text}` names no devices"))
            .with_code(USAGE)
            .hint("write how many, such as `8`, or which, such as `4-7` or `0,2`")
    };
    let number =
        |text: &str| text.trim().parse::<u32>().ok().filter(|number| *number <= MOST).ok_or_else(wrong);
    if !text.contains([',', '-']) {
        let count = number(text)?;
        return if count == 0 { Err(wrong()) } else { Ok((0..count).collect()) };
    }
    let mut numbers = Vec::new();
    for part in text.split(',') {
        match part.split_once('-') {
            Some((first, last)) => numbers.extend(number(first)?..=number(last)?),
            None => numbers.push(number(part)?),
        }
    }
    if numbers.is_empty() { Err(wrong()) } else { Ok(numbers) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_counted_or_named() {
        assert_eq!(device_numbers("2").unwrap(), [0, 1]);
        assert_eq!(device_numbers("4-7").unwrap(), [4, 5, 6, 7]);
        assert_eq!(device_numbers("0,2").unwrap(), [0, 2]);
        for wrong in ["", "0", "x", "7-4", "1-", "100", "0-4000000000"] {
            assert!(device_numbers(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_device_without_an_address_in_the_file_that_was_given_is_refused() {
        let lines: Vec<String> = (0..8).map(|device| format!("address_{device}=10.0.1.{device}")).collect();
        let addresses = configured_addresses(&lines.join("\n"));
        assert!(require_addresses(Path::new("a.conf"), &addresses, &[0, 7]).is_ok());
        let devices = device_numbers("9").unwrap();
        let refused = require_addresses(Path::new("a.conf"), &addresses, &devices).unwrap_err();
        let said = format!("{refused:?}");
        assert!(said.contains("`a.conf` has no address of device 8"), "{said}");
        assert!(said.contains("0, 1, 2, 3, 4, 5, 6, 7"), "{said}");
        assert!(require_addresses(Path::new("a.conf"), &BTreeMap::new(), &[0]).is_err());
    }

    #[test]
    fn a_machine_has_a_name_or_an_address_or_both() {
        assert_eq!(name_and_address("10.0.0.1"), ("10.0.0.1".to_owned(), None));
        assert_eq!(name_and_address("fd00::1"), ("fd00::1".to_owned(), None));
        assert_eq!(name_and_address("a:10.0.0.1"), ("a".to_owned(), Some("10.0.0.1".to_owned())));
    }
}
