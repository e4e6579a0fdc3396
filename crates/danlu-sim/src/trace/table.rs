//! Comma-separated tables with a header, as the public traces have them: no quotes, one record per line.
//!
//! Columns are found by name, so that files with more of them or in another order read just as well. Every error says
//! where: file, line, column.

use thiserror::Error;

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TraceError {
    #[error("`{file}` is empty; its first line should name the columns")]
    Empty { file: String },
    #[error("`{file}` has no column `{column}`")]
    NoColumn { file: String, column: &'static str },
    #[error("line {line} of `{file}` ends before column `{column}`")]
    ShortLine { file: String, line: usize, column: &'static str },
    #[error("line {line} of `{file}`: `{text}` in column `{column}` is not {expected}")]
    Value { file: String, line: usize, column: &'static str, text: String, expected: &'static str },
}

pub(crate) struct Table<'a> {
    file: &'a str,
    header: Vec<&'a str>,
    lines: Vec<(usize, &'a str)>,
}

pub(crate) struct Row<'a> {
    file: &'a str,
    line: usize,
    header: &'a [&'a str],
    fields: Vec<&'a str>,
}

impl<'a> Table<'a> {
    pub(crate) fn read(file: &'a str, text: &'a str) -> Result<Self, TraceError> {
        let mut lines = text.lines().zip(1..).map(|(text, line)| (line, text.trim_end_matches('\r')));
        let (_, header) = lines.next().ok_or_else(|| TraceError::Empty { file: file.to_owned() })?;
        let header = header.trim_start_matches('\u{feff}').split(',').map(str::trim).collect();
        Ok(Table { file, header, lines: lines.filter(|(_, text)| !text.trim().is_empty()).collect() })
    }

    pub(crate) fn rows(&'a self) -> impl Iterator<Item = Row<'a>> {
        self.lines.iter().map(|&(line, text)| Row {
            file: self.file,
            line,
            header: &self.header,
            fields: text.split(',').map(str::trim).collect(),
        })
    }
}

impl<'a> Row<'a> {
    pub(crate) fn text(&self, column: &'static str) -> Result<&'a str, TraceError> {
        let at = self.header.iter().position(|name| *name == column);
        let at = at.ok_or_else(|| TraceError::NoColumn { file: self.file.to_owned(), column })?;
        let short = || TraceError::ShortLine { file: self.file.to_owned(), line: self.line, column };
        self.fields.get(at).copied().ok_or_else(short)
    }

    /// Nothing where there is no such column, or nothing in it.
    pub(crate) fn optional_text(&self, column: &'static str) -> Result<Option<&'a str>, TraceError> {
        if self.header.contains(&column) {
            self.text(column).map(|text| Some(text).filter(|text| !text.is_empty()))
        } else {
            Ok(None)
        }
    }

    pub(crate) fn number(&self, column: &'static str) -> Result<u64, TraceError> {
        let text = self.text(column)?;
        text.parse().map_err(|_| self.wrong(column, text, "a whole number"))
    }

    pub(crate) fn wrong(&self, column: &'static str, text: &str, expected: &'static str) -> TraceError {
        let text = text.chars().take(40).collect();
        TraceError::Value { file: self.file.to_owned(), line: self.line, column, text, expected }
    }
}
