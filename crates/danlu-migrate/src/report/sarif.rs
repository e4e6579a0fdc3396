//! SARIF 2.1.0, which editors and code hosts show at the lines concerned.

use std::collections::HashMap;

use serde_json::{Value, json};

use crate::finding::FindingKind;
use crate::project::MigrationReport;
use crate::rules::RULES;

pub fn sarif(report: &MigrationReport) -> Value {
    let rules: Vec<Value> = RULES
        .iter()
        .chain(crate::portable::RULES)
        .map(|rule| {
            json!({
                "id": rule.name,
                "shortDescription": { "text": first_sentence(rule.what) },
                "fullDescription": { "text": rule.what },
                "help": { "text": rule.why },
            })
        })
        .collect();
    let mut results = Vec::new();
    for file in &report.files {
        let mut fingerprints = Fingerprints { path: &file.path, seen: HashMap::new() };
        for change in &file.changes {
            let fingerprint = fingerprints.next(change.rule, &change.message);
            let place = place(&file.path, change.start_line, change.column, change.end_line);
            results.push(json!({ "ruleId": change.rule, "level": "note", "message": { "text": change.message }, "locations": [place], "partialFingerprints": fingerprint }));
        }
        for note in &file.findings {
            let about = if note.subject.is_empty() { &note.message } else { &note.subject };
            let fingerprint = fingerprints.next(note.rule, about);
            let level = match note.kind {
                FindingKind::Broken | FindingKind::Unsupported => "error",
                FindingKind::NeedsPerson => "warning",
                FindingKind::Unknown
                | FindingKind::Precision
                | FindingKind::Performance
                | FindingKind::Note => "note",
            };
            let text = if note.subject.is_empty() {
                note.message.clone()
            } else {
                format!("{}: {}", note.subject, note.message)
            };
            let place = place(&file.path, note.start_line, note.column, note.end_line);
            results.push(json!({ "ruleId": note.rule, "level": level, "message": { "text": text }, "locations": [place], "partialFingerprints": fingerprint }));
        }
    }
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": { "name": "danlu migrate", "version": env!("CARGO_PKG_VERSION"), "rules": rules } },
            "results": results,
        }],
    })
}

/// What tells the results of a file apart while its lines move: the rule, what it is about, and the how manieth of those it is.
struct Fingerprints<'a> {
    path: &'a str,
    seen: HashMap<(&'a str, &'a str), usize>,
}

impl<'a> Fingerprints<'a> {
    fn next(&mut self, rule: &'a str, about: &'a str) -> Value {
        let count = self.seen.entry((rule, about)).or_default();
        *count += 1;
        json!({ "danluResult/v1": format!("{}:{rule}:{about}:{count}", self.path) })
    }
}

fn place(path: &str, line: usize, column: usize, end_line: usize) -> Value {
    json!({ "physicalLocation": {
        "artifactLocation": { "uri": path.replace(' ', "%20") },
        "region": { "startLine": line, "startColumn": column, "endLine": end_line },
    } })
}

fn first_sentence(text: &str) -> &str {
    text.find(". ").map_or(text, |end| &text[..=end])
}
