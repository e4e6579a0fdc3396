//! From a process's pipes into its log.
//!
//! The time of a line is when it was read. A full disk does not end the job: reading goes on while the spool has room,
//! then stops, and goes on when writing works again.

use std::future::pending;
use std::io::{self, Write};
use std::process::{ChildStderr, ChildStdout};
use std::time::Duration;

use danlu_types::Rank;
use danlu_types::api::LogStream;
use jiff::Timestamp;
use tokio::net::unix::pipe::Receiver;
use tokio::sync::watch;
use tokio::time::sleep;

use crate::launcher_log::LauncherLog;
use crate::lines::LineSplitter;
use crate::reports::ReportWriter;
use crate::secrets::Mask;
use crate::spool::{Spool, Written};

const CHUNK_BYTES: usize = 64 * 1024;
const FIRST_RETRY: Duration = Duration::from_millis(50);
const SLOWEST_RETRY: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) struct Capture {
    spool: Spool,
    streams: [Stream; 2],
    launcher_log: LauncherLog,
    /// What the journal calls this log.
    name: String,
    /// Who listens to what a rank says of itself, and which rank it is; nobody to what is not a rank's.
    listener: Option<(ReportWriter, Rank)>,
    /// Also printed here, each line with this before it.
    echo: Option<String>,
    /// What is written down nowhere.
    mask: Mask,
    /// Set while writes fail: how long to wait before the next.
    retry: Option<Duration>,
}

#[derive(Debug)]
struct Stream {
    kind: LogStream,
    /// `None` after the last writer closed it.
    pipe: Option<Receiver>,
    lines: LineSplitter,
}

impl Capture {
    pub(crate) fn new(
        spool: Spool,
        (stdout, stderr): (Option<ChildStdout>, Option<ChildStderr>),
        launcher_log: LauncherLog,
        name: String,
        listener: Option<(ReportWriter, Rank)>,
        echo: Option<String>,
        mask: Mask,
    ) -> io::Result<Self> {
        let stdout = stdout.map(|pipe| Receiver::from_owned_fd(pipe.into())).transpose()?;
        let stderr = stderr.map(|pipe| Receiver::from_owned_fd(pipe.into())).transpose()?;
        let streams = [
            Stream { kind: LogStream::Stdout, pipe: stdout, lines: LineSplitter::default() },
            Stream { kind: LogStream::Stderr, pipe: stderr, lines: LineSplitter::default() },
        ];
        Ok(Capture { spool, streams, launcher_log, name, listener, echo, mask, retry: None })
    }

    /// Runs until both streams have ended, or `finish` turns true: then takes what is in the pipes and waits for no more,
    /// because a process that is not ours may hold the other end. Returns when all of it is in the file.
    pub(crate) async fn run(mut self, mut finish: watch::Receiver<bool>) {
        let mut chunk = vec![0; CHUNK_BYTES];
        loop {
            let finishing = *finish.borrow_and_update();
            if self.spool.is_full() {
                self.wait_for_disk().await;
                continue;
            }
            let mut progress = false;
            for stream in 0..self.streams.len() {
                progress |= self.read(stream, &mut chunk, finishing);
            }
            if !self.spool.is_empty() {
                self.write();
            }
            let open = self.streams.iter().any(|stream| stream.pipe.is_some());
            if !open || (finishing && !progress) {
                break;
            }
            if finishing {
                continue;
            }
            let [stdout, stderr] = &self.streams;
            tokio::select! {
                biased;
                () = readable(stdout.pipe.as_ref()) => {}
                () = readable(stderr.pipe.as_ref()) => {}
                _ = finish.changed() => {}
                () = wait(self.retry), if self.retry.is_some() => self.write(),
            }
        }
        let at = Timestamp::now();
        for stream in &mut self.streams {
            let heard = self.listener.as_ref().filter(|_| stream.kind == LogStream::Stdout);
            stream.lines.finish(|text| {
                let text = &*self.mask.apply(text);
                if let Some((reports, rank)) = heard {
                    reports.on_line(*rank, text, at);
                }
                self.spool.record(at, stream.kind, text);
                show(self.echo.as_deref(), stream.kind, text);
            });
        }
        while !self.spool.is_empty() {
            self.write();
            if self.retry.is_some() {
                self.wait_for_disk().await;
            }
        }
    }

    /// Takes one chunk if there is one. One only, so that a rank that floods one stream cannot starve the other.
    /// With `asking`, the kernel is asked even where the event loop has not heard of anything to read: what a process
    /// wrote just before it ended is in the pipe, but the event may still be on its way.
    fn read(&mut self, stream: usize, chunk: &mut [u8], asking: bool) -> bool {
        let Stream { kind, pipe, lines } = &mut self.streams[stream];
        let Some(receiver) = pipe else { return false };
        let read = if asking {
            nix::unistd::read(&*receiver, chunk).map_err(io::Error::from)
        } else {
            receiver.try_read(chunk)
        };
        match read {
            Ok(0) => *pipe = None,
            Ok(bytes) => {
                let at = Timestamp::now();
                let listener = self.listener.as_ref();
                if let Some((reports, _)) = listener {
                    reports.on_output();
                }
                let heard = listener.filter(|_| *kind == LogStream::Stdout);
                lines.push(&chunk[..bytes], |text| {
                    let text = &*self.mask.apply(text);
                    if let Some((reports, rank)) = heard {
                        reports.on_line(*rank, text, at);
                    }
                    self.spool.record(at, *kind, text);
                    show(self.echo.as_deref(), *kind, text);
                });
                return true;
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => {
                self.launcher_log.note(format_args!("{}: cannot read the {kind:?} pipe: {error}", self.name));
                *pipe = None;
            }
        }
        false
    }

    fn write(&mut self) {
        match self.spool.write() {
            Written::All => {
                if self.retry.take().is_some() {
                    self.launcher_log
                        .note(format_args!("{}: can be written again, nothing is missing", self.name));
                }
            }
            Written::Later(error) => {
                if self.retry.is_none() {
                    self.launcher_log.note(format_args!("{}: waiting for the disk: {error}", self.name));
                }
                self.retry = Some(self.retry.map_or(FIRST_RETRY, |last| (last * 2).min(SLOWEST_RETRY)));
            }
            Written::Never(error) => {
                self.retry = None;
                self.launcher_log.note(format_args!("{}: lines were lost: {error}", self.name));
            }
        }
    }

    async fn wait_for_disk(&mut self) {
        wait(self.retry).await;
        self.write();
    }
}

/// Whoever closed our output does not want to see it; the log has it.
fn show(echo: Option<&str>, stream: LogStream, text: &[u8]) {
    let Some(prefix) = echo else { return };
    let line = [prefix.as_bytes(), text, b"\n"].concat();
    let _ = match stream {
        LogStream::Stdout => io::stdout().write_all(&line),
        LogStream::Stderr | LogStream::Danlu => io::stderr().write_all(&line),
    };
}

async fn readable(pipe: Option<&Receiver>) {
    match pipe {
        // An error shows itself again when reading.
        Some(pipe) => drop(pipe.readable().await),
        None => pending().await,
    }
}

async fn wait(retry: Option<Duration>) {
    sleep(retry.unwrap_or_default()).await;
}
