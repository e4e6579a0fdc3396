//! The generations of Ascend hardware: which rules of HCCL and which rank table a device goes by.
//!
//! Decided by the name of the chip, never by what it is sold as: marketing says "910B" of chips that call themselves
//! 910B1 to 910B4, while a chip that calls itself `910B` is of the first generation.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;
use utoipa::ToSchema;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
pub enum Family {
    /// The first 910: two rings of four, one process per device.
    #[serde(rename = "910A")]
    First,
    /// 910B1 to 910B4: a full mesh of eight, or two rings of eight.
    A2,
    /// Modules of two dies, each a device of its own; super-pods.
    A3,
    /// 350, 850 and 950.
    A5,
    #[serde(rename = "310")]
    Small,
    #[serde(rename = "310P")]
    Inference,
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "unknown Ascend family `{0}`: write `910A`, `A2`, `A3`, `A5`, `310` or `310P`, or a chip's name such as `910B3`"
)]
pub struct ParseFamilyError(String);

impl Family {
    pub const ALL: [Family; 6] =
        [Family::First, Family::A2, Family::A3, Family::A5, Family::Small, Family::Inference];

    /// By the name that `npu-smi` gives a chip, with or without `Ascend` before it; nothing for names nobody has told us about.
    pub fn of(model: &str) -> Option<Family> {
        let name: String = model.chars().filter(char::is_ascii_alphanumeric).collect();
        let name = name.to_ascii_lowercase();
        // The dies of an A3 call themselves `Ascend910` and no more; no chip of the first generation writes `Ascend`
        // without a letter after the number.
        if name == "ascend910" {
            return Some(Family::A3);
        }
        let name = name.strip_prefix("ascend").unwrap_or(&name);
        let then_digit = |prefix: &str| {
            name.strip_prefix(prefix).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
        };
        match name {
            "910" | "910a" | "910b" | "910proa" | "910prob" | "910premiuma" => Some(Family::First),
            "a2" => Some(Family::A2),
            "a3" => Some(Family::A3),
            "a5" | "350" | "850" => Some(Family::A5),
            _ if then_digit("910b") => Some(Family::A2),
            _ if name.starts_with("91093") || name.starts_with("910c") => Some(Family::A3),
            _ if name.starts_with("950") => Some(Family::A5),
            _ if name.starts_with("310p") => Some(Family::Inference),
            _ if name.starts_with("310") => Some(Family::Small),
            _ => None,
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Family::First => "910A",
            Family::A2 => "A2",
            Family::A3 => "A3",
            Family::A5 => "A5",
            Family::Small => "310",
            Family::Inference => "310P",
        }
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Family {
    type Err = ParseFamilyError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Family::of(text).ok_or_else(|| ParseFamilyError(text.chars().take(40).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chips_tell_their_family() {
        for (model, family) in [
            ("910A", Some(Family::First)),
            ("910ProB", Some(Family::First)),
            ("Ascend910PremiumA", Some(Family::First)),
            ("910B", Some(Family::First)),
            ("Ascend910B", Some(Family::First)),
            ("910B3", Some(Family::A2)),
            ("Ascend 910B2C", Some(Family::A2)),
            ("910B4-1", Some(Family::A2)),
            ("Ascend910", Some(Family::A3)),
            ("Ascend910_9391", Some(Family::A3)),
            ("950", Some(Family::A5)),
            ("310P3", Some(Family::Inference)),
            ("310", Some(Family::Small)),
            ("xxx", None),
            ("H100", None),
        ] {
            assert_eq!(Family::of(model), family, "{model}");
        }
        for family in Family::ALL {
            assert_eq!(family.as_str().parse(), Ok(family));
        }
        insta::assert_snapshot!("920".parse::<Family>().unwrap_err(), @"unknown Ascend family `920`: write `910A`, `A2`, `A3`, `A5`, `310` or `310P`, or a chip's name such as `910B3`");
    }
}
