//! `npu-smi info -t topo`: how each pair of devices is connected, and which processors are near.

use std::collections::BTreeMap;

/// How two devices reach each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NpuLink {
    Own,
    /// Without the host: HCCS, SIO between dies, UB.
    Direct,
    /// Over `PCIe` or the processors, or not known.
    Host,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Matrix {
    /// From each device to each, both by the number that the tool shows.
    pub links: BTreeMap<u32, BTreeMap<u32, NpuLink>>,
    /// The processors near each device, as the kernel writes lists.
    pub near_cpus: BTreeMap<u32, String>,
}

/// Empty for tools and boards that have no such table.
pub fn matrix(text: &str) -> Matrix {
    let mut lines = text.lines();
    let Some(header) = lines.find(|line| line.contains("CPU Affinity")) else { return Matrix::default() };
    let columns: Vec<u32> = header.split_whitespace().filter_map(device_number).collect();
    let mut matrix = Matrix::default();
    for line in lines {
        let mut words = line.split_whitespace();
        let Some(device) = words.next().and_then(device_number) else { continue };
        let links = columns.iter().copied().zip(words.by_ref().map(link)).collect();
        matrix.links.insert(device, links);
        if let Some(near) = words.next().filter(|word| word.starts_with(|c: char| c.is_ascii_digit())) {
            matrix.near_cpus.insert(device, near.to_owned());
        }
    }
    matrix
}

impl Matrix {
    /// Devices that reach each other without the host, however many steps it takes, have the same number: that of the first of them.
    pub fn islands(&self) -> BTreeMap<u32, u32> {
        let mut island: BTreeMap<u32, u32> = BTreeMap::new();
        for &first in self.links.keys() {
            let mut open = vec![first];
            while let Some(device) = open.pop() {
                if island.contains_key(&device) {
                    continue;
                }
                island.insert(device, first);
                let links = self.links.get(&device).into_iter().flatten();
                open.extend(links.filter(|(_, link)| **link == NpuLink::Direct).map(|(other, _)| *other));
            }
        }
        island
    }
}

/// Of `NPU3`; the words of the legend have none.
fn device_number(word: &str) -> Option<u32> {
    word.strip_prefix("NPU")?.parse().ok()
}

fn link(word: &str) -> NpuLink {
    match word {
        "X" => NpuLink::Own,
        "SIO" => NpuLink::Direct,
        _ if word.starts_with("HCCS") || word.starts_with("UB") => NpuLink::Direct,
        _ => NpuLink::Host,
    }
}
