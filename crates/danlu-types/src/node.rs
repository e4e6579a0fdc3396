//! Machines, as engines report them.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{Bytes, Cpus, Device, NodeName};

/// What a node can give in all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NodeCapacity {
    pub cpus: Cpus,
    pub memory: Bytes,
}

/// What of a machine matters to where a rank's threads run, and to its place among other machines.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct Topology {
    /// The processors of each memory node, as the kernel writes lists: `0-23,96-119`. Empty where there is but one node, or none known.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub numa: BTreeMap<u32, String>,
    /// The super-pod that the machine is part of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub super_pod: Option<u32>,
}

impl Topology {
    pub fn is_unknown(&self) -> bool {
        *self == Topology::default()
    }
}

/// A machine that an engine offers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Node {
    pub name: NodeName,
    /// `x86_64` or `aarch64`.
    pub architecture: String,
    pub capacity: NodeCapacity,
    pub devices: Vec<Device>,
    /// What administrators say of it, for jobs that choose by it; `rack` also keeps gangs together.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Set while nothing new may start here: why not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cordoned: Option<String>,
    /// The address by which workers of other nodes reach this one.
    pub address: String,
    #[serde(default, skip_serializing_if = "Topology::is_unknown")]
    pub topology: Topology,
    /// True where `danlu up --simulate` made it up.
    #[serde(default)]
    pub simulated: bool,
    /// What jobs hold of it that the engine runs for others; new jobs are not given any of that.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub foreign: Vec<ForeignHold>,
}

/// What holds a part of a node and is none of Danlu's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ForeignKind {
    /// A job of the cluster that the engine runs on.
    #[default]
    ClusterJob,
    /// A process that uses devices without a job.
    Process,
    /// A device's memory is in use, and its vendor's tool names no process.
    UnknownProcess,
}

/// What a job or a process that is none of Danlu's holds of a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ForeignHold {
    #[serde(default)]
    pub kind: ForeignKind,
    /// The cluster's own number of the job; of a process, its process id; empty where no process is named.
    pub job: String,
    pub name: String,
    pub user: String,
    /// By their numbers on the node. How many is certain; which, only as far as the cluster says and no job of Danlu's was
    /// planned on the same.
    pub devices: Vec<u32>,
    pub cpus: Cpus,
    pub memory: Bytes,
    /// When its time is over, if it has a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub until: Option<Timestamp>,
}
