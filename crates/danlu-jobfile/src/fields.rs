//! From the tree to the specification, with everything that is wrong said at once.

use danlu_types::spec::FIELDS_OF_LATER_VERSIONS;
use danlu_types::{FieldError, JobSpec};
use serde_json::{Value, json};

use crate::diagnostic::{Diagnostic, ValueOrigin};
use crate::near::nearest;
use crate::tree::{SourceTree, SourceValue, shortened};

/// Fields that are texts, whatever their value looks like: `name: 2024`, `env: {DEBUG: yes}`.
const TEXT_FIELDS: [&str; 11] = [
    "name",
    "workspace",
    "image",
    "command",
    "code",
    "working_directory",
    "setup",
    "checkpoint",
    "env",
    "labels",
    "parameters",
];

/// Reads the specification. Each field is read by itself first, so that one wrong field does not hide another.
pub(crate) fn read_spec(tree: &SourceTree) -> Result<JobSpec, Vec<Diagnostic>> {
    let SourceValue::Map(entries) = &tree.content else {
        let needs = "a job file is a map of fields such as `command: python train.py`";
        let message = match tree.content {
            SourceValue::Null => format!("the file is empty; {needs}"),
            _ => format!("{needs}, not {}", tree.described()),
        };
        let place = tree.place.clone();
        return Err(vec![Diagnostic { field: String::new(), message, label: None, place }]);
    };
    let mut object = serde_json::Map::new();
    let mut diagnostics = Vec::new();
    for (name, place, value) in entries {
        // A key without a value means the default, as if it were not there.
        if matches!(value.content, SourceValue::Null) {
            if !is_known(name) {
                diagnostics.push(unknown_field("", name, place.clone()));
            }
            continue;
        }
        let value = prepared(name, value);
        let mut probe = json!({ "command": "true" });
        probe[name.as_str()] = value.to_json();
        object.insert(name.clone(), value.to_json());
        if let Err(error) = read_value(probe) {
            diagnostics.push(explain(&error, tree, place, JOB));
        }
    }
    if !diagnostics.is_empty() {
        return Err(diagnostics);
    }
    if !object.contains_key("command") {
        let message = "is missing; write what to run, such as `command: python train.py`".to_owned();
        let diagnostic =
            Diagnostic { field: "command".to_owned(), message, label: None, place: tree.place.clone() };
        return Err(vec![diagnostic]);
    }
    read_value(Value::Object(object)).map_err(|error| vec![explain(&error, tree, &tree.place, JOB)])
}

/// What is wrong with some fields of a job whose other fields are elsewhere: what is missing here may be there.
pub(crate) fn check_part(tree: &SourceTree) -> Vec<Diagnostic> {
    let SourceValue::Map(entries) = &tree.content else { return Vec::new() };
    let mut diagnostics = Vec::new();
    for (name, place, value) in entries {
        if matches!(value.content, SourceValue::Null) {
            if !is_known(name) {
                diagnostics.push(unknown_field("", name, place.clone()));
            }
            continue;
        }
        let mut probe = json!({ "command": "true" });
        probe[name.as_str()] = prepared(name, value).to_json();
        match read_value(probe) {
            Err(error) if !error.inner().to_string().starts_with("missing field") => {
                diagnostics.push(explain(&error, tree, place, JOB));
            }
            _ => {}
        }
    }
    diagnostics
}

/// The fields as JSON, texts as they were written.
pub(crate) fn to_json(tree: &SourceTree) -> Value {
    match &tree.content {
        SourceValue::Map(entries) => {
            let fields =
                entries.iter().map(|(name, _, value)| (name.clone(), prepared(name, value).to_json()));
            Value::Object(fields.collect())
        }
        _ => tree.to_json(),
    }
}

/// Diagnostics of a check, here or by the server, at the places their fields were written.
pub fn place_errors(errors: Vec<FieldError>, tree: &SourceTree) -> Vec<Diagnostic> {
    let placed = |error: FieldError| {
        let place = find(tree, &error.field).unwrap_or(ValueOrigin::Nowhere);
        Diagnostic { field: error.field, message: error.message, label: None, place }
    };
    errors.into_iter().map(placed).collect()
}

/// The place of the value at a dotted path such as `retry.on[1]` or `any_of.1.count`, or of the nearest thing above it.
pub(crate) fn find(tree: &SourceTree, path: &str) -> Option<ValueOrigin> {
    let mut found = None;
    let mut tree = tree;
    let mut rest = path;
    while let Some((below, tail)) = step(tree, rest) {
        found = Some(below.place.clone());
        (tree, rest) = (below, tail);
    }
    found
}

/// One name or index down. Names below `env` may have dots of their own: the longest that fits wins.
fn step<'a, 'b>(tree: &'a SourceTree, path: &'b str) -> Option<(&'a SourceTree, &'b str)> {
    match &tree.content {
        SourceValue::Map(entries) => {
            let fits = |name: &str| {
                path.strip_prefix(name).is_some_and(|tail| tail.is_empty() || tail.starts_with(['.', '[']))
            };
            let (name, _, below) =
                entries.iter().filter(|(name, _, _)| fits(name)).max_by_key(|(name, _, _)| name.len())?;
            Some((below, path[name.len()..].trim_start_matches('.')))
        }
        SourceValue::List(items) => {
            let (index, tail) = match path.strip_prefix('[') {
                Some(path) => path.split_once(']')?,
                None => path.split_once('.').unwrap_or((path, "")),
            };
            Some((items.get(index.parse::<usize>().ok()?)?, tail.trim_start_matches('.')))
        }
        _ => None,
    }
}

fn prepared(name: &str, value: &SourceTree) -> SourceTree {
    if TEXT_FIELDS.contains(&name) {
        return value.as_written();
    }
    let mut value = value.clone();
    texts_inside(name, &mut value);
    value
}

/// Texts inside maps: `devices: {model: 910}`, `nodes: {labels: {zone: 1.10}}`.
fn texts_inside(field: &str, value: &mut SourceTree) {
    match &mut value.content {
        SourceValue::List(items) if field == "any_of" => {
            for item in items {
                texts_inside("devices", item);
            }
        }
        SourceValue::Map(entries) => {
            let texts: &[&str] = match field {
                "devices" => &["model"],
                "nodes" => &["architecture", "labels"],
                _ => &[],
            };
            for (_, _, text) in entries.iter_mut().filter(|(name, _, _)| texts.contains(&name.as_str())) {
                *text = text.as_written();
            }
        }
        _ => {}
    }
}

/// What a job file describes, in sentences about it.
const JOB: &str = "a job";

type FieldReadError = serde_path_to_error::Error<serde_json::Error>;

fn read_value(value: Value) -> Result<JobSpec, FieldReadError> {
    serde_path_to_error::deserialize(value)
}

fn is_known(name: &str) -> bool {
    let mut probe = json!({ "command": "true" });
    probe[name] = Value::Null;
    let later = FIELDS_OF_LATER_VERSIONS.iter().any(|(field, _)| *field == name);
    let error = read_value(probe).err().map(|error| error.inner().to_string());
    !later && !error.is_some_and(|message| message.starts_with("unknown field"))
}

/// serde's words, in the job file's terms.
pub fn explain(error: &FieldReadError, tree: &SourceTree, key: &ValueOrigin, whole: &str) -> Diagnostic {
    let message = error.inner().to_string();
    let path = error.path().to_string();
    let path = if path == "." { String::new() } else { path };
    if let Some(rest) = message.strip_prefix("unknown field `")
        && let Some((name, expected)) =
            rest.split_once("`, expected").or_else(|| rest.split_once("`, there are"))
    {
        let above = match path.strip_suffix(name) {
            Some(above) => above.trim_end_matches('.'),
            None => path.as_str(),
        };
        let place = key_place(tree, above, name, key);
        return unknown_field_among(above, name, &quoted(expected), place, whole);
    }
    let place = find(tree, &path).unwrap_or_else(|| key.clone());
    let value = walk(tree, &path);
    let (message, label) = reworded(&message, &path, value);
    Diagnostic { field: path, message, label, place }
}

fn unknown_field(above: &str, name: &str, place: ValueOrigin) -> Diagnostic {
    let mut probe = json!({ "command": "true" });
    probe[name] = Value::Null;
    let expected = read_value(probe).err().map(|error| error.inner().to_string()).unwrap_or_default();
    let expected = expected.rsplit_once("expected").map_or("", |(_, words)| words);
    unknown_field_among(above, name, &quoted(expected), place, JOB)
}

fn unknown_field_among(
    above: &str,
    name: &str,
    known: &[&str],
    place: ValueOrigin,
    whole: &str,
) -> Diagnostic {
    let is_later = |field: &str| above.is_empty() && whole == JOB && field == name;
    let later = FIELDS_OF_LATER_VERSIONS.iter().find(|(field, _)| is_later(field));
    let what = if above.is_empty() { whole.to_owned() } else { format!("`{above}`") };
    let (message, label) = match (later, nearest(name, known.iter().copied())) {
        (Some((_, sentence)), _) => ("cannot be used yet".to_owned(), (*sentence).to_owned()),
        (None, Some(meant)) => (format!("is not a field of {what}"), format!("did you mean `{meant}`?")),
        (None, None) => (format!("is not a field of {what}"), format!("known are {}", listed(known))),
    };
    Diagnostic { field: spelled(name), message, label: Some(label), place }
}

fn key_place(tree: &SourceTree, above: &str, name: &str, fallback: &ValueOrigin) -> ValueOrigin {
    match walk(tree, above).map(|tree| &tree.content) {
        Some(SourceValue::Map(entries)) => entries
            .iter()
            .find(|(key, _, _)| key == name)
            .map_or(fallback.clone(), |(_, place, _)| place.clone()),
        _ => fallback.clone(),
    }
}

/// The value at a path, if all of the path is there.
fn walk<'a>(tree: &'a SourceTree, path: &str) -> Option<&'a SourceTree> {
    if path.is_empty() {
        return Some(tree);
    }
    let (below, rest) = step(tree, path)?;
    walk(below, rest)
}

/// A message, and what would be accepted.
fn reworded(message: &str, path: &str, value: Option<&SourceTree>) -> (String, Option<String>) {
    if let Some(rest) = message.strip_prefix("unknown variant `")
        && let Some((word, expected)) = rest.rsplit_once("`, expected ")
    {
        let known = quoted(expected);
        let label = match nearest(word, known.iter().copied()) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => format!("write {}", listed(&known)),
        };
        return (format!("cannot be `{}`", shortened(word)), Some(label));
    }
    if let Some(name) = message.strip_prefix("missing field `").and_then(|rest| rest.strip_suffix('`')) {
        return (format!("needs a `{name}`"), None);
    }
    if message.starts_with("invalid type") || message.starts_with("invalid value") {
        let expected = message.rsplit_once(", expected ").map_or("something else", |(_, expected)| expected);
        let found = value.map_or_else(|| "something else".to_owned(), SourceTree::described);
        return (format!("cannot be {found}"), Some(format!("write {}", accepted(path, expected))));
    }
    let message = shortened_message(message);
    match message.split_once("; ") {
        Some((wrong, right)) => (format!("is wrong: {wrong}"), Some(right.to_owned())),
        None => (format!("is wrong: {message}"), None),
    }
}

fn accepted<'a>(path: &str, expected: &'a str) -> &'a str {
    match expected {
        "a sequence" if path == "any_of" => {
            "a list such as `[{ kind: nvidia, count: 8 }, { kind: ascend, count: 8 }]`"
        }
        "u8" | "u32" | "u64" => "a whole number, such as `2`",
        "a string" => "a text",
        "a boolean" => "`true` or `false`",
        "struct DeviceRequest" => "a map such as `{ kind: ascend, count: 8 }`",
        "struct NodeSelection" => "a map such as `{ labels: { zone: a } }`",
        "struct Workspace" => "a map such as `{ guaranteed: { nvidia: 8 }, limit: { nvidia: 16 } }`",
        "struct Amounts" => "a map such as `{ nvidia: 8, cpus: 64, memory: 512Gi }`",
        "struct Retry" => "a map such as `{ limit: 3 }`",
        "a sequence" => "a list such as `[node_lost, exit]`",
        "a map" => "a map such as `{ NAME: value }`",
        other => other,
    }
}

fn shortened_message(message: &str) -> String {
    message.chars().take(400).collect()
}

/// A name in which letters of two scripts, or invisible ones, are mixed is spelled out: it looks like what it is not.
fn spelled(name: &str) -> String {
    let name = shortened(name);
    let mixed = name.contains(|c: char| c.is_ascii_alphabetic()) && !name.is_ascii();
    let spell =
        |c: char| if c.is_ascii() || c == '…' { c.to_string() } else { c.escape_unicode().to_string() };
    if mixed { name.chars().map(spell).collect() } else { name }
}

/// The names in backticks.
fn quoted(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

fn listed(words: &[&str]) -> String {
    let words: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
    words.join(", ")
}
