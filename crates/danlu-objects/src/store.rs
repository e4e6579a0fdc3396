//! Archives on disk, each under the digest of its content.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use danlu_types::Bytes;

use crate::digest::{Hashing, hex_part};
use crate::{MOST_BYTES, ObjectsError};

/// A folder of verified archives. A file with a digest as its name has that digest: files come into being by a
/// rename, after their content was hashed and is on disk.
#[derive(Debug, Clone)]
pub struct CodeStore {
    folder: PathBuf,
}

impl CodeStore {
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        CodeStore { folder: folder.into() }
    }

    /// Where the archive is, or would be.
    pub fn path(&self, digest: &str) -> Result<PathBuf, ObjectsError> {
        let hex =
            hex_part(digest).ok_or_else(|| ObjectsError::BadDigest(digest.chars().take(100).collect()))?;
        Ok(self.folder.join(format!("{hex}.tar.zst")))
    }

    pub fn has(&self, digest: &str) -> bool {
        self.path(digest).is_ok_and(|path| path.is_file())
    }

    /// Stores what `reader` gives, if it has the digest that was promised; gives its size.
    pub fn put(&self, digest: &str, reader: impl Read) -> Result<Bytes, ObjectsError> {
        let path = self.path(digest)?;
        fs::create_dir_all(&self.folder).map_err(|source| self.io_error("make the folder", source))?;
        let mut file = tempfile::Builder::new()
            .prefix(".incoming-")
            .tempfile_in(&self.folder)
            .map_err(|source| self.io_error("create a file in", source))?;
        let mut content = Hashing::new(reader.take(MOST_BYTES + 1));
        copy(&mut content, file.as_file_mut(), &path)?;
        let (_, found, size) = content.finish();
        if size > MOST_BYTES {
            return Err(ObjectsError::Bomb { limit: MOST_BYTES });
        }
        if found != digest {
            return Err(ObjectsError::WrongDigest { expected: digest.to_owned(), found });
        }
        file.as_file().sync_all().map_err(|source| self.io_error("sync a file in", source))?;
        file.persist(&path).map_err(|error| self.io_error("rename a file in", error.error))?;
        Ok(Bytes(size))
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
