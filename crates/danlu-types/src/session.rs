//! The frames of a session inside a worker: exec and terminals.
//!
//! A session is one byte stream to a worker's launcher. Each frame is a kind byte, a big-endian `u32` length and
//! that many bytes. Over a WebSocket the message carries the length, so a message is the kind byte and the payload.
//! The first frame is [`FrameKind::Open`] with an [`OpenSession`] as JSON (or a single [`FrameKind::Report`]); the last is [`FrameKind::Exit`] with
//! a [`SessionExit`] as JSON, or [`FrameKind::Error`] with a text.

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Longer payloads are refused, so that a broken peer cannot make us allocate without bound.
pub const MOST_PAYLOAD_BYTES: usize = 1 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum FrameKind {
    /// Client → launcher, first: what to run.
    Open = 0,
    /// Client → launcher; an empty payload closes standard input.
    Stdin = 1,
    /// Launcher → client; everything a terminal shows, too.
    Stdout = 2,
    Stderr = 3,
    /// Client → launcher: a [`TerminalSize`] as JSON.
    Resize = 4,
    /// Client → launcher: a signal's number as decimal text, sent to the session's process group.
    Signal = 5,
    /// Launcher → client, last.
    Exit = 6,
    /// Launcher → client, last: why the session could not be had, as text.
    Error = 7,
    /// Server → launcher, first and only: a [`crate::api::NewReports`] as JSON, answered by an exit of 0.
    Report = 8,
    /// Server → launcher, before the first, where the launcher has laid down a key: that key.
    Key = 9,
}

impl FrameKind {
    pub fn from_byte(byte: u8) -> Option<Self> {
        use FrameKind::{Error, Exit, Key, Open, Report, Resize, Signal, Stderr, Stdin, Stdout};
        [Open, Stdin, Stdout, Stderr, Resize, Signal, Exit, Error, Report, Key]
            .into_iter()
            .find(|kind| *kind as u8 == byte)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    pub kind: FrameKind,
    pub payload: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TerminalSize {
    pub rows: u16,
    pub columns: u16,
}

/// What to run inside the worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpenSession {
    /// The program and its arguments; the user's shell when empty.
    pub command: Vec<String>,
    /// A terminal of this size; pipes when absent.
    #[serde(default)]
    pub terminal: Option<TerminalSize>,
    #[serde(default)]
    pub env: Vec<(String, String)>,
}

/// How the session's program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionExit {
    Code(i32),
    Signal(i32),
}

impl SessionExit {
    /// As a shell would say it: 128 + the signal's number.
    pub fn shell_code(self) -> i32 {
        match self {
            SessionExit::Code(code) => code,
            SessionExit::Signal(signal) => 128 + signal,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum FrameError {
    #[error("frame of unknown kind {0}")]
    UnknownKind(u8),
    #[error("frame of {0} bytes, more than the {MOST_PAYLOAD_BYTES} allowed")]
    TooLong(usize),
    #[error("empty message where a frame was expected")]
    Empty,
}

impl Frame {
    pub fn new(kind: FrameKind, payload: impl Into<Vec<u8>>) -> Self {
        Frame { kind, payload: payload.into() }
    }

    pub fn json(kind: FrameKind, value: &impl Serialize) -> Self {
        Frame::new(kind, serde_json::to_vec(value).expect("session values have no maps with odd keys"))
    }

    /// The form for byte streams.
    pub fn encode(&self) -> Vec<u8> {
        let length =
            u32::try_from(self.payload.len()).expect("payloads are cut below 1 MiB by their readers");
        let mut bytes = Vec::with_capacity(5 + self.payload.len());
        bytes.push(self.kind as u8);
        bytes.extend_from_slice(&length.to_be_bytes());
        bytes.extend_from_slice(&self.payload);
        bytes
    }

    /// Takes one whole frame off the front of `buffer`, if there is one.
    pub fn decode(buffer: &mut Vec<u8>) -> Result<Option<Frame>, FrameError> {
        let Some((header, _)) = buffer.split_first_chunk::<5>() else { return Ok(None) };
        let kind = FrameKind::from_byte(header[0]).ok_or(FrameError::UnknownKind(header[0]))?;
        let length = u32::from_be_bytes([header[1], header[2], header[3], header[4]]) as usize;
        if length > MOST_PAYLOAD_BYTES {
            return Err(FrameError::TooLong(length));
        }
        if buffer.len() < 5 + length {
            return Ok(None);
        }
        let payload = buffer[5..5 + length].to_vec();
        buffer.drain(..5 + length);
        Ok(Some(Frame { kind, payload }))
    }

    /// The form for WebSocket messages.
    pub fn to_message(&self) -> Vec<u8> {
        let mut message = Vec::with_capacity(1 + self.payload.len());
        message.push(self.kind as u8);
        message.extend_from_slice(&self.payload);
        message
    }

    pub fn from_message(message: &[u8]) -> Result<Frame, FrameError> {
        let (kind, payload) = message.split_first().ok_or(FrameError::Empty)?;
        let kind = FrameKind::from_byte(*kind).ok_or(FrameError::UnknownKind(*kind))?;
        if payload.len() > MOST_PAYLOAD_BYTES {
            return Err(FrameError::TooLong(payload.len()));
        }
        Ok(Frame { kind, payload: payload.to_vec() })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn frames_survive_any_cutting_of_the_stream(
            payloads in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 1..8),
            cut in 1usize..50,
        ) {
            let frames: Vec<Frame> =
                payloads.into_iter().map(|payload| Frame::new(FrameKind::Stdout, payload)).collect();
            let stream: Vec<u8> = frames.iter().flat_map(Frame::encode).collect();
            let (mut buffer, mut seen) = (Vec::new(), Vec::new());
            for chunk in stream.chunks(cut) {
                buffer.extend_from_slice(chunk);
                while let Some(frame) = Frame::decode(&mut buffer).unwrap() {
                    seen.push(frame);
                }
            }
            prop_assert_eq!(seen, frames);
        }

        #[test]
        fn no_bytes_make_the_decoder_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            while let Ok(Some(_)) = Frame::decode(&mut bytes) {}
            let _ = Frame::from_message(&bytes);
        }
    }
}
