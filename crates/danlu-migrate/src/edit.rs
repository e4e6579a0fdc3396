//! Changes as byte ranges of the original text, and how they are applied.
//!
//! Nothing else in this crate builds an output file: bytes outside of the ranges cannot change.

use serde::Serialize;

use crate::rules::Grade;

/// One change: the bytes from `start` to `end` become `replacement`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Edit {
    pub start: usize,
    pub end: usize,
    pub replacement: String,
    pub rule: &'static str,
    pub grade: Grade,
    /// In the words of the vendor's change list, so that scripts which read it keep working.
    pub message: String,
}

impl Edit {
    pub fn is_insertion(&self) -> bool {
        self.start == self.end
    }
}

/// Sorts by place and drops what overlaps an earlier change or changes nothing: what is listed is what is applied.
pub(crate) fn in_order(bytes: &[u8], mut edits: Vec<Edit>) -> Vec<Edit> {
    edits
        .retain(|edit| bytes.get(edit.start..edit.end).is_some_and(|old| old != edit.replacement.as_bytes()));
    edits.sort_by_key(|edit| (edit.start, edit.end));
    let mut kept: Vec<Edit> = Vec::with_capacity(edits.len());
    for edit in edits {
        let overlaps = kept.last().is_some_and(|last| {
            let is_same_place = edit.start == last.start && edit.end == last.end;
            // Several things may be put into one place, each once.
            let is_other_insertion = edit.is_insertion() && edit.replacement != last.replacement;
            edit.start < last.end || (is_same_place && !is_other_insertion)
        });
        if !overlaps {
            kept.push(edit);
        }
    }
    kept
}

/// Applies changes that are in order.
pub fn apply(bytes: &[u8], edits: &[Edit]) -> Vec<u8> {
    let mut output = Vec::with_capacity(bytes.len() + edits.len() * 8);
    let mut done = 0;
    for edit in edits {
        output.extend_from_slice(&bytes[done..edit.start]);
        output.extend_from_slice(edit.replacement.as_bytes());
        done = edit.end;
    }
    output.extend_from_slice(&bytes[done..]);
    output
}

/// Where lines begin, to say places as people do.
#[derive(Debug, Clone)]
pub struct LineIndex {
    starts: Vec<usize>,
}

impl LineIndex {
    pub fn of(bytes: &[u8]) -> Self {
        let mut starts = vec![0];
        starts.extend(memchr::memchr_iter(b'\n', bytes).map(|at| at + 1));
        LineIndex { starts }
    }

    /// Where the line begins, counted from 0; the end of the text where there is none.
    pub(crate) fn start(&self, line: usize) -> usize {
        self.starts.get(line).or(self.starts.last()).copied().unwrap_or_default()
    }

    /// The line of a byte, counted from 1.
    pub fn line(&self, offset: usize) -> usize {
        self.starts.partition_point(|start| *start <= offset)
    }

    /// Bytes into its line, counted from 1.
    pub fn column(&self, offset: usize) -> usize {
        offset - self.starts[self.line(offset) - 1] + 1
    }
}

#[cfg(test)]
mod tests {
    use super::{Edit, LineIndex, apply, in_order};
    use crate::rules::Grade;

    fn edit(start: usize, end: usize, replacement: &str) -> Edit {
        Edit {
            start,
            end,
            replacement: replacement.to_owned(),
            rule: "a-rule",
            grade: Grade::Safe,
            message: String::new(),
        }
    }

    #[test]
    fn the_first_of_two_overlapping_changes_is_kept_and_a_change_to_the_same_is_none() {
        let kept = in_order(b"abcdef", vec![edit(3, 5, "XY"), edit(1, 4, "-"), edit(5, 6, "f")]);
        assert_eq!(kept, vec![edit(1, 4, "-")]);
        assert_eq!(apply(b"abcdef", &kept), b"a-ef");
    }

    #[test]
    fn lines_and_columns_are_counted_from_one() {
        let lines = LineIndex::of(b"a\nbc\n\nd");
        let places: Vec<_> = [0, 1, 2, 4, 5, 6].map(|at| (lines.line(at), lines.column(at))).into();
        assert_eq!(places, vec![(1, 1), (1, 2), (2, 1), (2, 3), (3, 1), (4, 1)]);
    }
}
