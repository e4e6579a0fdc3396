//! Files of one record per line that launchers write beside the logs. What the lines mean is their reader's business.

use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use super::{LARGEST_PAGE_BYTES, LogError, file};

/// What a tail looks at.
const TAIL_BYTES: u64 = 1 << 20;

/// Whole lines without their line feeds, and where to go on.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Records {
    pub lines: Vec<Vec<u8>>,
    /// Where the next page begins.
    pub next: u64,
    /// Whether more was there when we looked.
    pub more: bool,
}

/// Up to `limit` records from a place on that an earlier page gave; 0 is the beginning.
pub fn records(path: &Path, from: u64, limit: usize) -> Result<Records, LogError> {
    let mut found = Records { next: from, ..Records::default() };
    let Some((mut file, facts)) = file::open(path)? else { return Ok(found) };
    file.seek(SeekFrom::Start(from)).map_err(LogError::reading(path))?;
    let mut reader = BufReader::new(file.take(LARGEST_PAGE_BYTES as u64));
    while found.lines.len() < limit {
        let mut line = Vec::new();
        let count = reader.read_until(b'\n', &mut line).map_err(LogError::reading(path))?;
        if line.pop() != Some(b'\n') {
            break;
        }
        found.next += count as u64;
        found.lines.push(line);
    }
    // A page without a line would be asked for again and again: what is there is one that is not finished, or no line at all.
    found.more = !found.lines.is_empty() && found.next < facts.length;
    Ok(found)
}

/// The last `count` records, of those that stand in the last MiB.
pub fn last_records(path: &Path, count: usize) -> Result<Records, LogError> {
    let Some((_, facts)) = file::open(path)? else { return Ok(Records::default()) };
    let from = facts.length.saturating_sub(TAIL_BYTES);
    let mut found = records(path, from, usize::MAX)?;
    let cut_off = usize::from(from > 0);
    let first = found.lines.len().saturating_sub(count).max(cut_off.min(found.lines.len()));
    found.lines.drain(..first);
    Ok(Records { more: false, ..found })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(records: &Records) -> Vec<String> {
        records.lines.iter().map(|line| String::from_utf8(line.clone()).unwrap()).collect()
    }

    #[test]
    fn pages_give_every_whole_line_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("samples.jsonl");
        assert_eq!(records(&path, 0, 2).unwrap(), Records::default());
        std::fs::write(&path, "one\ntwo\nthree\nhalf").unwrap();
        let first = records(&path, 0, 2).unwrap();
        assert_eq!((texts(&first), first.more), (vec!["one".to_owned(), "two".to_owned()], true));
        let second = records(&path, first.next, 2).unwrap();
        assert_eq!(texts(&second), ["three"]);
        let none = records(&path, second.next, 2).unwrap();
        assert_eq!((none.lines.len(), none.next, none.more), (0, second.next, false));
    }

    #[test]
    fn a_tail_is_the_end_and_begins_with_a_whole_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("samples.jsonl");
        let line = "x".repeat(999);
        let text: Vec<String> = (0..2000).map(|number| format!("{number:04}{line}\n")).collect();
        std::fs::write(&path, text.concat()).unwrap();
        let end = last_records(&path, 2).unwrap();
        let numbers: Vec<String> = texts(&end).iter().map(|line| line[..4].to_owned()).collect();
        assert_eq!(numbers, ["1998", "1999"]);
        let all = last_records(&path, 9999).unwrap();
        assert!(all.lines.len() > 1000 && all.lines.iter().all(|line| line.len() == 1003));
    }

    #[test]
    fn a_link_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("metrics.jsonl");
        std::os::unix::fs::symlink("/etc/hostname", &path).unwrap();
        assert!(matches!(records(&path, 0, 1), Err(LogError::NotAFile { .. })));
    }
}
