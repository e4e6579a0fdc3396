//! What sidecars carry between the server and nodes that share no disk with it.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::Span;

/// A job of the cluster's has begun and wants to run an allocation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ClaimRequest {
    /// The name of the allocation's folder: `1.slurm.0`.
    pub allocation: String,
    /// The number of the job in the cluster.
    pub job: u64,
    /// Made up by the script's process: who asks twice gets the same answer, and a job that is run again another.
    #[schema(min_length = 16, max_length = 64)]
    pub nonce: String,
    /// What the cluster says that it gave.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub granted: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ClaimView {
    /// If not, another has it, and nothing is to be run.
    pub claimed: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct NewsQuery {
    /// The version of the last news; answered as soon as there is another.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub since: String,
}

/// What a worker on a node has to hear.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SidecarNews {
    pub version: String,
    /// The worker is to end, within this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub stop: Option<Span>,
    /// What the workers of its gang say of themselves, by the names of the files; once all have, or some are late.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub gang: BTreeMap<String, String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct PutQuery {
    /// Where in a file that grows the body begins; absent for files that are put in place whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
}

/// How much of a file the server has: the sender goes on from there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FileSize {
    pub size: u64,
}

/// A folder of the job's that travels as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum TreeArea {
    Output,
    Checkpoint,
}

impl TreeArea {
    pub fn as_str(self) -> &'static str {
        match self {
            TreeArea::Output => "output",
            TreeArea::Checkpoint => "checkpoint",
        }
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum TreeKind {
    #[default]
    File,
    Folder,
    /// Its target is never followed.
    Link,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TreeEntry {
    /// From the area's own folder on, with `/` between names.
    pub path: String,
    pub kind: TreeKind,
    /// In bytes; 0 for what is no file.
    pub size: u64,
    #[schema(value_type = String, format = DateTime)]
    pub modified_at: Timestamp,
    pub executable: bool,
    /// Of a link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct TreeQuery {
    pub path: String,
    /// Where to begin to read.
    #[serde(default)]
    pub offset: u64,
}

/// A piece of a file, or a whole link or folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct TreePut {
    pub path: String,
    #[serde(default)]
    pub kind: TreeKind,
    /// Where in the file the body begins.
    #[serde(default)]
    pub offset: u64,
    /// Of the whole file: with its last byte it is put in place.
    #[serde(default)]
    pub size: u64,
    #[param(value_type = String, format = DateTime)]
    pub modified_at: Timestamp,
    #[serde(default)]
    pub executable: bool,
    /// Of a link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
}
