//! `danlu launch`: a training on this machine with no server at all, instead of a hand-written `train.sh`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use danlu_core::node::{OwnUse, outside_use};
use danlu_device::inventory;
use danlu_device::machine::Machine;
use danlu_launch::standalone::{self, MultiNode, StandaloneRequest};
use danlu_types::{Bytes, Device, DeviceKind, ForeignKind, Framework, Health, Node, Reading, Span, Wiring};
use jiff::Timestamp;

use crate::failure::{CliError, USAGE};
use crate::job_flags::command_line;
use crate::output;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Devices of this machine to use, e.g. `0-7`, `0,2,4` or `ascend:0-7` [default: none]
    #[arg(long, value_name = "DEVICES")]
    devices: Option<String>,
    /// Ranks on this machine: `per-device`, `per-worker` or a number [default: `per-device`]
    #[arg(long, value_name = "RANKS")]
    ranks: Option<String>,
    /// Framework whose environment variables the ranks get
    #[arg(long, value_enum, default_value = "pytorch")]
    framework: FrameworkName,
    /// Number of nodes; run the same command on each
    #[arg(long, default_value_t = 1, value_name = "N", requires_if("2", "rendezvous"))]
    nodes: u32,
    /// Index of this node, from 0
    #[arg(long, default_value_t = 0, value_name = "N")]
    node_rank: u32,
    /// Empty folder that all nodes share, through which they find each other
    #[arg(long, value_name = "FOLDER")]
    rendezvous: Option<PathBuf>,
    /// Address at which other nodes reach this one, e.g. `10.0.0.1` [default: `127.0.0.1`]
    #[arg(long, value_name = "ADDRESS")]
    address: Option<String>,
    /// Time to wait for the other nodes
    #[arg(long, default_value = "10m", value_name = "DURATION")]
    wait: Span,
    /// Grace period of the ranks after Ctrl-C or after a rank failed
    #[arg(long, default_value = "30s", value_name = "DURATION")]
    grace: Span,
    /// Use devices even if other processes use them or this machine does not list them
    #[arg(long)]
    force: bool,
    /// Do not bind ranks to CPUs
    #[arg(long)]
    no_binding: bool,
    /// Command to run, once per rank
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<String>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum FrameworkName {
    Pytorch,
    Tensorflow,
    Mindspore,
    Mpi,
    None,
}

pub(crate) fn run(arguments: Arguments) -> Result<ExitCode, CliError> {
    let found = inventory::look(Machine::this());
    let asked = arguments.devices.is_some() && !arguments.force;
    let readings =
        if asked && !found.node.devices.is_empty() { found.reader.read() } else { Ok(BTreeMap::new()) };
    let (node, force) = (found.node.clone(), arguments.force);
    let request = request(arguments, found.node)?;
    if !force {
        let objection = match readings {
            Ok(readings) => objection(&request.devices, &node, &readings),
            Err(remark) => Some(format!("cannot tell who uses the devices: {remark}")),
        };
        if let Some(objection) = objection {
            return Err(CliError::new(objection)
                .with_code(USAGE)
                .hint("choose others (`danlu devices --local` lists them), or add `--force` to take them all the same"));
        }
    }
    // Kept after a failure, for its logs.
    let run = tempfile::Builder::new()
        .prefix("danlu-launch-")
        .tempdir()
        .map_err(|error| CliError::new("cannot make a folder for the run").caused_by(&error))?
        .keep();
    let ending = standalone::run(&request, &run)
        .map_err(|error| CliError::new("could not launch").caused_by(&error))?;
    match ending.failure {
        Some(failure) => {
            output::say(format!("{failure}\nits logs are in {}", run.display()));
        }
        // Left behind, it would be in nobody's way but the disk's.
        None => drop(danlu_walk::remove(&run)),
    }
    Ok(ExitCode::from(u8::try_from(ending.code).unwrap_or(1)))
}

fn request(arguments: Arguments, mut node: Node) -> Result<StandaloneRequest, CliError> {
    let wrong = |message: String| CliError::new(message).with_code(USAGE);
    let working_directory = std::env::current_dir()
        .map_err(|error| CliError::new("cannot tell the current folder").caused_by(&error))?;
    let devices = match &arguments.devices {
        Some(text) => pick_devices(text, &node, arguments.force).map_err(wrong)?,
        None => Vec::new(),
    };
    let each = u32::try_from(devices.len()).unwrap_or(u32::MAX).max(1);
    let ranks = match arguments.ranks.as_deref() {
        None | Some("per-device") => each,
        Some("per-worker") => 1,
        Some(number) => number.parse().ok().filter(|count| (1..=1024).contains(count)).ok_or_else(|| {
            wrong(format!(
                "invalid `--ranks {number}`: use `per-device`, `per-worker` or a number from 1 to 1024"
            ))
        })?,
    };
    if arguments.nodes == 0 || arguments.node_rank >= arguments.nodes {
        let most = arguments.nodes.saturating_sub(1);
        return Err(wrong(format!("`--node-rank {}` is not between 0 and {most}", arguments.node_rank)));
    }
    let party = match (arguments.nodes, arguments.rendezvous) {
        (1, _) => None,
        (_, None) => {
            return Err(wrong("several machines need `--rendezvous FOLDER`, which all of them see".into()));
        }
        (nodes, Some(folder)) => Some(MultiNode {
            nodes,
            node_rank: arguments.node_rank,
            folder: std::path::absolute(&folder).unwrap_or(folder),
            timeout: arguments.wait,
        }),
    };
    if let Some(address) = arguments.address {
        node.address = address;
    }
    let framework = match arguments.framework {
        FrameworkName::Pytorch => Framework::Pytorch,
        FrameworkName::Tensorflow => Framework::Tensorflow,
        FrameworkName::Mindspore => Framework::Mindspore,
        FrameworkName::Mpi => Framework::Mpi,
        FrameworkName::None => Framework::None,
    };
    Ok(StandaloneRequest {
        node,
        devices,
        framework,
        ranks,
        command: command_line(&arguments.command),
        working_directory,
        grace: arguments.grace,
        binding: !arguments.no_binding,
        party,
    })
}

/// Why these devices are not to be taken: they are ill, or somebody uses them.
fn objection(devices: &[Device], node: &Node, readings: &BTreeMap<u32, Reading>) -> Option<String> {
    let chosen = |index: u32| devices.iter().any(|device| device.index == index);
    if let Some(ill) = devices.iter().find(|device| !device.usable()) {
        return Some(format!("device {} is unhealthy, or its health is unknown", ill.index));
    }
    let holds = outside_use(node, readings, &OwnUse::default(), Timestamp::now());
    let users: Vec<String> = holds
        .iter()
        .filter_map(|hold| {
            let used: Vec<String> =
                hold.devices.iter().filter(|index| chosen(**index)).map(ToString::to_string).collect();
            let who = match hold.kind {
                ForeignKind::UnknownProcess => "an unknown process".to_owned(),
                _ => format!("process {} ({}) of {}", hold.job, output::printable(&hold.name), hold.user),
            };
            let noun = if used.len() == 1 { "device" } else { "devices" };
            (!used.is_empty()).then(|| format!("{noun} {} by {who}", used.join(", ")))
        })
        .collect();
    (!users.is_empty()).then(|| format!("in use: {}", users.join("; ")))
}

/// Those of the machine with these numbers. With `force`, a named kind is taken for devices that were not found.
fn pick_devices(text: &str, node: &Node, force: bool) -> Result<Vec<Device>, String> {
    let (kind, list) = match text.split_once(':') {
        Some((kind, list)) => (Some(kind.parse::<DeviceKind>().map_err(|error| error.to_string())?), list),
        None => (None, text),
    };
    let numbers = numbers(list)
        .ok_or_else(|| format!("invalid `--devices {text}`: write `0-7`, `0,2` or `ascend:0-7`"))?;
    numbers
        .into_iter()
        .map(|index| {
            let is_it = |device: &&Device| device.index == index && kind.is_none_or(|kind| kind == device.kind);
            match (node.devices.iter().find(is_it), kind) {
                (Some(device), _) => Ok(device.clone()),
                (None, Some(kind)) if force => Ok(unseen(index, kind)),
                (None, kind) => {
                    let known: Vec<String> =
                        node.devices.iter().map(|device| device.index.to_string()).collect();
                    let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                    let kind = kind.map_or("ascend", DeviceKind::as_str);
                    Err(format!(
                        "this machine shows no device {index}, it shows {known}; if it is there all the same: `--force --devices {kind}:{list}`"
                    ))
                }
            }
        })
        .collect()
}

fn unseen(index: u32, kind: DeviceKind) -> Device {
    Device {
        index,
        kind,
        model: String::new(),
        memory: Bytes(0),
        island: 0,
        health: Health::Unknown,
        wiring: Wiring::default(),
    }
}

/// `0-3,6`, each once and ascending.
fn numbers(list: &str) -> Option<Vec<u32>> {
    let mut found = std::collections::BTreeSet::new();
    for part in list.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        if first > last || last > 1023 {
            return None;
        }
        found.extend(first..=last);
    }
    Some(found.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_lists_of_numbers() {
        assert_eq!(numbers("0-3,6,2"), Some(vec![0, 1, 2, 3, 6]));
        for wrong in ["", "3-1", "a", "0-99999"] {
            assert_eq!(numbers(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_device_that_is_not_seen_needs_its_kind_and_force() {
        let node = Node { devices: Vec::new(), ..inventory::host() };
        for (text, force) in [("0-1", false), ("0-1", true), ("ascend:0-1", false)] {
            let refused = pick_devices(text, &node, force).unwrap_err();
            assert!(refused.contains("shows no device 0, it shows none"), "{refused}");
        }
        let named = pick_devices("ascend:0-1", &node, true).unwrap();
        assert_eq!(
            named.iter().map(|device| (device.index, device.kind)).collect::<Vec<_>>(),
            [(0, DeviceKind::Ascend), (1, DeviceKind::Ascend)]
        );
    }
}
