//! The way into a simulated worker: the same frames, spoken by a task instead of a launcher.

use std::sync::Arc;

use danlu_core::job::ProcessExit;
use danlu_types::WorkerId;
use danlu_types::session::{Frame, FrameKind, OpenSession, SessionExit};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use super::SimCluster;
use super::process::{ProcessRole, Said, SimProcess};
use crate::conformance::TestProgram;

const BUFFER_BYTES: usize = 1 << 16;

pub(super) fn open(cluster: &Arc<SimCluster>, worker: WorkerId) -> DuplexStream {
    let (theirs, ours) = tokio::io::duplex(BUFFER_BYTES);
    tokio::spawn(serve(Arc::clone(cluster), worker, ours));
    theirs
}

/// Ends when the process has, or when nobody is there any more.
async fn serve(cluster: Arc<SimCluster>, worker: WorkerId, mut stream: DuplexStream) {
    let (say, mut said) = unbounded_channel();
    let mut session = Session { cluster, worker, say: Some(say), process: None };
    let mut buffer = Vec::new();
    loop {
        while let Ok(Some(frame)) = Frame::decode(&mut buffer) {
            if let Some(error) = session.take(&frame) {
                let _ = stream.write_all(&Frame::new(FrameKind::Error, error).encode()).await;
                return;
            }
        }
        tokio::select! {
            read = stream.read_buf(&mut buffer) => {
                if !read.is_ok_and(|read| read > 0) {
                    return;
                }
            }
            word = said.recv() => {
                if !answer(word, &mut stream).await {
                    return;
                }
            }
        }
    }
}

/// Passes on one thing that the process said; false when there is no more to come.
async fn answer(word: Option<Said>, stream: &mut DuplexStream) -> bool {
    let (frame, is_last) = match word {
        None => return false,
        Some(Said::Text(text)) => (Frame::new(FrameKind::Stdout, text), false),
        Some(Said::End(exit)) => (Frame::json(FrameKind::Exit, &told(exit)), true),
    };
    stream.write_all(&frame.encode()).await.is_ok() && !is_last
}

fn told(exit: ProcessExit) -> SessionExit {
    match exit {
        ProcessExit::Code(code) => SessionExit::Code(code),
        ProcessExit::Signal(signal) => SessionExit::Signal(signal),
    }
}

struct Session {
    cluster: Arc<SimCluster>,
    worker: WorkerId,
    /// Until the process has it, so that it alone keeps the session open.
    say: Option<UnboundedSender<Said>>,
    process: Option<i32>,
}

impl Session {
    /// Does what a frame asks for, or says why not.
    fn take(&mut self, frame: &Frame) -> Option<String> {
        match frame.kind {
            FrameKind::Open => {
                let program = serde_json::from_slice(&frame.payload)
                    .ok()
                    .and_then(|open: OpenSession| TestProgram::parse(open.command.last()?).ok());
                let Some(program) = program else { return Some("no program of the suite".to_owned()) };
                let say = self.say.take()?;
                self.process = self.cluster.change(|state| {
                    let launch = state.workers.get(&self.worker)?.launch.clone();
                    let env = state.environment(&launch, launch.ranks.first()?);
                    Some(state.spawn(SimProcess::new(self.worker, ProcessRole::Session(say), env, program)))
                });
                None
            }
            FrameKind::Stdin => {
                let pid = self.process?;
                self.cluster.change(|state| {
                    let Some(process) = state.processes.get_mut(&pid) else { return };
                    if frame.payload.is_empty() {
                        process.close_input();
                    }
                    let text = String::from_utf8_lossy(&frame.payload);
                    text.lines().for_each(|line| process.hear(line.to_owned()));
                });
                None
            }
            other => Some(format!("a simulated session knows nothing of {other:?}")),
        }
    }
}
