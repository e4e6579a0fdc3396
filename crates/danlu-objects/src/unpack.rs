//! From an archive to a folder, trusting nothing in it.
//!
//! Links are made last, so that no file is ever written through one; every folder on the way to a file is looked at
//! without following links; files are only ever created, never opened.

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::ops::ControlFlow;
use std::os::unix::fs::{OpenOptionsExt, symlink};
use std::path::{Path, PathBuf};

use tar::EntryType;

use crate::entries::{Content, PastBound, each};
use crate::path::{entry_path, link_stays_inside};
use crate::{DEEPEST, MOST_BYTES, MOST_ENTRIES, ObjectsError, shown_name};

/// Of all links together, which are kept until the end.
const MOST_LINK_BYTES: usize = 16 << 20;
/// Of the folders that need not be looked at again.
const MOST_KNOWN_BYTES: usize = 4 << 20;

/// The most that is taken out of an archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnpackLimits {
    pub bytes: u64,
    pub entries: usize,
}

impl Default for UnpackLimits {
    fn default() -> Self {
        UnpackLimits { bytes: MOST_BYTES, entries: MOST_ENTRIES }
    }
}

impl UnpackLimits {
    /// Contents, plus what headers and padding may add for the most entries.
    pub(crate) fn stream_bytes(self) -> u64 {
        self.bytes + 2048 * self.entries as u64
    }

    pub(crate) fn exceeded(self) -> ObjectsError {
        ObjectsError::Bomb { limit: self.bytes }
    }
}

/// Opens an archive, for [`unpack`]: two steps, so that each can be done by whoever may do it.
pub fn open(archive: &Path) -> Result<File, ObjectsError> {
    File::open(archive).map_err(|source| io_error("open the archive", archive.to_owned(), source))
}

/// Unpacks a snapshot into the folder `into`, which is made if it is missing.
pub fn unpack(archive: File, into: &Path) -> Result<(), ObjectsError> {
    unpack_within(archive, into, UnpackLimits::default())
}

/// The same, where less is taken than a snapshot may hold.
pub fn unpack_within(archive: File, into: &Path, bounds: UnpackLimits) -> Result<(), ObjectsError> {
    fs::create_dir_all(into).map_err(|source| io_error("make the folder", into.to_owned(), source))?;
    let mut tree = Tree { root: into, known: HashSet::new(), known_bytes: 0, folders: 0, bounds };
    let (mut links, mut link_bytes) = (Vec::new(), 0);
    each::<()>(archive, bounds, |name, entry| {
        let hostile = |reason| ObjectsError::Hostile { entry: shown_name(&name.path), reason };
        let path = entry_path(&name.path).ok_or_else(|| hostile("the path leads out of the folder"))?;
        if path.components().count() > DEEPEST {
            return Err(hostile("it is in too many folders"));
        }
        match entry.header().entry_type() {
            EntryType::Directory => tree.make_folder(&path)?,
            EntryType::Regular => tree.write_file(&path, entry)?,
            EntryType::Symlink => {
                let target = name.target;
                if path.as_os_str().is_empty() || !link_stays_inside(&path, &target) {
                    let entry = shown_name(&path);
                    return Err(ObjectsError::Hostile { entry, reason: "the link leads out of the folder" });
                }
                link_bytes += path.as_os_str().len() + target.as_os_str().len();
                if link_bytes > MOST_LINK_BYTES {
                    let entry = shown_name(&path);
                    return Err(ObjectsError::Hostile { entry, reason: "there are too many links" });
                }
                links.push((path, target));
            }
            EntryType::Link => return Err(hostile("hard links are not taken")),
            EntryType::Char | EntryType::Block | EntryType::Fifo => {
                return Err(hostile("devices and pipes are not taken"));
            }
            _ => return Err(hostile("entries of this type are not taken")),
        }
        Ok(ControlFlow::Continue(()))
    })?;
    for (path, target) in links {
        let full = tree.prepare_parent(&path)?;
        symlink(&target, &full).map_err(|source| entry_error("make the link", &path, full, source))?;
    }
    Ok(())
}

struct Tree<'a> {
    root: &'a Path,
    bounds: UnpackLimits,
    /// Folders below the root that are known to be real: not all, see `remember`.
    known: HashSet<PathBuf>,
    known_bytes: usize,
    /// How many were made. An entry of one name may ask for hundreds.
    folders: usize,
}

impl Tree<'_> {
    fn make_folder(&mut self, path: &Path) -> Result<(), ObjectsError> {
        let mut below = PathBuf::new();
        for name in path.components() {
            below.push(name);
            if self.known.contains(&below) {
                continue;
            }
            let full = self.root.join(&below);
            match fs::create_dir(&full) {
                Ok(()) => {
                    self.folders += 1;
                    if self.folders > self.bounds.entries {
                        let entry = shown_name(&below);
                        return Err(ObjectsError::Hostile { entry, reason: "there are too many folders" });
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    let metadata = fs::symlink_metadata(&full)
                        .map_err(|source| io_error("look at", full.clone(), source))?;
                    if !metadata.is_dir() {
                        let entry = below.display().to_string();
                        return Err(ObjectsError::Hostile {
                            entry,
                            reason: "it is already there, not a folder",
                        });
                    }
                }
                Err(source) => return Err(entry_error("make the folder", &below, full, source)),
            }
            self.remember(below.clone());
        }
        Ok(())
    }

    /// What is forgotten is looked at again.
    fn remember(&mut self, folder: PathBuf) {
        self.known_bytes += folder.as_os_str().len();
        if self.known_bytes > MOST_KNOWN_BYTES {
            self.known.clear();
            self.known_bytes = folder.as_os_str().len();
        }
        self.known.insert(folder);
    }

    /// Makes the folders above `path`, and gives its full path.
    fn prepare_parent(&mut self, path: &Path) -> Result<PathBuf, ObjectsError> {
        if let Some(parent) = path.parent() {
            self.make_folder(parent)?;
        }
        Ok(self.root.join(path))
    }

    fn write_file(&mut self, path: &Path, entry: &mut Content<'_>) -> Result<(), ObjectsError> {
        let executable = entry.header().mode().is_ok_and(|mode| mode & 0o100 != 0);
        let full = self.prepare_parent(path)?;
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(if executable { 0o755 } else { 0o644 })
            .open(&full)
            .map_err(|source| entry_error("create", path, full.clone(), source))?;
        let size = entry.size();
        let copied = io::copy(entry, &mut file).map_err(|source| match source.get_ref() {
            Some(inner) if inner.is::<PastBound>() => self.bounds.exceeded(),
            _ => io_error("write", full, source),
        })?;
        if copied == size { Ok(()) } else { Err(ObjectsError::Damaged(io::ErrorKind::UnexpectedEof.into())) }
    }
}

/// What an archive asks for that no folder can hold is its fault; everything else is our disk's.
fn entry_error(doing: &'static str, entry: &Path, path: PathBuf, source: io::Error) -> ObjectsError {
    let reason = match source.kind() {
        io::ErrorKind::AlreadyExists | io::ErrorKind::IsADirectory => {
            "the name is there already, or is empty"
        }
        io::ErrorKind::NotADirectory => "a folder on the way to it is none",
        io::ErrorKind::InvalidFilename => "the path or one of its names is too long",
        io::ErrorKind::InvalidInput => "the name holds a NUL",
        _ => return io_error(doing, path, source),
    };
    ObjectsError::Hostile { entry: entry.display().to_string().chars().take(200).collect(), reason }
}

fn io_error(doing: &'static str, path: PathBuf, source: io::Error) -> ObjectsError {
    ObjectsError::Io { doing, path, source }
}
