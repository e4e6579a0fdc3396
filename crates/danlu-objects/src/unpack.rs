//! From an archive to a folder, trusting nothing in it.
//!
//! Links are made last, so that no file is ever written through one; every folder on the way to a file is looked at
//! without following links; files are only ever created, never opened.

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, Read};
use std::os::unix::fs::{OpenOptionsExt, symlink};
use std::path::{Path, PathBuf};

use tar::{Archive, Entry, EntryType};

use crate::path::{entry_path, link_stays_inside};
use crate::{MOST_BYTES, MOST_ENTRIES, ObjectsError};

/// The most that is taken out of an archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    pub bytes: u64,
    pub entries: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Bounds { bytes: MOST_BYTES, entries: MOST_ENTRIES }
    }
}

impl Bounds {
    /// Contents, plus what headers and padding may add for the most entries.
    fn stream_bytes(self) -> u64 {
        self.bytes + 2048 * self.entries as u64
    }

    fn exceeded(self) -> ObjectsError {
        ObjectsError::Bomb { limit: self.bytes }
    }
}

type Opened = Archive<Bounded<zstd::Decoder<'static, BufReader<File>>>>;

fn opened(archive: File, bounds: Bounds) -> Result<Opened, ObjectsError> {
    let mut decoder = zstd::Decoder::new(archive).map_err(ObjectsError::Damaged)?;
    decoder.window_log_max(LARGEST_WINDOW_LOG).map_err(ObjectsError::Damaged)?;
    Ok(Archive::new(Bounded { inner: decoder, left: bounds.stream_bytes() }))
}

/// 128 MiB: more than our own level ever asks for, and a bound on the decoder's memory.
const LARGEST_WINDOW_LOG: u32 = 27;

/// Opens an archive, for [`unpack`]: two steps, so that each can be done by whoever may do it.
pub fn open(archive: &Path) -> Result<File, ObjectsError> {
    File::open(archive).map_err(|source| io_error("open the archive", archive.to_owned(), source))
}

/// Unpacks a snapshot into the folder `into`, which is made if it is missing.
pub fn unpack(archive: File, into: &Path) -> Result<(), ObjectsError> {
    unpack_within(archive, into, Bounds::default())
}

/// The same, where less is taken than a snapshot may hold.
pub fn unpack_within(archive: File, into: &Path, bounds: Bounds) -> Result<(), ObjectsError> {
    fs::create_dir_all(into).map_err(|source| io_error("make the folder", into.to_owned(), source))?;
    let read_error = |error| read_error(error, bounds);
    let mut tree = Tree { root: into, known: HashSet::new(), bounds };
    let mut links = Vec::new();
    let mut archive = opened(archive, bounds)?;
    for (count, entry) in archive.entries().map_err(read_error)?.enumerate() {
        let mut entry = entry.map_err(read_error)?;
        let shown = shown_path(&entry);
        let hostile = |reason| ObjectsError::Hostile { entry: shown.clone(), reason };
        if count >= bounds.entries {
            return Err(hostile("there are too many entries"));
        }
        let path = entry.path().map_err(read_error)?;
        let path = entry_path(&path).ok_or_else(|| hostile("the path leads out of the folder"))?;
        if entry.size() > bounds.bytes {
            return Err(bounds.exceeded());
        }
        match entry.header().entry_type() {
            EntryType::Directory => tree.make_folder(&path)?,
            EntryType::Regular => tree.write_file(&path, &mut entry)?,
            EntryType::Symlink => {
                let target = entry.link_name().map_err(read_error)?.unwrap_or_default().into_owned();
                if path.as_os_str().is_empty() || !link_stays_inside(&path, &target) {
                    return Err(hostile("the link leads out of the folder"));
                }
                links.push((path, target));
            }
            EntryType::Link => return Err(hostile("hard links are not taken")),
            EntryType::Char | EntryType::Block | EntryType::Fifo => {
                return Err(hostile("devices and pipes are not taken"));
            }
            _ => return Err(hostile("entries of this type are not taken")),
        }
    }
    for (path, target) in links {
        let full = tree.prepare_parent(&path)?;
        symlink(&target, &full).map_err(|source| entry_error("make the link", &path, full, source))?;
    }
    Ok(())
}

/// The content of one file of an archive, if it has that file and it is not longer than `most`.
pub fn read_entry(archive: File, path: &Path, most: u64) -> Result<Option<Vec<u8>>, ObjectsError> {
    let bounds = Bounds::default();
    let read_error = |error| read_error(error, bounds);
    for entry in opened(archive, bounds)?.entries().map_err(read_error)?.take(bounds.entries) {
        let entry = entry.map_err(read_error)?;
        let is_it = entry.header().entry_type() == EntryType::Regular
            && entry_path(&entry.path().map_err(read_error)?).is_some_and(|found| found == path);
        if !is_it {
            continue;
        }
        if entry.size() > most {
            return Err(ObjectsError::Bomb { limit: most });
        }
        let mut content = Vec::new();
        entry.take(most).read_to_end(&mut content).map_err(read_error)?;
        return Ok(Some(content));
    }
    Ok(None)
}

struct Tree<'a> {
    root: &'a Path,
    bounds: Bounds,
    /// Folders below the root that are known to be real.
    known: HashSet<PathBuf>,
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
                Ok(()) => {}
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
            self.known.insert(below.clone());
        }
        Ok(())
    }

    /// Makes the folders above `path`, and gives its full path.
    fn prepare_parent(&mut self, path: &Path) -> Result<PathBuf, ObjectsError> {
        if let Some(parent) = path.parent() {
            self.make_folder(parent)?;
        }
        Ok(self.root.join(path))
    }

    fn write_file<R: Read>(&mut self, path: &Path, entry: &mut Entry<'_, R>) -> Result<(), ObjectsError> {
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

/// Ends a stream that grows past what any honest snapshot needs.
struct Bounded<R> {
    inner: R,
    left: u64,
}

#[derive(Debug, thiserror::Error)]
#[error("past the bound")]
struct PastBound;

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.left = self.left.checked_sub(read as u64).ok_or_else(|| io::Error::other(PastBound))?;
        Ok(read)
    }
}

fn read_error(error: io::Error, bounds: Bounds) -> ObjectsError {
    match error.get_ref() {
        Some(inner) if inner.is::<PastBound>() => bounds.exceeded(),
        _ => ObjectsError::Damaged(error),
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

/// Error texts name the entry, but not a megabyte of name.
fn shown_path<R: Read>(entry: &Entry<'_, R>) -> String {
    String::from_utf8_lossy(&entry.path_bytes()).chars().take(200).collect()
}
