//! Keeps the language of `docs/language.md`: turns of phrase that it replaced, and type names with two meanings.
//!
//! What was there before the rule is counted in `xtask/words.txt`; a count there may fall and never rise. A visible type has a name of
//! its own in all crates, so that a search for it finds one thing; the few that may share one are listed here.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

/// Where people read us: code with its comments and messages, the console's dictionaries, the documents.
const PLACES: &[(&str, &str)] =
    &[("crates", "rs"), ("xtask/src", "rs"), ("web/src/i18n", "ts"), ("docs", "md")];

const COUNTS: &str = "xtask/words.txt";

/// Each command of the CLI has its own `Arguments` and `Action`, which only its own file names.
const SHARED_NAMES: &[&str] = &["Action", "Arguments"];

pub(crate) fn run(root: &Path) -> Result<()> {
    let path = root.join(COUNTS);
    let listed = fs::read_to_string(&path).with_context(|| format!("reading `{}`", path.display()))?;
    let most = parse_counts(&listed)?;
    let mut texts = Vec::new();
    for (folder, extension) in PLACES {
        collect(&root.join(folder), extension, &mut texts)?;
    }
    let this = Path::new(file!()).file_name();
    texts.retain(|(file, _)| file.file_name() != this);
    let lower: Vec<_> = texts.iter().map(|(file, text)| (file, text.to_lowercase())).collect();
    let mut problems = Vec::new();
    for (phrase, most) in &most {
        let found: Vec<_> = lower
            .iter()
            .flat_map(|(file, text)| occurrences(text, phrase).map(move |at| (file, line_of(text, at))))
            .collect();
        let count = found.len();
        if count > *most {
            problems.push(format!("`{phrase}` is there {count} times, and may be {most} times; docs/language.md has better words"));
            problems.extend(found.iter().take(5).map(|(file, line)| {
                format!("  {}:{line}", file.strip_prefix(root).unwrap_or(file).display())
            }));
        } else if count < *most {
            println!("words: `{phrase}` is there {count} times; lower its number in {COUNTS} from {most}");
        }
    }
    problems.extend(shared_names(
        texts.iter().map(|(file, text)| {
            (file.strip_prefix(root).unwrap_or(file).display().to_string(), text.as_str())
        }),
    ));
    for problem in &problems {
        println!("words: {problem}");
    }
    if !problems.is_empty() {
        bail!("the language of docs/language.md is not kept");
    }
    println!(
        "words: {} phrases, none more often than before; every visible type has its own name",
        most.len()
    );
    Ok(())
}

/// `count phrase` in each line; `#` begins a comment.
fn parse_counts(text: &str) -> Result<BTreeMap<String, usize>> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| {
            let (count, phrase) =
                line.split_once(' ').with_context(|| format!("`{line}` is not `COUNT PHRASE`"))?;
            let count = count.parse().with_context(|| format!("`{count}` is not a count"))?;
            Ok((phrase.trim().to_lowercase(), count))
        })
        .collect()
}

/// Where the phrase stands as whole words. Text and phrase are in lower case.
fn occurrences<'a>(text: &'a str, phrase: &'a str) -> impl Iterator<Item = usize> + 'a {
    text.match_indices(phrase).map(|(at, _)| at).filter(move |&at| is_whole(text, at, phrase.len()))
}

fn line_of(text: &str, at: usize) -> usize {
    text[..at].matches('\n').count() + 1
}

fn is_whole(text: &str, at: usize, length: usize) -> bool {
    let is_word = |character: Option<char>| {
        character.is_some_and(|character| character.is_alphanumeric() || character == '_')
    };
    !is_word(text[..at].chars().next_back()) && !is_word(text[at + length..].chars().next())
}

/// Visible types of one name in several crates.
fn shared_names<'a>(sources: impl Iterator<Item = (String, &'a str)>) -> Vec<String> {
    let mut homes: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for (file, text) in sources {
        let mut parts = file.split('/');
        let (Some("crates"), Some(name), Some("src")) = (parts.next(), parts.next(), parts.next()) else {
            continue;
        };
        for line in text.lines() {
            if let Some(defined) = visible_type(line) {
                homes.entry(defined).or_default().insert(name.to_owned());
            }
        }
    }
    homes.retain(|name, crates| crates.len() > 1 && !SHARED_NAMES.contains(name));
    let tell = |(name, crates): (&str, BTreeSet<String>)| {
        format!(
            "`{name}` is a visible type of {}; give each its own name",
            crates.into_iter().collect::<Vec<_>>().join(" and ")
        )
    };
    homes.into_iter().map(tell).collect()
}

fn visible_type(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix("pub")?;
    let rest = match rest.strip_prefix('(') {
        Some(scope) => scope.split_once(')')?.1,
        None => rest,
    };
    let (kind, rest) = rest.trim_start().split_once(' ')?;
    let is_type = matches!(kind, "struct" | "enum" | "trait" | "type" | "union");
    let name = rest.split(|character: char| !character.is_alphanumeric() && character != '_').next()?;
    (is_type && !name.is_empty()).then_some(name)
}

fn collect(folder: &Path, extension: &str, texts: &mut Vec<(PathBuf, String)>) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| format!("listing `{}`", folder.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, extension, texts)?;
        } else if path.extension().is_some_and(|found| found == extension) {
            let text = fs::read_to_string(&path).with_context(|| format!("reading `{}`", path.display()))?;
            texts.push((path, text));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{line_of, occurrences, parse_counts, shared_names, visible_type};

    #[test]
    fn phrases_are_whole_words() {
        assert_eq!(
            occurrences("whoever asks; `whoever_asks`; whoever.", "whoever").collect::<Vec<_>>(),
            [0, 30]
        );
        assert_eq!(occurrences("is no name, is nothing", "is no").count(), 1);
        assert_eq!(line_of("one\ntwo", 4), 2);
    }

    #[test]
    fn counts_come_before_phrases() {
        let counts = parse_counts("# why\n\n3 for ever\n0 Nobody knows\n").unwrap();
        assert_eq!((counts["for ever"], counts["nobody knows"]), (3, 0));
        assert!(parse_counts("for ever").is_err());
    }

    #[test]
    fn types_of_two_crates_do_not_share_a_name() {
        let sources = [
            ("crates/danlu-a/src/lib.rs".to_owned(), "pub struct Line {\npub(crate) enum Own {"),
            (
                "crates/danlu-b/src/lib.rs".to_owned(),
                "pub(super) type Line = u8;\nstruct Own;\npub struct Arguments;",
            ),
            ("crates/danlu-c/tests/main.rs".to_owned(), "pub struct Own;"),
        ];
        let told = shared_names(sources.into_iter());
        assert_eq!(told, ["`Line` is a visible type of danlu-a and danlu-b; give each its own name"]);
        assert_eq!(visible_type("    pub(in crate::sim) struct State<'a> {"), Some("State"));
        assert_eq!(visible_type("pub fn struct_of() {}"), None);
    }
}
