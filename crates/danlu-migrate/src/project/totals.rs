//! How much a run changed and found, for reports that do not want to count.

use std::collections::BTreeMap;

use serde::ser::{Serialize, SerializeStruct as _, Serializer};

use super::MigrationReport;
use crate::finding::FindingKind;

#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct MigrationTotals {
    pub files: usize,
    pub lines: usize,
    pub changed_files: usize,
    pub changes: usize,
    pub findings: BTreeMap<FindingKind, usize>,
    pub rules: BTreeMap<&'static str, RuleTotals>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct RuleTotals {
    pub changes: usize,
    pub findings: usize,
}

impl MigrationReport {
    pub fn totals(&self) -> MigrationTotals {
        let mut totals = MigrationTotals {
            files: self.files.len(),
            lines: self.files.iter().map(|file| file.lines).sum(),
            changed_files: self.changed().count(),
            changes: self.changes(),
            findings: BTreeMap::new(),
            rules: BTreeMap::new(),
        };
        for file in &self.files {
            for change in &file.changes {
                totals.rules.entry(change.rule).or_default().changes += 1;
            }
            for note in &file.findings {
                *totals.findings.entry(note.kind).or_default() += 1;
                totals.rules.entry(note.rule).or_default().findings += 1;
            }
        }
        totals
    }
}

/// The fields, and which program made them.
impl Serialize for MigrationReport {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let MigrationReport { torch, files } = self;
        let mut report = serializer.serialize_struct("MigrationReport", 5)?;
        report.serialize_field("torch", torch)?;
        report.serialize_field("tool", "danlu migrate")?;
        report.serialize_field("version", env!("CARGO_PKG_VERSION"))?;
        report.serialize_field("totals", &self.totals())?;
        report.serialize_field("files", files)?;
        report.end()
    }
}
