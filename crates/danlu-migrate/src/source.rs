//! Bytes of a Python file as text to be parsed, with every offset unchanged.
//!
//! Python files need not be UTF-8: a cookie in the first two lines may say otherwise. All our changes are ASCII, so a
//! file is never transcoded. For the parser each byte beyond ASCII becomes an underscore, which is good in names,
//! strings and comments alike, and the changes are applied to the bytes as they were.

use std::borrow::Cow;

use thiserror::Error;

#[derive(Debug, Error, PartialEq, Eq)]
pub enum SourceError {
    #[error("it is not UTF-8 and declares no encoding")]
    NotUtf8,
    #[error("it declares the encoding `{0}`, which is not known here")]
    UnknownEncoding(String),
    #[error("it is larger than 4 GiB")]
    TooLarge,
}

/// The text to parse: as long as the bytes after `skipped`.
#[derive(Debug)]
pub(crate) struct Source<'a> {
    pub(crate) text: Cow<'a, str>,
    /// Length of the byte order mark.
    pub(crate) skipped: usize,
}

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Encodings in which a byte below 128 always is ASCII.
const ONE_BYTE: &[&str] =
    &["latin", "iso-8859", "iso8859", "cp125", "windows-125", "koi8", "ascii", "us-ascii", "euc"];
/// Encodings in which the byte after one beyond ASCII belongs to it, whatever it is.
const TWO_BYTES: &[&str] = &["gbk", "gb2312", "gb18030", "cp936", "big5", "shift", "sjis", "cp932"];

pub(crate) fn read(bytes: &[u8]) -> Result<Source<'_>, SourceError> {
    if u32::try_from(bytes.len()).is_err() {
        return Err(SourceError::TooLarge);
    }
    let skipped = if bytes.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
    let bytes = &bytes[skipped..];
    if let Ok(text) = std::str::from_utf8(bytes) {
        return Ok(Source { text: Cow::Borrowed(text), skipped });
    }
    let cookie = cookie(bytes).ok_or(SourceError::NotUtf8)?;
    let is = |families: &[&str]| families.iter().any(|family| cookie.starts_with(family));
    let text = if is(TWO_BYTES) {
        masked(bytes, true)
    } else if is(ONE_BYTE) {
        masked(bytes, false)
    } else if cookie.starts_with("utf") {
        return Err(SourceError::NotUtf8);
    } else {
        return Err(SourceError::UnknownEncoding(cookie));
    };
    Ok(Source { text: Cow::Owned(text), skipped })
}

fn masked(bytes: &[u8], pairs: bool) -> String {
    let mut text = String::with_capacity(bytes.len());
    let mut within = false;
    for byte in bytes {
        if within {
            text.push('_');
            within = false;
        } else if byte.is_ascii() {
            text.push(char::from(*byte));
        } else {
            text.push('_');
            within = pairs;
        }
    }
    text
}

/// The encoding that a comment in the first two lines names (PEP 263).
fn cookie(bytes: &[u8]) -> Option<String> {
    for line in bytes.split(|byte| *byte == b'\n').take(2) {
        let line = String::from_utf8_lossy(line);
        let line = line.trim_start();
        let Some(comment) = line.strip_prefix('#') else { continue };
        let Some((_, after)) = comment.split_once("coding") else { continue };
        let Some(name) = after.strip_prefix([':', '=']) else { continue };
        let name: String = name
            .trim_start()
            .chars()
            .take_while(|c| c.is_ascii_alphanumeric() || "-_.".contains(*c))
            .collect();
        return Some(name.to_ascii_lowercase().replace('_', "-"));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::{SourceError, read};

    #[test]
    fn offsets_stay_whatever_the_encoding() {
        let latin = b"# -*- coding: latin-1 -*-\nname = 'caf\xe9'\nx = 1\n";
        let source = read(latin).unwrap();
        assert_eq!(source.text.len(), latin.len());
        assert!(source.text.ends_with("'caf_'\nx = 1\n"));

        // The second byte of this character is a backslash, which would hide the quote.
        let gbk = b"# coding=gbk\nname = '\x95\x5c'\n";
        assert!(read(gbk).unwrap().text.ends_with("'__'\n"));
    }

    #[test]
    fn a_file_that_python_would_refuse_is_refused() {
        assert_eq!(read(b"x = '\xe9'\n").unwrap_err(), SourceError::NotUtf8);
        let odd = read(b"# coding: klingon\nx = '\xe9'\n").unwrap_err();
        assert_eq!(odd.to_string(), "it declares the encoding `klingon`, which is not known here");
    }
}
