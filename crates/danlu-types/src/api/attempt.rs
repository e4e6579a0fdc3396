//! What the programs of a job say and hear with the token of their attempt.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{AttemptNumber, JobId, Rank, WorkerIndex};

/// What a token speaks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OwnAttempt {
    pub job: JobId,
    pub attempt: AttemptNumber,
    pub worker: WorkerIndex,
    /// The job's.
    pub name: String,
    pub workspace: String,
}

/// What a rank reports of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewReports {
    /// Which of the worker's ranks speaks (`DANLU_RANK`); its first when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rank: Option<Rank>,
    /// Each as the program would print it: `::danlu progress 0.42`.
    #[schema(max_items = 1000)]
    pub lines: Vec<String>,
}
