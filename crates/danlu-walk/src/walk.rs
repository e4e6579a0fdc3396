//! Walking a tree that others may change meanwhile.
//!
//! One folder is open at a time. The way back up is `..`, which leads elsewhere once somebody has moved the folder: so each
//! step up is checked against what was there on the way down.

use std::ffi::{CStr, CString, OsStr};
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::AtFlags;
use nix::sys::stat::{FileStat, Mode, SFlag, fstat, fstatat};

use crate::{FOLDER, is_itself_or_above, open_folder, other, stream};

/// For the names of folders that are still to be entered, and the way to where we are.
const MOST_HELD_BYTES: usize = 64 << 20;
/// What a name costs besides its bytes.
const NAME_BYTES: usize = 32;

/// One entry of a tree.
#[derive(Debug)]
pub struct Found<'a> {
    /// The folder that it is in.
    pub folder: BorrowedFd<'a>,
    pub name: &'a CStr,
    /// Below the folder where the walk began. Longer than the kernel takes, perhaps: use `folder` and `name`.
    pub path: &'a Path,
    /// How many folders it is in, below the first.
    pub depth: usize,
    pub about: FileStat,
}

impl Found<'_> {
    pub fn is_folder(&self) -> bool {
        self.about.st_mode & SFlag::S_IFMT.bits() == SFlag::S_IFDIR.bits()
    }
}

/// Whether to look into a folder; of no account for anything else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    Into,
    Past,
}

struct Level {
    device: u64,
    inode: u64,
    /// Folders in it that are still to be entered.
    pending: Vec<CString>,
    /// How long the path to the folder above is.
    path_length: usize,
}

/// Shows each entry below `root` once, those of a folder after the folder itself, in no order besides. What vanishes meanwhile
/// is passed over; a folder that is moved ends the walk with an error. `visit` must not move folders.
pub fn walk<E: From<io::Error>>(
    root: &Path,
    mut visit: impl FnMut(&Found<'_>) -> Result<Next, E>,
) -> Result<(), E> {
    let failed = |error: Errno| E::from(io::Error::from(error));
    let mut folder = nix::fcntl::open(root, FOLDER, Mode::empty()).map_err(failed)?;
    let mut path = Vec::new();
    let mut held = 0;
    let mut levels = vec![enter(&folder, &mut path, 0, &mut held, &mut visit)?];
    while let Some(level) = levels.last_mut() {
        if let Some(name) = level.pending.pop() {
            held -= name.as_bytes().len() + NAME_BYTES;
            let below = match open_folder(&folder, &name) {
                // Gone since, or something else.
                Err(Errno::ENOENT | Errno::ENOTDIR | Errno::ELOOP) => continue,
                below => below.map_err(failed)?,
            };
            folder = below;
            let path_length = path.len();
            add_name(&mut path, &name);
            held += std::mem::size_of::<Level>() + name.as_bytes().len();
            let depth = levels.len();
            let entered = enter(&folder, &mut path, depth, &mut held, &mut visit)?;
            levels.push(Level { path_length, ..entered });
            continue;
        }
        let done = levels.pop();
        let (Some(done), Some(above)) = (done, levels.last()) else { break };
        held -= std::mem::size_of::<Level>() + (path.len() - done.path_length).saturating_sub(1);
        path.truncate(done.path_length);
        folder = open_folder(&folder, c"..").map_err(failed)?;
        let about = fstat(&folder).map_err(failed)?;
        if (about.st_dev, about.st_ino) != (above.device, above.inode) {
            return Err(other("a folder was moved elsewhere while it was looked at").into());
        }
    }
    Ok(())
}

/// Shows what is in a folder.
fn enter<E: From<io::Error>>(
    folder: &OwnedFd,
    path: &mut Vec<u8>,
    depth: usize,
    held: &mut usize,
    visit: &mut impl FnMut(&Found<'_>) -> Result<Next, E>,
) -> Result<Level, E> {
    let failed = |error: Errno| E::from(io::Error::from(error));
    let about = fstat(folder).map_err(failed)?;
    let mut level = Level { device: about.st_dev, inode: about.st_ino, pending: Vec::new(), path_length: 0 };
    let own = path.len();
    let mut entries = stream(folder).map_err(failed)?;
    for entry in entries.iter() {
        let entry = entry.map_err(failed)?;
        if is_itself_or_above(&entry) {
            continue;
        }
        let name = entry.file_name();
        let about = match fstatat(folder, name, AtFlags::AT_SYMLINK_NOFOLLOW) {
            Err(Errno::ENOENT) => continue,
            about => about.map_err(failed)?,
        };
        add_name(path, name);
        let found =
            Found { folder: folder.as_fd(), name, path: Path::new(OsStr::from_bytes(path)), depth, about };
        let is_next = visit(&found)? == Next::Into && found.is_folder();
        path.truncate(own);
        if is_next {
            *held += name.to_bytes().len() + NAME_BYTES;
            if *held > MOST_HELD_BYTES {
                return Err(other("there are too many folders in it").into());
            }
            level.pending.push(name.to_owned());
        }
    }
    Ok(level)
}

fn add_name(path: &mut Vec<u8>, name: &CStr) {
    if !path.is_empty() {
        path.push(b'/');
    }
    path.extend_from_slice(name.to_bytes());
}
