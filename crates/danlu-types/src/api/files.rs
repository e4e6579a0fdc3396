//! Files that a job left.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::{AttemptNumber, WorkerIndex};

/// Which of a job's folders.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum FileArea {
    /// `$DANLU_OUTPUT_DIR`, shared by all attempts.
    #[default]
    Output,
    /// What `checkpoint` names, shared by all attempts.
    Checkpoint,
    /// The folder that one worker of one attempt ran in.
    Work,
}

/// Where to look in a job's files.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct FileQuery {
    #[serde(default)]
    pub area: FileArea,
    /// From the area's own folder on, with `/` between names; the folder itself when empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub path: String,
    /// For `work`: the last one when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<AttemptNumber>,
    /// For `work`: 0 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<WorkerIndex>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FileEntry {
    pub name: String,
    pub kind: FileKind,
    /// In bytes; 0 for what is no file.
    pub size: u64,
    #[schema(value_type = String, format = DateTime)]
    pub modified_at: Timestamp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum FileKind {
    Folder,
    File,
    /// A link, a socket, …: shown, and not followed.
    Other,
}
