//! Why a job needs approval before it can start.

use std::fmt;

use danlu_types::reason::ApprovalExcess;
use serde::{Deserialize, Serialize};

/// Stored with the job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ApprovalNeed {
    /// It asks for more than the workspace gives without approval.
    Above(ApprovalExcess),
    /// As earlier versions stored it.
    Sentence(String),
}

impl ApprovalNeed {
    pub fn excess(&self) -> Option<&ApprovalExcess> {
        match self {
            ApprovalNeed::Above(excess) => Some(excess),
            ApprovalNeed::Sentence(_) => None,
        }
    }
}

impl fmt::Display for ApprovalNeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ApprovalNeed::Above(excess) => excess.fmt(f),
            ApprovalNeed::Sentence(text) => f.write_str(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn needs_that_earlier_versions_stored_are_read() {
        let need: ApprovalNeed = serde_json::from_str("\"asks for much\"").unwrap();
        assert_eq!(need.excess(), None);
        let stored = r#"{"resource":"ascend","asked":"24","limit":"20","workspace":"nlp"}"#;
        let need: ApprovalNeed = serde_json::from_str(stored).unwrap();
        assert_eq!(
            need.to_string(),
            "requests 24 Ascend devices; workspace `nlp` allows 20 without approval"
        );
        let stored = serde_json::to_string(&need).unwrap();
        assert_eq!(serde_json::from_str::<ApprovalNeed>(&stored).unwrap(), need, "{stored}");
    }
}
