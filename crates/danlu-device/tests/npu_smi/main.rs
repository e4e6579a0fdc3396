//! What `npu-smi` and its like print, in every variant we have seen, and in any other.

#![expect(
    clippy::unwrap_used,
    reason = "a test says what it expects by failing; a panic there is the message"
)]

mod damaged;
mod fixtures;
mod samples;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use danlu_device::npu_smi::{Chip, NpuProcess, NpuSmiReport};

fn fixture_folder() -> PathBuf {
    // From the package's folder, where tests run: this program may be run in another tree than the one it was built in.
    PathBuf::from("tests/fixtures/npu-smi")
}

/// Outputs collected from documentation and from people, where they are at hand.
fn sample_folder() -> Option<PathBuf> {
    let folder = PathBuf::from("../../../shared/data/npu-smi");
    folder.is_dir().then_some(folder)
}

/// The texts of a folder by file name, those whose name begins so.
fn texts(folder: &Path, prefix: &str) -> BTreeMap<String, String> {
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    files
        .filter(|path| path.is_file())
        .map(|path| (path.file_name().unwrap().to_string_lossy().into_owned(), path))
        .filter(|(name, _)| name.starts_with(prefix))
        .map(|(name, path)| (name, fs::read_to_string(path).unwrap()))
        .collect()
}

/// One line per chip and process.
fn outline(report: &NpuSmiReport) -> String {
    let NpuSmiReport { version, chips, processes, is_cut_off, remarks } = report;
    let mut lines = vec![format!("driver {}", version.as_deref().unwrap_or("-"))];
    lines.extend(chips.iter().map(|chip| {
        let Chip {
            npu,
            number,
            physical,
            name,
            health,
            power_watts,
            temperature_celsius,
            bus,
            utilisation_percent,
            memory,
        } = chip;
        let shown = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
        format!(
            "{npu}.{number} device {} {name} {health:?} {} W {} °C {} % {} of {} {}",
            shown(physical.map(|physical| physical.to_string())),
            shown(power_watts.map(|watts| watts.to_string())),
            shown(temperature_celsius.map(|celsius| celsius.to_string())),
            shown(utilisation_percent.map(|percent| percent.to_string())),
            memory.used.map_or("-".to_owned(), |used| used.to_string()),
            memory.total,
            shown(bus.clone()),
        )
    }));
    lines.extend(processes.iter().map(|process| {
        let NpuProcess { npu, chip, pid, name, memory, pid_in_container } = process;
        format!("process {pid} {name} on {npu}.{chip:?} with {memory}, inside {pid_in_container:?}")
    }));
    lines.extend(is_cut_off.then(|| "cut off".to_owned()));
    lines.extend(remarks.iter().map(|remark| format!("remark {remark}")));
    lines.join("\n")
}
