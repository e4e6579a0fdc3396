//! Where new statements and fewer names fit into text that somebody laid out.

use ruff_python_ast::Alias;
use ruff_text_size::{Ranged as _, TextRange};

use crate::checker::Checker;

impl Checker<'_> {
    /// The range to delete so that `alias` leaves a list of several imports, or nothing if it is the only one.
    pub(crate) fn range_without(names: &[Alias], alias: &Alias) -> Option<TextRange> {
        let index = names.iter().position(|name| name.range == alias.range)?;
        if let Some(next) = names.get(index + 1) {
            return Some(TextRange::new(alias.range.start(), next.range().start()));
        }
        let previous = names.get(index.checked_sub(1)?)?;
        Some(TextRange::new(previous.range().end(), alias.range.end()))
    }

    /// A statement to be put before the one at `range`: on a line of its own where that begins one.
    pub(crate) fn as_statement_before(&self, range: TextRange, statement: &str) -> String {
        match self.indentation(range) {
            Some(indentation) => format!("{statement}{}{indentation}", self.newline()),
            None => format!("{statement}; "),
        }
    }

    /// The same for one to be put after it.
    pub(crate) fn as_statement_after(&self, range: TextRange, statement: &str) -> String {
        match self.indentation(range) {
            Some(indentation) => format!("{}{indentation}{statement}", self.newline()),
            None => format!("; {statement}"),
        }
    }

    /// The blanks before a statement, if there is nothing else before it on its line.
    pub(crate) fn indentation(&self, range: TextRange) -> Option<&str> {
        let before = &self.source[..range.start().to_usize()];
        let line = before.rfind(['\n', '\r']).map_or(0, |newline| newline + 1);
        Some(&before[line..]).filter(|blanks| blanks.chars().all(|c| c == ' ' || c == '\t' || c == '\u{c}'))
    }

    /// Where the line of `range`'s end ends, its comment included, if nothing but a comment follows there.
    pub(crate) fn line_end(&self, range: TextRange) -> Option<usize> {
        let end = range.end().to_usize();
        let after = &self.source[end..];
        let length = after.find(['\n', '\r']).unwrap_or(after.len());
        let rest = after[..length].trim_start();
        (rest.is_empty() || rest.starts_with('#')).then_some(end + length)
    }

    pub(crate) fn newline(&self) -> &'static str {
        match self.source.find('\n') {
            Some(at) if self.source[..at].ends_with('\r') => "\r\n",
            None if self.source.contains('\r') => "\r",
            _ => "\n",
        }
    }
}
