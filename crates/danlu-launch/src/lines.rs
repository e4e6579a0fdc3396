//! Cutting a stream of bytes into lines, whatever the chunks it comes in.
//!
//! A line ends at `\n`, or at `\r`, so that a progress bar shows while it moves. `\r\n` is one end, not two, and a `\r`
//! with nothing before it ends nothing: progress bars often begin with one. A line longer than [`LONGEST_LINE`] is cut,
//! between characters where the text is UTF-8.

use danlu_core::log::LONGEST_LINE;

#[derive(Debug, Default)]
pub(crate) struct LineSplitter {
    /// The beginning of a line whose end has not come yet; shorter than [`LONGEST_LINE`].
    partial: Vec<u8>,
    /// The last line ended at `\r`: a `\n` right after it belongs to that end.
    after_return: bool,
}

impl LineSplitter {
    pub(crate) fn push(&mut self, mut bytes: &[u8], mut emit: impl FnMut(&[u8])) {
        while let Some(end) = memchr::memchr2(b'\n', b'\r', bytes) {
            let (text, is_feed) = (&bytes[..end], bytes[end] == b'\n');
            bytes = &bytes[end + 1..];
            self.extend(text, &mut emit);
            let empty = self.partial.is_empty();
            if !text.is_empty() {
                self.after_return = false;
            }
            match (is_feed, empty) {
                (true, true) if self.after_return => self.after_return = false,
                (true, _) => {
                    emit(&self.partial);
                    self.after_return = false;
                }
                (false, false) => {
                    emit(&self.partial);
                    self.after_return = true;
                }
                (false, true) => {}
            }
            self.partial.clear();
        }
        if !bytes.is_empty() {
            self.after_return = false;
            self.extend(bytes, &mut emit);
        }
    }

    /// The stream has ended: what is left is a line, too.
    pub(crate) fn finish(&mut self, mut emit: impl FnMut(&[u8])) {
        if !self.partial.is_empty() {
            emit(&self.partial);
            self.partial.clear();
        }
    }

    fn extend(&mut self, mut text: &[u8], emit: &mut impl FnMut(&[u8])) {
        while self.partial.len() + text.len() > LONGEST_LINE {
            let (head, rest) = text.split_at(LONGEST_LINE - self.partial.len());
            self.partial.extend_from_slice(head);
            let cut = last_boundary(&self.partial);
            emit(&self.partial[..cut]);
            self.partial.drain(..cut);
            text = rest;
        }
        self.partial.extend_from_slice(text);
    }
}

/// Where to cut so that no UTF-8 character is torn; the whole length where the text is something else.
fn last_boundary(text: &[u8]) -> usize {
    let last_start = text.iter().rev().take(4).position(|byte| byte & 0xC0 != 0x80);
    let Some(back) = last_start else { return text.len() };
    let start = text.len() - 1 - back;
    let needed = match text[start] {
        0xC0..=0xDF => 2,
        0xE0..=0xEF => 3,
        0xF0..=0xF7 => 4,
        _ => 1,
    };
    if start > 0 && needed > back + 1 { start } else { text.len() }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn lines(chunks: &[&[u8]]) -> Vec<String> {
        let (mut lines, mut seen) = (LineSplitter::default(), Vec::new());
        let mut emit = |line: &[u8]| seen.push(String::from_utf8_lossy(line).into_owned());
        for chunk in chunks {
            lines.push(chunk, &mut emit);
        }
        lines.finish(&mut emit);
        seen
    }

    #[test]
    fn ends_of_lines_are_feeds_returns_or_both() {
        assert_eq!(lines(&[b"a\nb\n\nc"]), ["a", "b", "", "c"]);
        assert_eq!(lines(&[b"a\r\nb\r\n\r\nc\r\n"]), ["a", "b", "", "c"]);
        assert_eq!(lines(&[b"\r10%\r20%\r\r\ndone\n"]), ["10%", "20%", "done"]);
        assert_eq!(lines(&[b"a\r", b"\nb\r", b"c", b"\r", b"\n", b"\n"]), ["a", "b", "c", ""]);
    }

    #[test]
    fn a_return_shows_the_line_at_once() {
        let (mut lines, mut seen) = (LineSplitter::default(), 0);
        lines.push(b"50%\r", |_| seen += 1);
        assert_eq!(seen, 1);
    }

    #[test]
    fn a_huge_line_is_cut_between_characters() {
        let text = "炉".repeat(LONGEST_LINE / 3 + 10);
        let parts = lines(&[text.as_bytes()]);
        assert_eq!(parts.len(), 2);
        assert!(parts[0].len() > LONGEST_LINE - 3);
        assert_eq!(parts.concat(), text);
    }

    proptest! {
        #[test]
        fn chunks_make_no_difference(text in "[ab\r\n]{0,60}", cut in 1usize..9) {
            let whole = lines(&[text.as_bytes()]);
            let chunks: Vec<&[u8]> = text.as_bytes().chunks(cut).collect();
            prop_assert_eq!(lines(&chunks), whole);
        }

        #[test]
        fn no_byte_is_lost_but_ends_of_lines(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let (mut lines, mut seen) = (LineSplitter::default(), Vec::new());
            lines.push(&bytes, |line| seen.extend_from_slice(line));
            lines.finish(|line| seen.extend_from_slice(line));
            let text: Vec<u8> = bytes.into_iter().filter(|byte| !b"\r\n".contains(byte)).collect();
            prop_assert_eq!(seen, text);
        }
    }
}
