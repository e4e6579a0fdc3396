//! The fork server: a process that becomes a launcher as often as it is asked to, by copying itself.
//!
//! A program's start is dear compared to what a launcher does: the loader, the C library looking at the processor, which
//! virtual machines make slow. A copy of a process that is up has all of that behind it. The fork server has one thread, no
//! runtime and no state but who its children are, so that there is nothing in it that a copy could inherit wrongly.
//!
//! Requests come through standard input: a worker id, a zero byte, the run folder, and with them the open log whose lock
//! is the launcher's life. Answers are the ids of workers: with a plus, of those whose launchers were started, without, of
//! those whose launchers have ended. Answers that find no room are dropped, and cost time only. The end of the other side is ours;
//! launchers that run go on.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::process::ExitCode;

use danlu_core::log::{LAUNCHER_STARTED, encode};
use danlu_device::channel::{Channel, Message};
use danlu_device::spawn::{self, Reaped};
use danlu_types::api::LogStream;
use jiff::Timestamp;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::unistd::{Pid, dup2_stderr, dup2_stdin, dup2_stdout, setpgid, setsid};

/// Serves until the other side of standard input is gone; fails where standard input is nothing that requests could come
/// from. Returns in each copy too, when its launcher has ended.
pub fn serve() -> ExitCode {
    match ForkServer::open().map(ForkServer::serve) {
        Ok(Ok(Some(launcher))) => launcher.run(),
        Ok(Ok(None)) => ExitCode::SUCCESS,
        Ok(Err(_)) | Err(_) => ExitCode::FAILURE,
    }
}

struct ForkServer {
    requests: Channel,
    /// Readable when a child has ended.
    ends: SignalFd,
    /// The workers by their launchers' process numbers.
    workers: HashMap<i32, Vec<u8>>,
}

/// What a copy has to do.
struct Launcher {
    run_folder: PathBuf,
    log: File,
}

impl ForkServer {
    fn open() -> io::Result<Self> {
        // Away from the server's terminal. Fails only for one who leads a session already.
        let _ = setsid();
        let child: SigSet = [Signal::SIGCHLD].into_iter().collect();
        child.thread_block()?;
        let ends = SignalFd::with_flags(&child, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)?;
        Ok(ForkServer { requests: Channel::from_stdin()?, ends, workers: HashMap::new() })
    }

    /// Returns nothing when the other side is gone, and something in each copy. By then the copy has let go of the
    /// fork server's descriptors: were the channel still open in a launcher, a fork server that died would look alive.
    fn serve(mut self) -> io::Result<Option<Launcher>> {
        loop {
            let readable = PollFlags::POLLIN;
            let mut waits =
                [PollFd::new(self.requests.as_fd(), readable), PollFd::new(self.ends.as_fd(), readable)];
            match poll(&mut waits, PollTimeout::NONE) {
                Ok(_) | Err(Errno::EINTR) => {}
                Err(errno) => return Err(errno.into()),
            }
            let [requests, ends] = waits.map(|wait| wait.any().unwrap_or(false));
            if ends {
                self.reap()?;
            }
            if requests {
                let Some(message) = self.requests.receive()? else { return Ok(None) };
                if let Some(launcher) = self.launch(message)? {
                    return Ok(Some(launcher));
                }
            }
        }
    }

    fn reap(&mut self) -> io::Result<()> {
        while self.ends.read_signal()?.is_some() {}
        while let Reaped::Ended { pid, .. } = spawn::reap_any() {
            if let Some(worker) = self.workers.remove(&pid) {
                self.answer(&worker)?;
            }
        }
        Ok(())
    }

    fn answer(&self, text: &[u8]) -> io::Result<()> {
        match self.requests.send(text, None) {
            // The server does not read, because it is stopped or dying. It looks at all workers when it goes on.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            done => done,
        }
    }

    fn launch(&mut self, request: Message) -> io::Result<Option<Launcher>> {
        let zero = request.text.iter().position(|byte| *byte == 0);
        let (Some(zero), Some(mut log)) = (zero, request.file) else { return Ok(None) };
        let Some(pid) = spawn::fork()? else {
            let run_folder = PathBuf::from(OsStr::from_bytes(&request.text[zero + 1..]));
            return Ok(Some(Launcher { run_folder, log }));
        };
        self.workers.insert(pid, request.text[..zero].to_owned());
        self.answer(&[b"+", &request.text[..zero]].concat())?;
        let mut line = Vec::new();
        encode(&mut line, Timestamp::now(), LogStream::Danlu, format!("{LAUNCHER_STARTED}{pid}").as_bytes());
        // A note that finds no room costs nothing unless the launcher dies before its first status: then the worker is
        // started once more.
        let _ = log.write_all(&line);
        Ok(None)
    }
}

impl Launcher {
    fn run(self) -> ExitCode {
        let Launcher { run_folder, log } = self;
        let prepared = setpgid(Pid::from_raw(0), Pid::from_raw(0))
            .and_then(|()| dup2_stdin(&log))
            .and_then(|()| dup2_stdout(&log))
            .and_then(|()| dup2_stderr(&log));
        drop(log);
        match prepared {
            Ok(()) => crate::run(&run_folder),
            Err(_) => ExitCode::FAILURE,
        }
    }
}
