//! Why somebody has to approve a job before it may start: data, so that it can be told in any language.

use std::fmt;

use danlu_types::api::Reason;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ApprovalNeed {
    /// It asks for more than the workspace gives without approval. Amounts as people write them.
    Above { resource: ApprovalResource, asked: String, limit: String, workspace: String },
    /// As earlier versions stored it.
    Sentence(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalResource {
    Nvidia,
    Ascend,
    Cpus,
    Memory,
}

impl ApprovalResource {
    fn word(self) -> &'static str {
        match self {
            ApprovalResource::Nvidia => "nvidia",
            ApprovalResource::Ascend => "ascend",
            ApprovalResource::Cpus => "cpus",
            ApprovalResource::Memory => "memory",
        }
    }
}

impl ApprovalNeed {
    /// The names and numbers of a sentence as fields of a reason.
    pub(crate) fn described(&self, reason: Reason) -> Reason {
        match self {
            ApprovalNeed::Above { resource, asked, limit, workspace } => reason
                .with("resource", resource.word())
                .with("asked", asked)
                .with("limit", limit)
                .with("workspace", workspace),
            ApprovalNeed::Sentence(_) => reason,
        }
    }
}

impl fmt::Display for ApprovalNeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ApprovalNeed::Above { resource, asked, limit, workspace } => {
                let of = match resource {
                    ApprovalResource::Nvidia => " NVIDIA devices",
                    ApprovalResource::Ascend => " Ascend devices",
                    ApprovalResource::Cpus => " CPUs",
                    ApprovalResource::Memory => " of memory",
                };
                write!(
                    f,
                    "asks for {asked}{of}, and {limit} is the most in workspace `{workspace}` without approval"
                )
            }
            ApprovalNeed::Sentence(text) => f.write_str(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_that_earlier_versions_stored_are_read() {
        let need: ApprovalNeed = serde_json::from_str("\"asks for much\"").unwrap();
        assert_eq!(need.to_string(), "asks for much");
        let need = ApprovalNeed::Above {
            resource: ApprovalResource::Ascend,
            asked: "24".to_owned(),
            limit: "20".to_owned(),
            workspace: "nlp".to_owned(),
        };
        let stored = serde_json::to_string(&need).unwrap();
        assert_eq!(serde_json::from_str::<ApprovalNeed>(&stored).unwrap(), need, "{stored}");
    }
}
