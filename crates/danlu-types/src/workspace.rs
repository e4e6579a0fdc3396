//! Workspaces and what they may use: who shares the cluster, and by which rules.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::spec::{HIGHEST_PRIORITY, LOWEST_PRIORITY, OnHang, USUAL_PRIORITY, is_name};
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
    /// What holds for workspaces that are not listed: everybody's own.
    #[serde(default, skip_serializing_if = "Workspace::says_nothing")]
    pub personal: Workspace,
    /// By name.
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
    /// A job that asks for more than this waits until an owner approves it.
    #[serde(default, skip_serializing_if = "Amounts::says_nothing")]
    pub approve_above: Amounts,
    /// Of jobs that name none; 5 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_priority: Option<u8>,
    /// The highest that its jobs may name; 9 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub highest_priority: Option<u8>,
    /// Images its jobs may use, with `*` for any text; every one when there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<String>,
    /// What becomes of jobs that hold devices and do nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle: Option<IdlePolicy>,
    /// A folder for all its people, given to jobs as `$DANLU_SHARED_DIR`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared_folder: Option<String>,
    /// A place in an object store for all its people, such as `s3://vision/data`, given to jobs as `$DANLU_SHARED_BUCKET`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared_bucket: Option<String>,
}

fn is_bucket(text: &str) -> bool {
    let place = text.strip_prefix("s3://").or_else(|| text.strip_prefix("obs://"));
    let letters = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '.';
    place.is_some_and(|place| {
        let (bucket, folder) = place.split_once('/').unwrap_or((place, ""));
        (3..=63).contains(&bucket.len())
            && bucket.chars().all(letters)
            && folder.len() <= 1024
            && !folder.contains(char::is_control)
    })
}

/// For jobs that do not say it themselves by `hang_after` and `on_hang`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct IdlePolicy {
    /// Idle is a worker that has printed nothing for this long and whose devices did nothing either.
    pub after: Span,
    #[serde(default)]
    pub then: OnHang,
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
        Sharing {
            lending: true,
            minimum_run_time: default_minimum_run_time(),
            personal: Workspace::default(),
            workspaces: BTreeMap::new(),
        }
    }
}

impl Sharing {
    /// The rules of a workspace, listed or not.
    pub fn workspace(&self, name: &str) -> &Workspace {
        self.workspaces.get(name).unwrap_or(&self.personal)
    }

    /// Everything that is wrong with the values; empty when nothing is.
    pub fn check(&self) -> Vec<FieldError> {
        let mut errors = self.personal.check("personal.");
        if !self.personal.guaranteed.says_nothing() {
            let message = "cannot be: there may be any number of such workspaces; give them a `limit`, and \
                           guarantees to workspaces that are listed";
            errors.push(FieldError::new("personal.guaranteed", message));
        }
        for (name, workspace) in &self.workspaces {
            if !is_name(name) {
                errors.push(FieldError::new(format!("workspaces.{name}"), NO_NAME));
            }
            errors.extend(workspace.check(&format!("workspaces.{name}.")));
        }
        errors
    }
}

const NO_NAME: &str = "is no name for a workspace: it must start with a letter or digit and hold at most 63 \
                       letters, digits, `.`, `_` and `-`";

impl Workspace {
    /// Everything that is wrong with the values; `prefix` stands before the fields' names.
    pub fn check(&self, prefix: &str) -> Vec<FieldError> {
        let mut errors = self.broken_promises(prefix);
        let priorities =
            [("default_priority", self.default_priority), ("highest_priority", self.highest_priority)];
        for (field, priority) in priorities {
            if let Some(priority) = priority
                && !(LOWEST_PRIORITY..=HIGHEST_PRIORITY).contains(&priority)
            {
                let message =
                    format!("is {priority}; it must be between {LOWEST_PRIORITY} and {HIGHEST_PRIORITY}");
                errors.push(FieldError::new(format!("{prefix}{field}"), message));
            }
        }
        let (usual, highest) = (self.priority(), self.highest_priority.unwrap_or(HIGHEST_PRIORITY));
        if self.default_priority.is_some() && usual > highest {
            let message = format!("is {usual}, but `highest_priority` is {highest}");
            errors.push(FieldError::new(format!("{prefix}default_priority"), message));
        }
        if let Some(folder) = &self.shared_folder
            && (!folder.starts_with('/')
                || folder.contains(char::is_control)
                || folder.split('/').any(|part| part == ".."))
        {
            let message = "must be the whole path of a folder, from `/`, without `..`";
            errors.push(FieldError::new(format!("{prefix}shared_folder"), message));
        }
        if self.shared_bucket.as_deref().is_some_and(|bucket| !is_bucket(bucket)) {
            let message =
                "must be a bucket, with a folder in it or not: `s3://vision/data` or `obs://vision`";
            errors.push(FieldError::new(format!("{prefix}shared_bucket"), message));
        }
        errors
    }

    /// These rules as they hold in somebody's own workspace: what belongs to all is as `personal` says, and what its owner
    /// may say goes no further than that.
    #[must_use]
    pub fn bound_by(self, personal: &Workspace) -> Workspace {
        let highest = personal.highest_priority;
        Workspace {
            guaranteed: personal.guaranteed,
            limit: personal.limit,
            approve_above: personal.approve_above,
            highest_priority: highest,
            shared_folder: personal.shared_folder.clone(),
            shared_bucket: personal.shared_bucket.clone(),
            per_user: self.per_user.least(&personal.per_user),
            images: if personal.images.is_empty() { self.images } else { personal.images.clone() },
            idle: personal.idle.or(self.idle),
            default_priority: self
                .default_priority
                .or(personal.default_priority)
                .map(|priority| priority.min(highest.unwrap_or(HIGHEST_PRIORITY))),
            head_of_line: self.head_of_line,
        }
    }

    /// What these rules of somebody's own workspace say beyond those of all of them: that alone is the owner's to say.
    #[must_use]
    pub fn beyond(self, personal: &Workspace) -> Workspace {
        let Workspace { per_user, head_of_line, default_priority, images, idle, .. } = self;
        Workspace {
            per_user: if per_user == personal.per_user { Amounts::default() } else { per_user },
            head_of_line,
            default_priority: default_priority.filter(|own| Some(*own) != personal.default_priority),
            images: if images == personal.images { Vec::new() } else { images },
            idle: idle.filter(|own| Some(*own) != personal.idle),
            ..Workspace::default()
        }
    }

    /// Of a job that names none.
    pub fn priority(&self) -> u8 {
        let highest = self.highest_priority.unwrap_or(HIGHEST_PRIORITY);
        self.default_priority.unwrap_or(USUAL_PRIORITY.min(highest))
    }

    /// A guarantee that the limit forbids would never be made good.
    fn broken_promises(&self, prefix: &str) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let (guaranteed, limit) = (self.guaranteed.words(), self.limit.words());
        for ((resource, guaranteed, amount), (_, limit, most)) in guaranteed.into_iter().zip(limit) {
            if let (Some(guaranteed), Some(limit)) = (guaranteed, limit)
                && guaranteed > limit
            {
                let message = format!(
                    "is {amount}, but `limit.{resource}` is {most}; guarantee at most {most}, or raise the limit"
                );
                errors.push(FieldError::new(format!("{prefix}guaranteed.{resource}"), message));
            }
        }
        errors
    }

    pub fn says_nothing(&self) -> bool {
        *self == Workspace::default()
    }
}

impl Amounts {
    /// The smaller of the two where both speak of something, and what one says where the other does not.
    #[must_use]
    pub fn least(&self, other: &Amounts) -> Amounts {
        fn least<T: Ord>(one: Option<T>, other: Option<T>) -> Option<T> {
            one.into_iter().chain(other).min()
        }
        Amounts {
            nvidia: least(self.nvidia, other.nvidia),
            ascend: least(self.ascend, other.ascend),
            cpus: least(self.cpus, other.cpus),
            memory: least(self.memory, other.memory),
        }
    }

    pub fn says_nothing(&self) -> bool {
        *self == Amounts::default()
    }

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
