//! Which Slurm is installed where this test runs.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Names the release that the tests are to run on, `26.05` for instance; any when absent.
const WANTED: &str = "DANLU_TEST_SLURM";

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SlurmVersion {
    year: u32,
    month: u32,
}

impl SlurmVersion {
    /// `None` where it is not there, or not all of it. It must be the one that is wanted, if one is: what was tested on another
    /// is not to be called tested.
    pub(super) fn installed() -> Option<Self> {
        let [controller, ..] = ["slurmctld", "slurmd", "munged"].map(daemon);
        if ["slurmd", "munged"].into_iter().any(|name| daemon(name).is_none()) {
            return None;
        }
        let said = Command::new(controller?).arg("-V").output().ok()?.stdout;
        let said = String::from_utf8_lossy(&said).trim().to_owned();
        let version = Self::parse(&said);
        assert!(version.is_some(), "that is no version of Slurm: `{said}`");
        if let Ok(wanted) = std::env::var(WANTED) {
            let other =
                "put `scripts/newer-slurm.sh test` in the place of `cargo test`, or unset the variable";
            assert!(Self::parse(&wanted) == version, "{WANTED} is {wanted}, and here is `{said}`: {other}");
        }
        version
    }

    /// `slurm-wlm 22.05.8`, or only its number.
    fn parse(said: &str) -> Option<Self> {
        let mut numbers = said.split(' ').next_back()?.split('.').map(|part| part.parse().ok());
        Some(SlurmVersion { year: numbers.next()??, month: numbers.next()?? })
    }

    /// Whether its daemons do not start without cgroups, unless they are told to.
    pub(super) fn wants_cgroups(self) -> bool {
        self >= SlurmVersion { year: 23, month: 11 }
    }
}

/// Where a daemon's program is.
pub(super) fn daemon(name: &str) -> Option<PathBuf> {
    let folders = ["/usr/sbin", "/usr/local/sbin"];
    folders.iter().map(|folder| Path::new(folder).join(name)).find(|program| program.exists())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read() {
        let version = |text| SlurmVersion::parse(text).map(|it| (it.year, it.month));
        assert_eq!(version("slurm-wlm 22.05.8"), Some((22, 5)));
        assert_eq!(version("slurm 26.05.5-rc1"), Some((26, 5)));
        assert_eq!(version("26.05"), Some((26, 5)));
        assert_eq!([version("slurm"), version(""), version("26")], [None; 3]);
        let wants = |text| SlurmVersion::parse(text).is_some_and(SlurmVersion::wants_cgroups);
        assert_eq!(["22.05.8", "23.02.1", "23.11.0", "26.05.5"].map(wants), [false, false, true, true]);
    }
}
