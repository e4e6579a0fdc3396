//! Whose the worker's processes and files are.
//!
//! Where that is another user than the launcher's, the run folder stays the launcher's own: programs of the job can enter
//! it and neither list nor change it, so no name in it leads anywhere but where the launcher put it. Folders for the
//! programs are theirs and closed to everybody else, and the launcher goes into them only as their user.

use std::fs::{self, DirBuilder, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt as _, chown, lchown};
use std::path::Path;
use std::process::{Child, Command};
use std::sync::Arc;

use danlu_core::launch::LaunchFile;
use danlu_device::user::{UnixIdentity, device_groups};
use danlu_walk::{Next, walk};
use nix::fcntl::AtFlags;
use nix::sys::stat::{Mode, umask};
use nix::unistd::{Gid, Uid, fchownat, geteuid};

/// The launcher's own user unless there is something in it.
#[derive(Debug, Clone, Default)]
pub(crate) struct WorkerUser {
    another: Option<Arc<UnixIdentity>>,
    umask: Option<Mode>,
}

/// What belongs to whoever started the server, and would lead a job's programs to that one's things.
pub(crate) const NOT_FOR_OTHERS: [&str; 9] = [
    "HOME",
    "USER",
    "LOGNAME",
    "MAIL",
    "SHELL",
    "OLDPWD",
    "XDG_RUNTIME_DIR",
    "DBUS_SESSION_BUS_ADDRESS",
    "SSH_AUTH_SOCK",
];

impl WorkerUser {
    /// From now on, files that this process makes as itself are for itself alone, where there is another user.
    pub(crate) fn new(launch: &LaunchFile) -> Self {
        // Submitted by that user, the launcher is that user from the start.
        let another = launch.user.as_ref().filter(|user| user.uid != geteuid().as_raw());
        let another = another.map(|user| Arc::new(UnixIdentity::of(user, &device_groups(&launch.devices))));
        let before = another.as_ref().map(|_| umask(Mode::from_bits_truncate(0o077)));
        let own = launch.sandbox.as_ref().and_then(|sandbox| sandbox.umask).map(Mode::from_bits_truncate);
        WorkerUser { another, umask: own.or(before) }
    }

    pub(crate) fn is_another(&self) -> bool {
        self.another.is_some()
    }

    /// For a child that is to be of this user for good.
    pub(crate) fn for_child(&self) -> Option<Arc<UnixIdentity>> {
        self.another.clone()
    }

    /// What such a child's files are like.
    pub(crate) fn umask(&self) -> Option<Mode> {
        self.umask
    }

    /// Whether its programs run as root.
    pub(crate) fn is_root(&self) -> bool {
        self.another.is_none() && geteuid().is_root()
    }

    /// Does something that the user could do, and nothing that the user could not.
    pub(crate) fn act<T>(&self, work: impl FnOnce() -> T) -> io::Result<T> {
        let _assumed = self.another.as_ref().map(|user| user.assume()).transpose()?;
        Ok(work())
    }

    /// Pipes and the terminal of a child are its user's, or it could not open `/dev/stdout`.
    pub(crate) fn spawn(&self, command: &mut Command) -> io::Result<Child> {
        self.act(|| command.spawn()).flatten()
    }

    /// Makes a folder of the user's own, unless it is there; the folder above must be the launcher's.
    pub(crate) fn make_folder(&self, path: &Path) -> io::Result<()> {
        let Some(user) = &self.another else { return fs::create_dir_all(path) };
        match DirBuilder::new().mode(0o700).create(path) {
            Ok(()) => return self.give(path),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
        let found = fs::symlink_metadata(path)?;
        match found.uid() {
            owner if owner == user.uid() => Ok(()),
            // From a time when jobs ran as the server's user. Nobody else could write there, so it holds nothing that
            // leads elsewhere.
            0 if found.is_dir() => hand_over(path, user),
            owner => {
                let text = format!("it belongs to user {owner}, and the job runs as {}", user.uid());
                Err(io::Error::new(ErrorKind::PermissionDenied, text))
            }
        }
    }

    /// Makes a file or folder in the launcher's own folder the user's.
    pub(crate) fn give(&self, path: &Path) -> io::Result<()> {
        match &self.another {
            Some(user) => chown(path, Some(user.uid()), Some(user.gid())),
            None => Ok(()),
        }
    }
}

fn hand_over(path: &Path, to: &UnixIdentity) -> io::Result<()> {
    // Only root passes from here on, so that no folder of it changes under our hands once its new owner has one.
    fs::set_permissions(path, Permissions::from_mode(0o700))?;
    let (user, group) = (Uid::from_raw(to.uid()), Gid::from_raw(to.gid()));
    walk(path, |found| -> io::Result<Next> {
        fchownat(found.folder, found.name, Some(user), Some(group), AtFlags::AT_SYMLINK_NOFOLLOW)?;
        Ok(Next::Into)
    })?;
    lchown(path, Some(to.uid()), Some(to.gid()))
}
