//! What the tool prints as `name : value` lines: `npu-smi info -l` and `-t …`.

/// Each line with a colon, in order; blocks repeat their names.
pub fn fields(text: &str) -> Vec<(&str, &str)> {
    text.lines()
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.trim(), value.trim()))
        .filter(|(name, _)| !name.is_empty())
        .collect()
}

/// Where a chip of an A3 stands, from `-t spod-info`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SuperPodPlace {
    /// `SDID`, which no other chip of the super-pod has.
    pub super_device: u64,
    pub super_pod: Option<u32>,
}

/// Nothing for machines that are in no super-pod; the tool then says so in a sentence.
pub fn super_pod_place(text: &str) -> Option<SuperPodPlace> {
    let fields = fields(text);
    let value = |wanted: &str| {
        let is_wanted = |name: &str| {
            let name = name.chars().filter(char::is_ascii_alphanumeric);
            name.map(|c| c.to_ascii_lowercase()).eq(wanted.chars())
        };
        fields.iter().find(|(name, _)| is_wanted(name)).map(|(_, value)| *value)
    };
    Some(SuperPodPlace {
        super_device: number(value("sdid")?)?,
        super_pod: value("superpodid").and_then(number).and_then(|number| u32::try_from(number).ok()),
    })
}

/// Decimal, or hexadecimal after `0x`.
fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}
