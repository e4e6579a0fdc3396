//! Migrations of code from CUDA to Ascend NPU: what is asked, and what was done.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MigrationRequest {
    /// The digest of an uploaded snapshot, as jobs name theirs.
    pub code: String,
    /// The version of PyTorch whose lists of supported calls are asked, such as `2.1.0`; the newest listed when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub torch: Option<String>,
    /// The entry script that becomes one process for each device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub distributed: Option<MigrationEntry>,
    /// Adds an entry script for ModelArts, and a table that maps paths to its folders.
    #[serde(default)]
    pub modelarts: bool,
    /// Names counterparts of `torch_npu` that compute the same faster.
    #[serde(default)]
    pub similar: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MigrationEntry {
    /// Relative to the snapshot, such as `tools/train.py`.
    pub main: String,
    /// The variable that holds the model, such as `model` or `self.net`.
    pub model: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MigrationView {
    /// The digest of the migrated copy; jobs can name it. Its reports lie inside of it, in `danlu-migration`.
    pub code: String,
    /// The version of PyTorch whose lists were asked.
    pub torch: String,
    pub summary: MigrationSummary,
    /// Files with changes or findings, in the order of their paths.
    pub files: Vec<MigratedFile>,
    /// Some texts, changes or findings were left out because there are too many; the reports have all.
    pub truncated: bool,
    /// Reports that can be asked for by these names.
    pub reports: Vec<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MigrationSummary {
    pub files: usize,
    pub lines: usize,
    pub changed_files: usize,
    /// Changes, by how sure they are.
    pub edits: EditCounts,
    pub findings: FindingCounts,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EditCounts {
    pub safe: usize,
    pub likely: usize,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FindingCounts {
    /// Files that were left as they were.
    pub broken: usize,
    pub unsupported: usize,
    pub needs_person: usize,
    pub unknown: usize,
    pub precision: usize,
    pub performance: usize,
    pub note: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum MigrationStatus {
    Changed,
    Unchanged,
    /// It could not be read or changed, and is as it was.
    Broken,
}

/// How sure a change is to do the right thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum MigrationGrade {
    /// Resolved through imports, or unmistakable.
    Safe,
    /// What a reader would do without asking.
    Likely,
}

/// What kind of thing was found; what breaks a program first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum MigrationSeverity {
    Broken,
    Unsupported,
    NeedsPerson,
    Unknown,
    Precision,
    Performance,
    Note,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MigratedFile {
    /// Relative to the snapshot.
    pub path: String,
    pub status: MigrationStatus,
    pub changes: Vec<MigrationChange>,
    pub findings: Vec<MigrationFinding>,
    /// The whole text before and after, of files that were changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
}

/// One change. Places are those of the text before it, counted from 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MigrationChange {
    pub rule: String,
    pub grade: MigrationGrade,
    pub line: usize,
    pub end_line: usize,
    pub column: usize,
    pub message: String,
}

/// What a person should know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MigrationFinding {
    pub rule: String,
    pub severity: MigrationSeverity,
    pub line: usize,
    pub end_line: usize,
    pub column: usize,
    /// The call, module or text that it is about; may be empty.
    pub subject: String,
    pub message: String,
}
