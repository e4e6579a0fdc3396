//! Removal of a folder with all that is in it.
//!
//! What is in a subfolder is lifted into the folder at the top (a rename, which costs the same however much hangs below),
//! then the subfolder is empty and goes. So no more than two levels are ever open, nothing has to be remembered of a tree,
//! and whoever is interrupted can begin again.

use std::ffi::{CStr, CString};
use std::fs;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use nix::dir::Type;
use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, OFlag, openat, renameat};
use nix::sys::stat::{Mode, fchmod, fstat};
use nix::unistd::{UnlinkatFlags, unlinkat};

use crate::owner::Acting;
use crate::{FOLDER, is_itself_or_above, open_folder, other, stream};

/// What became of a removal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Removal {
    /// Nothing is there any more, or never was.
    Done,
    /// The steps were used up; calling again goes on.
    Unfinished,
}

/// So many entries may fail in one folder before the rest of it is not tried: each is tried again with each level.
const MOST_FAILURES: u32 = 64;
/// How deep folders may be nested that cannot be lifted (those of a lower layer of an overlay).
const DEEPEST_UNLIFTED: u32 = 32;

/// Removes a file, a link or a folder with all that is in it. Nothing being there is no error.
pub fn remove(path: &Path) -> io::Result<()> {
    while remove_some(path, u32::MAX)? == Removal::Unfinished {}
    Ok(())
}

/// The same in pieces, for those who have other things to do: ends after about so many entries.
pub fn remove_some(path: &Path, steps: u32) -> io::Result<Removal> {
    let top = match nix::fcntl::open(path, FOLDER, Mode::empty()) {
        Ok(top) => top,
        Err(Errno::ENOENT) => return Ok(Removal::Done),
        // A file or a link.
        Err(Errno::ENOTDIR | Errno::ELOOP) => return file(path),
        Err(Errno::EACCES) => {
            let way = nix::fcntl::open(path, closed(), Mode::empty())?;
            open_up(way.as_fd())?;
            nix::fcntl::open(path, FOLDER, Mode::empty())?
        }
        Err(error) => return Err(error.into()),
    };
    let mut remover = Remover { left: steps, next: first_name(), is_acting: false, failure: None };
    match remover.empty_out(top.as_fd(), 0) {
        Ok(()) => {}
        Err(Stop::OutOfSteps) => return Ok(Removal::Unfinished),
        Err(Stop::Failed(error)) => return Err(error),
    }
    match fs::remove_dir(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Removal::Done),
        Err(error) => Err(remover.failure.unwrap_or(error)),
        Ok(()) => Ok(Removal::Done),
    }
}

fn file(path: &Path) -> io::Result<Removal> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(Removal::Done),
    }
}

/// Names for what is lifted. One that is taken costs a step; those of a removal that was cut short lie below.
fn first_name() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_nanos()).unwrap_or(0)
}

struct Remover {
    left: u32,
    next: u64,
    /// Whether we are the owner of what is removed, at the moment.
    is_acting: bool,
    /// The first thing that could not be removed.
    failure: Option<io::Error>,
}

enum Stop {
    OutOfSteps,
    Failed(io::Error),
}

impl From<Errno> for Stop {
    fn from(error: Errno) -> Self {
        Stop::Failed(error.into())
    }
}

impl Remover {
    fn step(&mut self) -> Result<(), Stop> {
        self.left = self.left.checked_sub(1).ok_or(Stop::OutOfSteps)?;
        Ok(())
    }

    /// Removes what is in `top`, level by level, as far as it can be.
    fn empty_out(&mut self, top: BorrowedFd<'_>, unlifted: u32) -> Result<(), Stop> {
        open_up(top)?;
        loop {
            let (mut removed, mut failed) = (0u32, 0u32);
            let mut entries = stream(top)?;
            for entry in entries.iter() {
                let entry = entry?;
                if is_itself_or_above(&entry) {
                    continue;
                }
                self.step()?;
                let taken = match entry.file_type() {
                    Some(Type::Directory) => self.take_folder(top, entry.file_name(), unlifted),
                    _ => match unlinkat(top, entry.file_name(), UnlinkatFlags::NoRemoveDir) {
                        Ok(()) | Err(Errno::ENOENT) => Ok(()),
                        Err(Errno::EISDIR | Errno::EPERM) => {
                            self.take_folder(top, entry.file_name(), unlifted)
                        }
                        Err(error) => Err(error.into()),
                    },
                };
                match taken {
                    Ok(()) => removed += 1,
                    Err(Stop::OutOfSteps) => return Err(Stop::OutOfSteps),
                    Err(Stop::Failed(error)) => {
                        failed += 1;
                        self.failure.get_or_insert(error);
                        if failed > MOST_FAILURES {
                            return Err(Stop::Failed(
                                self.failure.take().unwrap_or_else(|| other("much is left")),
                            ));
                        }
                    }
                }
            }
            // What was lifted is seen in the next round, if not in this one.
            if removed == 0 {
                return Ok(());
            }
        }
    }

    /// Removes the folder `name` of `top`, after what is in it was removed or lifted into `top`.
    fn take_folder(&mut self, top: BorrowedFd<'_>, name: &CStr, unlifted: u32) -> Result<(), Stop> {
        if removed_empty(top, name)? {
            return Ok(());
        }
        let folder = open_any_folder(top, name)?;
        let about = fstat(&folder)?;
        let acting = if self.is_acting { None } else { Acting::as_owner_of(&about) };
        if let Some(acting) = acting {
            // Whoever owns it lifts into it and not into `top`, where only we may write. What they cannot remove is
            // left to root, below.
            let before = self.failure.take();
            self.is_acting = true;
            let emptied = self.empty_out(folder.as_fd(), unlifted);
            self.is_acting = false;
            drop(acting);
            self.failure = before;
            if let Err(Stop::OutOfSteps) = emptied {
                return Err(Stop::OutOfSteps);
            }
            if removed_empty(top, name)? {
                return Ok(());
            }
        }
        open_up(folder.as_fd())?;
        let mut entries = stream(&folder)?;
        for entry in entries.iter() {
            let entry = entry?;
            if is_itself_or_above(&entry) {
                continue;
            }
            self.step()?;
            if entry.file_type() != Some(Type::Directory) {
                match unlinkat(&folder, entry.file_name(), UnlinkatFlags::NoRemoveDir) {
                    Ok(()) | Err(Errno::ENOENT) => continue,
                    Err(Errno::EISDIR | Errno::EPERM) => {}
                    Err(error) => return Err(error.into()),
                }
            }
            if !removed_empty(folder.as_fd(), entry.file_name())? {
                self.lift(folder.as_fd(), entry.file_name(), top, unlifted)?;
            }
        }
        // Somebody may be quicker at filling it than we are; then the next round goes on.
        match unlinkat(top, name, UnlinkatFlags::RemoveDir) {
            Ok(()) | Err(Errno::ENOENT | Errno::ENOTEMPTY | Errno::EEXIST) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn lift(
        &mut self,
        folder: BorrowedFd<'_>,
        name: &CStr,
        top: BorrowedFd<'_>,
        unlifted: u32,
    ) -> Result<(), Stop> {
        let mut is_open = false;
        loop {
            let new = CString::new(format!(".removing-{:x}", self.next)).unwrap_or_default();
            self.next = self.next.wrapping_add(1);
            match renameat(folder, name, top, new.as_c_str()) {
                Ok(()) | Err(Errno::ENOENT) => return Ok(()),
                // The name is taken.
                Err(Errno::ENOTEMPTY | Errno::EEXIST | Errno::ENOTDIR | Errno::EISDIR) => self.step()?,
                // To move a folder one must be allowed to write in it.
                Err(Errno::EACCES) if !is_open => {
                    open_up(open_any_folder(folder, name)?.as_fd())?;
                    is_open = true;
                }
                Err(Errno::EXDEV) if unlifted < DEEPEST_UNLIFTED => {
                    self.empty_out(open_any_folder(folder, name)?.as_fd(), unlifted + 1)?;
                    return match unlinkat(folder, name, UnlinkatFlags::RemoveDir) {
                        Ok(()) | Err(Errno::ENOENT) => Ok(()),
                        Err(error) => Err(error.into()),
                    };
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// Removes an entry that was said to be a folder, if it is empty or no folder any more.
fn removed_empty(above: BorrowedFd<'_>, name: &CStr) -> nix::Result<bool> {
    match unlinkat(above, name, UnlinkatFlags::RemoveDir) {
        Ok(()) | Err(Errno::ENOENT) => Ok(true),
        Err(Errno::ENOTEMPTY | Errno::EEXIST) => Ok(false),
        Err(Errno::ENOTDIR) => match unlinkat(above, name, UnlinkatFlags::NoRemoveDir) {
            Ok(()) | Err(Errno::ENOENT) => Ok(true),
            Err(error) => Err(error),
        },
        Err(error) => Err(error),
    }
}

/// Also one that its owner has closed to themselves.
fn open_any_folder(above: BorrowedFd<'_>, name: &CStr) -> nix::Result<OwnedFd> {
    match open_folder(above, name) {
        Err(Errno::EACCES) => {
            open_up(openat(above, name, closed(), Mode::empty())?.as_fd())?;
            open_folder(above, name)
        }
        opened => opened,
    }
}

/// To change the mode of a folder that cannot be read.
fn closed() -> OFlag {
    OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC
}

/// Lets its owner do everything with a folder. Whoever may not change that need not.
fn open_up(folder: BorrowedFd<'_>) -> nix::Result<()> {
    use std::os::fd::AsRawFd as _;
    let mode = Mode::from_bits_truncate(fstat(folder)?.st_mode);
    if mode.contains(Mode::S_IRWXU) {
        return Ok(());
    }
    let mode = (mode & Mode::from_bits_truncate(0o7777)) | Mode::S_IRWXU;
    // `fchmod` refuses a descriptor of `O_PATH`; its name in `/proc` leads to the same folder and nowhere else.
    let changed = match fchmod(folder, mode) {
        Err(Errno::EBADF) => {
            let name = format!("/proc/self/fd/{}", folder.as_raw_fd());
            nix::sys::stat::fchmodat(
                AT_FDCWD,
                name.as_str(),
                mode,
                nix::sys::stat::FchmodatFlags::FollowSymlink,
            )
        }
        changed => changed,
    };
    match changed {
        Err(Errno::EPERM | Errno::EROFS) => Ok(()),
        changed => changed,
    }
}
