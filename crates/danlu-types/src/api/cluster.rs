//! Nodes, devices and workspaces, as the API shows them.

use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::{Bytes, Cpus, Device, DeviceCount, ForeignHold, JobId, Node, NodeName, Reading, Workspace};

/// Which part of a list of nodes or devices.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct ClusterQuery {
    /// `next` of the page before.
    #[param(pattern = "^[0-9]{1,18}$")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// At least 1; all of them when absent.
    #[param(minimum = 1, maximum = 100_000)]
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "crate::within::<_, 1, 100000>"
    )]
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
    /// Why it may have devices that are not offered, in words for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notice: Option<String>,
}

/// A device in a job's hands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HeldDevice {
    pub index: u32,
    /// How much of it, in devices: 1, or a share such as 0.5.
    #[serde(default)]
    pub count: DeviceCount,
    /// Absent where the asker may not see the job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<JobId>,
    /// [`HIDDEN_JOB`] where the asker may not see the job.
    pub job_name: String,
    /// Empty where the asker may not see the job.
    pub owner: String,
}

/// What stands in the place of a job's name for those who may not see the job.
pub const HIDDEN_JOB: &str = "another workspace's job";

/// A device with its node and holder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DeviceView {
    pub node: NodeName,
    #[serde(flatten)]
    pub device: Device,
    /// Set while Danlu gives the device to nobody, although the vendor's tool may call it well: why not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub out_of_service: Option<String>,
    /// Whoever holds it, or the largest share of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held_by: Option<HeldDevice>,
    /// All jobs that hold a part of it, the largest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub holders: Vec<HeldDevice>,
    /// The job or process that holds it and is none of Danlu's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub foreign: Option<ForeignHold>,
    /// How it is doing now; absent where its vendor's tools do not answer, and for simulated devices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reading: Option<Reading>,
}

/// Why a node is to take nothing new.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CordonRequest {
    /// Shown wherever the node is.
    pub why: String,
}

/// What becomes of the jobs on a node that is to be emptied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DrainView {
    pub node: NodeName,
    /// Asked to end; they are queued again in their old places.
    pub preempted: Vec<JobOnNode>,
    /// Not preemptible: they run to their end.
    pub running_on: Vec<JobOnNode>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JobOnNode {
    pub job: JobId,
    pub name: String,
    pub owner: String,
}

/// A workspace with what it may use and what it uses.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
pub struct WorkspaceView {
    pub name: String,
    #[serde(flatten)]
    pub rules: Workspace,
    pub used: AmountsUsed,
    /// What it uses beyond its guarantee.
    pub borrowed: AmountsUsed,
    /// What others use of its guarantee.
    pub lent: AmountsUsed,
}

/// Amounts in use; shares add up, so devices need not come out even.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, ToSchema)]
pub struct AmountsUsed {
    pub nvidia: f64,
    pub ascend: f64,
    pub cpus: Cpus,
    pub memory: Bytes,
}
