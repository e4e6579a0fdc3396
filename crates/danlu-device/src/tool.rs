//! Runs a vendor's tool, which may hang, print without end, or not be there.
//!
//! A driver in trouble leaves its tools in a sleep that no signal ends. Nobody here waits for such a one: it is killed, and
//! forgotten whether it dies or not.

use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use thiserror::Error;

/// More than the largest table, less than what would hurt.
const LONGEST_OUTPUT: u64 = 1 << 20;

#[derive(Debug, Error)]
pub(crate) enum ToolError {
    #[error("`{0}` is not installed")]
    Missing(String),
    #[error("could not start `{tool}`")]
    Start {
        tool: String,
        #[source]
        source: std::io::Error,
    },
    #[error("`{tool}` gave no answer within {limit:?}")]
    TimedOut { tool: String, limit: Duration },
}

/// What the tool printed, also where it failed: the tools here say in words what is wrong.
pub(crate) fn run(program: &Path, arguments: &[&str], limit: Duration) -> Result<String, ToolError> {
    let name = || {
        let tool = program.file_name().unwrap_or(program.as_os_str()).to_string_lossy();
        format!("{tool} {}", arguments.join(" "))
    };
    let child = Command::new(program)
        .args(arguments)
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn();
    let mut child = child.map_err(|source| ToolError::Start { tool: name(), source })?;
    let group = Pid::from_raw(i32::try_from(child.id()).unwrap_or(i32::MAX));
    let output = child.stdout.take();
    let (send, receive) = mpsc::channel();
    // Reads and reaps, so that a child that cannot die keeps this thread and not its caller.
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(output) = output {
            let _ = output.take(LONGEST_OUTPUT).read_to_end(&mut bytes);
        }
        let _ = send.send(bytes);
        let _ = child.wait();
    });
    let answer = receive.recv_timeout(limit);
    // Also after an answer: one that was cut off has a writer that waits for us.
    if answer.as_ref().map_or(true, |bytes| bytes.len() as u64 == LONGEST_OUTPUT) {
        let _ = killpg(group, Signal::SIGKILL);
    }
    match answer {
        Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        Err(_) => Err(ToolError::TimedOut { tool: name(), limit }),
    }
}

/// The first of these folders that has the program.
pub(crate) fn find(program: &str, folders: &[PathBuf]) -> Option<PathBuf> {
    folders.iter().map(|folder| folder.join(program)).find(|path| path.is_file())
}
