//! Removing and walking directory trees that others filled: jobs, and archives that people upload.
//!
//! Such a tree may be deeper than any stack and longer than any path, it may hold links to everywhere, and its owner may
//! change it meanwhile. Nothing here recurses over it, resolves a path of it or follows a link in it; the number of open
//! descriptors does not depend on the tree. [`remove_some`] and [`remove`] need the same memory for every tree; [`walk`]
//! refuses one that would need more than a fixed amount.

mod owner;
mod remove;
mod walk;

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use nix::dir::{Dir, Entry};
use nix::fcntl::{OFlag, openat};
use nix::sys::stat::Mode;

pub use remove::{Removal, remove, remove_some};
pub use walk::{Found, Next, walk};

const FOLDER: OFlag =
    OFlag::O_RDONLY.union(OFlag::O_DIRECTORY).union(OFlag::O_NOFOLLOW).union(OFlag::O_CLOEXEC);

fn open_folder(above: impl AsFd, name: &CStr) -> nix::Result<OwnedFd> {
    openat(above, name, FOLDER, Mode::empty())
}

/// What is in a folder, by a stream of its own: several may read the same folder.
fn stream(folder: impl AsFd) -> nix::Result<Dir> {
    Dir::openat(folder, ".", FOLDER, Mode::empty())
}

fn is_itself_or_above(entry: &Entry) -> bool {
    matches!(entry.file_name().to_bytes(), b"." | b"..")
}

fn other(text: &str) -> io::Error {
    io::Error::other(text.to_owned())
}
