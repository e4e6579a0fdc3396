//! What the index of names is asked for (`job_search`; migration 8 says what is in it).
//!
//! Invariant: a job whose name has the part has all of the part's words. The reverse does not hold (`abab` has the words of
//! `baba` but for one), so whoever asks compares the names that are found.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use crate::JobFilter;
use crate::row::text;

/// Longer than any name: what follows is compared, but not looked for.
const MOST_BYTES: usize = 64;
const LONGEST_PIECE: usize = 3;

/// The words of a search: all of `all`, and one of `any` unless that is `None`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Words {
    pub(crate) all: Vec<String>,
    pub(crate) any: Option<Vec<String>>,
}

/// What is searched for; the empty text is in all names.
pub(crate) fn part(filter: &JobFilter) -> Option<&str> {
    filter.search.as_deref().filter(|part| !part.is_empty())
}

/// `None` where nothing is searched for.
pub(crate) fn words(filter: &JobFilter) -> Option<Words> {
    let part = text(part(filter)?).to_ascii_lowercase();
    let bytes = &part.as_bytes()[..part.len().min(MOST_BYTES)];
    let pieces: BTreeSet<&[u8]> = bytes.windows(LONGEST_PIECE.min(bytes.len())).collect();
    let mut all: Vec<String> = pieces.into_iter().map(|piece| word("", piece)).collect();
    all.extend(filter.workspace.iter().map(|name| word("w", text(name).as_bytes())));
    all.extend(filter.owner.iter().map(|name| word("o", text(name).as_bytes())));
    let workspaces = filter.visible.as_ref();
    let any = workspaces.map(|names| names.iter().map(|name| word("w", text(name).as_bytes())).collect());
    Some(Words { all, any })
}

fn word(kind: &str, bytes: &[u8]) -> String {
    let mut word = kind.to_owned();
    for byte in bytes {
        // Writing into a text cannot fail.
        let _ = write!(word, "{byte:02X}");
    }
    word
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(part: &str) -> Option<Words> {
        words(&JobFilter { search: Some(part.to_owned()), ..JobFilter::default() })
    }

    #[test]
    fn a_part_is_looked_for_by_its_longest_pieces() {
        assert_eq!(of(""), None);
        assert_eq!(of("A").unwrap().all, ["61"]);
        assert_eq!(of("aB").unwrap().all, ["6162"]);
        assert_eq!(of("abab").unwrap().all, ["616261", "626162"]);
        assert_eq!(of("aaaa").unwrap().all, ["616161"]);
        assert_eq!(of(&"xy".repeat(5000)).unwrap().all.len(), 2);
    }

    #[test]
    fn people_and_workspaces_are_words_that_no_name_has() {
        let filter = JobFilter {
            search: Some("z".to_owned()),
            owner: Some("a".to_owned()),
            visible: Some(vec!["a".to_owned(), "b".to_owned()]),
            ..JobFilter::default()
        };
        let words = words(&filter).unwrap();
        assert_eq!(words.all, ["7A", "o61"]);
        assert_eq!(words.any.unwrap(), ["w61", "w62"]);
    }
}
