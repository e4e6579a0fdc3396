//! `npu-smi info`: the table of chips and the table of processes.
//!
//! Two rows make a chip: who it is, then how it is doing. From driver to driver the table gains columns, and on the 950 a
//! cell; the header says which.

use danlu_types::{Bytes, Health};
use thiserror::Error;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NpuSmiReport {
    /// Of the driver.
    pub version: Option<String>,
    pub chips: Vec<Chip>,
    pub processes: Vec<NpuProcess>,
    /// Whether the table stops before its end, so that devices may be missing.
    pub is_cut_off: bool,
    /// What the tool says beside its tables, such as that its driver is not wholly installed.
    pub remarks: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chip {
    /// The card. Its number is not that of the device where a card has several chips.
    pub npu: u32,
    pub number: u32,
    /// `Phy-ID` or `Device`, where the tool shows one.
    pub physical: Option<u32>,
    pub name: String,
    pub health: Health,
    /// Of the whole card; the second die of an A3 shows none.
    pub power_watts: Option<u32>,
    pub temperature_celsius: Option<i32>,
    pub bus: Option<String>,
    pub utilisation_percent: Option<u32>,
    /// High-bandwidth memory where the chip has any, else its plain memory. A few gigabytes of it are in use on an idle 910B.
    pub memory: NpuUsage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NpuUsage {
    /// Nothing where the tool does not say.
    pub used: Option<Bytes>,
    /// 0 where the tool does not say.
    pub total: Bytes,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NpuProcess {
    pub npu: u32,
    /// None where the tool names the card only.
    pub chip: Option<u32>,
    pub pid: i32,
    /// Cut off by the tool after about 15 characters.
    pub name: String,
    pub memory: Bytes,
    pub pid_in_container: Option<i32>,
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NpuSmiError {
    #[error("npu-smi cannot reach the driver: {0}")]
    Driver(String),
    #[error("npu-smi printed no table of devices: {0}")]
    NoTable(String),
}

const LONGEST_REMARK: usize = 200;

/// A machine without devices is a report without chips, not an error.
pub fn report(text: &str) -> Result<NpuSmiReport, NpuSmiError> {
    let mut reader = Reader::default();
    let text = without_colours(text);
    let mut last = "";
    for line in text.lines().map(str::trim) {
        if line.starts_with(['|', '+']) {
            last = line;
        }
        match line.strip_prefix('|') {
            Some(row) => reader.on_row(row),
            None if line.starts_with('+') || line.is_empty() => {}
            None => reader.report.remarks.push(line.chars().take(LONGEST_REMARK).collect()),
        }
    }
    let saw_table = reader.columns.is_some();
    // A table ends with a border, and no chip has one row only.
    let is_closed = last.len() > 1 && last.starts_with('+') && last.ends_with('+');
    let mut report = reader.report;
    report.is_cut_off = saw_table && (reader.open.is_some() || !is_closed);
    let remark_with = |words: &[&str]| {
        report.remarks.iter().find(|remark| {
            let remark = remark.to_lowercase();
            words.iter().all(|word| remark.contains(word))
        })
    };
    if saw_table {
        return Ok(report);
    }
    if remark_with(&["no npu"]).is_some() {
        return Ok(NpuSmiReport::default());
    }
    if let Some(remark) = remark_with(&["dcmi", "fail"]) {
        return Err(NpuSmiError::Driver(remark.clone()));
    }
    Err(NpuSmiError::NoTable(report.remarks.first().cloned().unwrap_or_else(|| "nothing at all".to_owned())))
}

/// Without the escape sequences by which some tools set colours.
fn without_colours(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(character) = rest.next() {
        if character == '\u{1b}' && rest.next_if_eq(&'[').is_some() {
            // A sequence ends with its first letter.
            while rest.next_if(|c| c.is_ascii_digit() || matches!(c, ';' | '?' | ':')).is_some() {}
            rest.next();
        } else {
            plain.push(character);
        }
    }
    plain
}

#[derive(Default)]
struct Reader {
    report: NpuSmiReport,
    columns: Option<Columns>,
    processes: Option<ProcessColumns>,
    /// The first row of a chip whose second has not come yet.
    open: Option<Identity>,
}

/// What the header of the chips says of the rows below it.
struct Columns {
    /// The 950 gives the name a cell of its own.
    name_apart: bool,
    high_bandwidth: bool,
}

struct ProcessColumns {
    chips: bool,
    memory_unit: u64,
}

struct Identity {
    npu: u32,
    name: String,
    health: Health,
    power_watts: Option<u32>,
    temperature_celsius: Option<i32>,
}

impl Reader {
    fn on_row(&mut self, row: &str) {
        let row = row.strip_suffix('|').unwrap_or(row);
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let has = |word: &str| row.contains(word);
        if has("npu-smi") && has("Version:") {
            self.report.version = row.split("Version:").nth(1).map(|version| version.trim().to_owned());
        } else if has("Health") && has("Name") {
            self.columns = Some(Columns { name_apart: cells.len() > 3, high_bandwidth: false });
            self.processes = None;
        } else if has("Bus-Id") {
            if let Some(columns) = &mut self.columns {
                columns.high_bandwidth = has("HBM");
            }
        } else if has("Process id") {
            let memory_unit = if has("memory(B)") { 1 } else { 1 << 20 };
            self.processes = Some(ProcessColumns { chips: has("Chip"), memory_unit });
        } else if let Some(columns) = &self.processes {
            self.report.processes.extend(process(&cells, columns));
        } else if let Some(columns) = &self.columns {
            match self.open.take() {
                Some(identity) => self.report.chips.extend(chip(identity, &cells, columns)),
                None => self.open = identity(&cells, columns),
            }
        }
    }
}

/// `0  910B3 | OK | 101.8  43  0 / 0`
fn identity(cells: &[&str], columns: &Columns) -> Option<Identity> {
    let (npu, name, rest) = if columns.name_apart {
        let [npu, name, rest @ ..] = cells else { return None };
        (*npu, *name, rest)
    } else {
        let [first, rest @ ..] = cells else { return None };
        let (npu, name) = first.split_once(char::is_whitespace).unwrap_or((first, ""));
        (npu, name.trim(), rest)
    };
    let [health, figures] = rest else { return None };
    let figures = figures.split_whitespace().collect::<Vec<_>>();
    Some(Identity {
        npu: npu.parse().ok()?,
        name: name.to_owned(),
        health: health_of(health),
        power_watts: figures.first().and_then(|power| watts(power)),
        temperature_celsius: figures.get(1).and_then(|temperature| temperature.parse().ok()),
    })
}

/// `0  1 | 0000:9F:00.0 | 0  0 / 0  2887 / 65536`
fn chip(identity: Identity, cells: &[&str], columns: &Columns) -> Option<Chip> {
    let rest = if columns.name_apart { cells.get(1..)? } else { cells };
    let [numbers, bus, figures] = rest else { return None };
    let mut numbers = numbers.split_whitespace().map(|number| number.parse().ok());
    // Where the header has no chip, a card is one.
    let chip = if columns.name_apart { 0 } else { numbers.next()?? };
    // Five digits touch the slash.
    let figures = figures.replace('/', " / ");
    let figures: Vec<&str> = figures.split_whitespace().collect();
    let mut usages = figures
        .windows(3)
        .filter(|three| three[1] == "/")
        .map(|three| NpuUsage { used: mebibytes(three[0]), total: mebibytes(three[2]).unwrap_or_default() });
    let (plain, high_bandwidth) = (usages.next(), usages.next().filter(|_| columns.high_bandwidth));
    Some(Chip {
        npu: identity.npu,
        number: chip,
        physical: numbers.next().flatten(),
        name: identity.name,
        health: identity.health,
        power_watts: identity.power_watts,
        temperature_celsius: identity.temperature_celsius,
        bus: Some((*bus).to_owned()).filter(|bus| bus.contains(':')),
        utilisation_percent: figures.first().and_then(|percent| percent.parse().ok()),
        memory: high_bandwidth.filter(|usage| usage.total > Bytes(0)).or(plain).unwrap_or_default(),
    })
}

/// `5  0 | 2921060 | python3 | 18112 | NA`; rows that say that there are none have but one cell.
fn process(cells: &[&str], columns: &ProcessColumns) -> Option<NpuProcess> {
    let [numbers, pid, name, memory, rest @ ..] = cells else { return None };
    let mut numbers = numbers.split_whitespace().map(|number| number.parse().ok());
    let memory: u64 = memory.parse().ok()?;
    Some(NpuProcess {
        npu: numbers.next()??,
        chip: if columns.chips { numbers.next().flatten() } else { None },
        pid: pid.parse().ok()?,
        name: (*name).to_owned(),
        memory: Bytes(memory.saturating_mul(columns.memory_unit)),
        pid_in_container: rest.first().and_then(|pid| pid.parse().ok()),
    })
}

/// Rounded: the tenths are noise.
fn watts(text: &str) -> Option<u32> {
    let watts: f64 = text.parse().ok()?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "within the bounds that the filter keeps"
    )]
    (0.0..100_000.0).contains(&watts).then(|| watts.round() as u32)
}

fn mebibytes(text: &str) -> Option<Bytes> {
    text.parse::<u64>().ok().map(|mebibytes| Bytes(mebibytes.saturating_mul(1 << 20)))
}

/// "Alarm" and "Critical" are faults that the driver does not expect work to survive.
fn health_of(word: &str) -> Health {
    match word.to_ascii_lowercase().as_str() {
        "ok" => Health::Ok,
        "warning" => Health::Warning,
        "alarm" | "critical" => Health::Failed,
        _ => Health::Unknown,
    }
}
