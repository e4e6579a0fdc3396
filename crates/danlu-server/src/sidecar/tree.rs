//! A job's outputs and checkpoints, as sidecars bring them and fetch them again.
//!
//! A file comes in pieces beside its place, and is put there with its last byte: whoever looks finds the old one or the new
//! one. Names are resolved by the kernel, below the area's folder and through no link; links travel as what they are.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Component, Path, PathBuf};

use danlu_types::api::{TreeArea, TreeEntry, TreeKind, TreePut, TreeQuery};
use danlu_types::{Problem, ProblemCode};
use danlu_walk::{Next, walk};
use data_encoding::HEXLOWER;
use jiff::Timestamp;
use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, OFlag, OpenHow, ResolveFlag, openat2, readlinkat, renameat};
use nix::sys::stat::{Mode, SFlag, mkdirat};
use nix::unistd::{UnlinkatFlags, unlinkat};
use sha2::{Digest as _, Sha256};

use super::{SidecarWorker, unwritable};
use crate::app::App;

/// In the worker's run folder: files that have not arrived whole.
const INCOMING: &str = "incoming";
const LONGEST_PATH: usize = 4000;
const DEEPEST: usize = 64;
const MOST_ENTRIES: usize = 500_000;
/// Of all entries together.
const MOST_PATH_BYTES: usize = 64 << 20;

impl App {
    fn tree(&self, carried: &SidecarWorker, area: TreeArea) -> PathBuf {
        match area {
            TreeArea::Output => self.layout.output_folder(carried.worker.job),
            TreeArea::Checkpoint => self.layout.checkpoint_folder(carried.worker.job),
        }
    }

    /// All that is in a folder, and below: folders before what is in them.
    pub(crate) fn tree_list(
        &self,
        carried: &SidecarWorker,
        area: TreeArea,
    ) -> Result<Vec<TreeEntry>, Problem> {
        list(&self.tree(carried, area)).map_err(|error| unwritable(&error))
    }

    /// A file, from a place on, and how much there is of it from there.
    pub(crate) fn tree_read(
        &self,
        carried: &SidecarWorker,
        area: TreeArea,
        query: &TreeQuery,
    ) -> Result<(File, u64), Problem> {
        check(&query.path)?;
        let opened = || -> io::Result<(File, u64)> {
            let root = open_folder(&self.tree(carried, area))?;
            let mut file =
                File::from(beneath(&root, Path::new(&query.path), OFlag::O_RDONLY | OFlag::O_NONBLOCK)?);
            let about = file.metadata()?;
            if !about.is_file() {
                return Err(ErrorKind::NotFound.into());
            }
            io::Seek::seek(&mut file, io::SeekFrom::Start(query.offset))?;
            Ok((file, about.len().saturating_sub(query.offset)))
        };
        opened().map_err(|error| refusal(&error))
    }

    /// Takes a piece, and says how much of the file is here.
    pub(crate) fn tree_write(
        &self,
        carried: &SidecarWorker,
        area: TreeArea,
        put: &TreePut,
        bytes: &[u8],
    ) -> Result<u64, Problem> {
        check(&put.path)?;
        let end = put.offset.checked_add(bytes.len() as u64);
        if put.kind == TreeKind::File && end.is_none_or(|end| end > put.size) {
            return Err(Problem::new(ProblemCode::BadRequest, "the piece reaches past the file's `size`"));
        }
        let sidecars = self.sidecars()?;
        let _turn = sidecars.turn(carried.worker);
        let digest = Sha256::digest(format!("{}/{}", area.as_str(), put.path));
        let incoming = self.layout.run_folder(carried.worker).join(INCOMING);
        let draft = incoming.join(HEXLOWER.encode(&digest));
        let written = || -> io::Result<u64> {
            fs::create_dir_all(&incoming)?;
            take(&self.tree(carried, area), &draft, put, bytes)
        };
        written().map_err(|error| refusal(&error))
    }

    /// Removes what the worker removed; a folder only where nothing else is in it.
    pub(crate) fn tree_remove(
        &self,
        carried: &SidecarWorker,
        area: TreeArea,
        query: &TreeQuery,
    ) -> Result<(), Problem> {
        check(&query.path)?;
        let sidecars = self.sidecars()?;
        let _turn = sidecars.turn(carried.worker);
        remove(&self.tree(carried, area), Path::new(&query.path)).map_err(|error| refusal(&error))
    }
}

fn check(path: &str) -> Result<(), Problem> {
    let parts: Vec<Component> = Path::new(path).components().collect();
    let is_plain = parts.iter().all(|part| matches!(part, Component::Normal(_)));
    // What `components` passes over quietly (`a//b`, `a/.`) would be a second name for the same thing.
    let is_canonical = parts.iter().map(|part| part.as_os_str().len() + 1).sum::<usize>() == path.len() + 1;
    if !is_plain || !is_canonical || path.contains('\0') || path.len() > LONGEST_PATH || parts.len() > DEEPEST
    {
        let detail =
            "`path` must name something below the folder: no `..`, no `.`, no `/` at its ends, not too deep";
        return Err(Problem::new(ProblemCode::BadRequest, detail));
    }
    Ok(())
}

/// What the sender can never have accepted, told from what passes.
fn refusal(error: &io::Error) -> Problem {
    let errno = error.raw_os_error().map(Errno::from_raw);
    match errno {
        Some(Errno::ELOOP | Errno::EXDEV) => {
            Problem::new(ProblemCode::BadRequest, "`path` leads through a link, which is not followed")
        }
        Some(Errno::ENOTDIR | Errno::EISDIR | Errno::ENOTEMPTY | Errno::EEXIST | Errno::ENAMETOOLONG) => {
            Problem::new(ProblemCode::BadRequest, format!("`path` cannot be put there: {error}"))
        }
        _ if error.kind() == ErrorKind::NotFound => {
            Problem::new(ProblemCode::NotFound, "there is no such file or folder")
        }
        _ if error.kind() == ErrorKind::InvalidInput => {
            Problem::new(ProblemCode::BadRequest, error.to_string())
        }
        _ => unwritable(error),
    }
}

fn open_folder(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC | OFlag::O_NOFOLLOW;
    Ok(nix::fcntl::open(path, flags, Mode::empty())?)
}

fn beneath(root: &OwnedFd, path: &Path, flags: OFlag) -> io::Result<OwnedFd> {
    let resolve =
        ResolveFlag::RESOLVE_BENEATH | ResolveFlag::RESOLVE_NO_SYMLINKS | ResolveFlag::RESOLVE_NO_MAGICLINKS;
    Ok(openat2(root, path, OpenHow::new().flags(flags | OFlag::O_CLOEXEC).resolve(resolve))?)
}

/// The folder that a path is in, and its name there. Folders on the way are made if asked.
fn parent(root: &OwnedFd, path: &Path, make: bool) -> io::Result<(OwnedFd, PathBuf)> {
    let name = PathBuf::from(path.file_name().ok_or(ErrorKind::InvalidInput)?);
    let mut folder = root.try_clone()?;
    for part in path.parent().into_iter().flat_map(Path::components) {
        if make {
            make_folder(&folder, Path::new(part.as_os_str()))?;
        }
        folder = beneath(&folder, Path::new(part.as_os_str()), OFlag::O_PATH | OFlag::O_DIRECTORY)?;
    }
    Ok((folder, name))
}

fn make_folder(folder: &OwnedFd, name: &Path) -> io::Result<()> {
    match mkdirat(folder, name, Mode::from_bits_truncate(0o755)) {
        Ok(()) | Err(Errno::EEXIST) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn take(root: &Path, draft: &Path, put: &TreePut, bytes: &[u8]) -> io::Result<u64> {
    fs::create_dir_all(root)?;
    let root = open_folder(root)?;
    let path = Path::new(&put.path);
    match put.kind {
        TreeKind::Folder => {
            let (folder, name) = parent(&root, path, true)?;
            make_folder(&folder, &name)?;
            // Somebody else's file or link of that name is no folder.
            beneath(&folder, &name, OFlag::O_PATH | OFlag::O_DIRECTORY)?;
            Ok(0)
        }
        TreeKind::Link => {
            let target = put.target.as_deref().unwrap_or_default();
            if target.is_empty() || target.contains('\0') || target.len() > LONGEST_PATH {
                return Err(io::Error::new(ErrorKind::InvalidInput, "a link needs a `target`"));
            }
            let _ = fs::remove_file(draft);
            std::os::unix::fs::symlink(target, draft)?;
            put_in_place(&root, path, draft).map(|()| 0)
        }
        TreeKind::File => {
            let size = add_piece(draft, put.offset, bytes)?;
            if size == put.size {
                let file =
                    OpenOptions::new().write(true).custom_flags(OFlag::O_NOFOLLOW.bits()).open(draft)?;
                file.set_permissions(Permissions::from_mode(if put.executable { 0o755 } else { 0o644 }))?;
                file.set_modified(put.modified_at.into())?;
                put_in_place(&root, path, draft)?;
            }
            Ok(size)
        }
    }
}

/// One sender writes its drafts: what comes again replaces what came before, from there on.
fn add_piece(draft: &Path, offset: u64, bytes: &[u8]) -> io::Result<u64> {
    if offset == 0 {
        // A link may have been on its way under this name.
        match fs::remove_file(draft) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(OFlag::O_NOFOLLOW.bits())
        .open(draft)?;
    let size = file.metadata()?.len();
    if offset > size {
        return Ok(size);
    }
    file.set_len(offset)?;
    file.write_all_at(bytes, offset)?;
    Ok(offset + bytes.len() as u64)
}

fn put_in_place(root: &OwnedFd, path: &Path, draft: &Path) -> io::Result<()> {
    let (folder, name) = parent(root, path, true)?;
    match renameat(AT_FDCWD, draft, &folder, &name) {
        Ok(()) => Ok(()),
        Err(Errno::EISDIR) => {
            // What was a folder is none any more; it is removed only where nothing is left in it.
            unlinkat(&folder, &name, UnlinkatFlags::RemoveDir)?;
            Ok(renameat(AT_FDCWD, draft, &folder, &name)?)
        }
        Err(error) => Err(error.into()),
    }
}

fn remove(root: &Path, path: &Path) -> io::Result<()> {
    let removed = || -> io::Result<()> {
        let root = open_folder(root)?;
        let (folder, name) = parent(&root, path, false)?;
        match unlinkat(folder.as_fd(), &name, UnlinkatFlags::NoRemoveDir) {
            Err(Errno::EISDIR) => match unlinkat(folder.as_fd(), &name, UnlinkatFlags::RemoveDir) {
                // Another worker has put something there.
                Err(Errno::ENOTEMPTY | Errno::EEXIST) => Ok(()),
                removed => Ok(removed?),
            },
            removed => Ok(removed?),
        }
    };
    match removed() {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

fn list(root: &Path) -> io::Result<Vec<TreeEntry>> {
    let (mut entries, mut bytes) = (Vec::new(), 0);
    let walked = walk(root, |found| -> io::Result<Next> {
        let Some(path) = found.path.to_str() else { return Ok(Next::Past) };
        let next = if found.depth + 1 < DEEPEST { Next::Into } else { Next::Past };
        let about = &found.about;
        let kind = SFlag::from_bits_truncate(about.st_mode & SFlag::S_IFMT.bits());
        let (kind, target) = if kind == SFlag::S_IFDIR {
            (TreeKind::Folder, None)
        } else if kind == SFlag::S_IFREG {
            (TreeKind::File, None)
        } else if kind == SFlag::S_IFLNK {
            let target = match readlinkat(found.folder, found.name) {
                Err(Errno::ENOENT | Errno::EINVAL) => return Ok(next),
                target => target?,
            };
            let Some(target) = target.to_str() else { return Ok(next) };
            (TreeKind::Link, Some(target.to_owned()))
        } else {
            return Ok(next);
        };
        let nanoseconds = i32::try_from(about.st_mtime_nsec).unwrap_or_default();
        bytes += path.len();
        if entries.len() >= MOST_ENTRIES || bytes > MOST_PATH_BYTES {
            return Err(io::Error::other("there are too many files in the folder"));
        }
        entries.push(TreeEntry {
            path: path.to_owned(),
            kind,
            size: if kind == TreeKind::File { u64::try_from(about.st_size).unwrap_or_default() } else { 0 },
            modified_at: Timestamp::new(about.st_mtime, nanoseconds).unwrap_or_default(),
            executable: about.st_mode & 0o100 != 0,
            target,
        });
        Ok(next)
    });
    match walked {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    entries.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(entries)
}

#[cfg(test)]
mod tests;
