//! Writing to stdout and stderr. Both strip colours where they are not wanted (`NO_COLOR`, pipes).

use std::io::{IsTerminal as _, Write as _};

use anstream::{stderr, stdout};
use serde::Serialize;

use crate::failure::CliError;

/// Data, one line.
pub fn line(text: impl AsRef<str>) -> Result<(), CliError> {
    Ok(writeln!(stdout().lock(), "{}", text.as_ref())?)
}

/// Data, many lines in one write: a log may have millions.
pub(crate) fn lines(lines: impl IntoIterator<Item = String>) -> Result<(), CliError> {
    let mut text = String::new();
    for line in lines {
        text.push_str(&line);
        text.push('\n');
    }
    let mut out = stdout().lock();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}

/// Data for programs.
pub(crate) fn json(value: &impl Serialize) -> Result<(), CliError> {
    let text = serde_json::to_string_pretty(value)
        .map_err(|error| CliError::new("cannot write the answer as JSON").caused_by(&error))?;
    line(text)
}

/// Talk, one line; if nobody listens, so be it.
pub fn say(text: impl AsRef<str>) {
    let _ = writeln!(stderr().lock(), "{}", text.as_ref());
}

pub(crate) fn stdout_is_terminal() -> bool {
    std::io::stdout().is_terminal()
}

pub fn stderr_is_terminal() -> bool {
    std::io::stderr().is_terminal()
}

/// Text from jobs and files may hold escape sequences; on a terminal those could do more than be read. Tabs stay.
pub(crate) fn printable(text: &str) -> String {
    let odd = |c: char| c.is_control() && c != '\t';
    if text.contains(odd) {
        text.chars().map(|c| if odd(c) { '\u{fffd}' } else { c }).collect()
    } else {
        text.to_owned()
    }
}
