//! The `#SBATCH` lines of a script, as words and then as options: read by the rules of Slurm's own reader.

use std::ops::Range;

use super::options::{Argument, SbatchOption, by_letter, by_name, nearest_name};
use crate::diagnostic::{Diagnostic, ValueOrigin};

/// What the head of a script says.
#[derive(Debug, Default)]
pub(super) struct SbatchHeader {
    pub(super) given: Vec<OptionUse>,
    pub(super) diagnostics: Vec<Diagnostic>,
    /// `#SBATCH` lines after the first command, which Slurm does not read either.
    pub(super) late: Vec<Range<usize>>,
    /// Where the commands begin.
    pub(super) body: usize,
}

/// One option, as it was written.
#[derive(Debug)]
pub(super) struct OptionUse {
    pub(super) known: &'static SbatchOption,
    pub(super) value: Option<String>,
    pub(super) place: Range<usize>,
}

/// A word with its quotes taken off, and where it was.
#[derive(Debug)]
struct Word {
    text: String,
    place: Range<usize>,
}

pub(super) fn read(source: &str) -> SbatchHeader {
    let mut header = SbatchHeader { body: source.len(), ..SbatchHeader::default() };
    let (mut at, mut has_begun) = (0, false);
    for line in source.split_inclusive('\n') {
        let text = line.trim_end();
        let rest =
            text.strip_prefix("#SBATCH").filter(|rest| !rest.starts_with(|it: char| !it.is_whitespace()));
        match rest {
            Some(_) if has_begun => header.late.push(at..at + text.len()),
            Some(rest) => read_line(rest, at + text.len() - rest.len(), &mut header),
            None if has_begun || text.trim_start().is_empty() || text.trim_start().starts_with('#') => {}
            None => {
                has_begun = true;
                header.body = at;
            }
        }
        at += line.len();
    }
    header
}

fn read_line(rest: &str, begin: usize, header: &mut SbatchHeader) {
    let mut words = words(rest, begin).into_iter();
    while let Some(word) = words.next() {
        let found = match word.text.strip_prefix("--") {
            Some(long) => read_long(long, &word, &mut words),
            None => match word.text.strip_prefix('-').filter(|letters| !letters.is_empty()) {
                Some(letters) => read_short(letters, &word, &mut words, header),
                None => Err(stray(&word)),
            },
        };
        match found {
            Ok(given) => header.given.push(given),
            Err(diagnostic) => header.diagnostics.push(diagnostic),
        }
    }
}

fn read_long(
    text: &str,
    word: &Word,
    words: &mut impl Iterator<Item = Word>,
) -> Result<OptionUse, Diagnostic> {
    let (name, value) = match text.split_once('=') {
        Some((name, value)) => (name, Some(value.to_owned())),
        None => (text, None),
    };
    let Some(known) = by_name(name) else {
        let label = nearest_name(name).map(|near| format!("did you mean `--{near}`?"));
        let message = format!("unknown `sbatch` option `--{name}`");
        let place = ValueOrigin::File(word.place.clone());
        return Err(Diagnostic { field: String::new(), message, label, place });
    };
    let mut place = word.place.clone();
    let value = match (known.argument, value) {
        (Argument::None, Some(_)) => {
            return Err(diagnostic(&place, format!("`--{name}` takes no value")));
        }
        (Argument::None | Argument::Optional, value) => value,
        (Argument::Needed, Some(value)) => Some(value),
        (Argument::Needed, None) => Some(next_value(&format!("--{name}"), &mut place, words)?),
    };
    Ok(OptionUse { known, value, place })
}

/// `-N 2`, `-N2`, and letters without values joined: `-HQ`. All but the last are noted on the way.
fn read_short(
    letters: &str,
    word: &Word,
    words: &mut impl Iterator<Item = Word>,
    header: &mut SbatchHeader,
) -> Result<OptionUse, Diagnostic> {
    let mut place = word.place.clone();
    let mut rest = letters.char_indices();
    loop {
        let Some((at, letter)) = rest.next() else { return Err(stray(word)) };
        let Some(known) = by_letter(letter) else {
            return Err(diagnostic(&place, format!("unknown `sbatch` option `-{letter}`")));
        };
        let tail = &letters[at + letter.len_utf8()..];
        match known.argument {
            Argument::Needed if tail.is_empty() => {
                let value = next_value(&format!("-{letter}"), &mut place, words)?;
                return Ok(OptionUse { known, value: Some(value), place });
            }
            Argument::Needed => {
                let value = Some(tail.strip_prefix('=').unwrap_or(tail).to_owned());
                return Ok(OptionUse { known, value, place });
            }
            Argument::None | Argument::Optional if tail.is_empty() => {
                return Ok(OptionUse { known, value: None, place });
            }
            Argument::None | Argument::Optional => {
                header.given.push(OptionUse { known, value: None, place: place.clone() });
            }
        }
    }
}

fn next_value(
    option: &str,
    place: &mut Range<usize>,
    words: &mut impl Iterator<Item = Word>,
) -> Result<String, Diagnostic> {
    let value = words.next().ok_or_else(|| diagnostic(place, format!("`{option}` lacks its value")))?;
    place.end = value.place.end;
    Ok(value.text)
}

fn stray(word: &Word) -> Diagnostic {
    let place = &word.place;
    match word.text.as_str() {
        "hetjob" | "packjob" => Diagnostic {
            label: Some("submit its parts as jobs of their own".to_owned()),
            ..diagnostic(place, "jobs of unequal parts are not possible: all workers are equal".to_owned())
        },
        text => diagnostic(place, format!("invalid option `{text}`: options begin with `-`")),
    }
}

fn diagnostic(place: &Range<usize>, message: String) -> Diagnostic {
    Diagnostic { field: String::new(), message, label: None, place: ValueOrigin::File(place.clone()) }
}

/// Words as a shell would read them, without anything being expanded; `#` begins a comment.
fn words(text: &str, begin: usize) -> Vec<Word> {
    let mut words: Vec<Word> = Vec::new();
    let mut current: Option<Word> = None;
    let mut quote: Option<char> = None;
    let mut letters = text.char_indices().peekable();
    while let Some((at, letter)) = letters.next() {
        let end = begin + at + letter.len_utf8();
        let add = |letter: Option<char>, current: &mut Option<Word>| {
            let word = current.get_or_insert_with(|| Word { text: String::new(), place: begin + at..end });
            word.text.extend(letter);
            word.place.end = end;
        };
        match (quote, letter) {
            (None, '#') if current.is_none() => break,
            (None, it) if it.is_whitespace() => words.extend(current.take()),
            (None, '\'' | '"') => {
                quote = Some(letter);
                add(None, &mut current);
            }
            (Some(open), _) if open == letter => {
                quote = None;
                add(None, &mut current);
            }
            (None | Some('"'), '\\') => {
                add(None, &mut current);
                if let Some((_, escaped)) = letters.next()
                    && let Some(word) = &mut current
                {
                    word.text.push(escaped);
                    word.place.end = end + escaped.len_utf8();
                }
            }
            _ => add(Some(letter), &mut current),
        }
    }
    words.extend(current);
    words
}
