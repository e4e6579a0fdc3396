//! Which calls of PyTorch `torch_npu` supports, by version: names and statuses that the vendor publishes.

use std::collections::HashMap;
use std::sync::OnceLock;

const TABLE: &str = include_str!("../data/apis.txt");

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Support {
    Supported,
    Unsupported,
    /// No list of this version names it.
    Unlisted,
}

#[derive(Debug)]
struct Table {
    versions: Vec<&'static str>,
    statuses: HashMap<String, &'static str>,
}

/// A version of PyTorch that the lists know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TorchVersion {
    column: usize,
}

impl TorchVersion {
    pub fn newest() -> Self {
        TorchVersion { column: table().versions.len() - 1 }
    }

    /// The listed version that is nearest to what was asked, and whether it is that one.
    pub fn nearest(asked: &str) -> Option<(Self, bool)> {
        let wanted = number(asked)?;
        let versions = &table().versions;
        let distance = |version: &str| number(version).map_or(u64::MAX, |listed| listed.abs_diff(wanted));
        let column = (0..versions.len()).min_by_key(|column| distance(versions[*column]))?;
        Some((TorchVersion { column }, number(versions[column]) == Some(wanted)))
    }

    pub fn name(self) -> &'static str {
        table().versions[self.column]
    }

    pub fn support(self, name: &str) -> Support {
        match table().statuses.get(name).and_then(|signs| signs.as_bytes().get(self.column)) {
            Some(b'+') => Support::Supported,
            Some(b'-') => Support::Unsupported,
            _ => Support::Unlisted,
        }
    }
}

pub fn versions() -> &'static [&'static str] {
    &table().versions
}

/// `2.1.0+cu118` is 2 001 000: enough to tell which version is nearer.
pub(crate) fn number(version: &str) -> Option<u64> {
    let version = version.trim_start_matches('v').split('+').next()?;
    let mut total = 0;
    let mut parts = version.split('.');
    for _ in 0..3 {
        let part = parts.next().unwrap_or("0");
        let digits: String = part.chars().take_while(char::is_ascii_digit).collect();
        total = total * 1000 + digits.parse::<u64>().ok()?.min(999);
    }
    Some(total)
}

fn table() -> &'static Table {
    static READ: OnceLock<Table> = OnceLock::new();
    READ.get_or_init(|| {
        let mut table = Table { versions: Vec::new(), statuses: HashMap::with_capacity(5000) };
        let mut signs = "";
        for line in TABLE.lines().filter(|line| !line.starts_with('#')) {
            let mut words = line.split(' ');
            match words.next() {
                Some("versions") => table.versions = words.collect(),
                Some("=") => signs = words.next().unwrap_or_default(),
                Some("-") => table.statuses.extend(words.map(|name| (name.to_owned(), signs))),
                Some(module) => {
                    table.statuses.extend(words.map(|name| (format!("{module}.{name}"), signs)));
                }
                None => {}
            }
        }
        table
    })
}

#[cfg(test)]
mod tests {
    use super::{Support, TorchVersion};

    #[test]
    fn statuses_are_those_of_the_lists() {
        let (version, exact) = TorchVersion::nearest("2.1.0").unwrap();
        assert!(exact);
        assert_eq!(version.support("torch.cuda.is_available"), Support::Supported);
        assert_eq!(version.support("torch.cuda.get_device_capability"), Support::Unsupported);
        assert_eq!(version.support("torch.cuda.nvtx.mark"), Support::Unlisted);
        assert_eq!(version.support("Tensor.abs"), Support::Unlisted);
    }

    #[test]
    fn a_version_that_is_not_listed_takes_the_nearest() {
        let named = |asked| TorchVersion::nearest(asked).map(|(version, exact)| (version.name(), exact));
        assert_eq!(named("2.1.2+cu118"), Some(("2.1.0", false)));
        assert_eq!(named("2.9"), Some(("2.8.0", false)));
        assert_eq!(named("1.13.1"), Some(("1.12.0", false)));
        assert_eq!(named("newest"), None);
    }
}
