//! `npu-smi info -m`: which device number the runtime gives each chip.

/// A chip that computes; the microcontrollers that the tool lists beside them are left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MappedChip {
    pub npu: u32,
    pub chip: u32,
    /// As the runtime counts; inside a container that is not the number of `/dev/davinciN`.
    pub device: u32,
    /// As `/dev/davinciN`, HCCL and `hccn_tool` count, where the tool shows it.
    pub physical: Option<u32>,
    /// Such as `Ascend 910B3`.
    pub name: String,
}

pub fn mapping(text: &str) -> Vec<MappedChip> {
    let mut lines = text.lines().map(columns);
    let Some(header) = lines.find(|cells| cells.contains(&"NPU ID")) else { return Vec::new() };
    let at = |name: &str| header.iter().position(|cell| *cell == name);
    let (Some(npu), Some(chip), Some(name)) = (at("NPU ID"), at("Chip ID"), at("Chip Name")) else {
        return Vec::new();
    };
    let physical = at("Chip Phy-ID");
    let Some(device) = at("Chip Logic ID").or(physical) else { return Vec::new() };
    lines
        .filter_map(|cells| {
            let number = |at: usize| cells.get(at)?.parse().ok();
            let name = (*cells.get(name)?).to_owned();
            let (npu, chip, device) = (number(npu)?, number(chip)?, number(device)?);
            let physical = physical.and_then(number);
            (!name.eq_ignore_ascii_case("mcu")).then_some(MappedChip { npu, chip, device, physical, name })
        })
        .collect()
}

/// Cells stand apart by tabs or by several blanks; names have single ones.
fn columns(line: &str) -> Vec<&str> {
    line.split('\t')
        .flat_map(|part| part.split("  "))
        .map(str::trim)
        .filter(|cell| !cell.is_empty())
        .collect()
}
