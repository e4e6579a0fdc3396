//! Being another user: for a moment, or in a child for good.
//!
//! A launcher that runs as root prepares folders in which a job's programs write. As root it would follow every link that
//! such a program laid there; as that program's user it can do no more than the program itself. What it assumes is the
//! *effective* user only, and the kernel asks for the real one before it lets anybody signal, trace or look into a process:
//! meanwhile the user has no hold on the launcher.

use std::collections::BTreeSet;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use danlu_core::launch::UnixUser;
use danlu_types::{Device, DeviceKind};
use nix::unistd::{Gid, ROOT, Uid, getegid, getgroups, setegid, seteuid, setgroups, setresgid, setresuid};

use crate::device_files::file_name;

/// A user with its groups, as system calls want them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnixIdentity {
    user: Uid,
    group: Gid,
    groups: Vec<Gid>,
}

impl UnixIdentity {
    /// The user, in these further groups too.
    pub fn of(user: &UnixUser, further: &[u32]) -> Self {
        let groups = std::iter::once(&user.gid).chain(&user.groups).chain(further);
        UnixIdentity {
            user: Uid::from_raw(user.uid),
            group: Gid::from_raw(user.gid),
            groups: groups.copied().map(Gid::from_raw).collect(),
        }
    }

    pub fn uid(&self) -> u32 {
        self.user.as_raw()
    }

    pub fn gid(&self) -> u32 {
        self.group.as_raw()
    }

    /// Acts as this user until the answer is dropped. Everything in this process does, so it should have one thread, and
    /// nothing may be awaited meanwhile.
    pub fn assume(&self) -> io::Result<Assumed> {
        let before = Assumed { group: getegid(), groups: getgroups()? };
        // In this order: only root changes groups.
        setgroups(&self.groups)?;
        setegid(self.group)?;
        seteuid(self.user)?;
        Ok(before)
    }

    /// Between fork and exec, by a child that was started by root or under [`UnixIdentity::assume`].
    pub(crate) fn become_for_good(&self) -> nix::Result<()> {
        setgroups(&self.groups)?;
        setresgid(self.group, self.group, self.group)?;
        setresuid(self.user, self.user, self.user)
    }
}

/// Root again, in a child that was started under [`UnixIdentity::assume`].
pub(crate) fn become_root_again() -> nix::Result<()> {
    seteuid(ROOT)
}

/// What to go back to.
#[derive(Debug)]
pub struct Assumed {
    group: Gid,
    groups: Vec<Gid>,
}

impl Drop for Assumed {
    fn drop(&mut self) {
        seteuid(ROOT)
            .and_then(|()| setegid(self.group))
            .and_then(|()| setgroups(&self.groups))
            .expect("root, whose real user never changed, becomes root again");
    }
}

/// The groups that one must be in to open these devices, where they are not open to everybody: drivers of Ascend give
/// theirs to a group.
pub fn device_groups(devices: &[Device]) -> Vec<u32> {
    let nodes = devices.iter().flat_map(|device| match device.kind {
        DeviceKind::Nvidia => {
            let own = file_name(Path::new("/"), device).unwrap_or_else(|| format!("nvidia{}", device.index));
            vec![own, "nvidiactl".to_owned(), "nvidia-uvm".to_owned()]
        }
        DeviceKind::Ascend => {
            let shared = ["davinci_manager", "devmm_svm", "hisi_hdc"].map(str::to_owned);
            file_name(Path::new("/"), device).into_iter().chain(shared).collect()
        }
    });
    let found = nodes.filter_map(|node| std::fs::metadata(Path::new("/dev").join(node)).ok());
    let groups: BTreeSet<u32> = found.filter_map(|node| needed_group(node.mode(), node.gid())).collect();
    groups.into_iter().collect()
}

fn needed_group(mode: u32, group: u32) -> Option<u32> {
    let everybodys = mode & 0o006 == 0o006;
    // The group of root is not lent to anybody.
    (!everybodys && mode & 0o060 == 0o060 && group != 0).then_some(group)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_needed_where_the_device_is_not_for_everybody() {
        assert_eq!(needed_group(0o20660, 1000), Some(1000));
        assert_eq!(needed_group(0o20666, 1000), None);
        assert_eq!(needed_group(0o20600, 1000), None);
        assert_eq!(needed_group(0o20660, 0), None);
    }
}
