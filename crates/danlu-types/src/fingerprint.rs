//! The SHA-256 of a server's certificate: how one knows a server whose certificate nobody vouches for.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Fingerprint(pub [u8; 32]);

#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "invalid fingerprint `{0}`: write the 64 hexadecimal digits that `danlu up` shows, with or without colons"
)]
pub struct FingerprintError(String);

impl FromStr for Fingerprint {
    type Err = FingerprintError;

    fn from_str(text: &str) -> Result<Self, FingerprintError> {
        let no_fingerprint = || FingerprintError(text.chars().take(100).collect());
        let digits: Vec<u8> = text
            .bytes()
            .filter(|byte| *byte != b':')
            .map(|byte| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok()))
            .collect::<Option<_>>()
            .ok_or_else(no_fingerprint)?;
        let bytes: Vec<u8> =
            digits.chunks(2).map(|pair| pair.iter().fold(0, |sum, digit| sum << 4 | digit)).collect();
        if digits.len() != 64 {
            return Err(no_fingerprint());
        }
        bytes.try_into().map(Fingerprint).map_err(|_| no_fingerprint())
    }
}

impl TryFrom<String> for Fingerprint {
    type Error = FingerprintError;

    fn try_from(text: String) -> Result<Self, FingerprintError> {
        text.parse()
    }
}

impl From<Fingerprint> for String {
    fn from(fingerprint: Fingerprint) -> String {
        fingerprint.to_string()
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_usual_forms_are_read() {
        let plain = "00".repeat(31) + "7f";
        let colons = "00:".repeat(31) + "7F";
        let fingerprint: Fingerprint = plain.parse().unwrap();
        assert_eq!(fingerprint.0[31], 0x7f);
        assert_eq!(colons.parse(), Ok(fingerprint));
        assert_eq!(fingerprint.to_string(), plain);
        for bad in ["", "7f", &"0".repeat(63), &"0".repeat(65), &"g".repeat(64)] {
            assert!(bad.parse::<Fingerprint>().is_err(), "{bad}");
        }
    }
}
