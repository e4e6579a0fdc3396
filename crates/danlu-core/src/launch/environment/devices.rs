//! Which devices the ranks of a worker see, and by which network their libraries talk.

use std::net::IpAddr;

use danlu_types::{Device, DeviceKind, Framework};

use super::{Rendezvous, Variables};
use crate::launch::LaunchFile;

/// Seconds that HCCL waits for the others to connect. Its own two minutes are less than what one rank may take longer
/// than another to import its framework from a busy file system.
const HCCL_CONNECT_TIMEOUT: u32 = 600;

/// A worker sees its own devices and no others: without any, the list is empty, which hides them all. Every rank sees
/// all devices of its worker and takes the one at `LOCAL_RANK`, as programs written for torchrun do.
pub(super) fn visible(env: &mut Variables, launch: &LaunchFile) {
    for kind in DeviceKind::ALL {
        let own: Vec<String> =
            launch.devices.iter().filter(|device| device.kind == kind).map(name_of).collect();
        let name = match kind {
            DeviceKind::Nvidia => "CUDA_VISIBLE_DEVICES",
            DeviceKind::Ascend => "ASCEND_RT_VISIBLE_DEVICES",
        };
        env.set(name, own.join(","));
        if kind == DeviceKind::Nvidia && !own.is_empty() {
            // Or CUDA counts the fastest first, and number 3 is another card than the driver's number 3.
            env.set("CUDA_DEVICE_ORDER", "PCI_BUS_ID");
        }
    }
}

/// Numbers where they do, because programs read them as such; a part of a card has none that CUDA takes.
fn name_of(device: &Device) -> String {
    match &device.wiring.uuid {
        Some(uuid) if uuid.starts_with("MIG-") => uuid.clone(),
        _ => device.index.to_string(),
    }
}

/// Only what a library would guess wrong by itself.
pub(super) fn network(env: &mut Variables, launch: &LaunchFile, rendezvous: &Rendezvous) {
    if launch.world_size <= 1 && launch.devices.len() <= 1 {
        return;
    }
    let has = |kind| launch.devices.iter().any(|device| device.kind == kind);
    if let Some(interface) = &rendezvous.interface {
        if has(DeviceKind::Nvidia) && launch.world_workers() > 1 {
            // The sign asks for this very name; without it every name that begins so is meant.
            env.set("NCCL_SOCKET_IFNAME", format_args!("={interface}"));
        }
        if launch.framework == Framework::Pytorch {
            // Otherwise Gloo takes what the machine's own name resolves to, which may be nobody's address.
            env.set("GLOO_SOCKET_IFNAME", interface);
        }
    }
    if has(DeviceKind::Ascend) {
        // The default since CANN 8; before, whoever did not set it was refused without a white list.
        env.set("HCCL_WHITELIST_DISABLE", 1);
        env.set("HCCL_CONNECT_TIMEOUT", HCCL_CONNECT_TIMEOUT);
        let reachable = |address: &IpAddr| !address.is_loopback();
        if let Some(address) = launch.address.parse::<IpAddr>().ok().filter(reachable)
            && launch.world_workers() > 1
        {
            env.set("HCCL_IF_IP", address);
        }
    }
}
