//! The machine that is looked at: this one, or in tests a folder that looks like one, with fake tools.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::tool::{self, ToolError};

/// Where Ascend's installers put tools that are not on everybody's path.
const MORE_FOLDERS: [&str; 3] = ["usr/local/sbin", "usr/local/bin", "usr/local/Ascend/driver/tools"];
const TOOL_LIMIT: Duration = Duration::from_secs(10);

#[derive(Debug, Clone)]
pub struct Machine {
    /// `/`, below which `proc`, `sys` and `etc` are.
    pub root: PathBuf,
    /// Where tools are looked for.
    pub path: Vec<PathBuf>,
    /// Whether NVIDIA's library is asked; a folder has none.
    pub nvml: bool,
    /// How long a tool may take.
    pub tool_limit: Duration,
}

impl Machine {
    pub fn this() -> Self {
        let root = PathBuf::from("/");
        let mut path: Vec<PathBuf> =
            env::var_os("PATH").map(|path| env::split_paths(&path).collect()).unwrap_or_default();
        path.extend(MORE_FOLDERS.iter().map(|folder| root.join(folder)));
        Machine { root, path, nvml: true, tool_limit: TOOL_LIMIT }
    }

    pub(crate) fn run(&self, program: &str, arguments: &[&str]) -> Result<String, ToolError> {
        let found = tool::find(program, &self.path).ok_or_else(|| ToolError::Missing(program.to_owned()))?;
        tool::run(&found, arguments, self.tool_limit)
    }

    pub(crate) fn read(&self, path: impl AsRef<Path>) -> Option<String> {
        fs::read_to_string(self.root.join(path)).ok()
    }

    pub(crate) fn has(&self, path: impl AsRef<Path>) -> bool {
        self.root.join(path).exists()
    }

    /// The memory node nearest to a device, by its place on the bus; the kernel writes -1 where it knows none.
    pub(crate) fn numa_of_bus(&self, bus: &str) -> Option<u32> {
        // NVIDIA's library writes eight digits of the domain, where the kernel and `npu-smi` write four.
        let short = bus.get(bus.len().checked_sub("0000:00:00.0".len())?..)?.to_ascii_lowercase();
        self.read(format!("sys/bus/pci/devices/{short}/numa_node"))?.trim().parse().ok()
    }

    /// The processors of each memory node; empty where there is but one.
    pub(crate) fn numa_nodes(&self) -> BTreeMap<u32, String> {
        let entries = fs::read_dir(self.root.join("sys/devices/system/node"));
        let nodes: BTreeMap<u32, String> = entries
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|entry| {
                let number = entry.file_name().to_str()?.strip_prefix("node")?.parse().ok()?;
                let cpus = fs::read_to_string(entry.path().join("cpulist")).ok()?.trim().to_owned();
                // Memory without processors is near nobody.
                (!cpus.is_empty()).then_some((number, cpus))
            })
            .collect();
        if nodes.len() > 1 { nodes } else { BTreeMap::new() }
    }
}

/// Whether a list such as `0-23,96-119` has this processor.
pub(crate) fn has_cpu(list: &str, cpu: u32) -> bool {
    list.split(',').any(|part| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let number = |text: &str| text.trim().parse::<u32>().ok();
        number(first).zip(number(last)).is_some_and(|(first, last)| (first..=last).contains(&cpu))
    })
}
