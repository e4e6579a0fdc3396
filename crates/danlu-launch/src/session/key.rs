//! The key of a worker's session socket, shown before anything else.
//!
//! Landlock closes files to other jobs and leaves sockets open. The key is a file of the run folder, which of all programs of one
//! user only the server and this worker's own read.

use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write};
use std::os::unix::fs::OpenOptionsExt as _;

use danlu_core::launch::SESSION_KEY;

const KEY_BYTES: usize = 32;

#[derive(Debug)]
pub(crate) struct SessionKey(String);

impl SessionKey {
    /// A new one, in the current folder, which is the run folder.
    pub(crate) fn lay_down() -> io::Result<Self> {
        let mut random = [0; KEY_BYTES];
        File::open("/dev/urandom")?.read_exact(&mut random)?;
        let mut key = String::with_capacity(2 * KEY_BYTES);
        for byte in random {
            // Writing to a string cannot fail.
            let _ = write!(key, "{byte:02x}");
        }
        let mut file =
            OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(SESSION_KEY)?;
        Write::write_all(&mut file, format!("\"{key}\"").as_bytes())?;
        Ok(SessionKey(key))
    }

    /// In constant time: an answer does not tell how much of a key was right.
    pub(super) fn is(&self, shown: &[u8]) -> bool {
        let own = self.0.as_bytes();
        own.len() == shown.len()
            && own.iter().zip(shown).fold(0, |sum, (one, other)| sum | (one ^ other)) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_whole_key_is_the_key() {
        let key = SessionKey("0123".to_owned());
        assert!(key.is(b"0123"));
        for other in [&b""[..], b"0", b"0124", b"1123", b"01230"] {
            assert!(!key.is(other), "{other:?}");
        }
    }
}
