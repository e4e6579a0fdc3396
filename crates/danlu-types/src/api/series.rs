//! What programs and workers report while they run, over time.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::{AttemptNumber, Rank, WorkerIndex};

/// Which part of what one worker reported.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct SeriesQuery {
    /// The last attempt when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<AttemptNumber>,
    /// Worker 0 when absent, which has rank 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<WorkerIndex>,
    /// From an earlier page's `next`.
    #[param(pattern = "^[0-9]{1,18}$")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// Only the last so many, of the last MiB of them.
    #[param(minimum = 0, maximum = 10000)]
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "crate::within::<_, 0, 10000>"
    )]
    pub tail: Option<u32>,
    /// 1 to 10000; 1000 when absent.
    #[param(minimum = 1, maximum = 10000)]
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "crate::within::<_, 1, 10000>"
    )]
    pub limit: Option<u32>,
}

/// What a rank said of its training at a moment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MetricPoint {
    pub at: Timestamp,
    pub rank: Rank,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<u64>,
    /// By name; `null` for what is not a number.
    pub values: BTreeMap<String, Option<f64>>,
}
