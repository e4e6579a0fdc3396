//! Job files and batch scripts that the server reads for callers without a command line.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::JobSpec;

/// A job file to read. Nothing is submitted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ParseRequest {
    /// A job file (YAML or JSON), or a Slurm batch script, which begins with `#!` or has `#SBATCH` lines. At most 64 KiB.
    #[schema(max_length = 65536)]
    pub text: String,
    /// Name of the file; a batch script without a job name gives it to the job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 255)]
    pub file_name: Option<String>,
}

/// What a job file asks for, or what is wrong with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ParsedJobFile {
    /// The job spec, for `POST /jobs`; absent where there are diagnostics.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spec: Option<JobSpec>,
    /// What is wrong, at most 100.
    pub diagnostics: Vec<JobFileDiagnostic>,
    /// What becomes of settings that the job does not have as written, at most 100.
    pub notes: Vec<JobFileNote>,
    /// Task numbers of a job array. The spec is of one of its tasks, without `SLURM_ARRAY_TASK_ID`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub array: Vec<u32>,
}

/// One thing that is wrong with a job file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JobFileDiagnostic {
    /// A dotted path such as `devices.count`; empty for the file itself.
    pub field: String,
    pub message: String,
    /// What would be right.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
    /// Counted from 1; absent where it is about no line in particular.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// In characters, counted from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
}

/// What becomes of one setting of a job file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JobFileNote {
    /// Counted from 1.
    pub line: u32,
    pub text: String,
}
