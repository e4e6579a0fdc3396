//! Bodies of the HTTP API under `/api/v1`.

mod accounts;
mod attempt;
mod cluster;
mod explanation;
mod files;
mod job_file;
mod keys;
mod migration;
mod quota;
mod secrets;
mod series;
mod sidecar;
mod simulation;
mod usage;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

pub use accounts::{
    AccountChange, AccountView, AuditEntry, AuditQuery, AuditVerification, IdentityDeparture, IdentityView,
    Invitation, JobsOfAccount, MadeToken, MemberView, Membership, NewAccount, NewIdentity, NewPassword,
    NewRole, NewToken, NewTotp, Proof, RecoveryCodes, SignIn, SignInLink, TokenKind, TokenView, TotpCode,
    TotpEnrolment, TotpRemoval, VerificationQuery, WaysIn, Whoami, WithProof,
};
pub use attempt::{NewReports, OwnAttempt};
pub use cluster::{
    AmountsUsed, ClusterQuery, CordonRequest, DeviceView, DrainView, HIDDEN_JOB, HeldDevice, JobOnNode,
    NodeView, WorkspaceView,
};
pub use explanation::{
    EstimateBasis, EstimateBound, Explanation, ForeignHolder, Holder, Offer, QuotaUse, StartEstimate, Supply,
};
pub use files::{FileArea, FileEntry, FileKind, FileQuery};
pub use job_file::{JobFileDiagnostic, JobFileNote, ParseRequest, ParsedJobFile};
pub use keys::{
    Applicant, InvitationView, MadeInvitation, MadeS3Key, NewInvitation, NewRegistration, NewS3Key,
    NewSshKey, S3KeyView, SshKeyView,
};
pub use migration::{
    EditCounts, FindingCounts, MigratedFile, MigrationChange, MigrationEntry, MigrationFinding,
    MigrationGrade, MigrationRequest, MigrationSeverity, MigrationStatus, MigrationSummary, MigrationView,
};
pub use quota::{Loan, QuotaQuery, QuotaView, SharingRules, UserUse};
pub use secrets::{NewSecret, SecretView};
pub use series::{MetricPoint, SeriesQuery};
pub use sidecar::{
    ClaimRequest, ClaimView, FileSize, NewsQuery, PutQuery, SidecarNews, TreeArea, TreeEntry, TreeKind,
    TreePut, TreeQuery,
};
pub use simulation::{SimulationRequest, SimulationRun};
pub use usage::{DeviceUsage, UsagePoint, UsageQuery};

use crate::reason::ToldReason;
use crate::{AttemptNumber, Bytes, JobId, JobSpec, NodeName, ProgressView, Rank, Reason, Span, WorkerIndex};

/// The word for where a job is in its life. Few states; the reason says the rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum JobState {
    /// Paused by a person; keeps its place.
    Held,
    Queued,
    /// Has its devices; its workers are being started.
    Starting,
    Running,
    /// Was asked to end, and is being given its grace.
    Stopping,
    Ended,
}

impl JobState {
    pub const ALL: [JobState; 6] = [
        JobState::Held,
        JobState::Queued,
        JobState::Starting,
        JobState::Running,
        JobState::Stopping,
        JobState::Ended,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            JobState::Held => "held",
            JobState::Queued => "queued",
            JobState::Starting => "starting",
            JobState::Running => "running",
            JobState::Stopping => "stopping",
            JobState::Ended => "ended",
        }
    }
}

/// How a job ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum JobOutcome {
    Succeeded,
    Failed,
    /// Ended because a person asked for it.
    Stopped,
}

impl JobOutcome {
    pub const ALL: [JobOutcome; 3] = [JobOutcome::Succeeded, JobOutcome::Failed, JobOutcome::Stopped];

    pub fn as_str(self) -> &'static str {
        match self {
            JobOutcome::Succeeded => "succeeded",
            JobOutcome::Failed => "failed",
            JobOutcome::Stopped => "stopped",
        }
    }
}

/// A job with its attempts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JobView {
    pub id: JobId,
    pub name: String,
    pub workspace: String,
    pub owner: String,
    pub state: JobState,
    /// Set once the job has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<JobOutcome>,
    #[schema(value_type = ToldReason)]
    pub reason: Reason,
    pub priority: u8,
    pub submitted_at: Timestamp,
    /// When the job first ran.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// When the present wait began: at the submission, at a release, or when the last attempt ended. Absent unless queued.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queued_since: Option<Timestamp>,
    /// How long it waited before each of its attempts, in all, without the present wait.
    #[serde(default)]
    pub waited: Span,
    /// When the present attempt began to run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub running_since: Option<Timestamp>,
    /// How long its attempts ran that are over, in all.
    #[serde(default)]
    pub ran: Span,
    /// The exit code that `danlu run` passes on, once the job has ended: its first failing rank's, or 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Grows with every change; hints carry it.
    pub generation: u64,
    /// What its program says of itself while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<ProgressView>,
    pub spec: JobSpec,
    pub attempts: Vec<AttemptView>,
}

/// One try at running a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AttemptView {
    pub number: AttemptNumber,
    pub placed_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// How it ended, or what it is doing.
    #[schema(value_type = ToldReason)]
    pub reason: Reason,
    pub workers: Vec<WorkerView>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum WorkerPhase {
    Starting,
    Running,
    Ended,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WorkerView {
    pub index: WorkerIndex,
    pub node: NodeName,
    /// Indices of the node's devices.
    pub devices: Vec<u32>,
    pub phase: WorkerPhase,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub running_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// How it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<ToldReason>)]
    pub reason: Option<Reason>,
}

/// One page of a list; pass `next` as `cursor` for the one after it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Page<T> {
    pub items: Vec<T>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// Which jobs to list; newest first.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct JobQuery {
    /// States or outcomes, separated by commas: `queued,running,failed`.
    #[param(
        pattern = "^((held|queued|starting|running|stopping|ended|succeeded|failed|stopped)(,(held|queued|starting|running|stopping|ended|succeeded|failed|stopped))*)?$"
    )]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// Only what this account submitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// Exactly this name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Part of the name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<String>,
    /// `key=value`: jobs that carry this label.
    #[param(pattern = "^[^=]*=.*$")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    #[param(pattern = "^[0-9]{1,18}$")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// 1 to 1000; 100 when absent.
    #[param(minimum = 1, maximum = 1000)]
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "crate::within::<_, 1, 1000>"
    )]
    pub limit: Option<u32>,
}

/// How many jobs there are in each state; ended ones by their outcome.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct JobCounts {
    /// By `held`, `queued`, `starting`, `running`, `stopping`, `succeeded`, `failed` or `stopped`; those without jobs are
    /// left out.
    pub by_state: std::collections::BTreeMap<String, u64>,
    /// When the longest present wait of a queued job began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oldest_queued_at: Option<Timestamp>,
}

/// What is approved: the job as it was looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct JobApproval {
    /// The job's `generation`. A job that has changed since is not approved.
    pub generation: u64,
}

/// What to stop, and how kindly.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct StopRequest {
    /// Overrides the job's own grace; `0s` kills at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grace: Option<crate::Span>,
}

/// Something that happened, in the order in which it happened; that of a job is kept as long as the job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EventView {
    pub number: u64,
    pub at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job: Option<JobId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt: Option<AttemptNumber>,
    /// A stable word, such as `job_submitted` or `attempt_ended`.
    pub kind: String,
    /// Who did it: a person, or `danlu`.
    pub actor: String,
    pub message: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct EventQuery {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<JobId>,
    /// Events after this number, oldest first.
    #[param(pattern = "^[0-9]{1,18}$")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// 1 to 1000; 100 when absent.
    #[param(minimum = 1, maximum = 1000)]
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "crate::within::<_, 1, 1000>"
    )]
    pub limit: Option<u32>,
}

/// Which part of a job's logs.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct LogQuery {
    /// The last attempt when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<AttemptNumber>,
    /// All ranks, merged by time, when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rank: Option<Rank>,
    /// Only lines that hold this text.
    #[param(max_length = 1000)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<String>,
    /// Read `search` as a regular expression.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub regex: Option<bool>,
    /// From an earlier page's `next`.
    #[param(pattern = "^([0-9]{1,9}!)?1(~[0-9a-z]{1,10}([.][0-9a-z]{1,10}){3})*$")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// Only the last so many lines.
    #[param(minimum = 0, maximum = 10000)]
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "crate::within::<_, 0, 10000>"
    )]
    pub tail: Option<u32>,
    /// With `tail`: the last so many lines before this place, an earlier answer's `before`.
    #[param(pattern = "^1(~[0-9a-z]{1,10}([.][0-9a-z]{1,10}){3})*$")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// With `rank`: from the line of this number on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// 1 to 10000; 1000 when absent.
    #[param(minimum = 1, maximum = 10000)]
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "crate::within::<_, 1, 10000>"
    )]
    pub limit: Option<u32>,
}

/// Lines of a job's logs, and where to go on in both directions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LogLines {
    pub items: Vec<LogLine>,
    /// Where the next page begins, if there was more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// Where these lines begin, if there was anything before them: the `before` of the next question for a `tail`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// Behind these lines, also where there was no more: the `cursor` of a follower.
    pub end: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum LogStream {
    Stdout,
    Stderr,
    /// Danlu's own words about this worker.
    Danlu,
}

/// One line that a rank printed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LogLine {
    pub attempt: AttemptNumber,
    pub worker: WorkerIndex,
    pub rank: Rank,
    /// Counted from 0 within this attempt and rank.
    pub number: u64,
    pub at: Timestamp,
    pub stream: LogStream,
    pub text: String,
}

/// One item of the log's event stream (`/jobs/{id}/logs/follow`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case", tag = "type")]
pub enum LogMessage {
    /// Lines in order. The event's id is the cursor after the last of them.
    Lines { lines: Vec<LogLine> },
    /// The attempt went into another state.
    State {
        state: JobState,
        #[schema(value_type = ToldReason)]
        reason: Reason,
    },
    /// Nothing will follow.
    End {
        outcome: JobOutcome,
        exit_code: i32,
        #[schema(value_type = ToldReason)]
        reason: Reason,
    },
}

/// Something changed; fetch it if you care. Hints carry no data, and may be lost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Hint {
    /// `job` or `node`.
    pub kind: String,
    pub id: String,
    pub generation: u64,
}

/// An uploaded code snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CodeView {
    /// `sha256:…` of the packed snapshot.
    pub digest: String,
    pub size: Bytes,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HealthView {
    /// `ok`, or what is wrong.
    pub status: String,
    pub version: String,
    /// One entry for each part that is not well.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
}
