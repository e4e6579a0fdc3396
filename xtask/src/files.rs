//! Keeps Rust files readable: a warning past `WARN_LINES`, a failure past `FAIL_LINES`.
//!
//! The remedy is to split by idea, never by number; the limit only makes someone look.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

const WARN_LINES: usize = 400;
const FAIL_LINES: usize = 600;

/// Where our Rust lives. Naming the folders keeps build outputs out, wherever they are put.
const FOLDERS: &[&str] = &["crates", "xtask"];

pub(crate) fn run(root: &Path) -> Result<()> {
    let mut files = Vec::new();
    for folder in FOLDERS {
        collect(&root.join(folder), &mut files)?;
    }
    files.sort();
    let (mut too_long, mut texts) = (0, Vec::new());
    for file in &files {
        let text = fs::read_to_string(file).with_context(|| format!("reading `{}`", file.display()))?;
        let lines = text.lines().count();
        let shown = file.strip_prefix(root).unwrap_or(file).display().to_string();
        match judge(lines) {
            Verdict::Fine => {}
            Verdict::Long => {
                println!("files: warning: {shown} has {lines} lines (aim at under {WARN_LINES})");
            }
            Verdict::TooLong => {
                println!("files: {shown} has {lines} lines (the limit is {FAIL_LINES}): split it by idea");
                too_long += 1;
            }
        }
        texts.push((shown, text));
    }
    crate::unsafety::check(root, &texts)?;
    if too_long > 0 {
        bail!("{too_long} files are too long");
    }
    println!("files: {} Rust files, none over {FAIL_LINES} lines", files.len());
    Ok(())
}

#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Fine,
    Long,
    TooLong,
}

fn judge(lines: usize) -> Verdict {
    if lines > FAIL_LINES {
        Verdict::TooLong
    } else if lines > WARN_LINES {
        Verdict::Long
    } else {
        Verdict::Fine
    }
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| format!("listing `{}`", folder.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            if path.file_name().is_some_and(|name| name != "target") {
                collect(&path, files)?;
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{FAIL_LINES, Verdict, WARN_LINES, judge};

    #[test]
    fn the_limits_themselves_are_allowed() {
        assert_eq!(judge(WARN_LINES), Verdict::Fine);
        assert_eq!(judge(WARN_LINES + 1), Verdict::Long);
        assert_eq!(judge(FAIL_LINES), Verdict::Long);
        assert_eq!(judge(FAIL_LINES + 1), Verdict::TooLong);
    }
}
