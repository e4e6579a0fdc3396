//! What the launcher says of itself: `status.jsonl`, and a hint to the server to look at it.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::time::Duration;

use danlu_core::launch::{LauncherState, LauncherStatus, ProcessIdentity, STATUS_FILE};
use danlu_types::WorkerId;
use nix::errno::Errno;
use nix::fcntl::OFlag;
use tokio::time::sleep;

use crate::launcher_log::LauncherLog;

/// `sun_path` has 108 bytes, and the last one is a zero.
const LONGEST_SOCKET_PATH: usize = 107;
const FIRST_RETRY: Duration = Duration::from_millis(20);
const SLOWEST_RETRY: Duration = Duration::from_secs(2);

/// Writes into the current folder, which is the run folder.
#[derive(Debug)]
pub(crate) struct Status<'a> {
    worker: WorkerId,
    launcher: ProcessIdentity,
    hints: &'a Path,
}

impl<'a> Status<'a> {
    pub(crate) fn new(worker: WorkerId, launcher: ProcessIdentity, hints: &'a Path) -> Self {
        Status { worker, launcher, hints }
    }

    /// Adds a line. There is no fsync: after a crash of the machine nothing runs, whatever the file says.
    ///
    /// One file that grows, instead of a new one that takes the place of the old: ext4 looks at every inode that was
    /// deleted in the last seconds whenever it wants a new one, which at hundreds of workers per second costs more than all
    /// else that a launcher does.
    pub(crate) fn write(&self, phase: &LauncherState) -> io::Result<()> {
        let status = LauncherStatus { worker: self.worker, launcher: self.launcher, phase: phase.clone() };
        let line = status.to_line().map_err(io::Error::other)?;
        open_for_append()?.write_all(&line)
    }

    /// Adds a line however long it takes: nobody else knows what became of the worker. Gives up only when the run
    /// folder is gone, because then nobody asks.
    pub(crate) async fn write_at_last(
        &self,
        phase: &LauncherState,
        launcher_log: &LauncherLog,
    ) -> io::Result<()> {
        let mut wait = FIRST_RETRY;
        loop {
            match self.write(phase) {
                Ok(()) => return Ok(()),
                Err(error) if error.kind() == ErrorKind::NotFound => return Err(error),
                Err(error) if wait == FIRST_RETRY => {
                    launcher_log.note(format_args!("cannot write the last status, trying on: {error}"));
                }
                Err(_) => {}
            }
            sleep(wait).await;
            wait = (wait * 2).min(SLOWEST_RETRY);
        }
    }

    /// Asks the server to look at this worker. A server that is down looks when it comes back.
    pub(crate) fn poke(&self) {
        let _ = self.try_poke();
    }

    fn try_poke(&self) -> io::Result<()> {
        let socket = UnixDatagram::unbound()?;
        socket.set_nonblocking(true)?;
        let id = self.worker.to_string();
        if self.hints.as_os_str().len() <= LONGEST_SOCKET_PATH {
            return socket.send_to(id.as_bytes(), self.hints).map(drop);
        }
        let folder = File::open(self.hints.parent().unwrap_or(Path::new("/")))?;
        let name = self.hints.file_name().unwrap_or_default();
        let short = Path::new("/proc/self/fd").join(folder.as_raw_fd().to_string()).join(name);
        socket.send_to(id.as_bytes(), short).map(drop)
    }
}

/// A folder, a link or a pipe in the place of the file is put aside: the job's programs can make one, and would keep the
/// launcher from saying how the worker ended.
fn open_for_append() -> io::Result<File> {
    let flags = (OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK).bits();
    let open = || OpenOptions::new().append(true).create(true).custom_flags(flags).open(STATUS_FILE);
    let in_the_way = [Errno::EISDIR, Errno::ELOOP, Errno::ENXIO].map(|errno| Some(errno as i32));
    match open() {
        Ok(file) if file.metadata()?.is_file() => return Ok(file),
        Ok(_) => {}
        Err(error) if in_the_way.contains(&error.raw_os_error()) => {}
        Err(error) => return Err(error),
    }
    std::fs::rename(STATUS_FILE, format!("{STATUS_FILE}.in-the-way"))?;
    open()
}
