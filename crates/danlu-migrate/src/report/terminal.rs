//! What a person reads on a terminal.

use std::fmt::Write as _;

use crate::finding::FindingKind;
use crate::project::MigrationReport;

/// Every change and finding, one line each, as compilers write them.
pub fn text(report: &MigrationReport) -> String {
    let mut text = String::new();
    for file in &report.files {
        for change in &file.changes {
            let grade = change.grade.name();
            let _ = writeln!(
                text,
                "{}:{}:{}: {} [{}, {grade}]",
                file.path, change.start_line, change.column, change.message, change.rule
            );
        }
        // Advice and notes are in the files; here they would hide what matters.
        for note in file.findings.iter().filter(|note| note.kind <= FindingKind::NeedsPerson) {
            let subject =
                if note.subject.is_empty() { String::new() } else { format!("`{}`: ", note.subject) };
            let _ = writeln!(
                text,
                "{}:{}:{}: {}: {subject}{} [{}]",
                file.path,
                note.start_line,
                note.column,
                note.kind.name(),
                note.message,
                note.rule
            );
        }
    }
    text
}

/// The patch of the whole project.
pub fn diffs(report: &MigrationReport) -> String {
    report.files.iter().map(|file| file.diff.as_str()).collect()
}

/// One sentence for what was done, and one for what is left to do.
pub fn summary(report: &MigrationReport, verb: &str) -> String {
    let lines: usize = report.files.iter().map(|file| file.lines).sum();
    let changed = report.changed().count();
    let mut text = format!(
        "{} and {lines} lines read; {verb} {} in {}",
        counted(report.files.len(), "file"),
        counted(report.changes(), "place"),
        counted(changed, "file")
    );
    let left: Vec<String> =
        [FindingKind::Broken, FindingKind::Unsupported, FindingKind::NeedsPerson, FindingKind::Unknown]
            .into_iter()
            .filter_map(|kind| match (kind, report.count(kind)) {
                (_, 0) => None,
                (FindingKind::Broken, count) => {
                    Some(format!("{} could not be migrated", counted(count, "file")))
                }
                (FindingKind::Unsupported, count) => Some(format!("{} unsupported", counted(count, "call"))),
                (FindingKind::NeedsPerson, count) => {
                    Some(format!("{} to be looked at by a person", counted(count, "place")))
                }
                (_, count) => Some(format!("{} in no list", counted(count, "call"))),
            })
            .collect();
    if !left.is_empty() {
        text += "\nleft: ";
        text += &left.join(", ");
    }
    text
}

fn counted(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}
