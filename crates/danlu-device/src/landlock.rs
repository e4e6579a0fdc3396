//! Closing one folder to a process and all that it starts, by the kernel's Landlock.
//!
//! Landlock opens trees and closes everything else; it cannot do the opposite. So whatever lies beside the way from `/` to the
//! folder is opened, each with all rights, and the folders on the way can only be listed. That takes something from programs
//! that could make or remove entries directly in a folder on the way: [`obstacle`] names such a folder.
//!
//! What a rule opens was opened when it was made: entries that appear on the way later stay closed. Not closed: asking for a
//! file's size and times, changing its mode, connecting to a socket in the folder (launchers ask for a key), and the folder seen through another mount
//! that was there before. Whoever is inside can neither mount anything nor look into processes that are not. See ADR 27.

#![expect(unsafe_code, reason = "the three system calls of Landlock have no safe wrapper")]

use std::ffi::OsStr;
use std::fs;
use std::io::{self, ErrorKind};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::libc::{self, c_long};
use nix::sys::prctl;
use nix::unistd::{AccessFlags, eaccess, geteuid};
use thiserror::Error;

// `LANDLOCK_ACCESS_FS_*`. Control of devices (version 5) is left alone: a rule for device files is the cgroup's.
const EXECUTE: u64 = 1;
const WRITE_FILE: u64 = 1 << 1;
const READ_FILE: u64 = 1 << 2;
const READ_DIR: u64 = 1 << 3;
/// Removing and making of all kinds: bits 4 to 12.
const CHANGE_DIR: u64 = 0x1ff0;
/// Links and renames from one folder into another; without it the kernel refuses them all.
const REFER: u64 = 1 << 13;
const TRUNCATE: u64 = 1 << 14;

/// From which version on.
const REFER_SINCE: u32 = 2;
const TRUNCATE_SINCE: u32 = 3;
const SCOPES_SINCE: u32 = 6;

/// Signals to processes outside. Not abstract sockets: NCCL passes memory between the workers of a node through them.
const SCOPE_SIGNAL: u64 = 1 << 1;

const CREATE_RULESET_VERSION: u32 = 1;
const RULE_PATH_BENEATH: u32 = 1;

/// `struct landlock_ruleset_attr`; older kernels take it as long as what they do not know is zero.
#[repr(C)]
struct RulesetAttributes {
    access_files: u64,
    access_network: u64,
    scoped: u64,
}

/// `struct landlock_path_beneath_attr`.
#[repr(C, packed)]
struct PathBeneath {
    allowed: u64,
    parent: RawFd,
}

/// Why a folder cannot be closed without taking something else from programs.
#[derive(Debug, Error)]
pub enum Obstacle {
    #[error("this kernel has no Landlock of version 2 or later")]
    Kernel,
    #[error("they run as root, which has other ways to it")]
    Root,
    #[error("they create files in `{}`, which contains it, and could no longer do so", .0.display())]
    Writable(PathBuf),
    #[error("their home `{}` is in it", .0.display())]
    Home(PathBuf),
    #[error("what else there is in `{}` cannot be listed", path.display())]
    Unlisted { path: PathBuf, source: io::Error },
    #[error("cannot find out where `{}` is", path.display())]
    Folder { path: PathBuf, source: io::Error },
}

/// What keeps a folder from being closed to programs of this process's user, whose home this is.
pub fn obstacle(folder: &Path, home: Option<&Path>) -> Option<Obstacle> {
    if version().is_none_or(|version| version < REFER_SINCE) {
        return Some(Obstacle::Kernel);
    }
    if geteuid().is_root() {
        return Some(Obstacle::Root);
    }
    let real = |path: &Path| path.canonicalize().or_else(|_| std::path::absolute(path)).ok();
    if let (Some(folder), Some(home)) = (real(folder), home.and_then(real))
        && home.starts_with(folder)
    {
        return Some(Obstacle::Home(home));
    }
    let parent = match parent(folder) {
        Ok(parent) => parent?,
        Err(source) => return Some(Obstacle::Folder { path: folder.to_owned(), source }),
    };
    if let Some(writable) = parent.ancestors().find(|above| eaccess(*above, AccessFlags::W_OK).is_ok()) {
        return Some(Obstacle::Writable(writable.to_owned()));
    }
    parent.ancestors().find_map(|above| {
        let source = fs::read_dir(above).err()?;
        Some(Obstacle::Unlisted { path: above.to_owned(), source })
    })
}

/// The nearest folder above that there is, by its real path; none above `/`.
fn parent(folder: &Path) -> io::Result<Option<PathBuf>> {
    let folder = std::path::absolute(folder)?;
    if let Ok(real) = folder.canonicalize() {
        return Ok(real.parent().map(Path::to_owned));
    }
    folder
        .ancestors()
        .skip(1)
        .find_map(|above| above.canonicalize().ok())
        .map(Some)
        .ok_or_else(|| ErrorKind::NotFound.into())
}

/// Which Landlock the kernel has; none where it is absent or turned off.
fn version() -> Option<u32> {
    // SAFETY: with this flag the call takes no attributes and makes nothing.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            std::ptr::null::<RulesetAttributes>(),
            0_usize,
            CREATE_RULESET_VERSION,
        )
    };
    u32::try_from(answer).ok().filter(|version| *version > 0)
}

/// Everything but one folder, and of that some folders again.
#[derive(Debug)]
pub struct Closure {
    ruleset: OwnedFd,
    /// All that it governs.
    everything: u64,
}

impl Closure {
    /// Of the closed folder, `open` are the program's own and `readable` can be read. What is not there is passed over.
    pub fn new(closed: &Path, open: &[&Path], readable: &[&Path]) -> io::Result<Self> {
        let version = version().filter(|version| *version >= REFER_SINCE);
        let version = version.ok_or_else(|| io::Error::from_raw_os_error(libc::EOPNOTSUPP))?;
        let truncate = if version >= TRUNCATE_SINCE { TRUNCATE } else { 0 };
        let everything = EXECUTE | WRITE_FILE | READ_FILE | READ_DIR | CHANGE_DIR | REFER | truncate;
        let scoped = if version >= SCOPES_SINCE { SCOPE_SIGNAL } else { 0 };
        let attributes = RulesetAttributes { access_files: everything, access_network: 0, scoped };
        // SAFETY: the kernel reads the attributes, which live until the call returns.
        let made = unsafe {
            libc::syscall(
                libc::SYS_landlock_create_ruleset,
                &raw const attributes,
                size_of::<RulesetAttributes>(),
                0,
            )
        };
        // SAFETY: the kernel has just made this descriptor, and nobody else knows it.
        let ruleset = unsafe { OwnedFd::from_raw_fd(descriptor(made)?) };
        let closure = Closure { ruleset, everything };

        let closed = closed.canonicalize()?;
        closure.allow(Path::new("/"), READ_DIR)?;
        let mut way = closed.as_path();
        while let (Some(above), Some(name)) = (way.parent(), way.file_name()) {
            closure.allow_beside(above, name)?;
            way = above;
        }
        for path in open {
            closure.allow(path, everything)?;
        }
        for path in readable {
            closure.allow(path, EXECUTE | READ_FILE | READ_DIR)?;
        }
        Ok(closure)
    }

    fn allow_beside(&self, above: &Path, way: &OsStr) -> io::Result<()> {
        for entry in fs::read_dir(above)? {
            let entry = entry?;
            if entry.file_name() != way {
                self.allow(&entry.path(), self.everything)?;
            }
        }
        Ok(())
    }

    /// A link opens nothing: where it leads is opened for itself, or not.
    fn allow(&self, path: &Path, rights: u64) -> io::Result<()> {
        let flags = libc::O_PATH | libc::O_NOFOLLOW | libc::O_CLOEXEC;
        let found = match fs::OpenOptions::new().read(true).custom_flags(flags).open(path) {
            Ok(found) => found,
            Err(error)
                if matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE | libc::ENOMEM)) =>
            {
                return Err(error);
            }
            // What has gone meanwhile, or answers nobody, cannot be used anyway.
            Err(_) => return Ok(()),
        };
        let kind = found.metadata()?.file_type();
        if kind.is_symlink() {
            return Ok(());
        }
        let of_files = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE;
        let allowed = self.everything & if kind.is_dir() { rights } else { rights & of_files };
        let rule = PathBeneath { allowed, parent: found.as_raw_fd() };
        // SAFETY: the kernel reads the rule, which lives until the call returns, as does the descriptor in it.
        let done = unsafe {
            libc::syscall(
                libc::SYS_landlock_add_rule,
                self.ruleset.as_raw_fd(),
                RULE_PATH_BENEATH,
                &raw const rule,
                0,
            )
        };
        Errno::result(done)?;
        Ok(())
    }

    /// Closes the folder to this process and all that it will start, for good. With it goes the right to gain privileges.
    ///
    /// Processes that are to look into each other, as debuggers and MPI do, must come from one that has entered: two that
    /// entered by themselves are strangers to each other.
    pub fn enter(&self) -> io::Result<()> {
        if fs::read_dir("/proc/self/task")?.count() != 1 {
            return Err(io::Error::other("other threads of this process would stay outside"));
        }
        self.restrict()
    }

    fn restrict(&self) -> io::Result<()> {
        prctl::set_no_new_privs()?;
        // SAFETY: the call takes two numbers.
        let done = unsafe { libc::syscall(libc::SYS_landlock_restrict_self, self.ruleset.as_raw_fd(), 0) };
        Errno::result(done)?;
        Ok(())
    }
}

fn descriptor(answer: c_long) -> io::Result<RawFd> {
    let answer = Errno::result(answer)?;
    RawFd::try_from(answer).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    use super::*;

    /// What a program inside prints; `$OUTSIDE` is a process that is not.
    fn inside(closure: &Closure, place: &Path, script: &str) -> String {
        let mut command = Command::new("python3");
        command.args(["-c", script]).current_dir(place).env("OUTSIDE", std::process::id().to_string());
        let entered = closure.ruleset.try_clone().unwrap();
        let closure = Closure { ruleset: entered, everything: closure.everything };
        // SAFETY: two system calls, on a descriptor that was there before.
        unsafe {
            command.pre_exec(move || closure.restrict());
        }
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// A folder to close, `closed`, with a secret, a folder of the program's own and one to read; and something beside it.
    fn place() -> Option<(tempfile::TempDir, Closure)> {
        if version().is_none_or(|version| version < REFER_SINCE) {
            danlu_testkit::skip("this kernel has no Landlock");
            return None;
        }
        let place = tempfile::tempdir().unwrap();
        for folder in ["closed/own/a", "closed/own/b", "closed/others", "closed/read", "beside"] {
            fs::create_dir_all(place.path().join(folder)).unwrap();
        }
        for file in ["closed/secret", "closed/others/log", "closed/read/module", "beside/file"] {
            fs::write(place.path().join(file), "text").unwrap();
        }
        let at = |name: &str| place.path().join("closed").join(name);
        let closure = Closure::new(&at(""), &[&at("own"), &at("absent")], &[&at("read")]).unwrap();
        Some((place, closure))
    }

    #[test]
    fn a_closed_folder_is_out_of_reach_and_all_else_is_not() {
        let Some((place, closure)) = place() else { return };
        let script = r"
import os
def tried(what, *arguments):
    try: what(*arguments)
    except OSError as error: return error.strerror
    return 'done'
read = lambda path: open(path).read()
write = lambda path: open(path, 'w').write('x')
for line in [
    ('read a secret', read, 'closed/secret'), ('read by another name', read, '/proc/self/cwd/closed/secret'),
    ('write a secret', write, 'closed/secret'), ('remove one', os.remove, 'closed/secret'),
    ('link to one', os.link, 'closed/secret', 'closed/own/taken'), ('take one', os.rename, 'closed/others/log', 'closed/own/log'),
    ('make one', write, 'closed/new'), ('read of others', read, 'closed/others/log'), ('write to what is read', write, 'closed/read/module'),
    ('make on the way', os.mkdir, 'fresh'), ('own', write, 'closed/own/a/f'), ('rename', os.rename, 'closed/own/a/f', 'closed/own/b/f'),
    ('link', os.link, 'closed/own/b/f', 'closed/own/a/f'), ('out', os.rename, 'closed/own/b/f', 'beside/f'), ('module', read, 'closed/read/module'),
    ('beside', write, 'beside/file'), ('list', os.listdir, '/'), ('system', read, '/proc/self/environ'), ('null', write, '/dev/null'),
    ('pipe', lambda: os.system('echo | cat /dev/stdin >/dev/null')),
]: print(line[0] + ':', tried(*line[1:]))
";
        let expected = "\
read a secret: Permission denied
read by another name: Permission denied
write a secret: Permission denied
remove one: Permission denied
link to one: Invalid cross-device link
take one: Permission denied
make one: Permission denied
read of others: Permission denied
write to what is read: Permission denied
make on the way: Permission denied
own: done
rename: done
link: done
out: done
module: done
beside: done
list: done
system: done
null: done
pipe: done
";
        assert_eq!(inside(&closure, place.path(), script), expected);
    }

    /// Debuggers and MPI.
    #[test]
    fn those_inside_look_into_each_other_and_not_outside() {
        let Some((place, closure)) = place() else { return };
        let script = r"
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
class Io(ctypes.Structure): _fields_ = [('base', ctypes.c_void_p), ('length', ctypes.c_size_t)]
source, target = ctypes.create_string_buffer(b'word'), ctypes.create_string_buffer(4)
def copied(pid):
    a, b = Io(ctypes.addressof(target), 4), Io(ctypes.addressof(source), 4)
    return libc.process_vm_readv(pid, ctypes.byref(a), 1, ctypes.byref(b), 1, 0)
to_child, to_parent = os.pipe(), os.pipe()
child = os.fork()
if child == 0:
    os.read(to_child[0], 1); os._exit(0)
print(copied(child), target.raw.decode())
os.write(to_child[1], b'x')
print(copied(int(os.environ['OUTSIDE'])))
";
        assert_eq!(inside(&closure, place.path(), script), "4 word\n-1\n");
    }

    #[test]
    fn a_folder_below_one_that_programs_write_to_is_not_closed() {
        let place = tempfile::tempdir().unwrap();
        let found = obstacle(&place.path().join("new/data"), None);
        let expected: &[&str] = if geteuid().is_root() { &["root"] } else { &["can make files in"] };
        let said = found.expect("an obstacle").to_string();
        assert!(said.contains("Landlock") || expected.iter().all(|words| said.contains(words)), "{said}");
    }
}
