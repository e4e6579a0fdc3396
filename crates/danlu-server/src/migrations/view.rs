//! A migration as the API shows it: everything that was found, and as many texts as an answer should carry.

use danlu_migrate::project::{FileReport, MigrationReport, Note, SourceChange};
use danlu_migrate::{FindingKind, Grade};
use danlu_types::api::{
    EditCounts, FindingCounts, MigratedFile, MigrationChange, MigrationFinding, MigrationGrade,
    MigrationSeverity, MigrationStatus, MigrationSummary, MigrationView,
};

/// Of texts, before and after together.
const MOST_TEXT_BYTES: usize = 4 << 20;
/// Changes and findings.
const MOST_ITEMS: usize = 20_000;

/// `texts` gives a file's text before and after, by its path.
pub(super) fn of(
    code: String,
    report: &MigrationReport,
    reports: Vec<String>,
    texts: impl Fn(&str) -> (String, String),
) -> MigrationView {
    let mut left = Budget { text_bytes: MOST_TEXT_BYTES, items: MOST_ITEMS, is_exceeded: false };
    let worth = report.files.iter().filter(|file| !(file.changes.is_empty() && file.findings.is_empty()));
    let files = worth.map_while(|file| file_view(file, &mut left, &texts)).collect();
    MigrationView {
        code,
        torch: report.torch.to_owned(),
        summary: summary(report),
        files,
        truncated: left.is_exceeded,
        reports,
    }
}

struct Budget {
    text_bytes: usize,
    items: usize,
    is_exceeded: bool,
}

impl Budget {
    /// Whether so many more are in it.
    fn takes(left: &mut usize, count: usize, is_exceeded: &mut bool) -> bool {
        let rest = left.checked_sub(count);
        *is_exceeded |= rest.is_none();
        *left = rest.unwrap_or(*left);
        rest.is_some()
    }
}

fn file_view(
    file: &FileReport,
    left: &mut Budget,
    texts: impl Fn(&str) -> (String, String),
) -> Option<MigratedFile> {
    let items = file.changes.len() + file.findings.len();
    if !Budget::takes(&mut left.items, items, &mut left.is_exceeded) {
        return None;
    }
    let is_broken = file.findings.iter().any(|note| note.kind == FindingKind::Broken);
    let status = match (file.changes.is_empty(), is_broken) {
        (false, _) => MigrationStatus::Changed,
        (true, true) => MigrationStatus::Broken,
        (true, false) => MigrationStatus::Unchanged,
    };
    let (mut before, mut after) = (None, None);
    if status == MigrationStatus::Changed {
        let (old, new) = texts(&file.path);
        if Budget::takes(&mut left.text_bytes, old.len() + new.len(), &mut left.is_exceeded) {
            (before, after) = (Some(old), Some(new));
        }
    }
    Some(MigratedFile {
        path: file.path.clone(),
        status,
        changes: file.changes.iter().map(change_view).collect(),
        findings: file.findings.iter().map(finding_view).collect(),
        before,
        after,
    })
}

fn change_view(change: &SourceChange) -> MigrationChange {
    MigrationChange {
        rule: change.rule.to_owned(),
        grade: if change.grade == Grade::Safe { MigrationGrade::Safe } else { MigrationGrade::Likely },
        line: change.start_line,
        end_line: change.end_line,
        column: change.column,
        message: change.message.clone(),
    }
}

fn finding_view(note: &Note) -> MigrationFinding {
    MigrationFinding {
        rule: note.rule.to_owned(),
        severity: match note.kind {
            FindingKind::Broken => MigrationSeverity::Broken,
            FindingKind::Unsupported => MigrationSeverity::Unsupported,
            FindingKind::NeedsPerson => MigrationSeverity::NeedsPerson,
            FindingKind::Unknown => MigrationSeverity::Unknown,
            FindingKind::Precision => MigrationSeverity::Precision,
            FindingKind::Performance => MigrationSeverity::Performance,
            FindingKind::Note => MigrationSeverity::Note,
        },
        line: note.start_line,
        end_line: note.end_line,
        column: note.column,
        subject: note.subject.clone(),
        message: note.message.clone(),
    }
}

fn summary(report: &MigrationReport) -> MigrationSummary {
    let changes = || report.files.iter().flat_map(|file| &file.changes);
    let safe = changes().filter(|change| change.grade == Grade::Safe).count();
    MigrationSummary {
        files: report.files.len(),
        lines: report.files.iter().map(|file| file.lines).sum(),
        changed_files: report.changed().count(),
        edits: EditCounts { safe, likely: changes().count() - safe },
        findings: FindingCounts {
            broken: report.count(FindingKind::Broken),
            unsupported: report.count(FindingKind::Unsupported),
            needs_person: report.count(FindingKind::NeedsPerson),
            unknown: report.count(FindingKind::Unknown),
            precision: report.count(FindingKind::Precision),
            performance: report.count(FindingKind::Performance),
            note: report.count(FindingKind::Note),
        },
    }
}

#[cfg(test)]
mod tests {
    use danlu_migrate::project::{FileReport, MigrationReport, SourceChange, SourceFileKind};
    use danlu_migrate::{Grade, TorchVersion};

    use super::{MOST_TEXT_BYTES, of};

    fn file(path: &str, changes: usize) -> FileReport {
        let change = SourceChange {
            start_line: 1,
            end_line: 1,
            column: 1,
            operation: "MODIFY",
            rule: "cuda-method",
            grade: Grade::Likely,
            message: String::new(),
        };
        FileReport {
            path: path.to_owned(),
            kind: SourceFileKind::Python,
            lines: 1,
            changes: vec![change; changes],
            findings: Vec::new(),
            diff: String::new(),
            operators: Vec::new(),
        }
    }

    #[test]
    fn an_answer_says_when_it_does_not_have_all() {
        let report = |files| MigrationReport { torch: TorchVersion::newest().name(), files };
        let shown = |report: &MigrationReport, length: usize| {
            let view = of("sha256:1".to_owned(), report, Vec::new(), |_| ("a".repeat(length), String::new()));
            let texts = view.files.iter().filter(|file| file.before.is_some()).count();
            (view.files.len(), texts, view.truncated, view.summary.edits.likely)
        };
        let two = report(vec![file("a.py", 1), file("b.py", 2), file("quiet.py", 0)]);
        assert_eq!(shown(&two, MOST_TEXT_BYTES / 2), (2, 2, false, 3));
        assert_eq!(shown(&two, MOST_TEXT_BYTES / 2 + 1), (2, 1, true, 3));
        let many = report(vec![file("a.py", 15_000), file("b.py", 5001)]);
        assert_eq!(shown(&many, 1), (1, 1, true, 20_001));
    }
}
