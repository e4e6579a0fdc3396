//! What the command line adds to a job file: `--set devices.count=4`, and flags that stand for fields.

use crate::diagnostic::{Diagnostic, ValueOrigin};
use crate::tree::{SourceTree, SourceValue, shortened};
use crate::yaml::read;

/// Below these, the rest of a key is one name, dots and all: `env.SOME.NAME`.
const FREE_NAMES: [&str; 3] = ["env", "labels", "parameters"];

/// Sets the value at `key`, a dotted path; the value is read as YAML.
pub(crate) fn set(tree: &mut SourceTree, assignment: &str) -> Result<(), Diagnostic> {
    let place = ValueOrigin::Argument(format!("--set {}", shortened(assignment)));
    let Some((key, value)) = assignment.split_once('=') else {
        let message = format!("`{}` is not an assignment; write `--set key=value`", shortened(assignment));
        return Err(Diagnostic { field: String::new(), message, label: None, place });
    };
    let mut value = read_value(value, &place)?;
    relocate(&mut value, &place);
    insert(tree, key, value, place)
}

/// Puts `value` at `key`, making the maps on the way.
pub(crate) fn insert(
    tree: &mut SourceTree,
    key: &str,
    value: SourceTree,
    place: ValueOrigin,
) -> Result<(), Diagnostic> {
    let path = split_key(key);
    if path.iter().any(|name| name.is_empty()) {
        let message = format!("`{}` is not a key such as `devices.count`", shortened(key));
        return Err(Diagnostic { field: String::new(), message, label: None, place });
    }
    let mut tree = tree;
    for (depth, name) in path.iter().enumerate() {
        if matches!(tree.content, SourceValue::Null) {
            tree.content = SourceValue::Map(Vec::new());
        }
        let SourceValue::Map(entries) = &mut tree.content else {
            let field = path[..depth].join(".");
            let message = "is not a map, so nothing can be set inside it".to_owned();
            return Err(Diagnostic { field, message, label: None, place });
        };
        let at = entries.iter().position(|(known, _, _)| known == name).unwrap_or_else(|| {
            let empty = SourceTree { content: SourceValue::Null, place: place.clone() };
            entries.push(((*name).to_owned(), place.clone(), empty));
            entries.len() - 1
        });
        tree = &mut entries[at].2;
    }
    *tree = value;
    Ok(())
}

/// A value of the command line: YAML, and where that cannot be read, the text itself.
pub(crate) fn read_value(text: &str, place: &ValueOrigin) -> Result<SourceTree, Diagnostic> {
    if text.trim().is_empty() {
        return Ok(SourceTree { content: SourceValue::Null, place: place.clone() });
    }
    let starts_like_structure = text.trim_start().starts_with(['{', '[', '"', '\'']);
    match read(text) {
        Ok(tree) => Ok(match tree.content {
            // `--set command=a: b` is a text that happens to look like a map.
            SourceValue::Map(_) | SourceValue::List(_) if !starts_like_structure => {
                SourceTree::text(text, place.clone())
            }
            _ => tree,
        }),
        Err(_) if !starts_like_structure => Ok(SourceTree::text(text, place.clone())),
        Err(diagnostic) => Err(Diagnostic { place: place.clone(), ..diagnostic }),
    }
}

fn split_key(key: &str) -> Vec<&str> {
    match key.split_once('.') {
        Some((first, rest)) if FREE_NAMES.contains(&first) => vec![first, rest],
        _ => key.split('.').collect(),
    }
}

/// Byte ranges inside an argument mean nothing to the file's excerpts.
pub(crate) fn relocate(tree: &mut SourceTree, place: &ValueOrigin) {
    tree.place = place.clone();
    match &mut tree.content {
        SourceValue::List(items) => items.iter_mut().for_each(|item| relocate(item, place)),
        SourceValue::Map(entries) => {
            for (_, key, value) in entries {
                *key = place.clone();
                relocate(value, place);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merged(file: &str, assignments: &[&str]) -> Result<String, String> {
        let mut tree = read(file).map_err(|diagnostic| diagnostic.message)?;
        for assignment in assignments {
            set(&mut tree, assignment)
                .map_err(|diagnostic| format!("{}|{}", diagnostic.field, diagnostic.message))?;
        }
        Ok(tree.to_json().to_string())
    }

    #[test]
    fn settings_reach_into_maps_and_are_read_as_yaml() {
        for (file, assignments, expected) in [
            ("workers: 1", vec!["workers=2"], r#"{"workers":2}"#),
            (
                "devices: {kind: ascend, count: 8}",
                vec!["devices.count=4"],
                r#"{"devices":{"count":4,"kind":"ascend"}}"#,
            ),
            ("{}", vec!["retry.limit=3", "retry.on=[exit]"], r#"{"retry":{"limit":3,"on":["exit"]}}"#),
            ("{}", vec!["env.a.b=1"], r#"{"env":{"a.b":1}}"#),
            ("{}", vec!["preemptible=true"], r#"{"preemptible":true}"#),
            ("{}", vec!["name='12'"], r#"{"name":"12"}"#),
            ("{}", vec!["command=python a.py --x=1: y"], r#"{"command":"python a.py --x=1: y"}"#),
            ("memory: 1Gi", vec!["memory="], r#"{"memory":null}"#),
        ] {
            assert_eq!(merged(file, &assignments).as_deref(), Ok(expected), "{file} {assignments:?}");
        }
    }

    #[test]
    fn settings_that_cannot_be_are_refused() {
        for (assignment, expected) in [
            ("workers", "|`workers` is not an assignment; write `--set key=value`"),
            ("workers.x=1", "workers|is not a map, so nothing can be set inside it"),
            ("a..b=1", "|`a..b` is not a key such as `devices.count`"),
            ("=1", "|`` is not a key such as `devices.count`"),
        ] {
            assert_eq!(merged("workers: 1", &[assignment]).unwrap_err(), expected);
        }
    }
}
