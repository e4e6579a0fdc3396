//! YAML as a tree. JSON is read by the same reader, because it is YAML as well.

use std::fmt;
use std::ops::Range;

use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Number;
use serde_saphyr::{Location, Spanned};

use crate::diagnostic::{Diagnostic, ValueOrigin};
use crate::tree::{SourceTree, SourceValue, shortened_to};

/// No job file nests deeper than `parameters: [{name: …}]`; what does is a mistake or an attack.
const DEEPEST: usize = 32;
const MOST_NODES: usize = 100_000;

/// Reads YAML or JSON.
pub fn read(source: &str) -> Result<SourceTree, Diagnostic> {
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_depth: DEEPEST,
            flow_nesting_limit: DEEPEST,
            max_nodes: MOST_NODES,
            max_aliases: 1_000,
        },
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: MOST_NODES },
        strict_booleans: true,
        non_finite_float_policy: serde_saphyr::NonFiniteFloatPolicy::AsString,
        with_snippet: false,
    };
    let spanned: Spanned<Raw> = serde_saphyr::from_str_with_options(source, options)
        .map_err(|error| syntax_diagnostic(&error, source))?;
    Ok(build(spanned, source))
}

fn syntax_diagnostic(error: &serde_saphyr::Error, source: &str) -> Diagnostic {
    use serde_saphyr::MessageFormatter as _;
    let mut message = serde_saphyr::UserMessageFormatter.format_message(error).into_owned();
    if message.starts_with("YAML document too large") || message == "recursion limit exceeded" {
        message = format!("the file nests deeper than {DEEPEST} levels, or its aliases expand without end");
    }
    let place = error.location().map_or(ValueOrigin::Start, |location| place_of(&location));
    if let Some(diagnostic) = indentation_diagnostic(source, &message, &place) {
        return diagnostic;
    }
    Diagnostic { field: String::new(), message: shortened_to(&message, 400), label: None, place }
}

/// What the reader's words about a wrong indentation mean. It notices a tab somewhere behind it, and a field that is
/// indented too far at its colon.
fn indentation_diagnostic(source: &str, message: &str, place: &ValueOrigin) -> Option<Diagnostic> {
    let indentation = |line: &str| line.len() - line.trim_start_matches([' ', '\t']).len();
    let at_line = |line: usize, message: String, label: &str| {
        let label = Some(label.to_owned());
        let place = ValueOrigin::Point { line: line + 1, column: 1 };
        Some(Diagnostic { field: String::new(), message, label, place })
    };
    let tabbed = |line: &str| line[..indentation(line)].contains('\t');
    let failed_at = match place {
        ValueOrigin::Point { line, .. } => line - 1,
        ValueOrigin::File(range) => source.get(..range.start)?.matches('\n').count(),
        _ => source.lines().count(),
    };
    if let Some(line) = source.lines().position(tabbed).filter(|line| *line <= failed_at + 1) {
        let message = format!("line {} is indented with a tab, which YAML does not allow", line + 1);
        return at_line(line, message, "indent with spaces");
    }
    let lines: Vec<&str> = source.lines().collect();
    let line = lines.get(failed_at)?;
    let above = lines[..failed_at].iter().rev().find(|line| !line.trim().is_empty())?;
    if message.contains("mapping values are not allowed") && indentation(line) > indentation(above) {
        let message =
            "this line is indented deeper than the one above it, which has a value already".to_owned();
        let label = "fields that belong together begin in the same column";
        return at_line(failed_at, message, label);
    }
    if message.contains("did not find expected") && indentation(line) != indentation(above) {
        let message = "the indentation of this line fits none of those above it".to_owned();
        return at_line(failed_at, message, "fields that belong together begin in the same column");
    }
    None
}

/// A value as the reader gives it, before places are looked up in the source.
enum Raw {
    Null,
    Bool(bool),
    Number(Option<Number>),
    Text(String),
    List(Vec<Spanned<Raw>>),
    Map(Vec<(Spanned<String>, Spanned<Raw>)>),
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RawVisitor)
    }
}

struct RawVisitor;

impl<'de> Visitor<'de> for RawVisitor {
    type Value = Raw;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E: de::Error>(self) -> Result<Raw, E> {
        Ok(Raw::Null)
    }

    fn visit_none<E: de::Error>(self) -> Result<Raw, E> {
        Ok(Raw::Null)
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Raw, E> {
        Ok(Raw::Bool(value))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Raw, E> {
        Ok(Raw::Number(Some(value.into())))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Raw, E> {
        Ok(Raw::Number(Some(value.into())))
    }

    fn visit_i128<E: de::Error>(self, _: i128) -> Result<Raw, E> {
        Ok(Raw::Number(None))
    }

    fn visit_u128<E: de::Error>(self, _: u128) -> Result<Raw, E> {
        Ok(Raw::Number(None))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Raw, E> {
        Ok(Raw::Number(Number::from_f64(value)))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Raw, E> {
        Ok(Raw::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Raw, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Raw::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Raw, A::Error> {
        let mut map = Vec::new();
        while let Some(entry) = entries.next_entry()? {
            map.push(entry);
        }
        Ok(Raw::Map(map))
    }
}

fn build(spanned: Spanned<Raw>, source: &str) -> SourceTree {
    let place = place_of(&spanned.referenced);
    let written = || place_of(&spanned.defined).range().and_then(|range| source.get(range)).unwrap_or("");
    let content = match spanned.value {
        Raw::Null => SourceValue::Null,
        Raw::Bool(value) => SourceValue::Bool(value),
        Raw::Text(text) => SourceValue::Text(text),
        Raw::Number(number) => read_number(number, written()),
        Raw::List(items) => SourceValue::List(items.into_iter().map(|item| build(item, source)).collect()),
        Raw::Map(entries) => SourceValue::Map(
            entries
                .into_iter()
                .map(|(key, value)| (key.value, place_of(&key.referenced), build(value, source)))
                .collect(),
        ),
    };
    SourceTree { content, place }
}

/// `007`, `1_000`, `0x10` and what is too large stay texts: each field then says what it wants instead of getting
/// something that was not written.
fn read_number(number: Option<Number>, written: &str) -> SourceValue {
    let written = written.trim();
    match number {
        Some(number) if !written.is_empty() && (number.is_f64() || number.to_string() == written) => {
            SourceValue::Number(number, written.to_owned())
        }
        Some(number) if written.is_empty() => {
            let text = number.to_string();
            SourceValue::Number(number, text)
        }
        _ => SourceValue::Text(written.to_owned()),
    }
}

fn place_of(location: &Location) -> ValueOrigin {
    let span = location.span();
    let range = match (span.byte_offset(), span.byte_len()) {
        (Some(start), Some(length)) => as_range(start, length),
        _ => None,
    };
    match range {
        Some(range) => ValueOrigin::File(range),
        None if location.line() > 0 => ValueOrigin::Point {
            line: usize::try_from(location.line()).unwrap_or(1),
            column: usize::try_from(location.column()).unwrap_or(1),
        },
        None => ValueOrigin::Start,
    }
}

fn as_range(start: u64, length: u64) -> Option<Range<usize>> {
    let start = usize::try_from(start).ok()?;
    Some(start..start.checked_add(usize::try_from(length).ok()?)?)
}
