//! Acting as the owner of what is removed.
//!
//! Root can remove what a job left. Acting as the job's user, it can remove no more than that user could, and it can do so
//! on file servers that do not trust root.

use nix::sys::stat::FileStat;
use nix::unistd::{Gid, ROOT, Uid, geteuid, setfsgid, setfsuid};

/// For as long as it lives, this thread uses files as somebody else. The kernel keeps this apart for each thread.
#[derive(Debug)]
pub(crate) struct Acting {
    group_before: Gid,
}

impl Acting {
    /// `None` where this thread may not, or where there is nobody else to be.
    pub(crate) fn as_owner_of(about: &FileStat) -> Option<Self> {
        if !geteuid().is_root() || about.st_uid == 0 {
            return None;
        }
        let (user, group) = (Uid::from_raw(about.st_uid), Gid::from_raw(about.st_gid));
        let acting = Acting { group_before: setfsgid(group) };
        setfsuid(user);
        // Both calls answer with who it was before and say nothing of failure; asked again, they tell who it is.
        (setfsuid(user) == user && setfsgid(group) == group).then_some(acting)
    }
}

impl Drop for Acting {
    fn drop(&mut self) {
        setfsuid(ROOT);
        setfsgid(self.group_before);
    }
}
