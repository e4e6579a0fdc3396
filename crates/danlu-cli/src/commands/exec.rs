//! `danlu exec`: a command, or a terminal, inside a worker.

use std::io::{self, IsTerminal as _, Read as _};
use std::process::ExitCode;

use clap::Args;
use danlu_client::{Client, ClientError, SessionReceiver, SessionSender};
use danlu_types::WorkerIndex;
use danlu_types::session::{Frame, FrameKind, OpenSession, SessionExit};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use crate::failure::CliError;
use crate::target;
use crate::terminal::{self, RawMode};

/// Well below the bound on a frame's payload, and enough to fill a pipe.
const PIECE: usize = 64 * 1024;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Pass standard input to the command, even from a terminal
    #[arg(short, long)]
    interactive: bool,
    /// Allocate a terminal for the command
    #[arg(short, long)]
    tty: bool,
    /// Index of the worker, from 0
    #[arg(long, value_name = "N", default_value_t = 0)]
    worker: u32,
    /// Job id or name
    job: String,
    /// Command to run [default: a shell]
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

pub(crate) async fn run(client: Client, arguments: Arguments) -> Result<ExitCode, CliError> {
    let id = target::job_id(&client, &arguments.job).await?;
    let env = match std::env::var("TERM") {
        Ok(term) if arguments.tty => vec![("TERM".to_owned(), term)],
        _ => Vec::new(),
    };
    let open = OpenSession { command: arguments.command, terminal: arguments.tty.then(terminal::size), env };
    let (sender, receiver) = client.session_open(id, WorkerIndex(arguments.worker), &open).await?;
    let stdin_is_terminal = io::stdin().is_terminal();
    let raw = if arguments.tty && stdin_is_terminal {
        Some(
            RawMode::enter()
                .map_err(|error| CliError::new("cannot set up the terminal").caused_by(&error))?,
        )
    } else {
        None
    };
    let (frames, to_send) = mpsc::channel(16);
    if arguments.interactive || !stdin_is_terminal {
        read_stdin(frames.clone());
    } else {
        // Nothing will come from here: the command should see the end at once, not wait for it.
        let _ = frames.send(Frame::new(FrameKind::Stdin, [])).await;
    }
    watch_signals(frames, raw.is_some(), arguments.tty)?;
    let exit = converse(sender, receiver, to_send).await;
    drop(raw);
    let code = exit?.shell_code();
    Ok(ExitCode::from(u8::try_from(code & 0xff).unwrap_or(1)))
}

/// Reading a terminal cannot be cancelled, so it has a thread of its own, which ends with the process.
fn read_stdin(frames: mpsc::Sender<Frame>) {
    std::thread::spawn(move || {
        let mut buffer = vec![0; PIECE];
        loop {
            let read = match io::stdin().lock().read(&mut buffer) {
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => 0,
            };
            let sent = frames.blocking_send(Frame::new(FrameKind::Stdin, &buffer[..read]));
            if read == 0 || sent.is_err() {
                return;
            }
        }
    });
}

/// In raw mode Ctrl-C is a byte like any other; otherwise it is passed on as a signal.
fn watch_signals(frames: mpsc::Sender<Frame>, raw: bool, tty: bool) -> Result<(), CliError> {
    let cannot = |error: io::Error| CliError::new("cannot watch for signals").caused_by(&error);
    let mut interrupts = signal(SignalKind::interrupt()).map_err(cannot)?;
    let mut resizes = signal(SignalKind::window_change()).map_err(cannot)?;
    tokio::spawn(async move {
        loop {
            let frame = tokio::select! {
                _ = interrupts.recv(), if !raw => Frame::new(FrameKind::Signal, "2"),
                _ = resizes.recv(), if tty => Frame::json(FrameKind::Resize, &terminal::size()),
                else => return,
            };
            if frames.send(frame).await.is_err() {
                return;
            }
        }
    });
    Ok(())
}

/// Both directions at once, until the program's end.
async fn converse(
    mut sender: SessionSender,
    mut receiver: SessionReceiver,
    mut to_send: mpsc::Receiver<Frame>,
) -> Result<SessionExit, CliError> {
    let sending = tokio::spawn(async move {
        while let Some(frame) = to_send.recv().await {
            // A session that is over says so in the other direction.
            if sender.send(frame).await.is_err() {
                return;
            }
        }
    });
    let exit = receive(&mut receiver).await;
    sending.abort();
    exit
}

async fn receive(receiver: &mut SessionReceiver) -> Result<SessionExit, CliError> {
    while let Some(frame) = receiver.next().await? {
        match frame.kind {
            FrameKind::Stdout => write_bytes(&mut io::stdout().lock(), &frame.payload)?,
            FrameKind::Stderr => write_bytes(&mut io::stderr().lock(), &frame.payload)?,
            FrameKind::Exit => {
                return serde_json::from_slice(&frame.payload).map_err(|source| {
                    let request = "the session".to_owned();
                    ClientError::Protocol { request, source: Box::new(source) }.into()
                });
            }
            FrameKind::Error => {
                return Err(CliError::new(String::from_utf8_lossy(&frame.payload).into_owned()));
            }
            FrameKind::Open
            | FrameKind::Stdin
            | FrameKind::Resize
            | FrameKind::Signal
            | FrameKind::Report
            | FrameKind::Key => {}
        }
    }
    Err(CliError::new("the session was cut before its command ended")
        .hint("the worker may have ended, or the server been restarted; `danlu show JOB` says"))
}

/// Bytes as they are: what a program prints is not ours to colour or to repair.
fn write_bytes(out: &mut impl io::Write, bytes: &[u8]) -> Result<(), CliError> {
    out.write_all(bytes)?;
    out.flush()?;
    Ok(())
}
