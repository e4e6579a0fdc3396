//! Machines and accelerators, as engines report them and jobs ask for them.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;
use utoipa::ToSchema;

use crate::{Bytes, Cpus, NodeName};

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
    #[error("`{0}` is not a device request; write a count such as `8`, `ascend:8` or `ascend:910B*:8`")]
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
    /// A glob over model names, such as `910B*`; any model when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// How many whole devices; 0 for a job that computes on processors only.
    pub count: u32,
}

impl DeviceRequest {
    pub fn accepts(&self, device: &Device) -> bool {
        self.kind.is_none_or(|kind| kind == device.kind)
            && self.model.as_deref().is_none_or(|pattern| glob_matches(pattern, &device.model))
    }
}

/// `8 × Ascend 910B*`, for tables and sentences.
impl fmt::Display for DeviceRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = self.kind.map_or("device", DeviceKind::label);
        match &self.model {
            Some(model) => write!(f, "{} × {kind} {model}", self.count),
            None => write!(f, "{} × {kind}", self.count),
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
}

impl Device {
    pub fn usable(&self) -> bool {
        matches!(self.health, Health::Ok | Health::Warning)
    }
}

/// What a node can give in all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NodeCapacity {
    pub cpus: Cpus,
    pub memory: Bytes,
}

/// A machine that an engine offers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Node {
    pub name: NodeName,
    /// `x86_64` or `aarch64`.
    pub architecture: String,
    pub capacity: NodeCapacity,
    pub devices: Vec<Device>,
    /// The address by which workers of other nodes reach this one.
    pub address: String,
    /// True where `danlu up --simulate` made it up.
    #[serde(default)]
    pub simulated: bool,
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
    fn requests_read_from_flags() {
        let request: DeviceRequest = "ascend:910B*:8".parse().unwrap();
        assert_eq!(request.to_string(), "8 × Ascend 910B*");
        assert_eq!("npu:2".parse::<DeviceRequest>().unwrap().kind, Some(DeviceKind::Ascend));
        insta::assert_snapshot!("tpu:8".parse::<DeviceRequest>().unwrap_err(), @"`tpu` is not a device kind; write `nvidia` or `ascend`");
        insta::assert_snapshot!("ascend:0.5".parse::<DeviceRequest>().unwrap_err(), @"`ascend:0.5` is not a device request; write a count such as `8`, `ascend:8` or `ascend:910B*:8`");
    }
}
