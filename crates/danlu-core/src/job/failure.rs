//! What made a worker fail, and what is worth another attempt.

pub use danlu_types::reason::ProcessExit;
use danlu_types::{Rank, RetryCause};
use serde::{Deserialize, Serialize};

/// What made a worker fail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerFailure {
    pub cause: FailureCause,
    /// The first rank that failed, where one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rank: Option<Rank>,
    /// How that rank ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<ProcessExit>,
    /// What a person should know beyond the cause; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub detail: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureCause {
    /// A rank ended with a non-zero code or by a signal of its own.
    Exit,
    /// The kernel killed it for using more than its memory.
    OutOfMemory,
    /// It ran longer than `max_time`.
    TimeLimit,
    /// The launcher could not be started, or could not start the ranks.
    StartFailed,
    /// The `setup` script failed.
    SetupFailed,
    /// Other workers of the gang did not appear in time.
    GangTimeout,
    /// The launcher died, or nothing is known of it any more. What became of its ranks is in the detail.
    LauncherLost,
    /// The node went away.
    NodeLost,
    DeviceError,
    /// A rank ended for a reason that every further attempt would meet again, such as a missing module.
    ProgramError,
    /// It printed nothing and its devices did nothing for longer than `hang_after`.
    Hang,
}

impl FailureCause {
    pub fn as_str(self) -> &'static str {
        match self {
            FailureCause::Exit => "exit",
            FailureCause::OutOfMemory => "out_of_memory",
            FailureCause::TimeLimit => "time_limit",
            FailureCause::StartFailed => "start_failed",
            FailureCause::SetupFailed => "setup_failed",
            FailureCause::GangTimeout => "gang_timeout",
            FailureCause::LauncherLost => "launcher_lost",
            FailureCause::NodeLost => "node_lost",
            FailureCause::DeviceError => "device_error",
            FailureCause::ProgramError => "program_error",
            FailureCause::Hang => "hang",
        }
    }

    /// The word in `retry.on` that covers this cause; a time limit is never worth another attempt, nor is what would only
    /// happen again. A job that hangs is ended only where its `on_hang` asks for another attempt, so no word is needed.
    pub fn retry_cause(self) -> Option<RetryCause> {
        match self {
            FailureCause::Exit | FailureCause::SetupFailed => Some(RetryCause::Exit),
            FailureCause::OutOfMemory => Some(RetryCause::OutOfMemory),
            FailureCause::TimeLimit | FailureCause::ProgramError | FailureCause::Hang => None,
            FailureCause::StartFailed | FailureCause::GangTimeout => Some(RetryCause::StartFailed),
            FailureCause::LauncherLost | FailureCause::NodeLost => Some(RetryCause::NodeLost),
            FailureCause::DeviceError => Some(RetryCause::DeviceError),
        }
    }
}
