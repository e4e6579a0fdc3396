//! The list of files with `unsafe` in ADR 2 is the list of files with `unsafe`.
//!
//! Which crates may have any is Cargo's to check (`unsafe_code` is forbidden elsewhere); this keeps what reviewers read from
//! saying less than there is.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

const PAGE: &str = "docs/adr/0002-unsafe-in-one-place.md";

/// How `unsafe` is written where it is meant; split here, so that this file is none of those.
const MEANT: [&str; 4] = [
    concat!("uns", "afe {"),
    concat!("uns", "afe fn"),
    concat!("uns", "afe impl"),
    concat!("uns", "afe extern"),
];

/// `files`: every Rust file of the repository, with its text, by its path from the root.
pub(crate) fn check(root: &Path, files: &[(String, String)]) -> Result<()> {
    let page = fs::read_to_string(root.join(PAGE)).with_context(|| format!("reading `{PAGE}`"))?;
    let wrong = differences(&page, files);
    if wrong.is_empty() {
        return Ok(());
    }
    for line in &wrong {
        println!("unsafe: {line}");
    }
    bail!("`{PAGE}` does not list the files with `unsafe`")
}

fn differences(page: &str, files: &[(String, String)]) -> Vec<String> {
    let listed: BTreeSet<&str> = page
        .lines()
        .filter_map(|line| line.strip_prefix("- `")?.split_once('`'))
        .map(|(path, _)| path)
        .filter(|path| Path::new(path).extension().is_some_and(|extension| extension == "rs"))
        .collect();
    let has_any = |text: &str| {
        let code = text.lines().map(str::trim_start).filter(|line| !line.starts_with("//"));
        code.into_iter().any(|line| MEANT.iter().any(|word| line.contains(word)))
    };
    let found: BTreeSet<&str> =
        files.iter().filter(|(_, text)| has_any(text)).map(|(path, _)| path.as_str()).collect();
    let unlisted =
        found.difference(&listed).map(|path| format!("{path} has some, and is not listed in {PAGE}"));
    let clean = listed.difference(&found).map(|path| format!("{path} is listed in {PAGE}, and has none"));
    unlisted.chain(clean).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_and_what_is_too_much_is_named() {
        let file = |path: &str, text: &str| (path.to_owned(), text.to_owned());
        let files = [
            file("crates/a/src/x.rs", &format!("fn x() {{ {} }} }}", MEANT[0])),
            file("crates/a/src/y.rs", &format!("// {} is not meant here\nfn y() {{}}", MEANT[0])),
            file("crates/a/src/z.rs", &format!("pub {} z() {{}}", MEANT[1])),
        ];
        let page = "text `crates/a/src/q.rs`\n- `crates/a/src/x.rs`: why\n- `crates/a/src/y.rs`: why\n";
        let told = differences(page, &files).join("\n");
        assert!(
            told.contains("z.rs has some") && told.contains("y.rs is listed") && !told.contains("x.rs"),
            "{told}"
        );
    }
}
