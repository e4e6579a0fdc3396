//! A job file as a tree in which every value still knows where it was written.
//!
//! Reading straight into the specification would stop at the first error and forget the places of all values. The
//! tree keeps both: it is merged with what the command line says, then read field by field.

use serde_json::{Map, Number, Value};

use crate::diagnostic::ValueOrigin;

#[derive(Debug, Clone)]
pub struct SourceTree {
    pub content: SourceValue,
    pub place: ValueOrigin,
}

#[derive(Debug, Clone)]
pub enum SourceValue {
    Null,
    Bool(bool),
    /// With its text, because `1.10` in `env` is a version, not a number.
    Number(Number, String),
    Text(String),
    List(Vec<SourceTree>),
    /// With the place of each key.
    Map(Vec<(String, ValueOrigin, SourceTree)>),
}

impl SourceTree {
    pub(crate) fn empty_map(place: ValueOrigin) -> SourceTree {
        SourceTree { content: SourceValue::Map(Vec::new()), place }
    }

    pub(crate) fn text(text: impl Into<String>, place: ValueOrigin) -> SourceTree {
        SourceTree { content: SourceValue::Text(text.into()), place }
    }

    pub(crate) fn get(&self, key: &str) -> Option<&SourceTree> {
        match &self.content {
            SourceValue::Map(entries) => {
                entries.iter().find(|(name, _, _)| name == key).map(|(_, _, tree)| tree)
            }
            _ => None,
        }
    }

    /// The words a person would use: `the text "x"`, `a list`.
    pub(crate) fn described(&self) -> String {
        match &self.content {
            SourceValue::Null => "nothing".to_owned(),
            SourceValue::Bool(value) => format!("`{value}`"),
            SourceValue::Number(_, text) => format!("`{}`", shortened(text)),
            SourceValue::Text(text) => format!("the text `{}`", shortened(text)),
            SourceValue::List(_) => "a list".to_owned(),
            SourceValue::Map(_) => "a map".to_owned(),
        }
    }

    pub fn to_json(&self) -> Value {
        match &self.content {
            SourceValue::Null => Value::Null,
            SourceValue::Bool(value) => Value::Bool(*value),
            SourceValue::Number(number, _) => Value::Number(number.clone()),
            SourceValue::Text(text) => Value::String(text.clone()),
            SourceValue::List(items) => Value::Array(items.iter().map(SourceTree::to_json).collect()),
            SourceValue::Map(entries) => {
                let entries = entries.iter().map(|(name, _, tree)| (name.clone(), tree.to_json()));
                Value::Object(entries.collect::<Map<_, _>>())
            }
        }
    }

    /// A number or truth value as it was written; for fields that are texts whatever they look like.
    pub(crate) fn as_written(&self) -> SourceTree {
        let content = match &self.content {
            SourceValue::Bool(value) => SourceValue::Text(value.to_string()),
            SourceValue::Number(_, text) => SourceValue::Text(text.clone()),
            SourceValue::Null => SourceValue::Text(String::new()),
            SourceValue::Text(_) => self.content.clone(),
            SourceValue::List(items) => SourceValue::List(items.iter().map(SourceTree::as_written).collect()),
            SourceValue::Map(entries) => SourceValue::Map(
                entries
                    .iter()
                    .map(|(name, place, tree)| (name.clone(), place.clone(), tree.as_written()))
                    .collect(),
            ),
        };
        SourceTree { content, place: self.place.clone() }
    }
}

pub(crate) fn shortened(text: &str) -> String {
    shortened_to(text, 40)
}

pub(crate) fn shortened_to(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
