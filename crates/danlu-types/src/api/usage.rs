//! How much of the cluster was in use over time.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::DeviceKind;

/// The cluster at one moment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct UsagePoint {
    #[schema(value_type = String, format = DateTime)]
    pub at: Timestamp,
    /// Jobs that wait for devices.
    pub queued: usize,
    /// Jobs that have theirs.
    pub running: usize,
    /// By kind and model.
    pub devices: Vec<DeviceUsage>,
}

/// All devices of one model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DeviceUsage {
    pub kind: DeviceKind,
    pub model: String,
    pub total: u32,
    /// Working, on nodes that take jobs.
    pub usable: u32,
    /// In jobs' hands; shares add up.
    pub held: f64,
    /// What they did on average, in percent; absent where nobody can tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busy: Option<f64>,
}

/// Which moments to show.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct UsageQuery {
    /// Only later ones; a day back when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(value_type = Option<String>, format = DateTime)]
    pub since: Option<Timestamp>,
    /// At most so many, spread evenly; 500 when absent.
    #[param(minimum = 1, maximum = 20000)]
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "crate::within::<_, 1, 20000>"
    )]
    pub limit: Option<u32>,
}
