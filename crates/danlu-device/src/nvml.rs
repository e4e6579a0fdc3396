//! NVIDIA devices, through the library that comes with their driver. It is loaded at run time: a machine without it has no
//! NVIDIA devices, which is no error.
//!
//! [`Library`] asks; what the answers come to is decided in plain functions.

use std::collections::BTreeMap;

use danlu_types::{Bytes, Device, DeviceKind, Health, Reading, Wiring};
use nvml_wrapper::enum_wrappers::device::{EccCounter, MemoryError, TemperatureSensor};
use nvml_wrapper::enums::device::UsedGpuMemory;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::{Device as Handle, Nvml};

use crate::machine::Machine;
use crate::process;

/// Of any generation so far.
const MOST_LINKS: u32 = 18;
/// Two driver versions at once, as after an update without a restart, are what people meet most.
const HINT: &str = "restart the machine if its driver was updated, or look at `nvidia-smi`";

#[derive(Debug)]
pub struct Library {
    nvml: Nvml,
}

/// A device, or a part of one where it is split (MIG).
#[derive(Debug, Clone, PartialEq)]
pub struct Gpu {
    pub name: String,
    pub uuid: Option<String>,
    pub memory: Bytes,
    pub bus: Option<String>,
    /// What is at the other end of each link: other devices, or switches.
    pub peers: Vec<String>,
    pub reading: Reading,
}

impl Library {
    /// Nothing where there is no driver.
    pub fn load() -> Result<Option<Self>, String> {
        match Nvml::init() {
            Ok(nvml) => Ok(Some(Library { nvml })),
            Err(NvmlError::LibloadingError(_) | NvmlError::LibraryNotFound | NvmlError::DriverNotLoaded) => {
                Ok(None)
            }
            Err(error) => Err(format!("NVIDIA's library does not answer ({error}); {HINT}")),
        }
    }

    /// All devices in the library's order, and what is wrong with those that are left out.
    pub fn gpus(&self) -> (Vec<Gpu>, Vec<String>) {
        let (mut gpus, mut remarks) = (Vec::new(), Vec::new());
        let count = match self.nvml.device_count() {
            Ok(count) => count,
            Err(error) => {
                return (
                    gpus,
                    vec![format!("NVIDIA's library does not count its devices ({error}); {HINT}")],
                );
            }
        };
        for index in 0..count {
            match self.nvml.device_by_index(index) {
                Ok(handle) => match parts(&handle) {
                    parts if parts.is_empty() => gpus.push(gpu(&handle, &handle)),
                    parts => gpus.extend(parts.iter().map(|part| gpu(part, &handle))),
                },
                Err(error) => {
                    remarks.push(format!("NVIDIA device {index} does not answer ({error}); {HINT}"));
                }
            }
        }
        (gpus, remarks)
    }
}

/// The instances of a device that is split; it is then not to be used as a whole.
fn parts<'nvml>(handle: &Handle<'nvml>) -> Vec<Handle<'nvml>> {
    if !handle.mig_mode().is_ok_and(|mode| mode.current == 1) {
        return Vec::new();
    }
    (0..handle.mig_device_count().unwrap_or(0))
        .filter_map(|index| handle.mig_device_by_index(index).ok())
        .collect()
}

/// `whole` is the device that `part` is of: parts have no sensors and links of their own.
fn gpu(part: &Handle<'_>, whole: &Handle<'_>) -> Gpu {
    let memory = part.memory_info();
    let processes = part.running_compute_processes().unwrap_or_default().into_iter().filter_map(|process| {
        let memory = match process.used_gpu_memory {
            UsedGpuMemory::Used(bytes) => Some(Bytes(bytes)),
            UsedGpuMemory::Unavailable => None,
        };
        let pid = i32::try_from(process.pid).ok()?;
        Some(process::on_device(pid, None, memory))
    });
    let links = (0..MOST_LINKS).map(|link| whole.link_wrapper_for(link));
    let active = links.filter(|link| link.is_active().unwrap_or(false));
    Gpu {
        name: part.name().unwrap_or_default(),
        uuid: part.uuid().ok(),
        memory: Bytes(memory.as_ref().map_or(0, |memory| memory.total)),
        bus: whole.pci_info().ok().map(|pci| pci.bus_id),
        peers: active.filter_map(|link| link.remote_pci_info().ok()).map(|pci| pci.bus_id).collect(),
        reading: Reading {
            health: health(whole),
            utilisation_percent: part.utilization_rates().ok().map(|rates| rates.gpu),
            memory_used: memory.ok().map(|memory| Bytes(memory.used)),
            temperature_celsius: whole
                .temperature(TemperatureSensor::Gpu)
                .ok()
                .and_then(|celsius| i32::try_from(celsius).ok()),
            power_watts: whole.power_usage().ok().map(|milliwatts| (milliwatts + 500) / 1000),
            processes: processes.collect(),
        },
    }
}

fn health(handle: &Handle<'_>) -> Health {
    // Devices without error correction answer neither question.
    let broken = handle.total_ecc_errors(MemoryError::Uncorrected, EccCounter::Volatile);
    let waits_for_restart = handle.are_pages_pending_retired();
    match (broken, waits_for_restart) {
        (Err(NvmlError::GpuLost), _) | (_, Err(NvmlError::GpuLost)) => Health::Failed,
        (Ok(1..), _) | (_, Ok(true)) => Health::Warning,
        _ => Health::Ok,
    }
}

pub(crate) fn devices(gpus: &[Gpu], machine: &Machine) -> Vec<Device> {
    let islands = islands(gpus);
    let device = |((gpu, island), index): ((&Gpu, u32), u32)| Device {
        index,
        kind: DeviceKind::Nvidia,
        model: gpu.name.strip_prefix("NVIDIA ").unwrap_or(&gpu.name).to_owned(),
        memory: gpu.memory,
        island,
        health: gpu.reading.health,
        wiring: Wiring {
            numa: gpu.bus.as_deref().and_then(|bus| machine.numa_of_bus(bus)),
            uuid: gpu.uuid.clone(),
            bus: gpu.bus.clone(),
            ..Wiring::default()
        },
    };
    gpus.iter().zip(islands).zip(0..).map(device).collect()
}

/// Devices with a link between them, or to the same switch, are of one island; the others are islands of their own. Islands
/// are counted in the order of their first devices.
fn islands(gpus: &[Gpu]) -> Vec<u32> {
    let mut island_of_place: BTreeMap<String, u32> = BTreeMap::new();
    let mut islands: Vec<u32> = Vec::new();
    for (gpu, number) in gpus.iter().zip(0..) {
        let places = || gpu.bus.iter().chain(&gpu.peers).map(|bus| bus.to_ascii_lowercase());
        let joined: Vec<u32> = places().filter_map(|place| island_of_place.get(&place).copied()).collect();
        let own = joined.iter().copied().min().unwrap_or(number);
        for island in islands.iter_mut().chain(island_of_place.values_mut()) {
            if joined.contains(island) {
                *island = own;
            }
        }
        island_of_place.extend(places().map(|place| (place, own)));
        islands.push(own);
    }
    let mut order: Vec<u32> = Vec::new();
    for island in &islands {
        if !order.contains(island) {
            order.push(*island);
        }
    }
    islands
        .iter()
        .zip(0..)
        .map(|(island, number)| {
            order.iter().zip(0..).find(|(known, _)| *known == island).map_or(number, |(_, place)| place)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gpu_at(bus: &str, peers: &[&str]) -> Gpu {
        Gpu {
            name: "NVIDIA H200".to_owned(),
            uuid: None,
            memory: Bytes(0),
            bus: Some(bus.to_owned()),
            peers: peers.iter().map(|peer| (*peer).to_owned()).collect(),
            reading: Reading::default(),
        }
    }

    #[test]
    fn links_make_islands() {
        let alone = [gpu_at("a", &[]), gpu_at("b", &[])];
        assert_eq!(islands(&alone), [0, 1]);
        let pairs = [gpu_at("a", &["c"]), gpu_at("b", &["d"]), gpu_at("c", &["a"]), gpu_at("d", &["b"])];
        assert_eq!(islands(&pairs), [0, 1, 0, 1]);
        let switched = [gpu_at("a", &["s1", "s2"]), gpu_at("b", &["s2", "s1"]), gpu_at("c", &["s2"])];
        assert_eq!(islands(&switched), [0, 0, 0]);
        // The last joins two islands that were apart until then.
        let joined = [gpu_at("a", &["x"]), gpu_at("b", &["y"]), gpu_at("c", &["x", "y"]), gpu_at("d", &[])];
        assert_eq!(islands(&joined), [0, 0, 0, 1]);
    }

    #[test]
    fn parts_of_one_device_are_of_one_island() {
        assert_eq!(islands(&[gpu_at("a", &[]), gpu_at("a", &[]), gpu_at("b", &[])]), [0, 0, 1]);
    }

    #[test]
    fn a_machine_without_a_driver_has_no_devices() {
        match Library::load() {
            Ok(None) => {}
            Ok(Some(library)) => assert!(!library.gpus().0.is_empty(), "a driver has devices"),
            Err(error) => panic!("{error}"),
        }
    }
}
