//! Which file below `/dev` is which accelerator, and which of them a worker is to be kept from.
//!
//! Only files of single accelerators are told apart. What all of a driver's devices share (`nvidiactl`, `davinci_manager`) a
//! worker needs as soon as it has one of them, and gives nothing without one.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use danlu_types::{Device, DeviceKind};
use nix::libc;

/// How the kernel knows a device file, whatever its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct DeviceNumber {
    pub major: u32,
    pub minor: u32,
}

const NVIDIA: &str = "nvidia";
const ASCEND: &str = "davinci";

/// The name of a device's own file, where it can be told. `root` is `/` outside tests.
pub(crate) fn file_name(root: &Path, device: &Device) -> Option<String> {
    match device.kind {
        DeviceKind::Nvidia => {
            let minor = nvidia_minor(root, device.wiring.bus.as_deref()?)?;
            Some(format!("{NVIDIA}{minor}"))
        }
        DeviceKind::Ascend => Some(format!("{ASCEND}{}", device.physical())),
    }
}

/// NVIDIA's library counts devices by their place on the bus, and parts of split ones besides; the driver counts its files in the
/// order in which it found them.
fn nvidia_minor(root: &Path, bus: &str) -> Option<u32> {
    let folder = root.join("proc/driver/nvidia/gpus");
    // The library writes eight digits of the domain, the driver four.
    let short = bus.get(bus.len().checked_sub("0000:00:00.0".len())?..)?.to_ascii_lowercase();
    let text = fs::read_to_string(folder.join(short).join("information")).ok()?;
    text.lines().find_map(|line| line.strip_prefix("Device Minor:")?.trim().parse().ok())
}

/// The files of all accelerators here that are none of `granted`. Where one of a kind was granted and its file cannot be told, none
/// of that kind is withheld: a job without the device that it was promised is worse than one with too many.
pub fn withheld(root: &Path, granted: &[Device]) -> Vec<DeviceNumber> {
    let mut own = Vec::new();
    let mut open = Vec::new();
    for device in granted {
        match file_name(root, device) {
            Some(name) => own.push(name),
            None => open.push(device.kind),
        }
    }
    let Ok(entries) = fs::read_dir(root.join("dev")) else { return Vec::new() };
    let others = entries.flatten().filter(|entry| {
        let name = entry.file_name();
        let Some((name, kind)) = name.to_str().and_then(|name| Some((name, kind_of(name)?))) else {
            return false;
        };
        !open.contains(&kind) && !own.iter().any(|own| own == name)
    });
    let mut numbers: Vec<DeviceNumber> = others
        .filter_map(|entry| fs::metadata(entry.path()).ok())
        .filter(|found| found.file_type().is_char_device())
        .map(|found| DeviceNumber { major: libc::major(found.rdev()), minor: libc::minor(found.rdev()) })
        .collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

/// Whether the machine has accelerators that a worker could be kept from.
pub fn any() -> bool {
    !withheld(Path::new("/"), &[]).is_empty()
}

/// Of which kind a file's accelerator is, if it is the file of a single one.
fn kind_of(name: &str) -> Option<DeviceKind> {
    [(NVIDIA, DeviceKind::Nvidia), (ASCEND, DeviceKind::Ascend)].into_iter().find_map(|(driver, kind)| {
        let number = name.strip_prefix(driver)?;
        (!number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())).then_some(kind)
    })
}

#[cfg(test)]
mod tests {
    use danlu_types::{Bytes, Health, Wiring};
    use nix::sys::stat::{Mode, SFlag, makedev, mknod};

    use super::*;

    fn device(kind: DeviceKind, index: u32, wiring: Wiring) -> Device {
        Device { index, kind, model: String::new(), memory: Bytes(0), island: 0, health: Health::Ok, wiring }
    }

    #[test]
    fn only_files_of_single_accelerators_are_told_apart() {
        for name in ["nvidia0", "nvidia15", "davinci7"] {
            assert!(kind_of(name).is_some(), "{name}");
        }
        for name in
            ["nvidia", "nvidiactl", "nvidia-uvm", "nvidia-caps", "davinci_manager", "null", "nvidia0p1"]
        {
            assert_eq!(kind_of(name), None, "{name}");
        }
    }

    #[test]
    fn a_device_is_found_by_its_bus_where_the_driver_counts_otherwise() {
        let root = tempfile::tempdir().unwrap();
        let of_bus = |bus: &str| Wiring { bus: Some(bus.to_owned()), ..Wiring::default() };
        let gpu = device(DeviceKind::Nvidia, 0, of_bus("00000000:3B:00.0"));
        assert_eq!(file_name(root.path(), &gpu), None);
        let folder = root.path().join("proc/driver/nvidia/gpus/0000:3b:00.0");
        fs::create_dir_all(&folder).unwrap();
        fs::write(
            folder.join("information"),
            "Model: \t\t A100\nBus Location: \t 0000:3b:00.0\nDevice Minor: \t 3\n",
        )
        .unwrap();
        assert_eq!(file_name(root.path(), &gpu).as_deref(), Some("nvidia3"));
        let npu = device(DeviceKind::Ascend, 2, Wiring { physical: Some(14), ..Wiring::default() });
        assert_eq!(file_name(root.path(), &npu).as_deref(), Some("davinci14"));
    }

    #[test]
    fn what_was_not_granted_is_withheld() {
        if !nix::unistd::geteuid().is_root() {
            danlu_testkit::skip("only root makes device files");
            return;
        }
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("dev");
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("nvidia9"), "no device").unwrap();
        for (name, minor) in [("nvidia0", 0), ("nvidia1", 1), ("nvidiactl", 255)] {
            let done = mknod(&folder.join(name), SFlag::S_IFCHR, Mode::empty(), makedev(195, minor));
            if done.is_err() {
                danlu_testkit::skip("device files cannot be made here");
                return;
            }
        }
        let number = |minor| DeviceNumber { major: 195, minor };
        assert_eq!(withheld(root.path(), &[]), [number(0), number(1)]);
        let npu = device(DeviceKind::Ascend, 0, Wiring::default());
        assert_eq!(withheld(root.path(), &[npu]), [number(0), number(1)]);
        let unknown = device(DeviceKind::Nvidia, 0, Wiring::default());
        assert_eq!(withheld(root.path(), &[unknown]), []);
        let (first, second) = ("00000000:3B:00.0", "00000000:5E:00.0");
        for (bus, minor) in [("0000:3b:00.0", 1), ("0000:5e:00.0", 0)] {
            let folder = root.path().join("proc/driver/nvidia/gpus").join(bus);
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("information"), format!("Device Minor: \t {minor}\n")).unwrap();
        }
        let of_bus = |bus: &str| {
            device(DeviceKind::Nvidia, 0, Wiring { bus: Some(bus.to_owned()), ..Wiring::default() })
        };
        assert_eq!(withheld(root.path(), &[of_bus(first)]), [number(0)]);
        assert_eq!(withheld(root.path(), &[of_bus(second)]), [number(1)]);
        assert_eq!(withheld(root.path(), &[of_bus(first), of_bus(second)]), []);
    }
}
