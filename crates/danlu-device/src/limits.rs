//! What a server changes of itself at its start, and what its jobs find as it was before: how many files may be open, which
//! descriptors there are, who may read new files, and who may look into the process.
//!
//! Programs of jobs may depend on the lower soft limit: `select` cannot watch descriptors above 1024, and some programs
//! close every descriptor that they could have.

#![expect(
    unsafe_code,
    reason = "the limits of another process are set by a system call that has no safe wrapper"
)]

use std::io;
use std::sync::OnceLock;

use nix::errno::Errno;
use nix::libc;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::stat::{Mode, umask};

/// Enough for any server; where the hard limit is a billion, some programs that are started would take minutes over it.
const MOST_OPEN_FILES: u64 = 1 << 20;

/// The soft limit that this process was started with, once it has been raised.
static BEFORE: OnceLock<u64> = OnceLock::new();

/// Raises the soft limit of open files of this process to its hard limit; the limit from now on.
pub fn raise_open_files() -> io::Result<u64> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    let raised = hard.min(MOST_OPEN_FILES).max(soft);
    if raised > soft {
        setrlimit(Resource::RLIMIT_NOFILE, raised, hard)?;
        // Raised twice, the first is what we were started with.
        let _ = BEFORE.set(soft);
    }
    Ok(raised)
}

/// The umask that this process was started with, once it has another.
static UMASK_BEFORE: OnceLock<u32> = OnceLock::new();

/// Files that this process makes from now on are its user's alone, whatever it was started with.
pub fn close_files_to_others() {
    let before = umask(Mode::from_bits_truncate(0o077));
    // Closed twice, the first is what we were started with.
    let _ = UMASK_BEFORE.set(before.bits());
}

/// The umask from before [`close_files_to_others`], for programs whose files are not ours.
pub fn umask_before() -> Option<u32> {
    UMASK_BEFORE.get().copied()
}

/// What this process was started with besides standard input, output and error reaches no program that it starts.
pub fn keep_descriptors() -> io::Result<()> {
    // SAFETY: close_range takes three numbers; with this flag it closes nothing in this process.
    let done = unsafe { libc::syscall(libc::SYS_close_range, 3, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) };
    Errno::result(done)?;
    Ok(())
}

/// Nobody but root looks into this process from now on: not into its environment, its memory or its open files, also not a
/// program of the same user.
pub fn hide() -> io::Result<()> {
    Ok(nix::sys::prctl::set_dumpable(false)?)
}

/// Gives a process that this one has started, and all that it starts from now on, the soft limit of before
/// [`raise_open_files`].
pub fn restore_open_files(pid: u32) -> io::Result<()> {
    let Some(soft) = BEFORE.get() else { return Ok(()) };
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    let limit = libc::rlimit { rlim_cur: (*soft).min(hard), rlim_max: hard };
    // SAFETY: the new limits are read from a value that lives until the call returns, and old ones are not asked for.
    let done = unsafe {
        libc::prlimit(pid.cast_signed(), libc::RLIMIT_NOFILE, &raw const limit, std::ptr::null_mut())
    };
    Errno::result(done)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn descriptors_that_a_server_was_started_with_reach_no_program() {
        use std::os::fd::AsRawFd as _;
        let file = std::fs::File::open("/dev/null").unwrap();
        nix::fcntl::fcntl(&file, nix::fcntl::FcntlArg::F_SETFD(nix::fcntl::FdFlag::empty())).unwrap();
        let is_there = || {
            let link = format!("test -e /proc/self/fd/{}", file.as_raw_fd());
            Command::new("sh").args(["-c", &link]).status().unwrap().success()
        };
        assert!(is_there(), "it was inherited before");
        keep_descriptors().unwrap();
        assert!(!is_there());
    }

    #[test]
    fn what_a_raised_process_starts_has_the_limit_of_before() {
        let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
        // Whatever the machine's limits are, there is something to raise.
        setrlimit(Resource::RLIMIT_NOFILE, soft.min(hard.min(1000) - 1), hard).unwrap();
        let before = getrlimit(Resource::RLIMIT_NOFILE).unwrap().0;
        let raised = raise_open_files().unwrap();
        assert_eq!(
            (raised, getrlimit(Resource::RLIMIT_NOFILE).unwrap().0),
            (hard.min(MOST_OPEN_FILES), raised)
        );

        let mut shell = Command::new("sh")
            .args(["-c", "read go; ulimit -Sn; ulimit -Hn"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        restore_open_files(shell.id()).unwrap();
        io::Write::write_all(&mut shell.stdin.take().unwrap(), b"go\n").unwrap();
        let output = shell.wait_with_output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let mut lines = text.lines();
        assert_eq!(lines.next(), Some(before.to_string().as_str()));
        let hard_of_shell = lines.next().unwrap();
        assert!(hard_of_shell == "unlimited" || hard_of_shell == hard.to_string(), "{text}");
    }
}
