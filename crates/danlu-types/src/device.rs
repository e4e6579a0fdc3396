//! Accelerators, as engines report them and jobs ask for them.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thiserror::Error;
use utoipa::ToSchema;

use crate::{Bytes, Cpus};

/// Who makes an accelerator; it decides which runtime, environment and rank table a job gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum DeviceKind {
    Nvidia,
    Ascend,
}

impl DeviceKind {
    pub const ALL: [DeviceKind; 2] = [DeviceKind::Nvidia, DeviceKind::Ascend];

    pub fn as_str(self) -> &'static str {
        match self {
            DeviceKind::Nvidia => "nvidia",
            DeviceKind::Ascend => "ascend",
        }
    }

    /// The name as it stands in sentences: "8 Ascend 910B3".
    pub fn label(self) -> &'static str {
        match self {
            DeviceKind::Nvidia => "NVIDIA",
            DeviceKind::Ascend => "Ascend",
        }
    }

    /// The model with its maker before it, once: some models have it in their names, as the `Ascend910` of an A3.
    pub fn labelled(self, model: &str) -> String {
        let label = self.label();
        let has_label = model.get(..label.len()).is_some_and(|start| start.eq_ignore_ascii_case(label));
        if has_label { model.to_owned() } else { format!("{label} {model}") }
    }
}

impl fmt::Display for DeviceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ParseDeviceError {
    #[error("`{0}` is not a device kind; write `nvidia` or `ascend`")]
    Kind(String),
    #[error("`{0}` is not a number of devices; write {accepted}", accepted = DeviceCount::ACCEPTED)]
    Count(String),
    #[error(
        "`{0}` is not a device request; write a count such as `8`, `0.5`, `ascend:8` or `ascend:910B*:8`"
    )]
    Request(String),
}

impl FromStr for DeviceKind {
    type Err = ParseDeviceError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.to_ascii_lowercase().as_str() {
            "nvidia" | "gpu" | "cuda" => Ok(DeviceKind::Nvidia),
            "ascend" | "npu" => Ok(DeviceKind::Ascend),
            _ => Err(ParseDeviceError::Kind(text.chars().take(40).collect())),
        }
    }
}

/// What each worker of a job asks for.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DeviceRequest {
    /// Any kind when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<DeviceKind>,
    /// A glob over model names, such as `910B*`, or several with `|` between them; any model when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// How many devices, or a share of one such as 0.5; 0 for a job that computes on processors only.
    pub count: DeviceCount,
}

/// A number of whole devices, or a share of one device in thousandths: `8`, `1`, `0.5`, `0`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct DeviceCount {
    milli: u32,
}

/// The thousandths of which a whole device has as many.
pub const WHOLE_DEVICE: u32 = 1000;

impl DeviceCount {
    pub const ACCEPTED: &str = "a whole number of devices such as `8`, or a share of one such as `0.5`";

    pub const fn whole(devices: u32) -> Self {
        DeviceCount { milli: devices.saturating_mul(WHOLE_DEVICE) }
    }

    /// So many thousandths of one device.
    pub(crate) const fn share_of(milli: u32) -> Self {
        DeviceCount { milli }
    }

    /// `None` for what is neither whole nor less than one.
    pub const fn from_milli(milli: u32) -> Option<Self> {
        if milli < WHOLE_DEVICE || milli.is_multiple_of(WHOLE_DEVICE) {
            Some(DeviceCount { milli })
        } else {
            None
        }
    }

    pub const fn milli(self) -> u32 {
        self.milli
    }

    /// How many devices the worker sees: a share is of one.
    pub const fn devices(self) -> u32 {
        self.milli.div_ceil(WHOLE_DEVICE)
    }

    /// What it takes of each of them, in thousandths.
    pub const fn share(self) -> u32 {
        if self.milli < WHOLE_DEVICE { self.milli } else { WHOLE_DEVICE }
    }

    pub const fn is_none(self) -> bool {
        self.milli == 0
    }
}

impl fmt::Display for DeviceCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&Cpus { milli: u64::from(self.milli) }, f)
    }
}

impl FromStr for DeviceCount {
    type Err = ParseDeviceError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || ParseDeviceError::Count(text.chars().take(40).collect());
        let milli = text.trim().parse::<Cpus>().ok().filter(|_| !text.contains('m')).ok_or_else(wrong)?.milli;
        // Less than a thousandth is not nothing.
        if milli == 0 && text.contains(|digit| matches!(digit, '1'..='9')) {
            return Err(wrong());
        }
        u32::try_from(milli).ok().and_then(DeviceCount::from_milli).ok_or_else(wrong)
    }
}

impl Serialize for DeviceCount {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.milli.is_multiple_of(WHOLE_DEVICE) {
            serializer.serialize_u32(self.milli / WHOLE_DEVICE)
        } else {
            serializer.serialize_f64(f64::from(self.milli) / f64::from(WHOLE_DEVICE))
        }
    }
}

impl<'de> Deserialize<'de> for DeviceCount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Number;
        impl Visitor<'_> for Number {
            type Value = DeviceCount;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(DeviceCount::ACCEPTED)
            }
            fn visit_u64<E: de::Error>(self, number: u64) -> Result<DeviceCount, E> {
                number.to_string().parse().map_err(E::custom)
            }
            fn visit_i64<E: de::Error>(self, number: i64) -> Result<DeviceCount, E> {
                number.to_string().parse().map_err(E::custom)
            }
            fn visit_f64<E: de::Error>(self, number: f64) -> Result<DeviceCount, E> {
                number.to_string().parse().map_err(E::custom)
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<DeviceCount, E> {
                text.parse().map_err(E::custom)
            }
        }
        deserializer.deserialize_any(Number)
    }
}

impl utoipa::PartialSchema for DeviceCount {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
        utoipa::openapi::ObjectBuilder::new()
            .schema_type(utoipa::openapi::schema::Type::Number)
            .description(Some("A whole number of devices, or a share of one such as 0.5"))
            .minimum(Some(0.0))
            .into()
    }
}

impl ToSchema for DeviceCount {}

impl DeviceRequest {
    pub fn accepts(&self, device: &Device) -> bool {
        self.kind.is_none_or(|kind| kind == device.kind)
            && self.model.as_deref().is_none_or(|patterns| {
                patterns.split('|').any(|pattern| glob_matches(pattern.trim(), &device.model))
            })
    }
}

/// `8 × Ascend 910B*`, for tables and sentences.
impl fmt::Display for DeviceRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.kind, &self.model) {
            (Some(kind), Some(model)) => write!(f, "{} × {}", self.count, kind.labelled(model)),
            (None, Some(model)) => write!(f, "{} × device {model}", self.count),
            (kind, None) => write!(f, "{} × {}", self.count, kind.map_or("device", DeviceKind::label)),
        }
    }
}

impl FromStr for DeviceRequest {
    type Err = ParseDeviceError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let count =
            |part: &str| part.parse().map_err(|_| ParseDeviceError::Request(text.chars().take(80).collect()));
        match text.split(':').collect::<Vec<_>>()[..] {
            [number] => Ok(DeviceRequest { kind: None, model: None, count: count(number)? }),
            [kind, number] => {
                Ok(DeviceRequest { kind: Some(kind.parse()?), model: None, count: count(number)? })
            }
            [kind, model, number] => Ok(DeviceRequest {
                kind: Some(kind.parse()?),
                model: Some(model.to_owned()),
                count: count(number)?,
            }),
            _ => Err(ParseDeviceError::Request(text.chars().take(80).collect())),
        }
    }
}

/// Matches `*` (any run) and `?` (any one character), ignoring case, in time linear in both texts for one star.
pub fn glob_matches(pattern: &str, text: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().flat_map(char::to_lowercase).collect();
    let text: Vec<char> = text.chars().flat_map(char::to_lowercase).collect();
    let (mut at, mut seen) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while seen < text.len() {
        if at < pattern.len() && pattern[at] == '*' {
            star = Some((at, seen));
            at += 1;
        } else if at < pattern.len() && (pattern[at] == '?' || pattern[at] == text[seen]) {
            at += 1;
            seen += 1;
        } else if let Some((star_at, star_seen)) = star {
            at = star_at + 1;
            seen = star_seen + 1;
            star = Some((star_at, star_seen + 1));
        } else {
            return false;
        }
    }
    pattern[at..].iter().all(|&character| character == '*')
}

/// Whether a device may be given to jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Health {
    #[default]
    Ok,
    /// Works, but the vendor's tool warns about it; still given out.
    Warning,
    /// Not given to new jobs.
    Failed,
    Unknown,
}

/// One accelerator of a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Device {
    /// Its number on its node, as the vendor's runtime counts.
    pub index: u32,
    pub kind: DeviceKind,
    pub model: String,
    pub memory: Bytes,
    /// Devices of one island reach each other over NVLink or HCCS.
    pub island: u32,
    #[serde(default)]
    pub health: Health,
    #[serde(default, skip_serializing_if = "Wiring::is_unknown")]
    pub wiring: Wiring,
}

/// How a device is connected, as far as its machine says.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct Wiring {
    /// The memory node nearest to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub numa: Option<u32>,
    /// The address of its own network port, by which Ascend devices of different nodes reach each other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub address: Option<IpAddr>,
    /// Its number within its super-pod (`SDID`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub super_device: Option<u64>,
    /// The number in `/dev/davinciN`, by which HCCL and `hccn_tool` know an Ascend device; its index may count otherwise, as in a
    /// container that was given some of a machine's devices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub physical: Option<u32>,
    /// Where it is on the PCI bus.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bus: Option<String>,
    /// The card and the chip on it, as `npu-smi` counts them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub card: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chip: Option<u32>,
    /// The vendor's name for this very piece, where a number would not do: an NVIDIA UUID, also of a MIG instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uuid: Option<String>,
}

impl Wiring {
    pub fn is_unknown(&self) -> bool {
        *self == Wiring::default()
    }
}

impl Device {
    /// The number by which HCCL knows it.
    pub fn physical(&self) -> u32 {
        self.wiring.physical.unwrap_or(self.index)
    }

    pub fn usable(&self) -> bool {
        matches!(self.health, Health::Ok | Health::Warning)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_match_models() {
        for (pattern, text, expected) in [
            ("910B*", "910B3", true),
            ("910b*", "910B3", true),
            ("910B?", "910B3", true),
            ("910B?", "910B", false),
            ("*A100*", "NVIDIA A100-SXM4-80GB", true),
            ("A100", "A100-80G", false),
            ("", "", true),
            ("*", "", true),
            ("", "x", false),
            ("*a*b", "xaxxbxb", true),
        ] {
            assert_eq!(glob_matches(pattern, text), expected, "{pattern} ~ {text}");
        }
    }

    #[test]
    fn a_bar_between_models_means_either() {
        let request: DeviceRequest = "nvidia:V100*|A100:1".parse().unwrap();
        let device = |model: &str| Device {
            index: 0,
            kind: DeviceKind::Nvidia,
            model: model.to_owned(),
            memory: Bytes(0),
            island: 0,
            health: Health::Ok,
            wiring: Wiring::default(),
        };
        assert!(request.accepts(&device("V100M32")) && request.accepts(&device("A100")));
        assert!(!request.accepts(&device("T4")));
    }

    #[test]
    fn requests_read_from_flags() {
        let request: DeviceRequest = "ascend:910B*:8".parse().unwrap();
        assert_eq!(request.to_string(), "8 × Ascend 910B*");
        assert_eq!("npu:2".parse::<DeviceRequest>().unwrap().kind, Some(DeviceKind::Ascend));
        insta::assert_snapshot!("tpu:8".parse::<DeviceRequest>().unwrap_err(), @"`tpu` is not a device kind; write `nvidia` or `ascend`");
        assert_eq!("0.5".parse::<DeviceRequest>().unwrap().count.share(), 500);
        insta::assert_snapshot!("ascend:1.5".parse::<DeviceRequest>().unwrap_err(), @"`ascend:1.5` is not a device request; write a count such as `8`, `0.5`, `ascend:8` or `ascend:910B*:8`");
    }
}
