//! Files of a worker's run folder, as its sidecar sends them.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use danlu_core::launch::{LAUNCH_FILE, SECRETS_FILE, STATUS_FILE};
use danlu_core::report::REPORT_FILE;
use danlu_core::synced_files::{SyncMode, WORD_FILE, carriage, gang_word};
use danlu_types::{Problem, ProblemCode};
use nix::fcntl::OFlag;

use super::{SidecarWorker, read, unwritable};
use crate::app::App;

const LARGEST_WHOLE_FILE: usize = 4 << 20;

impl App {
    /// What the launcher is to find on its node.
    pub(crate) fn sidecar_read(&self, carried: &SidecarWorker, name: &str) -> Result<Vec<u8>, Problem> {
        match name {
            LAUNCH_FILE | SECRETS_FILE => read(&self.layout.run_folder(carried.worker).join(name)),
            _ => Err(Problem::new(ProblemCode::NotFound, "sidecars read no such file")),
        }
    }

    /// Takes a file, or what is new of it, and says how much of it is here.
    pub(crate) fn sidecar_write(
        &self,
        carried: &SidecarWorker,
        name: &str,
        offset: Option<u64>,
        bytes: &[u8],
    ) -> Result<u64, Problem> {
        let sidecars = self.sidecars()?;
        let refused = |detail: &str| Problem::new(ProblemCode::BadRequest, detail);
        let Some(carriage) = carriage(name, carried.ranks.clone()) else {
            return Err(Problem::new(ProblemCode::NotFound, "this worker has no such file"));
        };
        let worker = carried.worker;
        let run = self.layout.run_folder(worker);
        let turn = sidecars.turn(worker);
        let written = match (carriage, offset) {
            (SyncMode::Grows, Some(offset)) => {
                add(&run.join(name), offset, bytes).map_err(|error| match error.kind() {
                    ErrorKind::InvalidData => refused("the file has something else there already"),
                    ErrorKind::NotFound => Problem::new(ProblemCode::NotFound, "the worker's folder is gone"),
                    _ => unwritable(&error),
                })?
            }
            (SyncMode::Whole, None) if bytes.len() > LARGEST_WHOLE_FILE => {
                return Err(Problem::new(
                    ProblemCode::TooLarge,
                    "files that are sent whole have at most 4 MiB",
                ));
            }
            (SyncMode::Whole, None) => {
                let path = self.whole_path(carried, name);
                put(&path, bytes).map_err(|error| unwritable(&error))?;
                bytes.len() as u64
            }
            (SyncMode::Grows, None) => return Err(refused("this file is sent in pieces: name an `offset`")),
            (SyncMode::Whole, Some(_)) => return Err(refused("this file is sent whole: name no `offset`")),
        };
        if name == STATUS_FILE {
            // Its launcher has them by now.
            let _ = fs::remove_file(run.join(SECRETS_FILE));
        }
        drop(turn);
        if name == WORD_FILE {
            sidecars.tell(worker.job);
        }
        if matches!(name, STATUS_FILE | REPORT_FILE) {
            self.poke(worker);
        }
        Ok(written)
    }

    fn whole_path(&self, carried: &SidecarWorker, name: &str) -> PathBuf {
        let worker = carried.worker;
        if name == WORD_FILE {
            return self.layout.gang_folder(worker.job, worker.attempt).join(gang_word(worker.worker));
        }
        self.layout.run_folder(worker).join(name)
    }
}

/// Adds what is not there yet. Where something is missing in between nothing is added: the answer says what is here.
fn add(path: &Path, offset: u64, bytes: &[u8]) -> io::Result<u64> {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(OFlag::O_NOFOLLOW.bits() | OFlag::O_NONBLOCK.bits())
        .open(path)?;
    let about = file.metadata()?;
    if !about.is_file() {
        return Err(io::Error::new(ErrorKind::InvalidData, "it is no file"));
    }
    let size = about.len();
    if offset > size {
        return Ok(size);
    }
    let known = usize::try_from(size - offset).unwrap_or(usize::MAX).min(bytes.len());
    if !is_there(&file, offset, &bytes[..known])? {
        return Err(io::Error::new(ErrorKind::InvalidData, "it says something else"));
    }
    file.write_all_at(&bytes[known..], size)?;
    Ok(size + (bytes.len() - known) as u64)
}

fn is_there(file: &File, offset: u64, bytes: &[u8]) -> io::Result<bool> {
    let mut there = vec![0; bytes.len()];
    file.read_exact_at(&mut there, offset)?;
    Ok(there == bytes)
}

/// Readers see the old file or the whole new one.
pub(super) fn put(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    fs::create_dir_all(folder)?;
    let draft = folder.join(format!(".{name}.draft"));
    let written = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&draft)
        .and_then(|mut file| file.write_all(bytes))
        .and_then(|()| fs::rename(&draft, path));
    if written.is_err() {
        let _ = fs::remove_file(&draft);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sent_twice_is_there_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rank-0.log");
        let text = || fs::read_to_string(&path).unwrap();
        assert_eq!(add(&path, 0, b"one\ntwo\n").unwrap(), 8);
        assert_eq!(add(&path, 0, b"one\ntwo\n").unwrap(), 8, "the answer was lost");
        assert_eq!(add(&path, 4, b"two\nthree\n").unwrap(), 14, "half of it had arrived");
        assert_eq!(add(&path, 20, b"five\n").unwrap(), 14, "a gap is not filled with nothing");
        assert_eq!(add(&path, 14, b"").unwrap(), 14);
        assert_eq!(text(), "one\ntwo\nthree\n");
        assert_eq!(add(&path, 4, b"2\n").unwrap_err().kind(), ErrorKind::InvalidData);
        assert_eq!(text(), "one\ntwo\nthree\n");
    }

    #[test]
    fn nothing_is_written_through_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let (path, elsewhere) = (folder.path().join("rank-0.log"), folder.path().join("elsewhere"));
        fs::write(&elsewhere, "").unwrap();
        std::os::unix::fs::symlink(&elsewhere, &path).unwrap();
        add(&path, 0, b"one\n").unwrap_err();
        put(&path, b"one\n").unwrap();
        assert_eq!(fs::read_to_string(&elsewhere).unwrap(), "");
        assert!(fs::symlink_metadata(&path).unwrap().is_file(), "the link itself was replaced");
    }
}
