//! Unified diffs that `patch` and `git apply` take, made from the edits themselves.
//!
//! The edits say which lines differ, so nothing has to be searched for: the time grows with the text and no faster.

use std::fmt::Write as _;

use crate::edit::{self, Edit, LineIndex};

const CONTEXT: usize = 3;

/// Lines of the old text that become others.
#[derive(Debug)]
struct Hunk {
    /// Counted from 0; `end` is the line after the last.
    start: usize,
    end: usize,
    new: Vec<Vec<u8>>,
}

/// `edits` are in order and belong to `before`.
pub(crate) fn unified(path: &str, before: &[u8], edits: &[Edit]) -> String {
    let old: Vec<&[u8]> = before.split_inclusive(|byte| *byte == b'\n').collect();
    let hunks = hunks(before, &old, edits);
    if hunks.is_empty() {
        return String::new();
    }
    let mut text = format!("--- a/{path}\n+++ b/{path}\n");
    // How much further down lines stand in the new text.
    let mut shift = 0isize;
    let mut rest = hunks.as_slice();
    while let Some(first) = rest.first() {
        let near = rest.windows(2).take_while(|pair| pair[1].start - pair[0].end <= 2 * CONTEXT).count() + 1;
        let (group, others) = rest.split_at(near);
        let last = group.last().unwrap_or(first);
        let (from, to) = (first.start.saturating_sub(CONTEXT), (last.end + CONTEXT).min(old.len()));
        let growth: isize = group
            .iter()
            .map(|hunk| hunk.new.len().cast_signed() - (hunk.end - hunk.start).cast_signed())
            .sum();
        let length = (to - from).cast_signed() + growth;
        let _ = writeln!(
            text,
            "@@ -{} +{} @@",
            place(from.cast_signed(), (to - from).cast_signed()),
            place(from.cast_signed() + shift, length)
        );
        let mut at = from;
        for hunk in group {
            old[at..hunk.start].iter().for_each(|line| push(&mut text, ' ', line));
            old[hunk.start..hunk.end].iter().for_each(|line| push(&mut text, '-', line));
            hunk.new.iter().for_each(|line| push(&mut text, '+', line));
            at = hunk.end;
        }
        old[at..to].iter().for_each(|line| push(&mut text, ' ', line));
        shift += growth;
        rest = others;
    }
    text
}

/// `12,7`: from line 12 seven lines; a single line needs no number, and none begin after the line before.
fn place(start: isize, length: isize) -> String {
    match length {
        1 => format!("{}", start + 1),
        0 => format!("{start},0"),
        _ => format!("{},{length}", start + 1),
    }
}

fn push(text: &mut String, sign: char, line: &[u8]) {
    text.push(sign);
    *text += &String::from_utf8_lossy(line);
    if !line.ends_with(b"\n") {
        *text += "\n\\ No newline at end of file\n";
    }
}

fn hunks(before: &[u8], old: &[&[u8]], edits: &[Edit]) -> Vec<Hunk> {
    let lines = LineIndex::of(before);
    let mut hunks: Vec<Hunk> = Vec::new();
    let mut rest = edits;
    while let Some(first) = rest.first() {
        // Edits that touch the same lines are one change.
        let start = lines.line(first.start) - 1;
        let mut end = start;
        let mut count = 0;
        for edit in rest {
            if count > 0 && lines.line(edit.start) > end {
                break;
            }
            end = lines.line(edit.end).max(end);
            count += 1;
        }
        let (group, others) = rest.split_at(count);
        rest = others;
        let end = end.min(old.len());
        let from = lines.start(start);
        let to = if end < old.len() { lines.start(end) } else { before.len() };
        let moved =
            group.iter().map(|edit| Edit { start: edit.start - from, end: edit.end - from, ..edit.clone() });
        let new = edit::apply(&before[from..to], &moved.collect::<Vec<_>>());
        let new: Vec<Vec<u8>> = new.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
        hunks.extend(trimmed(old, start.min(old.len()), end, new));
    }
    hunks
}

/// Without the lines at both ends that are the same.
fn trimmed(old: &[&[u8]], mut start: usize, mut end: usize, mut new: Vec<Vec<u8>>) -> Option<Hunk> {
    let same = old[start..end].iter().zip(&new).take_while(|(old, new)| **old == new.as_slice()).count();
    new.drain(..same);
    start += same;
    while start < end && new.last().is_some_and(|line| line == old[end - 1]) {
        new.pop();
        end -= 1;
    }
    (start < end || !new.is_empty()).then_some(Hunk { start, end, new })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::unified;
    use crate::edit::{Edit, apply, in_order};
    use crate::rules::Grade;

    fn edit(start: usize, end: usize, replacement: &str) -> Edit {
        let (replacement, message) = (replacement.to_owned(), String::new());
        Edit { start, end, replacement, rule: "a-rule", grade: Grade::Safe, message }
    }

    #[test]
    fn a_diff_names_both_sides_and_keeps_a_missing_newline() {
        insta::assert_snapshot!(unified("a.py", b"x\ny\nlast", &[edit(2, 3, "z")]), @r"
        --- a/a.py
        +++ b/a.py
        @@ -1,3 +1,3 @@
         x
        -y
        +z
         last
        \ No newline at end of file
        ");
    }

    #[test]
    fn lines_that_are_added_and_changes_that_are_far_apart_have_their_places() {
        let before = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n";
        let edits = [edit(2, 2, "new\n"), edit(4, 5, "three"), edit(24, 26, "twelve")];
        insta::assert_snapshot!(unified("a.py", before.as_bytes(), &edits), @r"
        --- a/a.py
        +++ b/a.py
        @@ -1,6 +1,7 @@
         1
        +new
         2
        -3
        +three
         4
         5
         6
        @@ -9,4 +10,4 @@
         9
         10
         11
        -12
        +twelve
        ");
    }

    /// What `patch` would make of it.
    fn patched(before: &str, diff: &str) -> String {
        let old: Vec<&str> = before.split_inclusive('\n').collect();
        let (mut text, mut at) = (String::new(), 0);
        let lines: Vec<&str> = diff.split_inclusive('\n').skip(2).collect();
        for (index, line) in lines.iter().enumerate() {
            let is_last = lines.get(index + 1).is_some_and(|next| next.starts_with('\\'));
            let content = if is_last { line[1..].trim_end_matches('\n') } else { &line[1..] };
            if let Some(place) = line.strip_prefix("@@ -") {
                let (start, length) =
                    place.split(' ').next().unwrap().split_once(',').unwrap_or((place, "1"));
                let start: usize = start.split(' ').next().unwrap().parse().unwrap();
                let start = if length == "0" { start } else { start - 1 };
                text += &old[at..start].concat();
                at = start;
            } else if line.starts_with('+') {
                text += content;
            } else if line.starts_with([' ', '-']) {
                assert_eq!(old[at], content);
                text += if line.starts_with(' ') { content } else { "" };
                at += 1;
            }
        }
        text + &old[at..].concat()
    }

    proptest! {
        #[test]
        fn a_diff_leads_from_the_old_text_to_the_new_one(
            before in "([ab]{0,3}\n){0,30}[ab]{0,2}",
            edits in prop::collection::vec((0..100usize, 0..8usize, "[ab\n]{0,4}"), 0..6),
        ) {
            let edits = edits.into_iter().map(|(start, length, new)| {
                let start = start.min(before.len());
                edit(start, (start + length).min(before.len()), &new)
            });
            let edits = in_order(before.as_bytes(), edits.collect());
            let after = String::from_utf8(apply(before.as_bytes(), &edits)).unwrap();
            let diff = unified("a.py", before.as_bytes(), &edits);
            prop_assert_eq!(patched(&before, &diff), after, "{}", diff);
        }
    }
}
