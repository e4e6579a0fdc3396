//! One thing that is wrong with a text, and where it was written.

use std::ops::Range;

/// Where a value was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ValueOrigin {
    /// These bytes of the file.
    File(Range<usize>),
    /// This line and column of the file, counted from 1, where nothing more is known.
    Point { line: usize, column: usize },
    /// The file as a whole.
    Start,
    /// An argument of the command line, as it was typed.
    Argument(String),
    /// Nowhere: a default.
    Nowhere,
}

impl ValueOrigin {
    /// The bytes of `source` that this is about, if it is in the file at all.
    pub fn within(&self, source: &str) -> Option<Range<usize>> {
        match self {
            ValueOrigin::File(range) => Some(range.clone()),
            ValueOrigin::Point { line, column } => Some(point_range(source, *line, *column)),
            ValueOrigin::Start => Some(0..0),
            ValueOrigin::Argument(_) | ValueOrigin::Nowhere => None,
        }
    }

    pub fn range(&self) -> Option<Range<usize>> {
        match self {
            ValueOrigin::File(range) => Some(range.clone()),
            _ => None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// A dotted path, or empty for the file itself.
    pub field: String,
    pub message: String,
    /// What stands under the excerpt, such as a suggestion.
    pub label: Option<String>,
    pub place: ValueOrigin,
}

impl Diagnostic {
    pub fn sentence(&self) -> String {
        if self.field.is_empty() {
            self.message.clone()
        } else {
            format!("`{}` {}", self.field, self.message)
        }
    }
}

/// From a point to the end of its character.
fn point_range(source: &str, line: usize, column: usize) -> Range<usize> {
    let before: usize = source.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    let mut characters =
        source[before..].char_indices().skip(column.saturating_sub(1)).map(|(at, _)| before + at);
    let start = characters.next().unwrap_or(source.len());
    start..characters.next().unwrap_or(source.len())
}
