//! Nodes and devices that fail by chance: how often, for how long, and which dice say when.

use std::str::FromStr;

use danlu_types::Span;
use thiserror::Error;

/// Each node and each device fails on its own, after times that are exponentially distributed, and comes back after a
/// fixed time. Same seed, same faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Faults {
    /// Mean time between two losses of one node.
    pub node_every: Option<Span>,
    /// Mean time between two failures of one device.
    pub device_every: Option<Span>,
    pub repair: Span,
    pub seed: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ParseFaultsError {
    #[error("`{0}` is not a fault setting; write `mtbf=30d,device-mtbf=365d,repair=4h,seed=7`")]
    Unknown(String),
    #[error("`{0}` is not a length of time above zero; write for example `mtbf=30d`")]
    Time(String),
    #[error("`{0}` is not a seed; write a whole number such as `seed=7`")]
    Seed(String),
    #[error("no faults are asked for; write `mtbf=30d` for nodes or `device-mtbf=365d` for devices")]
    Nothing,
}

/// `mtbf=30d,device-mtbf=365d,repair=4h,seed=7`; one of the first two is needed.
impl FromStr for Faults {
    type Err = ParseFaultsError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut faults =
            Faults { node_every: None, device_every: None, repair: Span::from_seconds(4 * 3600), seed: 1 };
        for item in text.split(',').map(str::trim) {
            let shown = || item.chars().take(60).collect::<String>();
            let (key, value) = item.split_once('=').ok_or_else(|| ParseFaultsError::Unknown(shown()))?;
            let time = || match value.parse() {
                Ok(Span { milliseconds: 0 }) | Err(_) => Err(ParseFaultsError::Time(shown())),
                Ok(time) => Ok(time),
            };
            match key {
                "mtbf" => faults.node_every = Some(time()?),
                "device-mtbf" => faults.device_every = Some(time()?),
                "repair" => faults.repair = time()?,
                "seed" => faults.seed = value.parse().map_err(|_| ParseFaultsError::Seed(shown()))?,
                _ => return Err(ParseFaultsError::Unknown(shown())),
            }
        }
        if faults.node_every.is_none() && faults.device_every.is_none() {
            return Err(ParseFaultsError::Nothing);
        }
        Ok(faults)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_read_as_people_write_them() {
        let faults = "mtbf=30d,repair=2h,seed=7".parse();
        let expected = Faults {
            node_every: Some(Span::from_seconds(30 * 86_400)),
            device_every: None,
            repair: Span::from_seconds(7200),
            seed: 7,
        };
        assert_eq!(faults, Ok(expected));
    }

    #[test]
    fn what_cannot_be_read_says_what_can() {
        let said = |text: &str| text.parse::<Faults>().unwrap_err().to_string();
        insta::assert_snapshot!(said("often"), @"`often` is not a fault setting; write `mtbf=30d,device-mtbf=365d,repair=4h,seed=7`");
        insta::assert_snapshot!(said("mtbf=0s"), @"`mtbf=0s` is not a length of time above zero; write for example `mtbf=30d`");
        insta::assert_snapshot!(said("seed=x"), @"`seed=x` is not a seed; write a whole number such as `seed=7`");
        insta::assert_snapshot!(said("repair=4h"), @"no faults are asked for; write `mtbf=30d` for nodes or `device-mtbf=365d` for devices");
    }
}
