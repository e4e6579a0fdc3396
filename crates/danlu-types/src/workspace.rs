//! Workspaces and what they may use: who shares the cluster, and by which rules.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{Bytes, Cpus, DeviceCount, Span};

/// How the cluster is shared out: the file of `danlu up --workspaces` and `danlu sim replay --workspaces`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Sharing {
    /// Whether guarantees that lie idle are lent to others, to be taken back by preemption.
    #[serde(default = "yes")]
    pub lending: bool,
    /// A job is not preempted before it has run this long.
    #[serde(default = "default_minimum_run_time")]
    pub minimum_run_time: Span,
    /// By name. When there are none, any name is accepted and nothing is guaranteed or limited.
    #[serde(default)]
    pub workspaces: BTreeMap<String, Workspace>,
}

/// People who share a quota.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Workspace {
    /// What it gets whenever it asks; 0 where nothing is said.
    #[serde(default)]
    pub guaranteed: Amounts,
    /// What it never exceeds; unlimited where nothing is said.
    #[serde(default)]
    pub limit: Amounts,
    /// What each of its people never exceeds.
    #[serde(default)]
    pub per_user: Amounts,
    #[serde(default)]
    pub head_of_line: HeadOfLine,
}

/// Amounts of what is shared out; what is absent is not spoken of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Amounts {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nvidia: Option<DeviceCount>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ascend: Option<DeviceCount>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<Cpus>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Bytes>,
}

/// What a workspace's first job that cannot start means for those behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum HeadOfLine {
    /// It gets a reservation; others start if they do not delay it.
    #[default]
    Backfill,
    /// Nobody passes it.
    Strict,
    /// Everybody who fits passes it.
    Skip,
    /// Nobody passes it at first; the longer it waits, the more of those behind it may.
    Balance,
}

impl Default for Sharing {
    fn default() -> Self {
        Sharing { lending: true, minimum_run_time: default_minimum_run_time(), workspaces: BTreeMap::new() }
    }
}

fn yes() -> bool {
    true
}

fn default_minimum_run_time() -> Span {
    Span::from_seconds(300)
}
