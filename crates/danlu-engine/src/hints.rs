//! Hints: which workers may have changed.
//!
//! Launchers send their worker's id as a datagram; the end of a launcher that this server started is a hint, too.
//! Hints carry no data and may be lost or doubled: whoever gets one looks at the worker. They are kept as a set, so a
//! worker that hints a thousand times before anybody looks costs one entry.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use danlu_types::WorkerId;
use tokio::net::UnixDatagram;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use crate::files;

/// Far more than one machine runs; beyond it somebody sends nonsense, and the next periodic look finds what is real.
const MOST_WAITING: usize = 100_000;
/// Longer than any worker id, so that a datagram that fills it is none.
const BUFFER_BYTES: usize = 64;

#[derive(Debug, Default)]
pub(crate) struct Hints {
    waiting: Mutex<BTreeSet<WorkerId>>,
    arrived: Notify,
}

impl Hints {
    pub(crate) fn add(&self, worker: WorkerId) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.len() < MOST_WAITING {
            waiting.insert(worker);
        }
        drop(waiting);
        self.arrived.notify_one();
    }

    #[cfg(feature = "conformance")]
    pub(crate) fn clear(&self) {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Waits for hints and takes all there are. Dropping the future loses none.
    pub(crate) async fn take(&self) -> Vec<WorkerId> {
        loop {
            let taken = std::mem::take(&mut *self.waiting.lock().unwrap_or_else(PoisonError::into_inner));
            if !taken.is_empty() {
                return taken.into_iter().collect();
            }
            self.arrived.notified().await;
        }
    }
}

/// Listens at a socket's path until the returned task is aborted. A socket left there by an earlier server is replaced.
///
/// The socket is emptied at once and not when somebody asks for hints: the kernel queues as few as ten datagrams, and
/// a launcher whose hint does not fit waits or gives up.
pub(crate) fn listen(socket: &Path, hints: Arc<Hints>) -> io::Result<JoinHandle<()>> {
    let folder = socket.parent().unwrap_or(Path::new("/"));
    let name = socket.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let (_open, path) = files::socket_path(folder, name)?;
    files::remove(&path)?;
    let socket = UnixDatagram::bind(&path)?;
    Ok(tokio::spawn(async move {
        let mut buffer = [0; BUFFER_BYTES];
        loop {
            match socket.recv(&mut buffer).await {
                Ok(length) => {
                    if let Some(worker) = read_hint(&buffer[..length]) {
                        hints.add(worker);
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, "could not receive a launcher's hint");
                    // Whatever it is, it must not become a busy loop.
                    tokio::time::sleep(Duration::from_secs(1)).await;
                }
            }
        }
    }))
}

fn read_hint(datagram: &[u8]) -> Option<WorkerId> {
    if datagram.len() >= BUFFER_BYTES {
        return None;
    }
    std::str::from_utf8(datagram).ok()?.trim_end().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn worker(text: &str) -> WorkerId {
        text.parse().unwrap()
    }

    #[tokio::test]
    async fn hints_come_once_each_and_garbage_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let deep = folder.path().join("d".repeat(120));
        std::fs::create_dir(&deep).unwrap();
        std::fs::write(deep.join("hints.sock"), "left behind").unwrap();
        let hints = Arc::new(Hints::default());
        let listener = listen(&deep.join("hints.sock"), Arc::clone(&hints)).unwrap();

        let (_open, path) = files::socket_path(&deep, "hints.sock").unwrap();
        let launcher = UnixDatagram::unbound().unwrap();
        let long = [b'1'; 5000];
        for datagram in [&b""[..], b"1.2", b"\xff\xfe\x00", &long, b"7.1.0", b"7.1.0\n", b"8.1.0"] {
            launcher.send_to(datagram, &path).await.unwrap();
        }
        let mut seen = BTreeSet::new();
        while seen.len() < 2 {
            seen.extend(hints.take().await);
        }
        assert_eq!(seen, BTreeSet::from([worker("7.1.0"), worker("8.1.0")]));
        listener.abort();
    }

    #[tokio::test]
    async fn hints_that_nobody_takes_do_not_pile_up() {
        let hints = Hints::default();
        for _ in 0..1000 {
            hints.add(worker("7.1.0"));
        }
        assert_eq!(hints.take().await, [worker("7.1.0")]);
    }
}
