//! A `/dev/shm` of the worker's own, of the size it asked for.
//!
//! The launcher itself moves into a mount namespace before it starts anything, so that ranks and sessions see the same.
//! Its own files are reached as before: nothing else is mounted.

use std::fs;

use danlu_types::Bytes;
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::unistd::{getegid, geteuid};

const SHARED_MEMORY: &str = "/dev/shm";

/// The process must have one thread only.
pub(crate) fn mount_own(size: Bytes) -> nix::Result<()> {
    enter_namespace()?;
    // Or what is mounted here would show up in the namespace we came from.
    mount(None::<&str>, "/", None::<&str>, MsFlags::MS_REC | MsFlags::MS_PRIVATE, None::<&str>)?;
    let options = format!("size={},mode=1777", size.0);
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    mount(Some("danlu"), SHARED_MEMORY, Some("tmpfs"), flags, Some(options.as_str()))
}

/// Who may not mount may do so in a user namespace of its own, where the machine allows that. The worker keeps its user
/// and group there; other groups show as `nogroup`, though their files stay reachable.
fn enter_namespace() -> nix::Result<()> {
    match unshare(CloneFlags::CLONE_NEWNS) {
        Err(nix::Error::EPERM) => {}
        done => return done,
    }
    let (user, group) = (geteuid(), getegid());
    unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNS)?;
    let map = |file: &str, text: String| {
        fs::write(file, text).map_err(|error| nix::Error::from_raw(error.raw_os_error().unwrap_or_default()))
    };
    map("/proc/self/setgroups", "deny".to_owned())?;
    map("/proc/self/uid_map", format!("{user} {user} 1"))?;
    map("/proc/self/gid_map", format!("{group} {group} 1"))
}
