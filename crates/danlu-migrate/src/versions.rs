//! Which `torch_npu`, CANN and Python go with a version of torch: the vendor's table.

const TABLE: &str = include_str!("../data/versions.txt");

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Release {
    pub torch: &'static str,
    pub torch_npu: &'static str,
    pub cann: &'static str,
    pub pythons: Vec<&'static str>,
}

impl Release {
    /// `Python 3.8 to 3.11`
    pub fn pythons_shown(&self) -> String {
        match (self.pythons.first(), self.pythons.last()) {
            (Some(first), Some(last)) if first != last => format!("Python {first} to {last}"),
            (Some(only), _) => format!("Python {only}"),
            _ => "no Python".to_owned(),
        }
    }
}

/// All releases, newest CANN first.
pub fn releases() -> impl Iterator<Item = Release> {
    TABLE.lines().filter(|line| !line.starts_with('#')).filter_map(|line| {
        let mut words = line.split(' ');
        let (torch, torch_npu, cann) = (words.next()?, words.next()?, words.next()?);
        Some(Release { torch, torch_npu, cann, pythons: words.next()?.split(',').collect() })
    })
}

/// The newest release for exactly this version of torch.
pub fn release_for(torch: &str) -> Option<Release> {
    let torch = torch.split('+').next().unwrap_or(torch);
    releases().find(|release| release.torch == torch)
}

/// The release whose torch is nearest to one that has none.
pub fn nearest_release(torch: &str) -> Option<Release> {
    let wanted = crate::support::number(torch)?;
    releases().min_by_key(|release| {
        crate::support::number(release.torch).map_or(u64::MAX, |number| number.abs_diff(wanted))
    })
}

#[cfg(test)]
mod tests {
    use super::{nearest_release, release_for};

    #[test]
    fn a_release_names_all_that_goes_together() {
        let release = release_for("2.1.0+cu118").unwrap();
        let shown = format!("{} {} {}", release.torch_npu, release.cann, release.pythons_shown());
        assert_eq!(shown, "2.1.0.post17 8.3.RC1 Python 3.8 to 3.11");
        assert_eq!(release_for("2.1.1"), None);
        assert_eq!(nearest_release("2.1.1").unwrap().torch, "2.1.0");
    }
}
