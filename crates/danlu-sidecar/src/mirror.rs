//! What the launcher writes in its run folder, on its way to the server.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use danlu_client::Client;
use danlu_core::launch::{LaunchFile, STATUS_FILE};
use danlu_core::report::{Checkpoint, ProgramReport, REPORT_FILE};
use danlu_core::synced_files::{SyncMode, WORD_FILE, before_the_end, carried_names, gang_word};
use danlu_types::WorkerIndex;
use tokio::net::UnixDatagram;
use tokio::sync::watch;

use crate::error::chain;
use crate::log::Notes;
use crate::retry::{RetryError, retry_until_answered};

/// Much of what grows hints at nothing. Looking costs a question to the kernel for each file.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Longer than any line of a log.
const PIECE_BYTES: usize = 512 << 10;

#[derive(Debug)]
pub(crate) struct Mirror {
    client: Client,
    worker: WorkerIndex,
    notes: Notes,
    files: Vec<MirroredFile>,
    /// Which checkpoint is on the server, where the sidecar brings them: others are not spoken of yet.
    arrived: Option<watch::Receiver<Option<Checkpoint>>>,
}

#[derive(Debug)]
struct MirroredFile {
    name: String,
    path: PathBuf,
    progress: Progress,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    /// This much of it is on the server.
    Grown(u64),
    /// It was as long as this and from then, when it was sent.
    Whole(Option<(u64, SystemTime)>),
    /// The server will not have it.
    Refused,
}

/// How much of a file may travel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TransferLimit {
    /// Whole lines: readers of logs should not meet halves.
    WholeLines,
    /// Of a status: not that the worker has ended.
    BeforeTheEnd,
    All,
}

impl Mirror {
    pub(crate) fn new(
        client: Client,
        launch: &LaunchFile,
        notes: Notes,
        arrived: Option<watch::Receiver<Option<Checkpoint>>>,
    ) -> Self {
        let ranks = launch.ranks.iter().map(|plan| plan.rank.0);
        let (first, count) = (ranks.clone().min().unwrap_or_default(), ranks.count());
        let ranks = first..first.saturating_add(u32::try_from(count).unwrap_or(u32::MAX));
        let worker = launch.worker.worker;
        let carried = |(name, carriage): (String, SyncMode)| {
            let path = if name == WORD_FILE {
                launch.folders.gang.join(gang_word(worker))
            } else {
                launch.folders.run.join(&name)
            };
            let progress = match carriage {
                SyncMode::Grows => Progress::Grown(0),
                SyncMode::Whole => Progress::Whole(None),
            };
            MirroredFile { name, path, progress }
        };
        let files = carried_names(ranks).into_iter().map(carried).collect();
        Mirror { client, worker, notes, files, arrived }
    }

    /// Carries until the launcher has ended and everything but that is on the server.
    pub(crate) async fn run(
        &mut self,
        mut ended: watch::Receiver<bool>,
        hints: &UnixDatagram,
    ) -> Result<(), RetryError> {
        let mut hint = [0; 64];
        loop {
            let is_last = *ended.borrow_and_update();
            self.speak_of_what_arrived();
            for index in 0..self.files.len() {
                let part = match (self.files[index].name.as_str(), is_last) {
                    (STATUS_FILE, _) => TransferLimit::BeforeTheEnd,
                    (_, true) => TransferLimit::All,
                    (_, false) => TransferLimit::WholeLines,
                };
                self.carry(index, part).await?;
            }
            if is_last {
                return Ok(());
            }
            tokio::select! {
                _ = ended.changed() => {}
                // What it says is who hints, which is known.
                _ = hints.recv(&mut hint) => {}
                () = tokio::time::sleep(LOOK_EVERY) => {}
            }
        }
    }

    /// Tells the last word, after everything else. False where the server will not hear it.
    pub(crate) async fn tell_the_end(&mut self) -> Result<bool, RetryError> {
        // What was noted since; the status is the last of them.
        self.speak_of_what_arrived();
        for index in 0..self.files.len() {
            self.carry(index, TransferLimit::All).await?;
        }
        let is_refused = |file: &MirroredFile| file.name == STATUS_FILE && file.progress == Progress::Refused;
        Ok(!self.files.iter().any(is_refused))
    }

    /// A report says more once the checkpoint that it speaks of is there.
    fn speak_of_what_arrived(&mut self) {
        if self.arrived.as_mut().is_some_and(|arrived| arrived.has_changed().unwrap_or(false)) {
            let report = self.files.iter_mut().find(|file| file.name == REPORT_FILE);
            if let Some(file) = report.filter(|file| file.progress != Progress::Refused) {
                file.progress = Progress::Whole(None);
            }
        }
    }

    async fn carry(&mut self, index: usize, part: TransferLimit) -> Result<(), RetryError> {
        loop {
            let file = &self.files[index];
            let (offset, bytes, then) = match file.progress {
                Progress::Refused => return Ok(()),
                Progress::Grown(sent) => match grown(file, sent, part) {
                    Ok(bytes) if bytes.is_empty() => return Ok(()),
                    Ok(bytes) => (Some(sent), bytes, None),
                    Err(error) => {
                        self.unreadable(index, &error);
                        return Ok(());
                    }
                },
                Progress::Whole(before) => match changed(file, before) {
                    Ok(None) => return Ok(()),
                    Ok(Some((bytes, stamp))) => {
                        let arrived = self.arrived.as_mut().filter(|_| file.name == REPORT_FILE);
                        let bytes = match arrived {
                            Some(arrived) => with_checkpoint(bytes, *arrived.borrow_and_update()),
                            None => bytes,
                        };
                        (None, bytes, Some(stamp))
                    }
                    Err(error) => {
                        self.unreadable(index, &error);
                        return Ok(());
                    }
                },
            };
            let sent = retry_until_answered(|| {
                self.client.worker_file_put(self.worker, &file.name, offset, bytes.clone())
            })
            .await;
            self.files[index].progress = match (sent, then) {
                (Ok(_), Some(stamp)) => Progress::Whole(Some(stamp)),
                // Whatever we thought: from here on.
                (Ok(size), None) => Progress::Grown(size),
                (Err(RetryError::Over), _) => return Err(RetryError::Over),
                (Err(RetryError::Refused(error)), _) => {
                    self.notes.add(format_args!(
                        "the server will not have `{}`: {}",
                        file.name,
                        chain(&error)
                    ));
                    Progress::Refused
                }
            };
        }
    }

    fn unreadable(&mut self, index: usize, error: &io::Error) {
        let file = &mut self.files[index];
        self.notes.add(format_args!("`{}` is lost, it cannot be read: {error}", file.name));
        file.progress = Progress::Refused;
    }
}

/// A report that speaks of this checkpoint and no other. What cannot be understood says nothing to anybody.
fn with_checkpoint(bytes: Vec<u8>, checkpoint: Option<Checkpoint>) -> Vec<u8> {
    let Ok(report) = serde_json::from_slice::<ProgramReport>(&bytes) else { return bytes };
    serde_json::to_vec(&ProgramReport { checkpoint, ..report }).unwrap_or(bytes)
}

/// The next piece of what is new.
fn grown(file: &MirroredFile, sent: u64, part: TransferLimit) -> io::Result<Vec<u8>> {
    let open = match File::open(&file.path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        open => open?,
    };
    let mut piece = vec![0; PIECE_BYTES];
    let mut length = 0;
    while length < piece.len() {
        match open.read_at(&mut piece[length..], sent + length as u64)? {
            0 => break,
            read => length += read,
        }
    }
    piece.truncate(length);
    let is_full = length == PIECE_BYTES;
    let keep = match part {
        TransferLimit::All => length,
        TransferLimit::WholeLines => match piece.iter().rposition(|byte| *byte == b'\n') {
            Some(last) => last + 1,
            None if is_full => length,
            None => 0,
        },
        TransferLimit::BeforeTheEnd => before_the_end(&piece),
    };
    piece.truncate(keep);
    Ok(piece)
}

type Stamp = (u64, SystemTime);

fn changed(file: &MirroredFile, before: Option<Stamp>) -> io::Result<Option<(Vec<u8>, Stamp)>> {
    let about = match fs::metadata(&file.path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        about => about?,
    };
    let stamp = (about.len(), about.modified()?);
    if before == Some(stamp) {
        return Ok(None);
    }
    // Replaced meanwhile, it is newer than its stamp and will be sent again.
    Ok(Some((fs::read(&file.path)?, stamp)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const REPORT: &str = r#"{"at":"2026-01-01T00:00:00Z","metrics":{"loss":1.0},"checkpoint":{"at":"2026-01-01T00:00:00Z","step":3}}"#;

    proptest! {
        /// The launcher's report is of what users' programs print; what cannot be read travels as it is.
        #[test]
        fn any_report_travels(
            at in any::<prop::sample::Index>(), cut in 0..20usize, with in "([{}\\[\\]:,\"0-9a-zé-]|null|1e999){0,8}", bytes in prop::collection::vec(any::<u8>(), 0..80),
        ) {
            let mut damaged = REPORT.to_owned();
            let from = at.index(damaged.len() + 1);
            let to = (from + cut).min(damaged.len());
            damaged.replace_range(from..to, &with);
            for report in [damaged.into_bytes(), bytes] {
                let sent = with_checkpoint(report.clone(), None);
                if let Ok(report) = serde_json::from_slice::<ProgramReport>(&report) {
                    let sent: ProgramReport = serde_json::from_slice(&sent).unwrap();
                    prop_assert_eq!(sent, ProgramReport { checkpoint: None, ..report });
                } else {
                    prop_assert_eq!(sent, report);
                }
            }
        }

        /// However a log grew, all of it arrives once, and halves of lines only at the end.
        #[test]
        fn pieces_of_any_log_are_the_log(bytes in prop::collection::vec(prop_oneof![any::<u8>(), Just(b'\n')], 0..200)) {
            let (_folder, file) = file(&bytes);
            let lines = grown(&file, 0, TransferLimit::WholeLines).unwrap();
            prop_assert!(lines.is_empty() || lines.ends_with(b"\n"));
            let rest = grown(&file, lines.len() as u64, TransferLimit::All).unwrap();
            prop_assert!(!rest.contains(&b'\n'));
            prop_assert_eq!([lines, rest].concat(), bytes.clone());
            let told = grown(&file, 0, TransferLimit::BeforeTheEnd).unwrap();
            prop_assert!(bytes.starts_with(&told));
        }
    }

    fn file(text: &[u8]) -> (tempfile::TempDir, MirroredFile) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        fs::write(&path, text).unwrap();
        (folder, MirroredFile { name: "log".to_owned(), path, progress: Progress::Grown(0) })
    }

    #[test]
    fn whole_lines_travel_and_halves_wait() {
        let (_folder, file) = file(b"one\ntwo\nthr");
        assert_eq!(grown(&file, 0, TransferLimit::WholeLines).unwrap(), b"one\ntwo\n");
        assert_eq!(grown(&file, 8, TransferLimit::WholeLines).unwrap(), b"");
        assert_eq!(grown(&file, 8, TransferLimit::All).unwrap(), b"thr");
        assert_eq!(grown(&file, 11, TransferLimit::All).unwrap(), b"");
        assert_eq!(grown(&file, 99, TransferLimit::All).unwrap(), b"", "the server has more than we do");
    }

    #[test]
    fn what_is_longer_than_a_piece_travels_in_several() {
        let text = vec![b'x'; PIECE_BYTES + 3];
        let (_folder, file) = file(&text);
        assert_eq!(grown(&file, 0, TransferLimit::WholeLines).unwrap().len(), PIECE_BYTES);
        assert_eq!(grown(&file, PIECE_BYTES as u64, TransferLimit::WholeLines).unwrap(), b"");
        assert_eq!(grown(&file, PIECE_BYTES as u64, TransferLimit::All).unwrap(), b"xxx");
    }

    #[test]
    fn small_files_travel_when_they_change() {
        let (_folder, file) = file(b"1");
        let (bytes, stamp) = changed(&file, None).unwrap().unwrap();
        assert_eq!(bytes, b"1");
        assert!(changed(&file, Some(stamp)).unwrap().is_none());
        fs::write(&file.path, "22").unwrap();
        assert_eq!(changed(&file, Some(stamp)).unwrap().unwrap().0, b"22");
        fs::remove_file(&file.path).unwrap();
        assert!(changed(&file, Some(stamp)).unwrap().is_none());
    }
}
