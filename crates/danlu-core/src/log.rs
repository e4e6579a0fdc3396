//! The form of log files: one line of text for each line that a rank printed.
//!
//! ```text
//! 2026-11-15T08:50:22.123456Z o epoch 3 loss 0.31
//! ```
//!
//! A fixed-width time in UTC, a letter for the stream, a space, the text. The file is append-only, can be read with any
//! pager, and a line's fields are found without searching. A rank's text never holds a line feed; a line longer than
//! [`LONGEST_LINE`] is cut into several.

use danlu_types::api::LogStream;
use jiff::Timestamp;

/// Bytes before the text: time (27), space, stream, space.
pub const PREFIX_BYTES: usize = 30;
pub const LONGEST_LINE: usize = 64 * 1024;

/// The name of a rank's log in its worker's run folder; the launcher's own words are in [`LAUNCHER_LOG`].
pub fn rank_log_name(rank: danlu_types::Rank) -> String {
    format!("rank-{rank}.log")
}

pub const LAUNCHER_LOG: &str = "launcher.log";
/// In the run folder of the first worker: what MindSpore's scheduler prints.
pub const SCHEDULER_LOG: &str = "scheduler.log";
/// How the note of a launcher's start begins in its log; its process number follows.
pub const LAUNCHER_STARTED: &str = "launcher started as process ";

/// Appends one record to `buffer`, including its line feed.
pub fn encode(buffer: &mut Vec<u8>, at: Timestamp, stream: LogStream, text: &[u8]) {
    buffer.extend_from_slice(format!("{at:.6}").as_bytes());
    buffer.push(b' ');
    buffer.push(match stream {
        LogStream::Stdout => b'o',
        LogStream::Stderr => b'e',
        LogStream::Danlu => b'd',
    });
    buffer.push(b' ');
    buffer.extend_from_slice(text);
    buffer.push(b'\n');
}

/// Splits a record (without its line feed) into its parts; `None` where a crash of the machine left half a line.
pub fn decode(line: &[u8]) -> Option<(Timestamp, LogStream, &[u8])> {
    let (prefix, text) = line.split_at_checked(PREFIX_BYTES)?;
    let at = std::str::from_utf8(&prefix[..27]).ok()?.parse().ok()?;
    let stream = match prefix[28] {
        b'o' => LogStream::Stdout,
        b'e' => LogStream::Stderr,
        b'd' => LogStream::Danlu,
        _ => return None,
    };
    Some((at, stream, text))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_record_is_a_line_of_text() {
        let mut buffer = Vec::new();
        let at: Timestamp = "2026-11-15T08:50:22.1Z".parse().unwrap();
        encode(&mut buffer, at, LogStream::Stderr, b"epoch 3 loss 0.31");
        let text = String::from_utf8(buffer).unwrap();
        insta::assert_snapshot!(text, @"2026-11-15T08:50:22.100000Z e epoch 3 loss 0.31");
    }

    proptest! {
        #[test]
        fn records_read_what_was_written(micros in 0i64..4_000_000_000_000_000, text in "[^\n]{0,80}") {
            let at = Timestamp::from_microsecond(micros).unwrap();
            let mut buffer = Vec::new();
            encode(&mut buffer, at, LogStream::Stdout, text.as_bytes());
            let line = buffer.strip_suffix(b"\n").unwrap();
            prop_assert_eq!(decode(line), Some((at, LogStream::Stdout, text.as_bytes())));
        }

        #[test]
        fn no_bytes_make_the_decoder_panic(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            let _ = decode(&bytes);
        }
    }
}
