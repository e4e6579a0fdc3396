//! Ascend devices, through `npu-smi` and `hccn_tool`.
//!
//! A look at the whole machine asks several tools once; a reading asks `npu-smi` alone. What cannot be found out is left
//! out with a remark: a device without an address still trains on its own.

use std::collections::BTreeMap;
use std::net::IpAddr;

use danlu_types::{Device, DeviceKind, Family, Reading, Wiring};

use crate::machine::{Machine, has_cpu};
use crate::npu_smi::{self, Chip, Matrix, NpuProcess, NpuSmiReport, SuperPodPlace};
use crate::process;
use crate::tool::ToolError;

const NPU_SMI: &str = "npu-smi";
const HCCN_TOOL: &str = "hccn_tool";
/// Larger numbers of cards are places on a bus.
const MOST_CARDS: u32 = 64;

/// The chips of a card, by the numbers that `npu-smi` gives card and chip, and the device number that the runtime gives them.
pub(crate) type DeviceNumbers = BTreeMap<(u32, u32), u32>;

#[derive(Debug, Default)]
pub(crate) struct Ascend {
    pub devices: Vec<Device>,
    pub numbers: DeviceNumbers,
    pub super_pod: Option<u32>,
    pub remarks: Vec<String>,
    /// Which of the remarks says that a later look may find more.
    pub incomplete: Option<String>,
}

/// What a look brought; each but the first may be missing.
#[derive(Debug, Default)]
struct Facts {
    report: NpuSmiReport,
    matrix: Matrix,
    /// By physical number.
    addresses: BTreeMap<u32, IpAddr>,
    physical: DeviceNumbers,
    places: BTreeMap<(u32, u32), SuperPodPlace>,
}

pub(crate) fn look(machine: &Machine) -> Ascend {
    let report = match report(machine) {
        Ok(Some(report)) => report,
        Ok(None) => return Ascend::default(),
        Err(remark) => {
            return Ascend { incomplete: Some(remark.clone()), remarks: vec![remark], ..Ascend::default() };
        }
    };
    if report.chips.is_empty() {
        // A tool that says something and shows nothing may have a driver that is still being loaded.
        let incomplete = report.remarks.first().cloned();
        return Ascend { remarks: report.remarks, incomplete, ..Ascend::default() };
    }
    // A tool that fails here does so on purpose: older ones have no such query.
    let ask = |arguments: &[&str]| machine.run(NPU_SMI, arguments).unwrap_or_default();
    let mapping = npu_smi::mapping(&ask(&["info", "-m"]));
    let numbers = numbers(&report.chips, &mapping);
    let physical = physical_numbers(machine, &report.chips, &mapping, &numbers);
    let facts = Facts {
        matrix: npu_smi::matrix(&ask(&["info", "-t", "topo"])),
        addresses: addresses(machine, physical.values().copied()),
        places: places(machine, &report.chips),
        physical,
        report,
    };
    let devices = devices(&facts, &numbers, machine);
    let super_pod = facts.places.values().find_map(|place| place.super_pod);
    let mut remarks = facts.report.remarks;
    let incomplete = (facts.report.is_cut_off || mapping.len() > devices.len()).then(|| {
        format!(
            "the table of `npu-smi info` is cut off after {} devices{}; the others are not offered",
            devices.len(),
            if mapping.len() > devices.len() { format!(" of {}", mapping.len()) } else { String::new() }
        )
    });
    remarks.extend(incomplete.clone());
    Ascend { devices, numbers, super_pod, remarks, incomplete }
}

/// How the devices are doing, by device number; nothing where there are none.
pub(crate) fn readings(machine: &Machine, numbers: &DeviceNumbers) -> Result<BTreeMap<u32, Reading>, String> {
    let Some(report) = report(machine)? else { return Ok(BTreeMap::new()) };
    if report.is_cut_off {
        // What is missing may be the processes of those that are there.
        return Err("the table of `npu-smi info` is cut off; its devices are not offered until it is whole"
            .to_owned());
    }
    let mut readings = BTreeMap::new();
    for chip in &report.chips {
        let Some(number) = numbers.get(&(chip.npu, chip.number)) else { continue };
        let holds = |process: &&NpuProcess| {
            process.npu == chip.npu && process.chip.is_none_or(|number| number == chip.number)
        };
        let processes = report
            .processes
            .iter()
            .filter(holds)
            .map(|holder| process::on_device(holder.pid, Some(&holder.name), Some(holder.memory)));
        let reading = Reading {
            health: chip.health,
            utilisation_percent: chip.utilisation_percent,
            memory_used: chip.memory.used,
            temperature_celsius: chip.temperature_celsius,
            power_watts: chip.power_watts,
            processes: processes.collect(),
        };
        readings.insert(*number, reading);
    }
    Ok(readings)
}

/// Nothing where the tool is not installed: then there are no such devices.
fn report(machine: &Machine) -> Result<Option<NpuSmiReport>, String> {
    match machine.run(NPU_SMI, &["info"]) {
        Err(ToolError::Missing(_)) => Ok(None),
        Err(error @ (ToolError::TimedOut { .. } | ToolError::Start { .. })) => {
            Err(format!("{error}; its devices are not offered until it does"))
        }
        Ok(text) => npu_smi::report(&text).map(Some).map_err(|error| error.to_string()),
    }
}

/// What the runtime counts; where the tool does not say, the physical number, else that of the card, else the place in the table.
fn numbers(chips: &[Chip], mapping: &[npu_smi::MappedChip]) -> DeviceNumbers {
    let mapped: DeviceNumbers = mapping.iter().map(|chip| ((chip.npu, chip.chip), chip.device)).collect();
    let one_chip_per_card = chips.iter().all(|chip| chip.number == 0);
    let number = |(chip, place): (&Chip, u32)| {
        let key = (chip.npu, chip.number);
        let other = if one_chip_per_card { chip.npu } else { place };
        (key, mapped.get(&key).copied().or(chip.physical).unwrap_or(other))
    };
    chips.iter().zip(0..).map(number).collect()
}

/// What HCCL and `hccn_tool` count. Where the tool does not say: the number of the card, unless `/dev` has no such device but has
/// the one that the runtime counts.
fn physical_numbers(
    machine: &Machine,
    chips: &[Chip],
    mapping: &[npu_smi::MappedChip],
    numbers: &DeviceNumbers,
) -> DeviceNumbers {
    let one_chip_per_card = chips.iter().all(|chip| chip.number == 0);
    let exists = |number: &u32| machine.has(format!("dev/davinci{number}"));
    let cards: Vec<u32> = chips.iter().map(|chip| chip.npu).collect();
    let is_card = one_chip_per_card
        && cards.iter().all(|card| *card <= MOST_CARDS)
        && (cards.iter().all(exists) || !numbers.values().all(exists));
    let number = |chip: &Chip| {
        let key = (chip.npu, chip.number);
        let index = *numbers.get(&key)?;
        let mapped = mapping.iter().find(|mapped| (mapped.npu, mapped.chip) == key);
        let otherwise = if is_card { chip.npu } else { index };
        Some((key, mapped.and_then(|mapped| mapped.physical).or(chip.physical).unwrap_or(otherwise)))
    };
    chips.iter().filter_map(number).collect()
}

/// The file first, for it costs nothing; the tool for those that the file does not have.
fn addresses(machine: &Machine, numbers: impl Iterator<Item = u32>) -> BTreeMap<u32, IpAddr> {
    let configured = machine.read("etc/hccn.conf");
    let mut addresses = configured.as_deref().map(npu_smi::configured_addresses).unwrap_or_default();
    for number in numbers {
        if addresses.contains_key(&number) {
            continue;
        }
        // Missing or hanging for one device is the same for all.
        let Ok(text) = machine.run(HCCN_TOOL, &["-i", &number.to_string(), "-ip", "-g"]) else { break };
        addresses.extend(npu_smi::tool_address(&text).map(|address| (number, address)));
    }
    addresses
}

/// Only an A3 has them, and asking takes a call for each chip.
fn places(machine: &Machine, chips: &[Chip]) -> BTreeMap<(u32, u32), SuperPodPlace> {
    let mut places = BTreeMap::new();
    for chip in chips.iter().filter(|chip| Family::of(&chip.name) == Some(Family::A3)) {
        let (npu, number) = (chip.npu.to_string(), chip.number.to_string());
        let answer = machine.run(NPU_SMI, &["info", "-t", "spod-info", "-i", &npu, "-c", &number]);
        // A machine that is in no super-pod says so at the first.
        let Some(place) = answer.ok().as_deref().and_then(npu_smi::super_pod_place) else { break };
        places.insert((chip.npu, chip.number), place);
    }
    places
}

fn devices(facts: &Facts, numbers: &DeviceNumbers, machine: &Machine) -> Vec<Device> {
    let islands = facts.matrix.islands();
    let numa_nodes = machine.numa_nodes();
    let near = |number: u32| {
        let list = facts.matrix.near_cpus.get(&number)?;
        let first: u32 = list.split([',', '-']).next()?.parse().ok()?;
        numa_nodes.iter().find(|(_, cpus)| has_cpu(cpus, first)).map(|(node, _)| *node)
    };
    let device = |chip: &Chip| {
        let key = (chip.npu, chip.number);
        let index = *numbers.get(&key)?;
        let physical = facts.physical.get(&key).copied().unwrap_or(index);
        Some(Device {
            index,
            kind: DeviceKind::Ascend,
            model: chip.name.clone(),
            memory: chip.memory.total,
            island: islands.get(&index).copied().unwrap_or_else(|| usual_island(&chip.name, physical)),
            health: chip.health,
            wiring: Wiring {
                numa: near(index).or_else(|| machine.numa_of_bus(chip.bus.as_deref()?)),
                address: facts.addresses.get(&physical).copied(),
                super_device: facts.places.get(&key).map(|place| place.super_device),
                physical: Some(physical),
                bus: chip.bus.clone(),
                card: Some(chip.npu),
                chip: Some(chip.number),
                uuid: None,
            },
        })
    };
    let mut devices: Vec<Device> = facts.report.chips.iter().filter_map(device).collect();
    devices.sort_by_key(|device| device.index);
    devices
}

/// For tools that cannot draw the matrix, as those of the first generation: how its boards are wired.
fn usual_island(name: &str, index: u32) -> u32 {
    match Family::of(name) {
        Some(Family::First) => index / 4,
        Some(Family::A2) => index / 8,
        Some(Family::A3 | Family::A5) => index / 16,
        // Cards of their own, with nothing between them but the host.
        Some(Family::Small | Family::Inference) | None => index,
    }
}
