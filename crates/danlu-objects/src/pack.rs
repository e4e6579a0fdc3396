//! From a folder to an archive.

use std::fs::{self, File, Metadata};
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use danlu_types::Bytes;
use ignore::WalkBuilder;
use tar::{Builder, EntryType, Header};

use crate::digest::HashingReader;
use crate::path::link_stays_inside;
use crate::{DEEPEST, MOST_BYTES, MOST_ENTRIES, ObjectsError, shown_name};

/// Fast, and within a few per cent of what higher levels save on source code.
const COMPRESSION_LEVEL: i32 = 3;
const LARGEST_NAMED: usize = 5;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackedSnapshot {
    /// Of the archive's bytes, `sha256:…`.
    pub digest: String,
    /// Of the archive.
    pub size: Bytes,
    /// How many files it holds.
    pub files: usize,
}

/// Packs what `.gitignore` and `.danluignore` leave of `folder` into `out`, telling `progress` after each piece how
/// many bytes of the files have been read in all.
pub fn pack(
    folder: &Path,
    out: impl Write,
    progress: impl FnMut(u64),
) -> Result<PackedSnapshot, ObjectsError> {
    let mut walk = WalkBuilder::new(folder);
    walk.hidden(false)
        .ignore(false)
        // One person's global settings must not decide what a job sees.
        .git_global(false)
        .require_git(false)
        .add_custom_ignore_filename(".danluignore")
        .filter_entry(|entry| entry.file_name() != ".git");
    pack_entries(folder, &entries_of(folder, &walk)?, out, progress)
}

/// Packs everything in `folder`: what was a snapshot has been through its ignore files already, and those around the
/// folder say nothing about it.
pub fn pack_all(folder: &Path, out: impl Write) -> Result<PackedSnapshot, ObjectsError> {
    let mut walk = WalkBuilder::new(folder);
    walk.standard_filters(false);
    pack_entries(folder, &entries_of(folder, &walk)?, out, |_| {})
}

fn pack_entries(
    folder: &Path,
    entries: &[Entry],
    out: impl Write,
    mut progress: impl FnMut(u64),
) -> Result<PackedSnapshot, ObjectsError> {
    let mut archive = zstd::Encoder::new(HashingReader::new(out), COMPRESSION_LEVEL)
        .map(Builder::new)
        .map_err(ObjectsError::Write)?;
    let (mut files, mut done) = (0, 0);
    for entry in entries {
        match &entry.kind {
            Kind::Folder => append(&mut archive, entry, EntryType::Directory, 0, 0o755, io::empty())?,
            Kind::Link(target) => {
                let mut header = header(EntryType::Symlink, 0, 0o777);
                archive.append_link(&mut header, &entry.path, target).map_err(ObjectsError::Write)?;
            }
            Kind::File { size, executable } => {
                let path = folder.join(&entry.path);
                let file = File::open(&path).map_err(|source| io_error("open", &path, source))?;
                let mode = if *executable { 0o755 } else { 0o644 };
                let mut content = Exactly {
                    inner: file,
                    left: *size,
                    report: |read| {
                        done += read;
                        progress(done);
                    },
                };
                let result = append(&mut archive, entry, EntryType::Regular, *size, mode, &mut content);
                if content.left > 0 {
                    return Err(ObjectsError::Changed(path));
                }
                result?;
                files += 1;
            }
        }
    }
    let encoder = archive.into_inner().map_err(ObjectsError::Write)?;
    let (mut out, digest, size) = encoder.finish().map_err(ObjectsError::Write)?.finish();
    out.flush().map_err(ObjectsError::Write)?;
    Ok(PackedSnapshot { digest, size: Bytes(size), files })
}

struct Entry {
    /// Relative to the folder.
    path: PathBuf,
    kind: Kind,
}

enum Kind {
    Folder,
    File { size: u64, executable: bool },
    Link(PathBuf),
}

/// Everything to pack, sorted by path, with the bounds checked before a byte is read.
fn entries_of(folder: &Path, walk: &WalkBuilder) -> Result<Vec<Entry>, ObjectsError> {
    if !folder.is_dir() {
        return Err(ObjectsError::NotAFolder(folder.to_owned()));
    }
    let mut entries = Vec::new();
    // One level more than is taken, so that the folder can be named; not a hundred thousand.
    let mut walk = walk.clone();
    walk.max_depth(Some(DEEPEST + 1));
    for found in walk.build() {
        let found = found.map_err(ObjectsError::Walk)?;
        let Some(path) = found.path().strip_prefix(folder).ok().filter(|path| !path.as_os_str().is_empty())
        else {
            continue;
        };
        if path.components().count() > DEEPEST {
            return Err(ObjectsError::TooDeep { path: shown_name(path) });
        }
        let metadata =
            fs::symlink_metadata(found.path()).map_err(|source| io_error("look at", found.path(), source))?;
        entries.push(Entry { path: path.to_owned(), kind: kind_of(found.path(), path, &metadata)? });
        if entries.len() > MOST_ENTRIES {
            return Err(ObjectsError::TooMany);
        }
    }
    entries.sort_by(|one, other| one.path.cmp(&other.path));
    refuse_too_large(&entries)?;
    if entries.iter().all(|entry| matches!(entry.kind, Kind::Folder)) {
        return Err(ObjectsError::Empty(folder.to_owned()));
    }
    Ok(entries)
}

fn kind_of(full: &Path, path: &Path, metadata: &Metadata) -> Result<Kind, ObjectsError> {
    if metadata.is_dir() {
        Ok(Kind::Folder)
    } else if metadata.is_file() {
        let executable = metadata.permissions().mode() & 0o100 != 0;
        Ok(Kind::File { size: metadata.len(), executable })
    } else if metadata.is_symlink() {
        let target = fs::read_link(full).map_err(|source| io_error("read the link", full, source))?;
        if !link_stays_inside(path, &target) {
            return Err(ObjectsError::LinkOutside { path: path.to_owned(), target });
        }
        Ok(Kind::Link(target))
    } else {
        Err(ObjectsError::OddFile(path.to_owned()))
    }
}

fn refuse_too_large(entries: &[Entry]) -> Result<(), ObjectsError> {
    let mut files: Vec<(PathBuf, u64)> = entries
        .iter()
        .filter_map(|entry| match entry.kind {
            Kind::File { size, .. } => Some((entry.path.clone(), size)),
            Kind::Folder | Kind::Link(_) => None,
        })
        .collect();
    let bytes = files.iter().fold(0u64, |sum, (_, size)| sum.saturating_add(*size));
    if bytes <= MOST_BYTES {
        return Ok(());
    }
    let count = files.len();
    files.sort_by_key(|(_, size)| std::cmp::Reverse(*size));
    files.truncate(LARGEST_NAMED);
    Err(ObjectsError::TooLarge { bytes, limit: MOST_BYTES, files: count, largest: files })
}

fn header(kind: EntryType, size: u64, mode: u32) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_size(size);
    header.set_mode(mode);
    header.set_mtime(0);
    header.set_uid(0);
    header.set_gid(0);
    header
}

fn append<W: Write>(
    archive: &mut Builder<W>,
    entry: &Entry,
    kind: EntryType,
    size: u64,
    mode: u32,
    content: impl Read,
) -> Result<(), ObjectsError> {
    let mut header = header(kind, size, mode);
    archive.append_data(&mut header, &entry.path, content).map_err(ObjectsError::Write)
}

/// Gives the size that the header promised and no more, even while the file grows.
struct Exactly<F> {
    inner: File,
    left: u64,
    report: F,
}

impl<F: FnMut(u64)> Read for Exactly<F> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(buffer.len());
        let read = self.inner.read(&mut buffer[..most])?;
        self.left -= read as u64;
        (self.report)(read as u64);
        Ok(read)
    }
}

fn io_error(doing: &'static str, path: &Path, source: io::Error) -> ObjectsError {
    ObjectsError::Io { doing, path: path.to_owned(), source }
}
