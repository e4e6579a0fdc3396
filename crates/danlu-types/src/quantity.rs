//! Amounts as people write them: `256Gi`, `0.5`, `24h`.
//!
//! Each type keeps one exact integer and prints the shortest text that reads back as the same value. Sizes and times need
//! a unit: whoever writes `memory: 64` means gibibytes as often as not, and never bytes. Zero needs none.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use thiserror::Error;
use utoipa::openapi::schema::{ObjectBuilder, OneOfBuilder, Type};

/// An amount of memory in bytes: `512Mi`, `256Gi`, `1.5Gi`, `2GB`, `100B`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Bytes(pub u64);

/// Processor time in thousandths of a core: `96`, `0.5`, `500m`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Cpus {
    pub milli: u64,
}

/// A length of time in milliseconds: `90s`, `30m`, `24h`, `1d12h`, `250ms`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span {
    pub milliseconds: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ParseQuantityError {
    #[error("`{text}` is not {what}; write {accepted}")]
    Unreadable { text: String, what: &'static str, accepted: &'static str },
    #[error("`{number}` has no unit; write {}", with_units(.number, .units))]
    NoUnit { number: String, units: &'static [&'static str] },
}

/// "`64Gi` or `64Mi`"
fn with_units(number: &str, units: &[&str]) -> String {
    units.iter().map(|unit| format!("`{number}{unit}`")).collect::<Vec<_>>().join(" or ")
}

const BYTE_UNITS: [(&str, u64); 14] = [
    ("Ti", 1 << 40),
    ("Gi", 1 << 30),
    ("Mi", 1 << 20),
    ("Ki", 1 << 10),
    ("T", 1_000_000_000_000),
    ("G", 1_000_000_000),
    ("M", 1_000_000),
    ("K", 1_000),
    ("k", 1_000),
    ("TB", 1_000_000_000_000),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("KB", 1_000),
    ("kB", 1_000),
];

/// What sizes are printed in, the first that makes the number smallest: `64Gi`, `64GB`, `1536Mi`.
const SHOWN_UNITS: [(&str, u64); 9] = [
    ("Ti", 1 << 40),
    ("Gi", 1 << 30),
    ("Mi", 1 << 20),
    ("Ki", 1 << 10),
    ("TB", 1_000_000_000_000),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("KB", 1_000),
    ("B", 1),
];

/// No job needs more than an exbibyte, and a ceiling far below `u64::MAX` keeps every later sum from wrapping.
const MOST_BYTES: u64 = 1 << 60;
/// A million cores.
const MOST_MILLI_CPUS: u64 = 1_000_000_000;
/// Ten years.
const LONGEST_MILLISECONDS: u64 = 10 * 366 * 24 * 3_600_000;

impl Bytes {
    pub const ACCEPTED: &str = "an amount with a unit, such as `512Mi`, `64Gi` or `1.5Gi`";

    /// Older versions wrote what is no multiple of 1024 as digits alone, into files that are still read (launch files,
    /// orders of Slurm jobs that wait). From a mebibyte up they can mean nothing but bytes.
    fn from_wire(text: &str) -> Result<Self, ParseQuantityError> {
        match text.parse::<u64>() {
            Ok(bytes) if (1 << 20..=MOST_BYTES).contains(&bytes) => Ok(Bytes(bytes)),
            _ => text.parse(),
        }
    }
}

impl Cpus {
    pub const ACCEPTED: &str = "a number of cores, such as `8`, `0.5` or `500m`";

    /// As many cores, and at most what can be asked for: numbers may come from files that users wrote.
    pub const fn whole(cores: u64) -> Self {
        let milli = cores.saturating_mul(1000);
        Cpus { milli: if milli > MOST_MILLI_CPUS { MOST_MILLI_CPUS } else { milli } }
    }

    fn from_wire(text: &str) -> Result<Self, ParseQuantityError> {
        text.parse()
    }
}

impl Span {
    pub const ACCEPTED: &str = "a time with a unit, such as `90s`, `30m`, `24h` or `1d12h`";

    /// As many seconds, and at most the longest time that can be asked for, as for [`Cpus::whole`].
    pub const fn from_seconds(seconds: u64) -> Self {
        let milliseconds = seconds.saturating_mul(1000);
        Span {
            milliseconds: if milliseconds > LONGEST_MILLISECONDS {
                LONGEST_MILLISECONDS
            } else {
                milliseconds
            },
        }
    }

    fn from_wire(text: &str) -> Result<Self, ParseQuantityError> {
        text.parse()
    }

    pub const fn to_duration(self) -> Duration {
        Duration::from_millis(self.milliseconds)
    }
}

/// Reads a non-negative decimal such as `1.5` times `unit`, exactly, refusing what does not come out whole.
fn scaled(number: &str, unit: u64) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(fraction) || whole.is_empty() || fraction.len() > 12 {
        return None;
    }
    if number.ends_with('.') {
        return None;
    }
    let whole = whole.parse::<u64>().ok()?.checked_mul(unit)?;
    if fraction.is_empty() {
        return Some(whole);
    }
    let scale = 10u128.pow(u32::try_from(fraction.len()).ok()?);
    let part = u128::from(fraction.parse::<u64>().ok()?) * u128::from(unit) / scale;
    whole.checked_add(u64::try_from(part).ok()?)
}

impl FromStr for Bytes {
    type Err = ParseQuantityError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let trimmed = text.trim();
        refuse_bare(trimmed, &["Gi", "Mi"])?;
        let split = trimmed.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(trimmed.len());
        let (number, unit) = trimmed.split_at(split);
        let unit = match unit {
            // Only zero comes here without a unit.
            "" | "B" => Some(1),
            "GiB" | "MiB" | "KiB" | "TiB" => find_unit(&unit[..2]),
            other => find_unit(other),
        };
        unit.and_then(|unit| scaled(number.trim(), unit))
            .filter(|bytes| *bytes <= MOST_BYTES)
            .map(Bytes)
            .ok_or_else(|| ParseQuantityError::Unreadable {
                text: shorten(text),
                what: "an amount of memory",
                accepted: Bytes::ACCEPTED,
            })
    }
}

fn find_unit(name: &str) -> Option<u64> {
    BYTE_UNITS.iter().find(|(unit, _)| *unit == name).map(|(_, size)| *size)
}

impl FromStr for Cpus {
    type Err = ParseQuantityError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let trimmed = text.trim();
        let milli = match trimmed.strip_suffix('m') {
            Some(milli) => scaled(milli, 1),
            None => scaled(trimmed, 1000),
        };
        milli.filter(|milli| *milli <= MOST_MILLI_CPUS).map(|milli| Cpus { milli }).ok_or_else(|| {
            ParseQuantityError::Unreadable {
                text: shorten(text),
                what: "a number of processor cores",
                accepted: Cpus::ACCEPTED,
            }
        })
    }
}

impl FromStr for Span {
    type Err = ParseQuantityError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        refuse_bare(text.trim(), &["h", "m", "s"])?;
        read_span(text.trim())
            .filter(|milliseconds| *milliseconds <= LONGEST_MILLISECONDS)
            .map(|milliseconds| Span { milliseconds })
            .ok_or_else(|| ParseQuantityError::Unreadable {
                text: shorten(text),
                what: "a length of time",
                accepted: Span::ACCEPTED,
            })
    }
}

/// A number by itself, unless it is zero, with the units that it may have been meant with.
fn refuse_bare(text: &str, units: &'static [&'static str]) -> Result<(), ParseQuantityError> {
    match scaled(text, 1000) {
        Some(number) if number > 0 => Err(ParseQuantityError::NoUnit { number: text.to_owned(), units }),
        _ => Ok(()),
    }
}

fn read_span(mut rest: &str) -> Option<u64> {
    if rest.is_empty() {
        return None;
    }
    if rest.bytes().all(|byte| byte == b'0') {
        return Some(0);
    }
    let mut total = 0u64;
    while !rest.is_empty() {
        let split = rest.find(|c: char| c.is_ascii_alphabetic())?;
        let (number, tail) = rest.split_at(split);
        let end = tail.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(end);
        let unit = match unit {
            "ms" => 1,
            "s" | "sec" => 1000,
            "m" | "min" => 60_000,
            "h" => 3_600_000,
            "d" => 24 * 3_600_000,
            _ => return None,
        };
        total = total.checked_add(scaled(number.trim(), unit)?)?;
        rest = tail.trim_start();
    }
    Some(total)
}

/// Error texts quote what was typed, but not ten megabytes of it.
fn shorten(text: &str) -> String {
    match text.char_indices().nth(40) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 {
            return f.write_str("0");
        }
        let whole = SHOWN_UNITS.iter().filter(|(_, size)| self.0.is_multiple_of(*size));
        match whole.map(|(name, size)| (self.0 / size, name)).min_by_key(|(number, _)| *number) {
            Some((number, name)) => write!(f, "{number}{name}"),
            None => write!(f, "{}B", self.0),
        }
    }
}

impl fmt::Display for Cpus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.milli / 1000, self.milli % 1000) {
            (cores, 0) => write!(f, "{cores}"),
            (cores, milli) => {
                let fraction = format!("{milli:03}");
                write!(f, "{cores}.{}", fraction.trim_end_matches('0'))
            }
        }
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.milliseconds == 0 {
            return f.write_str("0s");
        }
        let mut rest = self.milliseconds;
        for (unit, size) in [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)] {
            if rest >= size {
                write!(f, "{}{unit}", rest / size)?;
                rest %= size;
            }
        }
        Ok(())
    }
}

/// Quantities are strings in JSON and YAML; plain numbers are read as their text, because people write `cpus: 8`.
macro_rules! text_or_number {
    ($($name:ident => $example:literal, numbers: $numbers:expr);*) => {$(
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Text;
                impl Visitor<'_> for Text {
                    type Value = $name;
                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str($name::ACCEPTED)
                    }
                    fn visit_str<E: de::Error>(self, text: &str) -> Result<$name, E> {
                        $name::from_wire(text).map_err(E::custom)
                    }
                    fn visit_u64<E: de::Error>(self, number: u64) -> Result<$name, E> {
                        number.to_string().parse().map_err(E::custom)
                    }
                    fn visit_i64<E: de::Error>(self, number: i64) -> Result<$name, E> {
                        number.to_string().parse().map_err(E::custom)
                    }
                    fn visit_f64<E: de::Error>(self, number: f64) -> Result<$name, E> {
                        number.to_string().parse().map_err(E::custom)
                    }
                }
                deserializer.deserialize_any(Text)
            }
        }

        impl utoipa::PartialSchema for $name {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
                let text = ObjectBuilder::new().schema_type(Type::String);
                let number = ObjectBuilder::new().schema_type(Type::Number).enum_values($numbers);
                OneOfBuilder::new()
                    .item(text)
                    .item(number)
                    .description(Some($name::ACCEPTED))
                    .examples([serde_json::json!($example)])
                    .into()
            }
        }

        impl utoipa::ToSchema for $name {}
    )*};
}
// Without a unit, nothing but zero is an amount of memory or a time.
text_or_number!(Bytes => "64Gi", numbers: Some([0]); Cpus => "0.5", numbers: None::<[u8; 0]>; Span => "24h", numbers: Some([0]));

#[cfg(test)]
mod tests;
