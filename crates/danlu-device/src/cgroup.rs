//! The cgroups of workers: what holds a worker to its share, and what can end all of it at once.
//!
//! Three worlds: cgroup v1 (a folder in each controller's hierarchy, plus one in the v2 hierarchy that some hosts mount
//! beside them and that knows `cgroup.kill`), pure v2, and none. What cannot be had is said by
//! [`Groups::limitation`]; a worker then runs without that limit rather than not at all.
//!
//! Only processes of the worker are in its group: never the launcher, which must outlive a kill of the group.

mod device_filter;
mod group;
mod layout;

use std::io;
use std::path::{Path, PathBuf};

use danlu_core::launch::Limits;
use danlu_types::WorkerId;
use thiserror::Error;

use crate::device_files::DeviceNumber;
pub use group::WorkerGroup;
pub use layout::Groups;

#[derive(Debug, Error)]
#[error("cannot {action} `{}`", path.display())]
pub struct CgroupError {
    action: &'static str,
    path: PathBuf,
    #[source]
    source: io::Error,
}

/// The name of a worker's group. Two servers on one machine keep different data folders, so their groups never meet;
/// and a server that is started again finds the groups it left behind, because nothing random is in the name.
pub fn worker_group_name(data_folder: &Path, worker: WorkerId) -> String {
    format!("{}/{worker}", folder_group_name(data_folder))
}

/// The name of the group in which all groups of a data folder's workers are.
pub fn folder_group_name(data_folder: &Path) -> String {
    use std::os::unix::ffi::OsStrExt;
    // FNV-1a: short, stable over releases, and no secret is at stake.
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for byte in data_folder.as_os_str().as_bytes() {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    }
    format!("danlu-{hash:016x}")
}

/// Makes the group, or takes one that is already there, and sets its limits. Device files in `closed` are closed to it.
pub fn create(
    groups: &Groups,
    name: &str,
    limits: &Limits,
    closed: &[DeviceNumber],
) -> Result<WorkerGroup, CgroupError> {
    let limited = groups.create(name, limits);
    // Whatever became of the limits: who may not be held to its memory is still kept from others' devices.
    let closed = if closed.is_empty() { Ok(()) } else { groups.close_devices(name, closed) };
    limited.and(closed)?;
    Ok(groups.open(name).unwrap_or_default())
}

/// The group of that name, if it is there.
pub fn open(groups: &Groups, name: &str) -> Option<WorkerGroup> {
    groups.open(name)
}

#[cfg(test)]
mod tests;
