//! One session: frames in, frames out, and the order of their ends.
//!
//! Output and input run independently, so a program that reads nothing still prints, and a client that reads nothing
//! holds up its own program only. The exit is said after all output.

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use danlu_core::job::ProcessExit;
use danlu_types::Rank;
use danlu_types::api::NewReports;
use danlu_types::session::{Frame, FrameKind, OpenSession, SessionExit};
use jiff::Timestamp;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::Signal;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{mpsc, watch};
use tokio::time::{sleep, timeout};

use super::Inside;
use super::program::{Input, SessionProgram, signal_session};

/// A client that connects and says nothing is let go.
const TIME_TO_OPEN: Duration = Duration::from_secs(10);
const HANG_UP_GRACE: Duration = Duration::from_secs(1);
/// After the program's end: how long its pipes may be silent, with a background process holding them, before the
/// session ends without it.
const SILENCE_AFTER_EXIT: Duration = Duration::from_millis(200);
/// While input is stuck, this often we look whether the client is still there.
const CLIENT_CHECK: Duration = Duration::from_millis(250);
const CHUNK_BYTES: usize = 32 * 1024;
/// Frames on their way to a program, and to a client: a little, so that both feel the other's pace.
const QUEUE: usize = 8;

pub(super) async fn serve(stream: UnixStream, inside: &Inside, mut hang_up: watch::Receiver<bool>) {
    let (reader, writer) = stream.into_split();
    let (outgoing, outbox) = mpsc::channel(QUEUE);
    let sending = tokio::spawn(send(writer, outbox));
    let mut client = Client { reader, buffer: Vec::new() };
    let last = match open(&mut client, inside).await {
        Ok(Opened::Program(program)) => converse(*program, &mut client, &outgoing, &mut hang_up).await,
        Ok(Opened::Reported) => Some(Frame::json(FrameKind::Exit, &SessionExit::Code(0))),
        Err(reason) => Some(Frame::new(FrameKind::Error, reason)),
    };
    if let Some(last) = last {
        // A client that is gone does not hear it.
        let _ = outgoing.send(last).await;
    }
    drop(outgoing);
    let _ = sending.await;
}

/// What a client came for.
enum Opened {
    Program(Box<SessionProgram>),
    /// To say something of a rank, which is done.
    Reported,
}

async fn open(client: &mut Client, inside: &Inside) -> Result<Opened, String> {
    let first = timeout(TIME_TO_OPEN, first_frame(client, inside));
    let first = first.await.map_err(|_| "no `Open` frame came in time".to_owned())??;
    let frame = match first {
        Some(frame) if frame.kind == FrameKind::Open => frame,
        Some(frame) if frame.kind == FrameKind::Report => {
            return take_reports(inside, &frame.payload).map(|()| Opened::Reported);
        }
        _ => return Err("a session begins with an `Open` frame".to_owned()),
    };
    let open: OpenSession = serde_json::from_slice(&frame.payload)
        .map_err(|error| format!("the `Open` frame cannot be read: {error}"))?;
    let name = open.command.first().map_or("shell", String::as_str).to_owned();
    let program = SessionProgram::start(inside, &open);
    program
        .map(|program| Opened::Program(Box::new(program)))
        .map_err(|error| format!("cannot run `{name}` in this worker: {error}"))
}

/// What comes behind the key, where one is asked for.
async fn first_frame(client: &mut Client, inside: &Inside) -> Result<Option<Frame>, String> {
    if let Some(key) = &inside.key {
        let shown = client.next().await.map_err(|error| error.to_string())?;
        if !shown.is_some_and(|frame| frame.kind == FrameKind::Key && key.is(&frame.payload)) {
            return Err("only the server opens sessions in this worker".to_owned());
        }
    }
    client.next().await.map_err(|error| error.to_string())
}

/// As if the rank had printed it.
fn take_reports(inside: &Inside, payload: &[u8]) -> Result<(), String> {
    let reports: NewReports = serde_json::from_slice(payload).map_err(|error| error.to_string())?;
    let first = inside.ranks.first().copied().unwrap_or(Rank(0));
    let rank = reports.rank.unwrap_or(first);
    if !inside.ranks.contains(&rank) {
        let own: Vec<String> = inside.ranks.iter().map(Rank::to_string).collect();
        return Err(format!("rank {rank} is not on this worker, which has {}", own.join(", ")));
    }
    inside.reports.on_output();
    for line in &reports.lines {
        inside.reports.on_line(rank, line.as_bytes(), Timestamp::now());
    }
    Ok(())
}

/// Returns the last frame; `None` where there is no client to tell.
async fn converse(
    mut program: SessionProgram,
    client: &mut Client,
    outgoing: &mpsc::Sender<Frame>,
    hang_up: &mut watch::Receiver<bool>,
) -> Option<Frame> {
    let exited = watch::Sender::new(false);
    let mut pumps = Vec::new();
    for (kind, output) in program.outputs.drain(..) {
        pumps.push(tokio::spawn(pump(kind, output, outgoing.clone(), exited.subscribe())));
    }
    let (inbox, queue) = mpsc::channel(QUEUE);
    let feeding = tokio::spawn(feed(std::mem::replace(&mut program.input, Input::Closed), queue));

    // A frame that the program's input had no room for yet.
    let mut stuck: Option<Frame> = None;
    let ended = loop {
        tokio::select! {
            biased;
            exit = &mut program.exit => break exit.ok(),
            _ = hang_up.wait_for(|hang_up| *hang_up) => break None,
            room = inbox.reserve(), if stuck.is_some() => {
                if let (Ok(room), Some(frame)) = (room, stuck.take()) {
                    room.send(frame);
                }
            }
            () = sleep(CLIENT_CHECK), if stuck.is_some() => if client.is_gone() { break None },
            frame = client.next(), if stuck.is_none() => match frame {
                Ok(Some(frame)) if frame.kind == FrameKind::Signal => {
                    let number = std::str::from_utf8(&frame.payload).unwrap_or_default().parse();
                    number.map(|number| program.signal(number)).unwrap_or_default();
                }
                Ok(Some(frame)) => stuck = Some(frame),
                Ok(None) | Err(_) => break None,
            },
        }
    };
    let exit = match ended {
        Some(exit) => Some(exit),
        None => end(&mut program).await,
    };
    exited.send_replace(true);
    feeding.abort();
    for pump in pumps {
        let _ = pump.await;
    }
    exit.map(|exit| Frame::json(FrameKind::Exit, &said(exit)))
}

/// The client is gone, or the worker is to end: the program is told, and then made to.
async fn end(program: &mut SessionProgram) -> Option<ProcessExit> {
    signal_session(program.leader, Signal::SIGHUP);
    let exit = timeout(HANG_UP_GRACE, &mut program.exit).await;
    signal_session(program.leader, Signal::SIGKILL);
    match exit {
        Ok(exit) => exit.ok(),
        Err(_) => (&mut program.exit).await.ok(),
    }
}

fn said(exit: ProcessExit) -> SessionExit {
    match exit {
        ProcessExit::Code(code) => SessionExit::Code(code),
        ProcessExit::Signal(signal) => SessionExit::Signal(signal),
    }
}

/// From the program to the client, until the stream ends, or is silent after the program's end.
async fn pump(
    kind: FrameKind,
    mut output: Box<dyn AsyncRead + Send + Unpin>,
    outgoing: mpsc::Sender<Frame>,
    mut exited: watch::Receiver<bool>,
) {
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        let over = *exited.borrow_and_update();
        let read = tokio::select! {
            read = output.read(&mut chunk) => read,
            _ = exited.changed(), if !over => continue,
            () = sleep(SILENCE_AFTER_EXIT), if over => return,
        };
        // A terminal whose last program has gone answers EIO.
        let Ok(bytes @ 1..) = read else { return };
        if outgoing.send(Frame::new(kind, &chunk[..bytes])).await.is_err() {
            return;
        }
    }
}

/// From the client to the program, in order.
async fn feed(mut input: Input, mut queue: mpsc::Receiver<Frame>) {
    while let Some(frame) = queue.recv().await {
        match frame.kind {
            FrameKind::Stdin if frame.payload.is_empty() => input.close().await,
            FrameKind::Stdin => input.write(&frame.payload).await,
            FrameKind::Resize => {
                if let Ok(size) = serde_json::from_slice(&frame.payload) {
                    input.resize(size);
                }
            }
            // What only we may say, or what comes only once, is not worth a quarrel.
            _ => {}
        }
    }
}

async fn send(mut writer: OwnedWriteHalf, mut outbox: mpsc::Receiver<Frame>) {
    while let Some(frame) = outbox.recv().await {
        if writer.write_all(&frame.encode()).await.is_err() {
            return;
        }
    }
}

struct Client {
    reader: OwnedReadHalf,
    buffer: Vec<u8>,
}

impl Client {
    /// Cancel safe: bytes that were read are in the buffer. `None` when the client has gone.
    async fn next(&mut self) -> io::Result<Option<Frame>> {
        loop {
            match Frame::decode(&mut self.buffer) {
                Ok(Some(frame)) => return Ok(Some(frame)),
                Ok(None) => {}
                Err(error) => return Err(io::Error::new(io::ErrorKind::InvalidData, error)),
            }
            if self.reader.read_buf(&mut self.buffer).await? == 0 {
                return Ok(None);
            }
        }
    }

    fn is_gone(&self) -> bool {
        let stream: &UnixStream = self.reader.as_ref();
        // A hang-up is always reported, whatever was asked for.
        let mut asked = [PollFd::new(stream.as_fd(), PollFlags::empty())];
        let answered = poll(&mut asked, PollTimeout::ZERO).unwrap_or_default();
        answered > 0 && asked[0].revents().is_some_and(|events| events.contains(PollFlags::POLLHUP))
    }
}
