//! The program of a session and the ways in and out of it.

use std::io;
use std::os::fd::AsFd;
use std::process::Stdio;

use danlu_core::job::ProcessExit;
use danlu_device::process;
use danlu_device::spawn::ChildPlacement;
use danlu_types::is_set_by_grant;
use danlu_types::session::{FrameKind, OpenSession, TerminalSize};
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use pty_process::{OwnedWritePty, Size};
use tokio::io::{AsyncRead, AsyncWriteExt};
use tokio::net::unix::pipe;
use tokio::sync::oneshot;

use super::Inside;
use crate::worker::pid_of;

/// What a terminal's line discipline takes for the end of input.
const END_OF_TRANSMISSION: u8 = 4;

pub(super) struct SessionProgram {
    pub(super) leader: i32,
    pub(super) exit: oneshot::Receiver<ProcessExit>,
    pub(super) input: Input,
    pub(super) outputs: Vec<(FrameKind, Box<dyn AsyncRead + Send + Unpin>)>,
    on_terminal: bool,
}

pub(super) enum Input {
    Pipe(pipe::Sender),
    Terminal(OwnedWritePty),
    Closed,
}

impl SessionProgram {
    pub(super) fn start(inside: &Inside, open: &OpenSession) -> io::Result<Self> {
        let mut env = inside.env.clone();
        // Somebody's own environment may come along as a whole, and is not to point the session at other devices.
        env.extend(open.env.iter().filter(|(name, _)| !is_set_by_grant(name)).cloned());
        let (program, arguments) = match open.command.split_first() {
            Some((program, arguments)) => (program.clone(), arguments),
            None => (shell(&env), &[][..]),
        };
        if open.terminal.is_some() {
            env.entry("TERM".to_owned()).or_insert_with(|| "xterm-256color".to_owned());
        }
        let place = if open.terminal.is_some() { ChildPlacement::Terminal } else { ChildPlacement::Session };
        let mut command = inside.surroundings.command(program, &env, place);
        command.args(arguments);
        let user = &inside.surroundings.user;

        if let Some(size) = open.terminal {
            let (pty, pts) = user.act(pty_process::open)?.map_err(io::Error::other)?;
            pty.resize(size_of(size)).map_err(io::Error::other)?;
            let end = || pts.as_fd().try_clone_to_owned().map(Stdio::from);
            command.stdin(end()?).stdout(end()?).stderr(end()?);
            let child = user.spawn(&mut command)?;
            let leader = pid_of(&child);
            let exit = inside.children.watch(leader);
            let (output, input) = pty.into_split();
            let outputs: Vec<(_, Box<dyn AsyncRead + Send + Unpin>)> =
                vec![(FrameKind::Stdout, Box::new(output))];
            return Ok(SessionProgram {
                leader,
                exit,
                input: Input::Terminal(input),
                outputs,
                on_terminal: true,
            });
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = user.spawn(&mut command)?;
        let leader = pid_of(&child);
        let exit = inside.children.watch(leader);
        let mut outputs: Vec<(_, Box<dyn AsyncRead + Send + Unpin>)> = Vec::new();
        if let Some(stdout) = child.stdout.take() {
            outputs.push((FrameKind::Stdout, Box::new(pipe::Receiver::from_owned_fd(stdout.into())?)));
        }
        if let Some(stderr) = child.stderr.take() {
            outputs.push((FrameKind::Stderr, Box::new(pipe::Receiver::from_owned_fd(stderr.into())?)));
        }
        let input = match child.stdin.take() {
            Some(stdin) => Input::Pipe(pipe::Sender::from_owned_fd(stdin.into())?),
            None => Input::Closed,
        };
        Ok(SessionProgram { leader, exit, input, outputs, on_terminal: false })
    }

    /// To whom Ctrl-C would go on a terminal; to the whole group otherwise.
    pub(super) fn signal(&self, number: i32) {
        let Ok(signal) = Signal::try_from(number) else { return };
        let foreground = if self.on_terminal { process::foreground_group(self.leader) } else { None };
        let _ = killpg(Pid::from_raw(foreground.unwrap_or(self.leader)), signal);
    }
}

/// Sends a signal to all that the session started, in whatever group it is.
pub(super) fn signal_session(leader: i32, signal: Signal) {
    for pid in process::session_members(leader) {
        let _ = kill(Pid::from_raw(pid), signal);
    }
}

impl Input {
    /// A program that does not want its input closes it; that is not the session's end.
    pub(super) async fn write(&mut self, bytes: &[u8]) {
        let written = match self {
            Input::Pipe(pipe) => pipe.write_all(bytes).await,
            Input::Terminal(terminal) => terminal.write_all(bytes).await,
            Input::Closed => Ok(()),
        };
        if written.is_err() {
            *self = Input::Closed;
        }
    }

    pub(super) async fn close(&mut self) {
        match self {
            // The terminal stays open for output.
            Input::Terminal(terminal) => drop(terminal.write_all(&[END_OF_TRANSMISSION]).await),
            Input::Pipe(_) | Input::Closed => *self = Input::Closed,
        }
    }

    pub(super) fn resize(&self, size: TerminalSize) {
        if let Input::Terminal(terminal) = self {
            let _ = terminal.resize(size_of(size));
        }
    }
}

fn size_of(size: TerminalSize) -> Size {
    Size::new(size.rows, size.columns)
}

fn shell(env: &std::collections::BTreeMap<String, String>) -> String {
    let own = env.get("SHELL").cloned().or_else(|| std::env::var("SHELL").ok());
    own.filter(|path| std::path::Path::new(path).is_file()).unwrap_or_else(|| "/bin/sh".to_owned())
}
