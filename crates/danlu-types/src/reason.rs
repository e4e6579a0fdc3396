//! Why a job, an attempt or a worker is in its state: one enum of stable codes with typed parameters.
//!
//! On the wire a reason is `{code, params, text}`: `text` is the English sentence that [`english`] renders from the rest, so
//! that programs read codes and parameters, and the console says the same in other languages. Codes are only ever
//! added to; a client that meets a code of a newer server keeps it as it came.

mod english;
mod parts;
mod reference;
mod wire;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use strum::{EnumDiscriminants, IntoStaticStr, VariantArray};
use utoipa::ToSchema;

use crate::{AttemptNumber, Bytes, Cpus, JobId, NodeName, Span, WorkerIndex};
pub use english::cordoned;
pub use parts::{
    ApprovalExcess, CordonedNode, DeviceShortage, FailedWorker, PendingCause, ProcessExit, QuotaResource,
    QuotaShortage, RequestedResources, SlurmWait,
};
pub use reference::markdown as reference_page;
pub use wire::ToldReason;

/// Why something is in its state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema, EnumDiscriminants)]
#[schema(as = ReasonParams)]
#[serde(remote = "Self", tag = "code", content = "params", rename_all = "snake_case")]
#[strum_discriminants(name(ReasonCode), derive(Hash, IntoStaticStr, VariantArray))]
#[strum_discriminants(strum(serialize_all = "snake_case"))]
#[strum_discriminants(doc = "The stable word of a reason.")]
pub enum Reason {
    // A job that is held.
    /// A person paused it.
    Held { by: String, job: JobId },
    /// It asks for more than its workspace gives without approval.
    NeedsApproval {
        job: JobId,
        /// Absent for jobs that earlier versions took.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        excess: Option<ApprovalExcess>,
    },

    // A job that is queued.
    /// The next pass of the scheduler looks at it.
    SchedulingPending { cause: PendingCause },
    /// It fits; the next pass starts it.
    AboutToStart,
    /// Too few devices of the requested kind and model are free, or not where they are needed.
    DevicesBusy { requested: RequestedResources, free: u32, most_on_one_node: u32, shortage: DeviceShortage },
    /// Devices are free, but too few CPUs beside them; or, for a job without devices, too few CPUs.
    CpusBusy { requested: RequestedResources, most_on_one_node: Cpus },
    /// Devices and CPUs are free, but too little memory beside them.
    MemoryBusy { requested: RequestedResources, most_on_one_node: Bytes },
    /// A job ahead in the same workspace waits for the same resources.
    QueuedBehind { job: JobId },
    /// What is free is reserved for a job ahead in the queue, which would be delayed.
    Reserved { job: JobId },
    /// Its workspace uses as much as its limit allows.
    WorkspaceLimit(QuotaShortage),
    /// Its owner uses as much as the workspace's limit for each user allows.
    UserLimit(QuotaShortage),
    /// What is free is guaranteed to other workspaces.
    GuaranteedToOthers {
        resource: QuotaResource,
        /// Whether preemptible jobs can borrow it.
        lendable: bool,
    },
    /// The only node with room failed its last attempt.
    AvoidingNode {
        node: NodeName,
        #[schema(value_type = String, format = DateTime)]
        until: Timestamp,
    },
    /// Running jobs are being stopped to make room for it.
    Preempting { jobs: Vec<JobId> },
    /// An attempt failed, and the next is not made before a certain time.
    RetryBackoff {
        attempt: AttemptNumber,
        #[schema(value_type = String, format = DateTime)]
        not_before: Timestamp,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schema(value_type = Option<ToldReason>, no_recursion)]
        failure: Option<Box<Reason>>,
    },
    /// Not even the idle cluster has what it asks for: nodes or devices went away, or failed, after it was accepted.
    InsufficientCapacity { requested: RequestedResources },
    /// Every node that could run it is cordoned.
    NodesCordoned { requested: RequestedResources, nodes: Vec<CordonedNode> },
    /// It was preempted, and is queued at its previous position.
    RequeuedAfterPreemption { job: JobId },
    /// Its node is being drained, and it is queued at its previous position.
    RequeuedAfterDrain { node: NodeName },
    /// The cluster did not start it, or put it back; that counts as no attempt.
    RequeuedByCluster {
        detail: String,
        #[schema(value_type = String, format = DateTime)]
        not_before: Timestamp,
    },

    // An attempt that is under way.
    /// Its workers are being started.
    Starting { started: u32, workers: u32 },
    /// It waits in Slurm's queue.
    SlurmPending {
        slurm_job: u64,
        cause: SlurmWait,
        /// Slurm's own word.
        slurm_reason: String,
    },
    /// The cluster's queue keeps it back.
    ClusterPending { detail: String },
    /// The cluster does not answer, so that it is not known when the job starts.
    ClusterUnreachable { detail: String },
    /// A node offers less than it has, such as devices whose tool does not answer.
    NodeTrouble { node: NodeName, detail: String },
    /// Its workers cannot be launched yet; launching is tried again.
    LaunchDelayed { detail: String },
    /// All of its workers run.
    Running { workers: u32 },
    /// Slurm has suspended it.
    SlurmSuspended { slurm_job: u64 },
    /// Its launcher does not do its work, although it lives.
    LauncherStalled { detail: String },
    /// It prints nothing, and its devices do nothing.
    SeemsHung { detail: String },
    /// A person asked it to stop.
    StopRequested { by: String, grace: Span },
    /// It is being stopped for another job.
    BeingPreempted { job: JobId, grace: Span },
    /// It is being stopped because its node is being drained.
    BeingDrained { node: NodeName, grace: Span },
    /// The cluster put it back into the queue; its workers are being stopped.
    BeingRequeued { detail: String },
    /// A worker failed, and the others are being stopped.
    WorkerFailed { worker: WorkerIndex },

    // What has ended.
    /// Every rank exited with code 0.
    Succeeded,
    /// It ended because a person asked for it.
    Stopped {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<String>,
    },
    /// An attempt ended for another job.
    Preempted { job: JobId },
    /// An attempt ended because its node was being drained.
    Drained { node: NodeName },
    /// The cluster ended an attempt, or put it back; that counts as no attempt.
    Requeued { detail: String },
    /// A rank exited with a code other than 0, or by a signal of its own.
    Exit(FailedWorker),
    /// The kernel killed it for using more memory than requested.
    OutOfMemory(FailedWorker),
    /// It ran longer than its time limit.
    TimeLimit(FailedWorker),
    /// The launcher, or its ranks, could not be started.
    StartFailed(FailedWorker),
    /// Its `setup` script failed.
    SetupFailed(FailedWorker),
    /// Not all workers became ready in time.
    GangTimeout(FailedWorker),
    /// The launcher ended without saying how its ranks ended.
    LauncherLost(FailedWorker),
    /// The node went away.
    NodeLost(FailedWorker),
    /// A device failed.
    DeviceError(FailedWorker),
    /// A rank failed in a way that every attempt would, such as a missing module.
    ProgramError(FailedWorker),
    /// It printed nothing and its devices did nothing for longer than `hang_after`.
    Hang(FailedWorker),

    /// A code of a newer server, as it came.
    #[serde(skip)]
    Unrecognised { code: String, params: Option<serde_json::Value>, text: String },
}

impl Reason {
    pub fn code(&self) -> ReasonCode {
        self.into()
    }

    /// The stable word, as programs read it.
    pub fn word(&self) -> &str {
        match self {
            Reason::Unrecognised { code, .. } => code,
            _ => self.code().as_str(),
        }
    }

    /// Of a failure, which worker failed and how.
    pub fn failed_worker(&self) -> Option<&FailedWorker> {
        match self {
            Reason::Exit(failed)
            | Reason::OutOfMemory(failed)
            | Reason::TimeLimit(failed)
            | Reason::StartFailed(failed)
            | Reason::SetupFailed(failed)
            | Reason::GangTimeout(failed)
            | Reason::LauncherLost(failed)
            | Reason::NodeLost(failed)
            | Reason::DeviceError(failed)
            | Reason::ProgramError(failed)
            | Reason::Hang(failed) => Some(failed),
            _ => None,
        }
    }
}

impl ReasonCode {
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// All that a server of this version can say.
    pub fn all() -> impl Iterator<Item = ReasonCode> {
        Self::VARIANTS.iter().copied().filter(|code| *code != ReasonCode::Unrecognised)
    }
}
