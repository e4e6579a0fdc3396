//! Sessions inside the worker: a program beside the ranks, with the worker's environment, folder and limits.
//!
//! One connection is one session, speaking the frames of [`danlu_types::session`]. A session never holds up the worker's
//! end, and a session's end never harms the worker.

mod conversation;
mod key;
mod program;

pub(crate) use key::SessionKey;

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use danlu_core::launch::SESSION_SOCKET;
use danlu_types::Rank;
use nix::sys::stat::{Mode, umask};
use tokio::net::UnixListener;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use crate::children::Children;
use crate::rank::Surroundings;
use crate::reports::ReportWriter;

/// When the worker has ended, sessions have this long to hand over their last words.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// What a session finds inside.
#[derive(Debug)]
pub(crate) struct Inside {
    pub(crate) surroundings: Surroundings,
    /// Of the worker's first rank.
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) children: Arc<Children>,
    pub(crate) reports: ReportWriter,
    /// Of this worker.
    pub(crate) ranks: Vec<Rank>,
    /// Asked for where other jobs can reach the socket.
    pub(crate) key: Option<SessionKey>,
}

#[derive(Debug)]
pub(crate) struct Sessions {
    accepting: JoinHandle<()>,
    hang_up: watch::Sender<bool>,
    /// Closed when no session is left: each holds a sender and none sends.
    over: mpsc::Receiver<Infallible>,
}

impl Sessions {
    /// Listens in the current folder, which is the run folder, for the worker's own user only.
    pub(crate) fn open(inside: Inside) -> io::Result<Self> {
        let before = umask(Mode::from_bits_truncate(0o177));
        let listener = UnixListener::bind(SESSION_SOCKET);
        umask(before);
        let hang_up = watch::Sender::new(false);
        let (open, over) = mpsc::channel(1);
        let accepting = tokio::spawn(accept(listener?, Arc::new(inside), hang_up.clone(), open));
        Ok(Sessions { accepting, hang_up, over })
    }

    /// Ends all sessions as if their clients had gone away.
    pub(crate) fn hang_up(&self) {
        self.hang_up.send_replace(true);
    }

    /// Called when nothing lives inside any more. The socket stays in the run folder and refuses whoever comes: to delete
    /// it would cost the next launchers more than it is worth (see [`crate::status`]).
    pub(crate) async fn end(mut self) {
        self.accepting.abort();
        let _ = timeout(LAST_WORDS, self.over.recv()).await;
    }
}

async fn accept(
    listener: UnixListener,
    inside: Arc<Inside>,
    hang_up: watch::Sender<bool>,
    open: mpsc::Sender<Infallible>,
) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let (inside, hang_up, open) = (Arc::clone(&inside), hang_up.subscribe(), open.clone());
                tokio::spawn(async move {
                    conversation::serve(stream, &inside, hang_up).await;
                    drop(open);
                });
            }
            // Out of descriptors: sessions that end make room.
            Err(_) => sleep(Duration::from_millis(100)).await,
        }
    }
}
