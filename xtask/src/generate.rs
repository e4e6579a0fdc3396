//! Files of `docs/` that are made from the code, committed for readers, and checked to be fresh.
//!
//! `GENERATED` is the whole list. `write_all` renews the files; `check_all` makes the same texts and only compares. A
//! generator's failure is an error in both: an empty reference must never pass for a fresh one.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

const RENEW: &str = "cargo xtask generate";

/// A file in the tree, and the arguments with which the `danlu` binary prints its text.
struct Generated {
    file: &'static str,
    printed_by: &'static [&'static str],
}

const GENERATED: &[Generated] = &[
    Generated { file: "docs/openapi.json", printed_by: &["openapi"] },
    Generated { file: "docs/reference/cli.md", printed_by: &["help-markdown"] },
    Generated { file: "docs/reference/reasons.md", printed_by: &["reasons-markdown"] },
    Generated { file: "docs/reference/migrate-rules.md", printed_by: &["migrate-rules"] },
];

pub(crate) fn write_all(root: &Path) -> Result<()> {
    build_danlu(root)?;
    for entry in GENERATED {
        let path = root.join(entry.file);
        let text = entry.text()?;
        if fs::read_to_string(&path).is_ok_and(|old| old == text) {
            println!("generate: {} is fresh", entry.file);
            continue;
        }
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).with_context(|| format!("making `{}`", folder.display()))?;
        }
        fs::write(&path, text).with_context(|| format!("writing `{}`", entry.file))?;
        println!("generate: wrote {}", entry.file);
    }
    Ok(())
}

pub(crate) fn check_all(root: &Path) -> Result<()> {
    build_danlu(root)?;
    let mut stale = Vec::new();
    for entry in GENERATED {
        let wanted = entry.text()?;
        match fs::read_to_string(root.join(entry.file)) {
            Ok(present) if present == wanted => println!("fresh: {}", entry.file),
            Ok(present) => {
                println!("stale: {}{}", entry.file, first_difference(&present, &wanted));
                stale.push(entry.file);
            }
            Err(error) => {
                println!("stale: {} cannot be read: {error}", entry.file);
                stale.push(entry.file);
            }
        }
    }
    if stale.is_empty() {
        return Ok(());
    }
    bail!("generated files differ: {}\n\nhint: `{RENEW}` renews them; commit the result", stale.join(", "))
}

impl Generated {
    fn text(&self) -> Result<String> {
        danlu_prints(self.printed_by).with_context(|| format!("making `{}`", self.file))
    }
}

/// Builds what `cargo test --workspace` builds, and not the binary alone: that would enable other features of the
/// dependencies, and so compile most of them once more.
fn build_danlu(root: &Path) -> Result<()> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(["build", "--quiet", "--locked", "--workspace", "--all-targets"])
        .current_dir(root)
        .status()
        .context("starting cargo")?;
    if !status.success() {
        bail!("`cargo build` failed");
    }
    Ok(())
}

fn danlu_prints(arguments: &[&str]) -> Result<String> {
    // Cargo puts the binaries of a workspace beside each other, and this is one of them.
    let danlu = std::env::current_exe().context("finding this program's own file")?.with_file_name("danlu");
    let output = Command::new(danlu)
        .args(arguments)
        // The text must not depend on whose terminal it is made in.
        .env("NO_COLOR", "1")
        .env("COLUMNS", "100")
        .output()
        .context("starting danlu")?;
    if !output.status.success() {
        bail!("`danlu {}` failed: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr).trim());
    }
    let text = String::from_utf8(output.stdout).context("the output is not UTF-8")?;
    if text.trim().is_empty() {
        bail!("`danlu {}` printed nothing", arguments.join(" "));
    }
    Ok(format!("{}\n", text.trim_end()))
}

/// Enough of the difference to see whose change it was.
fn first_difference(present: &str, wanted: &str) -> String {
    let mut present_lines = present.lines();
    let mut wanted_lines = wanted.lines();
    for number in 1.. {
        match (present_lines.next(), wanted_lines.next()) {
            (None, None) => break,
            (a, b) if a == b => {}
            (a, b) => {
                let shown = |line: Option<&str>| line.unwrap_or("(end of file)").to_owned();
                return format!(":{number}\n  - {}\n  + {}", shown(a), shown(b));
            }
        }
    }
    " (only the end of the file differs)".to_owned()
}

#[cfg(test)]
mod tests {
    use super::first_difference;

    #[test]
    fn a_stale_file_shows_the_first_line_that_differs() {
        assert_eq!(first_difference("a\nb\n", "a\nc\n"), ":2\n  - b\n  + c");
        assert_eq!(first_difference("a\n", "a\nb\n"), ":2\n  - (end of file)\n  + b");
    }
}
