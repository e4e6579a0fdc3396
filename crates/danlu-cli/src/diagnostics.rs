//! How what is wrong with a file is shown: each message with the line that it is about.

use std::ops::Range;

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use danlu_jobfile::{Diagnostic, ValueOrigin};

/// Past this, a line is data rather than something to show.
const LONGEST_EXCERPT: usize = 160;

/// All of them as one text, the excerpt of `source` under each.
pub(crate) fn render(complaints: &[Diagnostic], file: &str, source: &str) -> String {
    let renderer = Renderer::styled();
    let rendered: Vec<String> =
        complaints.iter().map(|complaint| render_one(complaint, file, source, &renderer)).collect();
    rendered.join("\n\n")
}

fn render_one(complaint: &Diagnostic, file: &str, source: &str, renderer: &Renderer) -> String {
    let sentence = complaint.sentence();
    let title = Level::ERROR.primary_title(&sentence);
    if let ValueOrigin::Argument(argument) = &complaint.place {
        let note = match &complaint.label {
            Some(label) => format!("given by `{argument}`: {label}"),
            None => format!("given by `{argument}`"),
        };
        return renderer.render(&[title.element(Level::NOTE.message(note))]);
    }
    let Some(range) = complaint.place.within(source) else {
        return renderer.render(&[Group::with_title(title)]);
    };
    let excerpt = Excerpt::of(source, range);
    let mut annotation = AnnotationKind::Primary.span(excerpt.span.clone());
    if let Some(label) = &complaint.label {
        annotation = annotation.label(label.as_str());
    }
    let snippet = Snippet::source(&excerpt.text).path(file).line_start(excerpt.line).annotation(annotation);
    renderer.render(&[title.element(snippet)])
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
