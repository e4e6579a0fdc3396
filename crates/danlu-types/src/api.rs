//! Bodies of the HTTP API under `/api/v1`.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::{
    AttemptNumber, Bytes, Cpus, Device, DeviceKind, JobId, JobSpec, Node, NodeName, Rank, WorkerIndex,
};

/// The word for where a job is in its life. Few states; the reason says the rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum JobState {
    /// Paused by a person; keeps its place.
    Held,
    Queued,
    /// Has its devices; its workers are being started.
    Starting,
    Running,
    /// Was asked to end, and is being given its grace.
    Stopping,
    Ended,
}

impl JobState {
    pub const ALL: [JobState; 6] = [
        JobState::Held,
        JobState::Queued,
        JobState::Starting,
        JobState::Running,
        JobState::Stopping,
        JobState::Ended,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            JobState::Held => "held",
            JobState::Queued => "queued",
            JobState::Starting => "starting",
            JobState::Running => "running",
            JobState::Stopping => "stopping",
            JobState::Ended => "ended",
        }
    }
}

/// How a job ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum JobOutcome {
    Succeeded,
    Failed,
    /// Ended because a person asked for it.
    Stopped,
}

impl JobOutcome {
    pub const ALL: [JobOutcome; 3] = [JobOutcome::Succeeded, JobOutcome::Failed, JobOutcome::Stopped];

    pub fn as_str(self) -> &'static str {
        match self {
            JobOutcome::Succeeded => "succeeded",
            JobOutcome::Failed => "failed",
            JobOutcome::Stopped => "stopped",
        }
    }
}

/// Why something is as it is: a stable word for programs, a sentence for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Reason {
    pub code: String,
    pub text: String,
}

/// A job with its attempts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JobView {
    pub id: JobId,
    pub name: String,
    pub workspace: String,
    pub owner: String,
    pub state: JobState,
    /// Set once the job has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<JobOutcome>,
    pub reason: Reason,
    pub priority: u8,
    pub submitted_at: Timestamp,
    /// When the job first ran.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// The exit code that `danlu run` passes on, once the job has ended: its first failing rank's, or 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Grows with every change; hints carry it.
    pub generation: u64,
    pub spec: JobSpec,
    pub attempts: Vec<AttemptView>,
}

/// One try at running a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AttemptView {
    pub number: AttemptNumber,
    pub placed_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// How it ended, or what it is doing.
    pub reason: Reason,
    pub workers: Vec<WorkerView>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum WorkerPhase {
    Starting,
    Running,
    Ended,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WorkerView {
    pub index: WorkerIndex,
    pub node: NodeName,
    /// Indices of the node's devices.
    pub devices: Vec<u32>,
    pub phase: WorkerPhase,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub running_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// How it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
}

/// One page of a list; pass `next` as `cursor` for the one after it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Page<T> {
    pub items: Vec<T>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// Which jobs to list; newest first.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct JobQuery {
    /// States or outcomes, separated by commas: `queued,running,failed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// Exactly this name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Part of the name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<String>,
    /// `key=value`: jobs that carry this label.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// 1 to 1000; 100 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

/// What to stop, and how kindly.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct StopRequest {
    /// Overrides the job's own grace; `0s` kills at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grace: Option<crate::Span>,
}

/// Something that happened, kept for ever in the order in which it happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EventView {
    pub number: u64,
    pub at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job: Option<JobId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt: Option<AttemptNumber>,
    /// A stable word, such as `job_submitted` or `attempt_ended`.
    pub kind: String,
    /// Who did it: a person, or `danlu`.
    pub actor: String,
    pub message: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct EventQuery {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<JobId>,
    /// Events after this number, oldest first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// 1 to 1000; 100 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

/// A node with what is taken of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NodeView {
    #[serde(flatten)]
    pub node: Node,
    pub used_cpus: Cpus,
    pub used_memory: Bytes,
    pub held: Vec<HeldDevice>,
}

/// A device in a job's hands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HeldDevice {
    pub index: u32,
    pub job: JobId,
    pub job_name: String,
    pub owner: String,
}

/// A device with its node and holder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DeviceView {
    pub node: NodeName,
    #[serde(flatten)]
    pub device: Device,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held_by: Option<HeldDevice>,
}

/// Which part of a job's logs.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct LogQuery {
    /// The last attempt when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<AttemptNumber>,
    /// All ranks, merged by time, when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rank: Option<Rank>,
    /// Only lines that hold this text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<String>,
    /// Read `search` as a regular expression.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub regex: Option<bool>,
    /// From an earlier page's `next`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// Only the last so many lines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tail: Option<u32>,
    /// 1 to 10000; 1000 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum LogStream {
    Stdout,
    Stderr,
    /// Danlu's own words about this worker.
    Danlu,
}

/// One line that a rank printed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LogLine {
    pub attempt: AttemptNumber,
    pub worker: WorkerIndex,
    pub rank: Rank,
    /// Counted from 0 within this attempt and rank.
    pub number: u64,
    pub at: Timestamp,
    pub stream: LogStream,
    pub text: String,
}

/// One item of the log's event stream (`/jobs/{id}/logs/follow`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case", tag = "type")]
pub enum LogMessage {
    /// Lines in order. The event's id is the cursor after the last of them.
    Lines { lines: Vec<LogLine> },
    /// The attempt went into another state.
    State { state: JobState, reason: Reason },
    /// Nothing will follow.
    End { outcome: JobOutcome, exit_code: i32, reason: Reason },
}

/// Something changed; fetch it if you care. Hints carry no data, and may be lost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Hint {
    /// `job` or `node`.
    pub kind: String,
    pub id: String,
    pub generation: u64,
}

/// Why a job waits, or what it is doing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Explanation {
    /// 0 for a dry run.
    pub job: JobId,
    pub state: JobState,
    /// The dominant reason.
    pub reason: Reason,
    /// Everything below in one paragraph.
    #[serde(default)]
    pub text: String,
    /// 1 for the next to be started; absent when the job does not wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<u32>,
    /// How much there is of each device the job would take.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub supply: Vec<Supply>,
    /// The limit or guarantee that keeps it waiting, where one does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota: Option<QuotaUse>,
    /// Who holds what it needs, largest first; at most a dozen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub holders: Vec<Holder>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimate: Option<StartEstimate>,
    /// Changes that would start it now; each was planned before it is offered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub offers: Vec<Offer>,
}

/// Devices of one model, or (without kind and model) processor cores.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Supply {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<DeviceKind>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    pub total: u32,
    /// Working, on nodes that take jobs.
    pub usable: u32,
    /// Usable and whole in nobody's hands.
    pub free: u32,
    /// The most that is free on one node.
    pub most_on_one_node: u32,
    /// Free, but kept for jobs further ahead.
    pub reserved: u32,
}

/// Where a workspace (or one of its people) stands with one resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct QuotaUse {
    pub workspace: String,
    /// Set when the limit is that of one person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// `nvidia`, `ascend`, `cpus` or `memory`.
    pub resource: String,
    pub asked: String,
    pub used: String,
    pub guaranteed: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<String>,
}

/// A job that holds what another waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Holder {
    pub job: JobId,
    pub name: String,
    pub workspace: String,
    pub owner: String,
    pub devices: u32,
    pub nodes: Vec<NodeName>,
    /// When it should end, if there is anything to tell it by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub expected_end: Option<Timestamp>,
}

/// When a waiting job should start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StartEstimate {
    #[schema(value_type = String, format = DateTime)]
    pub earliest: Timestamp,
    /// Absent when a job with no time limit and no history stands in the way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub latest: Option<Timestamp>,
    /// What the two rest on: time limits, past durations of like jobs, or guesses.
    pub rests_on: String,
}

/// A change of the job that would start it now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Offer {
    /// Fields and values, as `--set` takes them.
    pub set: std::collections::BTreeMap<String, String>,
    /// "4 devices instead of 8 start at once".
    pub text: String,
}

/// An uploaded code snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CodeView {
    /// `sha256:…` of the packed snapshot.
    pub digest: String,
    pub size: Bytes,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HealthView {
    /// `ok`, or what is wrong.
    pub status: String,
    pub version: String,
    /// One entry for each part that is not well.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
}
