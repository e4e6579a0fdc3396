//! What a cluster's own scheduler gave a worker.

use danlu_types::{Device, NodeName};
use serde::{Deserialize, Serialize};

/// In the run folder where a cluster's own scheduler hands out the devices: a [`ActualAllocation`]. Written on the node, before the
/// launcher reads anything.
pub const GIVEN_FILE: &str = "given.json";

/// What a worker really got, instead of what its launch file plans with. In [`GIVEN_FILE`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActualAllocation {
    pub devices: Vec<Device>,
    /// Where it is, if that was not for Danlu to say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<GivenPlace>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GivenPlace {
    pub node: NodeName,
    pub address: String,
    /// Its devices as the cluster counts them.
    pub held: Vec<HeldGres>,
}

/// Which of a node's devices of one resource are somebody's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldGres {
    pub label: String,
    /// The first of its kind on the node is 0.
    pub indices: Vec<u32>,
}
