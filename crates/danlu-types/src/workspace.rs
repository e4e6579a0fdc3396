//! Workspaces and what they may use: who shares the cluster, and by which rules.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::spec::is_name;
use crate::{Bytes, Cpus, DeviceCount, FieldError, Span};

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

impl Sharing {
    /// Everything that is wrong with the values; empty when nothing is.
    pub fn check(&self) -> Vec<FieldError> {
        let mut errors = Vec::new();
        for (name, workspace) in &self.workspaces {
            if !is_name(name) {
                let message = "is no name for a workspace: it must start with a letter or digit and hold at most 63 \
                               letters, digits, `.`, `_` and `-`";
                errors.push(FieldError::new(format!("workspaces.{name}"), message));
            }
            workspace.check(name, &mut errors);
        }
        errors
    }
}

impl Workspace {
    /// A guarantee that the limit forbids would never be made good.
    fn check(&self, name: &str, errors: &mut Vec<FieldError>) {
        let (guaranteed, limit) = (self.guaranteed.words(), self.limit.words());
        for ((resource, guaranteed, amount), (_, limit, most)) in guaranteed.into_iter().zip(limit) {
            if let (Some(guaranteed), Some(limit)) = (guaranteed, limit)
                && guaranteed > limit
            {
                let message = format!(
                    "is {amount}, but `limit.{resource}` is {most}; guarantee at most {most}, or raise the limit"
                );
                errors.push(FieldError::new(format!("workspaces.{name}.guaranteed.{resource}"), message));
            }
        }
    }
}

impl Amounts {
    /// Each resource by its name, as a number to compare and as a word to read.
    fn words(&self) -> [(&'static str, Option<u64>, String); 4] {
        fn word(amount: Option<impl ToString>) -> String {
            amount.map(|amount| amount.to_string()).unwrap_or_default()
        }
        let devices = |count: Option<DeviceCount>| count.map(|count| u64::from(count.milli()));
        [
            ("nvidia", devices(self.nvidia), word(self.nvidia)),
            ("ascend", devices(self.ascend), word(self.ascend)),
            ("cpus", self.cpus.map(|cpus| cpus.milli), word(self.cpus)),
            ("memory", self.memory.map(|memory| memory.0), word(self.memory)),
        ]
    }
}

fn yes() -> bool {
    true
}

fn default_minimum_run_time() -> Span {
    Span::from_seconds(300)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guarantee_beyond_the_limit_is_refused() {
        let sharing: Sharing = serde_saphyr::from_str(
            "workspaces:\n  vision: {guaranteed: {nvidia: 8, memory: 1Ti}, limit: {nvidia: 4, memory: 512Gi, cpus: 1}}\n  .odd: {}\n  fine: {guaranteed: {ascend: 8}, limit: {ascend: 8}}",
        )
        .unwrap();
        let lines: Vec<String> =
            sharing.check().into_iter().map(|error| format!("{}: {}", error.field, error.message)).collect();
        insta::assert_snapshot!(lines.join("\n"), @r"
        workspaces..odd: is no name for a workspace: it must start with a letter or digit and hold at most 63 letters, digits, `.`, `_` and `-`
        workspaces.vision.guaranteed.nvidia: is 8, but `limit.nvidia` is 4; guarantee at most 4, or raise the limit
        workspaces.vision.guaranteed.memory: is 1Ti, but `limit.memory` is 512Gi; guarantee at most 512Gi, or raise the limit
        ");
    }
}
