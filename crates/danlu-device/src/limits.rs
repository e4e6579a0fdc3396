//! How many files this process may have open: as many as the system allows for a server, and as many as before for what it
//! starts.
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
