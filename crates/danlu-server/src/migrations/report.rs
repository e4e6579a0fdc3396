//! A report on its way from a snapshot to whoever asked, a piece at a time.
//!
//! Whoever uploaded the snapshot decided what is in it: a report may be as large as reports may be, and its reader as slow as they
//! like. So nothing of it is held but a few pieces, few are read at once, and none for long.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use danlu_objects::ObjectsError;
use danlu_types::{Problem, ProblemCode};
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::time::{Instant, timeout, timeout_at};

const LARGEST: u64 = 256 << 20;
/// Decoding takes up to 128 MiB each.
const MOST_AT_ONCE: usize = 2;
/// How long one waits for those before.
const PATIENCE: Duration = Duration::from_secs(30);
/// Whoever takes longer comes again, or takes the whole snapshot.
const LONGEST_READING: Duration = Duration::from_mins(2);
const PIECE_BYTES: usize = 64 << 10;
const PIECES_UNDER_WAY: usize = 4;

/// Lets a few read at once.
#[derive(Debug)]
pub(crate) struct ReportTurns(Arc<Semaphore>);

impl Default for ReportTurns {
    fn default() -> Self {
        ReportTurns(Arc::new(Semaphore::new(MOST_AT_ONCE)))
    }
}

/// What is read of a report, in order.
pub(crate) struct ReportReading {
    pub(crate) size: u64,
    pub(crate) pieces: mpsc::Receiver<io::Result<Bytes>>,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum ReadingError {
    #[error(transparent)]
    Snapshot(#[from] ObjectsError),
    #[error("reading the report ended early")]
    Ended,
    #[error("others read reports just now")]
    Busy,
}

impl ReadingError {
    /// Where it is neither the snapshot's fault nor ours.
    pub(super) fn busy() -> Problem {
        Problem::new(ProblemCode::TooManyRequests, "others read reports just now; two are read at a time")
            .with_hint("try again in a minute")
    }
}

/// Begins to read `path` in `archive`; nothing where it is not there.
pub(super) async fn read(
    turns: &ReportTurns,
    archive: PathBuf,
    path: PathBuf,
) -> Result<Option<ReportReading>, ReadingError> {
    let turn = timeout(PATIENCE, Arc::clone(&turns.0).acquire_owned()).await;
    let Ok(Ok(turn)) = turn else { return Err(ReadingError::Busy) };
    let (found, size) = oneshot::channel();
    let (sender, pieces) = mpsc::channel(PIECES_UNDER_WAY);
    let handle = Handle::current();
    let reading = tokio::task::spawn_blocking(move || {
        let _turn = turn;
        find(&archive, &path, |size, content| {
            if found.send(size).is_ok() {
                hand_on(&handle, content, &sender);
            }
        })
    });
    match size.await {
        Ok(size) => Ok(Some(ReportReading { size, pieces })),
        // It has ended without finding anything.
        Err(_) => match reading.await {
            Ok(result) => result.map(|_| None).map_err(ReadingError::from),
            Err(_) => Err(ReadingError::Ended),
        },
    }
}

fn find(
    archive: &Path,
    path: &Path,
    take: impl FnOnce(u64, &mut dyn Read),
) -> Result<Option<()>, ObjectsError> {
    danlu_objects::find_entry(danlu_objects::open(archive)?, path, LARGEST, take)
}

/// Until the end, the reader's end, or the deadline. A body that ends before its length is a broken one, which clients see.
fn hand_on(handle: &Handle, content: &mut dyn Read, pieces: &mpsc::Sender<io::Result<Bytes>>) {
    let deadline = Instant::now() + LONGEST_READING;
    let mut buffer = vec![0; PIECE_BYTES];
    loop {
        let piece = match content.read(&mut buffer) {
            Ok(0) => return,
            Ok(read) => Ok(Bytes::copy_from_slice(&buffer[..read])),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => Err(error),
        };
        let is_last = piece.is_err();
        let sent = handle.block_on(async { timeout_at(deadline, pieces.send(piece)).await });
        if is_last || !matches!(sent, Ok(Ok(()))) {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn archive(folder: &Path, size: usize) -> PathBuf {
        let code = folder.join("code");
        std::fs::create_dir_all(&code).unwrap();
        std::fs::write(code.join("report.html"), vec![b'x'; size]).unwrap();
        let archive = folder.join("archive");
        danlu_objects::pack_all(&code, std::fs::File::create(&archive).unwrap()).unwrap();
        archive
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_report_arrives_whole_and_what_is_not_there_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let archive = archive(folder.path(), 1_000_000);
        let turns = ReportTurns::default();
        let mut reading = read(&turns, archive.clone(), "report.html".into()).await.unwrap().unwrap();
        let mut received = 0;
        while let Some(piece) = reading.pieces.recv().await {
            received += piece.unwrap().len() as u64;
        }
        assert_eq!((reading.size, received), (1_000_000, 1_000_000));
        assert!(read(&turns, archive.clone(), "other".into()).await.unwrap().is_none());
        std::fs::write(&archive, "no archive").unwrap();
        assert!(matches!(read(&turns, archive, "x".into()).await, Err(ReadingError::Snapshot(_))));
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn few_are_read_at_once_and_whoever_goes_away_makes_room() {
        let folder = tempfile::tempdir().unwrap();
        let archive = archive(folder.path(), 4 << 20);
        let turns = ReportTurns::default();
        let begin = || read(&turns, archive.clone(), "report.html".into());
        let (first, _second) = (begin().await.unwrap(), begin().await.unwrap());
        let third = begin();
        tokio::pin!(third);
        // Neither of the first two is read, so neither ends.
        assert!(futures::poll!(&mut third).is_pending());
        assert_eq!(turns.0.available_permits(), 0);
        drop(first);
        assert!(third.await.unwrap().is_some());
    }
}
