//! What a reader should know and no edit says.

use serde::Serialize;

/// What kind of thing was found. The order is that of reports: what breaks a program first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FindingKind {
    /// The file was left as it was: it cannot be read, or the change did not pass the check.
    Broken,
    /// The vendor lists it as not supported by this version.
    Unsupported,
    /// Somebody has to decide or to rewrite.
    NeedsPerson,
    /// A call of PyTorch that no list of the vendor names.
    Unknown,
    /// Works, and may be made more exact.
    Precision,
    /// Works, and may be made faster.
    Performance,
    /// Worth knowing.
    Note,
}

impl FindingKind {
    pub fn name(self) -> &'static str {
        match self {
            FindingKind::Broken => "broken",
            FindingKind::Unsupported => "unsupported",
            FindingKind::NeedsPerson => "needs a person",
            FindingKind::Unknown => "unknown",
            FindingKind::Precision => "precision",
            FindingKind::Performance => "performance",
            FindingKind::Note => "note",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    pub rule: &'static str,
    pub kind: FindingKind,
    pub start: usize,
    pub end: usize,
    /// The call, module or text that it is about.
    pub subject: String,
    pub message: String,
}
