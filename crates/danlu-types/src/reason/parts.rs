//! What reasons are made of.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{AttemptNumber, Bytes, Cpus, DeviceKind, DeviceRequest, JobSpec, NodeName, Rank, WorkerIndex};

/// What each worker of a job asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RequestedResources {
    pub workers: u32,
    /// Alternatives, the preferred one first; empty for a job without devices.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<DeviceRequest>,
    pub cpus: Cpus,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Bytes>,
}

impl From<&JobSpec> for RequestedResources {
    fn from(spec: &JobSpec) -> Self {
        let alternatives = spec.alternatives().iter().filter(|request| !request.count.is_none());
        RequestedResources {
            workers: spec.workers,
            devices: alternatives.cloned().collect(),
            cpus: spec.cpus,
            memory: spec.memory,
        }
    }
}

/// In what way free devices are not enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum DeviceShortage {
    TooFew,
    /// Enough, but too few on one node.
    TooFewOnOneNode,
    /// Enough, but not in one rack.
    NotInOneRack,
    /// Enough, but no combination satisfies the placement rules.
    NoCombination,
}

/// What quotas limit and guarantee.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum QuotaResource {
    Nvidia,
    Ascend,
    Cpus,
    Memory,
}

impl QuotaResource {
    /// In the order in which amounts are kept, and in which reasons name them.
    pub const ALL: [QuotaResource; 4] =
        [QuotaResource::Nvidia, QuotaResource::Ascend, QuotaResource::Cpus, QuotaResource::Memory];

    pub fn of(kind: DeviceKind) -> Self {
        match kind {
            DeviceKind::Nvidia => QuotaResource::Nvidia,
            DeviceKind::Ascend => QuotaResource::Ascend,
        }
    }

    pub fn is_device(self) -> bool {
        matches!(self, QuotaResource::Nvidia | QuotaResource::Ascend)
    }

    pub fn as_str(self) -> &'static str {
        match self {
            QuotaResource::Nvidia => "nvidia",
            QuotaResource::Ascend => "ascend",
            QuotaResource::Cpus => "cpus",
            QuotaResource::Memory => "memory",
        }
    }

    /// "Ascend devices", "CPUs".
    pub fn label(self) -> &'static str {
        match self {
            QuotaResource::Nvidia => "NVIDIA devices",
            QuotaResource::Ascend => "Ascend devices",
            QuotaResource::Cpus => "CPUs",
            QuotaResource::Memory => "memory",
        }
    }
}

/// A limit that keeps a job waiting. Amounts as people write them: `8`, `1.5`, `64Gi`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct QuotaShortage {
    pub workspace: String,
    pub resource: QuotaResource,
    pub requested: String,
    pub used: String,
    pub limit: String,
}

/// What a job asks for beyond what its workspace gives without approval. Amounts as people write them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ApprovalExcess {
    pub workspace: String,
    pub resource: QuotaResource,
    // As it was called where jobs are stored.
    #[serde(alias = "asked")]
    pub requested: String,
    pub limit: String,
}

/// Since what the scheduler has not looked at a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum PendingCause {
    Submitted,
    Released,
    Approved { by: String },
}

/// A node that takes no new jobs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CordonedNode {
    pub node: NodeName,
    /// As given with the order to cordon it.
    pub reason: String,
}

/// What a job waits for in Slurm's queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SlurmWait {
    /// Slurm has not looked at it yet.
    NotConsidered,
    Resources,
    Priority,
    NodeUnavailable,
    NodeDown,
    BeginTime,
    Held,
    PartitionClosed,
    PartitionTimeLimit,
    PartitionNodeLimit,
    Reservation,
    Licenses,
    BadConstraints,
    QosLimit,
    AccountLimit,
    /// Slurm's own word is all that is known.
    Other,
}

/// The worker whose failure ended an attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FailedWorker {
    /// Of a job that has ended: which of its attempts, where it is not the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<AttemptNumber>,
    /// Absent where it is this very worker's own reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<WorkerIndex>,
    /// The first rank that failed, where one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rank: Option<Rank>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<ProcessExit>,
    /// More about it, in the words of what found it; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub detail: String,
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProcessExit {
    Code(i32),
    Signal(i32),
}

impl ProcessExit {
    /// As a shell would say it: 128 + the signal's number.
    pub fn shell_code(self) -> i32 {
        match self {
            ProcessExit::Code(code) => code,
            ProcessExit::Signal(signal) => 128 + signal,
        }
    }
}
