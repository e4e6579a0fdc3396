//! Archives on disk, each under the digest of its content.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use danlu_types::Bytes;

use crate::digest::{HashingReader, hex_part, of_hex};
use crate::{MOST_BYTES, ObjectsError};

/// A folder of verified archives. A file with a digest as its name has that digest: files come into being by a
/// rename, after their content was hashed and is on disk.
#[derive(Debug, Clone)]
pub struct CodeStore {
    folder: PathBuf,
    /// Whoever is told that an archive is here finds it there: no archive is removed while someone looks.
    turn: Arc<Mutex<()>>,
}

/// An archive that is here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredSnapshot {
    pub digest: String,
    /// When it was stored, or last asked for.
    pub asked_for: SystemTime,
}

const EXTENSION: &str = ".tar.zst";
const INCOMING: &str = ".incoming-";

impl CodeStore {
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        CodeStore { folder: folder.into(), turn: Arc::default() }
    }

    /// Where the archive is, or would be.
    pub fn path(&self, digest: &str) -> Result<PathBuf, ObjectsError> {
        let hex =
            hex_part(digest).ok_or_else(|| ObjectsError::BadDigest(digest.chars().take(100).collect()))?;
        Ok(self.folder.join(format!("{hex}{EXTENSION}")))
    }

    /// Whether the archive is here. Who asks is about to name it in a job, so asking makes it young again.
    pub fn has(&self, digest: &str) -> bool {
        let Ok(path) = self.path(digest) else { return false };
        let _turn = self.turn();
        let Ok(file) = fs::File::open(path) else { return false };
        // A disk that does not take the new time will not let the archive be removed either.
        let _ = file.set_modified(SystemTime::now());
        true
    }

    /// All archives, in no order.
    pub fn list(&self) -> Result<Vec<StoredSnapshot>, ObjectsError> {
        let list = || -> io::Result<Vec<StoredSnapshot>> {
            let mut found = Vec::new();
            for entry in fs::read_dir(&self.folder)? {
                let entry = entry?;
                let name = entry.file_name();
                let hex = name.to_str().and_then(|name| name.strip_suffix(EXTENSION));
                if let Some(digest) = hex.and_then(of_hex) {
                    found.push(StoredSnapshot { digest, asked_for: entry.metadata()?.modified()? });
                }
            }
            Ok(found)
        };
        match list() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            done => done.map_err(|source| self.io_error("list", source)),
        }
    }

    /// Removes an archive, unless somebody has asked for it at `before` or later; whether it did.
    pub fn remove_if_unasked(&self, digest: &str, before: SystemTime) -> Result<bool, ObjectsError> {
        let path = self.path(digest)?;
        let _turn = self.turn();
        let remove = || -> io::Result<bool> {
            let unasked = fs::metadata(&path)?.modified()? < before;
            if unasked {
                fs::remove_file(&path)?;
            }
            Ok(unasked)
        };
        remove().map_err(|source| ObjectsError::Io { doing: "remove", path: path.clone(), source })
    }

    /// Removes what uploads left that were cut short with their server. Only while nobody uploads.
    pub fn clear_incoming(&self) {
        for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            if entry.file_name().as_encoded_bytes().starts_with(INCOMING.as_bytes()) {
                // It costs room and nothing else; the next start tries again.
                let _ = danlu_walk::remove(&entry.path());
            }
        }
    }

    /// A folder on the same disk for work on archives. It goes when it is dropped, and at the latest with the next start.
    pub fn workshop(&self) -> Result<tempfile::TempDir, ObjectsError> {
        fs::create_dir_all(&self.folder).map_err(|source| self.io_error("make the folder", source))?;
        let made = tempfile::Builder::new().prefix(INCOMING).tempdir_in(&self.folder);
        made.map_err(|source| self.io_error("make a folder in", source))
    }

    /// Stores what `reader` gives, if it has the digest that was promised; gives its size.
    pub fn put(&self, digest: &str, reader: impl Read) -> Result<Bytes, ObjectsError> {
        let path = self.path(digest)?;
        fs::create_dir_all(&self.folder).map_err(|source| self.io_error("make the folder", source))?;
        let mut file = tempfile::Builder::new()
            .prefix(INCOMING)
            .tempfile_in(&self.folder)
            .map_err(|source| self.io_error("create a file in", source))?;
        let mut content = HashingReader::new(reader.take(MOST_BYTES + 1));
        copy(&mut content, file.as_file_mut(), &path)?;
        let (_, found, size) = content.finish();
        if size > MOST_BYTES {
            return Err(ObjectsError::Bomb { limit: MOST_BYTES });
        }
        if found != digest {
            return Err(ObjectsError::WrongDigest { expected: digest.to_owned(), found });
        }
        file.as_file().sync_all().map_err(|source| self.io_error("sync a file in", source))?;
        let _turn = self.turn();
        file.persist(&path).map_err(|error| self.io_error("rename a file in", error.error))?;
        Ok(Bytes(size))
    }

    fn turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn io_error(&self, doing: &'static str, source: io::Error) -> ObjectsError {
        ObjectsError::Io { doing, path: self.folder.clone(), source }
    }
}

/// `io::copy` cannot tell a broken sender from a full disk; the answer to the client differs.
fn copy(from: &mut impl Read, to: &mut impl io::Write, path: &Path) -> Result<(), ObjectsError> {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let read = match from.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(ObjectsError::Read(error)),
        };
        to.write_all(&buffer[..read]).map_err(|source| ObjectsError::Io {
            doing: "write",
            path: path.to_owned(),
            source,
        })?;
    }
}
