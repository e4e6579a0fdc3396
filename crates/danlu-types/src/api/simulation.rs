//! What would have been: recorded jobs under other rules or on other machines.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{HeadOfLine, Sharing};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SimulationRequest {
    /// What to replay: the lines of `danlu history export`, or a table of jobs (CSV). This server's own history when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<String>,
    /// Runs to compare, one to six.
    pub runs: Vec<SimulationRun>,
}

/// What is different in one run; what is absent is as it is here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SimulationRun {
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<HeadOfLine>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lending: Option<bool>,
    /// As `danlu up --simulate` takes them; with a leading `+`, in addition to those there are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<String>,
    /// As the file of `danlu up --workspaces`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sharing: Option<Sharing>,
}
