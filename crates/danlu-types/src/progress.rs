//! How far a job is, as its program says.

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use utoipa::ToSchema;

use crate::{Rank, Span};

/// A part of a whole, to a millionth: 0.42 in JSON, `42 %` for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Fraction {
    millionths: u32,
}

impl Fraction {
    /// `None` for what is not between 0 and 1.
    pub fn new(value: f64) -> Option<Self> {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "between 0 and a million"
        )]
        (0.0..=1.0).contains(&value).then(|| Fraction { millionths: (value * 1e6).round() as u32 })
    }

    pub fn value(self) -> f64 {
        f64::from(self.millionths) / 1e6
    }

    pub const fn millionths(self) -> u32 {
        self.millionths
    }
}

impl fmt::Display for Fraction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} %", self.millionths / 10_000)
    }
}

impl Serialize for Fraction {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.value())
    }
}

impl<'de> Deserialize<'de> for Fraction {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = f64::deserialize(deserializer)?;
        Fraction::new(value).ok_or_else(|| serde::de::Error::custom("a fraction is between 0 and 1"))
    }
}

/// What a running job's program has said of itself.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct ProgressView {
    /// Of the slowest rank that says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<f64>)]
    pub done: Option<Fraction>,
    /// Until it is done, if it goes on at the speed of this attempt so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left: Option<Span>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint_step: Option<u64>,
    /// The last value of each.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(value_type = BTreeMap<String, f64>)]
    pub metrics: BTreeMap<String, serde_json::Number>,
    /// Ranks that are clearly behind the others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stragglers: Vec<Rank>,
    /// Set while the job seems to hang, where `on_hang` is `notify`: how that shows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hang: Option<String>,
    /// When it last said anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
}
