//! Digests in their text form, `sha256:` and 64 lower-case hex digits.

use std::fmt::Write as _;
use std::io::{self, Read, Write};

use sha2::{Digest, Sha256};

const PREFIX: &str = "sha256:";

/// Whether `text` is exactly a digest; such a text is also safe as part of a file's name.
pub fn is_digest(text: &str) -> bool {
    hex_part(text).is_some()
}

/// The digest of some bytes at hand.
pub fn sha256_digest(bytes: &[u8]) -> String {
    in_text(Sha256::digest(bytes).as_slice())
}

pub(crate) fn hex_part(text: &str) -> Option<&str> {
    text.strip_prefix(PREFIX)
        .filter(|hex| hex.len() == 64 && hex.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')))
}

/// The digest whose 64 hex digits are given.
pub(crate) fn of_hex(hex: &str) -> Option<String> {
    let text = format!("{PREFIX}{hex}");
    is_digest(&text).then_some(text)
}

fn in_text(hash: &[u8]) -> String {
    let mut text = String::with_capacity(PREFIX.len() + 2 * hash.len());
    text.push_str(PREFIX);
    for byte in hash {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// Hashes and counts what passes through it, in either direction.
pub(crate) struct HashingReader<T> {
    inner: T,
    hash: Sha256,
    bytes: u64,
}

impl<T> HashingReader<T> {
    pub(crate) fn new(inner: T) -> Self {
        HashingReader { inner, hash: Sha256::new(), bytes: 0 }
    }

    pub(crate) fn finish(self) -> (T, String, u64) {
        (self.inner, in_text(self.hash.finalize().as_slice()), self.bytes)
    }
}

impl<W: Write> Write for HashingReader<W> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(buffer)?;
        self.hash.update(&buffer[..written]);
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl<R: Read> Read for HashingReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.hash.update(&buffer[..read]);
        self.bytes += read as u64;
        Ok(read)
    }
}
