//! Why a job waits, as the API says it.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::JobState;
use crate::reason::{CordonedNode, QuotaResource, Reason, ToldReason};
use crate::{Bytes, Cpus, DeviceKind, ForeignKind, JobId, NodeName};

/// Why a job waits, or what it is doing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Explanation {
    /// 0 for a dry run.
    pub job: JobId,
    pub state: JobState,
    /// The dominant reason.
    #[schema(value_type = ToldReason)]
    pub reason: Reason,
    /// What else keeps it from starting or going on: a cluster that does not answer, a hang.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<ToldReason>)]
    pub further: Vec<Reason>,
    /// Everything above and below in one paragraph.
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
    /// Jobs and processes that are none of Danlu's and hold what it needs, largest first; at most a dozen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub foreign: Vec<ForeignHolder>,
    /// Cordoned nodes that have what it needs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cordoned: Vec<CordonedNode>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimate: Option<StartEstimate>,
    /// Changes that would start it now; each was admitted and planned, as the asker would make it, before it is offered.
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
    pub resource: QuotaResource,
    pub asked: String,
    pub used: String,
    pub guaranteed: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<String>,
}

/// A job that holds what another waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Holder {
    /// Absent where the asker may not see the job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<JobId>,
    /// [`super::HIDDEN_JOB`] where the asker may not see the job.
    pub name: String,
    /// Empty where the asker may not see the job, as is the owner.
    pub workspace: String,
    pub owner: String,
    pub devices: u32,
    /// What it holds on nodes that would do, where CPUs are what the other waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<Cpus>,
    /// The same of memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Bytes>,
    pub nodes: Vec<NodeName>,
    /// When it should end, if there is anything to tell it by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub expected_end: Option<Timestamp>,
}

/// A job or a process that is none of Danlu's and holds what another waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ForeignHolder {
    #[serde(default)]
    pub kind: ForeignKind,
    /// The cluster's own number of the job; of a process, its process id; empty where no process is named.
    pub job: String,
    pub name: String,
    pub user: String,
    pub devices: u32,
    /// Their numbers on the node, where all are on one node.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub device_indices: Vec<u32>,
    pub nodes: Vec<NodeName>,
    /// When its time is over, if it has a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub until: Option<Timestamp>,
}

/// How much a start estimate says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum EstimateBound {
    /// Between `earliest` and `latest`.
    #[default]
    Range,
    /// Not before `earliest`: a job in the way has no time limit, no history and reports no progress.
    Earliest,
}

/// How many running jobs' ends an estimate takes from what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct EstimateBasis {
    /// From their time limits.
    pub time_limits: u32,
    /// From past durations of like jobs.
    pub past_durations: u32,
    /// From the progress that they report.
    pub progress: u32,
    /// From nothing: a guess.
    pub guesses: u32,
    /// Jobs that will be preempted for it.
    pub preemptions: u32,
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
    #[serde(default)]
    pub bound: EstimateBound,
    #[serde(default)]
    pub basis: EstimateBasis,
    /// The basis as a sentence.
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
