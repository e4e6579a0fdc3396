//! A byte stream to a launcher on another node: a step beside it that joins its own input and output with the launcher's
//! socket. Slurm carries it, and Slurm's own rules say who may.

use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::process::Stdio;
use std::task::{Context, Poll};

use danlu_core::launch::UnixUser;
use tokio::io::{AsyncRead, AsyncWrite, Join, ReadBuf, join};
use tokio::process::{Child, ChildStdin, ChildStdout};

use super::commands::{Programs, With};

/// What joins, and with whom, as the node sees them.
#[derive(Debug)]
pub(super) struct SessionTarget {
    pub(super) program: PathBuf,
    pub(super) run: PathBuf,
    /// Whose the job is, where it is not the server's.
    pub(super) user: Option<UnixUser>,
}

pub(super) fn open(
    programs: &Programs,
    place: &SessionTarget,
    job: u64,
    node: &str,
) -> io::Result<StepStream> {
    let mut child = programs
        .command("srun", &With::user(place.user.as_ref()))
        .arg(format!("--jobid={job}"))
        .arg(format!("--nodelist={node}"))
        // Beside the launcher, not instead of it; and byte by byte, not line by line.
        .args(["--overlap", "--nodes=1", "--ntasks=1", "--gres=none", "--mpi=none", "--cpu-bind=none"])
        .args(["--unbuffered", "--quiet"])
        .arg(&place.program)
        .arg("slurm-session")
        .arg(&place.run)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let (Some(stdout), Some(stdin)) = (child.stdout.take(), child.stdin.take()) else {
        return Err(io::ErrorKind::BrokenPipe.into());
    };
    Ok(StepStream { inner: join(stdout, stdin), _step: child })
}

#[derive(Debug)]
pub(super) struct StepStream {
    inner: Join<ChildStdout, ChildStdin>,
    /// Ended with the stream.
    _step: Child,
}

impl AsyncRead for StepStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(context, buffer)
    }
}

impl AsyncWrite for StepStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}
