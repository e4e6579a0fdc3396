//! One thing that is wrong, where it was written, and how it is shown.

use std::ops::Range;

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};

/// Where a value was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ValueOrigin {
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
    pub(crate) fn range(&self) -> Option<Range<usize>> {
        match self {
            ValueOrigin::File(range) => Some(range.clone()),
            _ => None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Diagnostic {
    /// A dotted path, or empty for the file itself.
    pub(crate) field: String,
    pub(crate) message: String,
    /// What stands under the excerpt, such as a suggestion.
    pub(crate) label: Option<String>,
    pub(crate) place: ValueOrigin,
}

impl Diagnostic {
    fn sentence(&self) -> String {
        if self.field.is_empty() {
            self.message.clone()
        } else {
            format!("`{}` {}", self.field, self.message)
        }
    }
}

/// Past this, a line is data rather than something to show.
const LONGEST_EXCERPT: usize = 160;

/// All complaints as one text, the excerpt of `source` under each.
pub(crate) fn render(complaints: &[Diagnostic], file: &str, source: &str) -> String {
    let renderer = Renderer::styled();
    let rendered: Vec<String> =
        complaints.iter().map(|complaint| render_one(complaint, file, source, &renderer)).collect();
    rendered.join("\n\n")
}

fn render_one(complaint: &Diagnostic, file: &str, source: &str, renderer: &Renderer) -> String {
    let sentence = complaint.sentence();
    let title = Level::ERROR.primary_title(&sentence);
    let (title, range) = match &complaint.place {
        ValueOrigin::Argument(argument) => {
            let note = match &complaint.label {
                Some(label) => format!("given by `{argument}`: {label}"),
                None => format!("given by `{argument}`"),
            };
            return renderer.render(&[title.element(Level::NOTE.message(note))]);
        }
        ValueOrigin::Nowhere => return renderer.render(&[Group::with_title(title)]),
        ValueOrigin::File(range) => (title, range.clone()),
        ValueOrigin::Point { line, column } => (title, point_range(source, *line, *column)),
        ValueOrigin::Start => (title, 0..0),
    };
    let excerpt = Excerpt::of(source, range);
    let mut annotation = AnnotationKind::Primary.span(excerpt.span.clone());
    if let Some(label) = &complaint.label {
        annotation = annotation.label(label.as_str());
    }
    let snippet = Snippet::source(&excerpt.text).path(file).line_start(excerpt.line).annotation(annotation);
    renderer.render(&[title.element(snippet)])
}

/// From a point to the end of its character.
fn point_range(source: &str, line: usize, column: usize) -> Range<usize> {
    let before: usize = source.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    let mut characters =
        source[before..].char_indices().skip(column.saturating_sub(1)).map(|(at, _)| before + at);
    let start = characters.next().unwrap_or(source.len());
    start..characters.next().unwrap_or(source.len())
}

/// The one line that matters, cut to what fits.
struct Excerpt {
    text: String,
    span: Range<usize>,
    line: usize,
}

impl Excerpt {
    fn of(source: &str, range: Range<usize>) -> Self {
        let start = floor_boundary(source, range.start);
        let line_start = source[..start].rfind('\n').map_or(0, |at| at + 1);
        let line_end = source[start..].find(['\n', '\r']).map_or(source.len(), |length| start + length);
        let end = floor_boundary(source, range.end.clamp(start, line_end));
        let line = source[..line_start].matches('\n').count() + 1;
        let (before, inside, after) =
            (&source[line_start..start], &source[start..end], &source[end..line_end]);
        let mut text = String::new();
        if before.chars().count() > LONGEST_EXCERPT {
            text.push('…');
            text.extend(before.chars().rev().take(40).collect::<Vec<_>>().into_iter().rev());
        } else {
            text.push_str(before);
        }
        let from = text.len();
        push_short(&mut text, inside);
        let to = text.len();
        push_short(&mut text, after);
        Excerpt { text, span: from..to, line }
    }
}

fn push_short(text: &mut String, part: &str) {
    match part.char_indices().nth(LONGEST_EXCERPT) {
        Some((end, _)) => {
            text.push_str(&part[..end]);
            text.push('…');
        }
        None => text.push_str(part),
    }
}

fn floor_boundary(source: &str, at: usize) -> usize {
    let mut at = at.min(source.len());
    while !source.is_char_boundary(at) {
        at -= 1;
    }
    at
}
