//! The reference page of reasons, made from the enum: codes, meanings and parameters from its schema.

use std::fmt::Write as _;

use serde_json::Value;
use utoipa::PartialSchema as _;

use super::{Reason, ReasonCode};

const HEAD: &str = "# Reasons

Why a job, an attempt or a worker is in its state: `reason.code` in the API, in `danlu jobs --json`, `danlu show --json` and
`danlu why --json`, with its parameters in `reason.params` and an English sentence in `reason.text`. Codes are stable: they are only ever
added to. `danlu why JOB` adds who holds what the job waits for, when it should start, and what would start it now.

This page is generated from `danlu-types/src/reason.rs`.
";

/// Codes by where they occur, each with what helps.
pub fn markdown() -> String {
    let schema = serde_json::to_value(Reason::schema()).unwrap_or_default();
    let variants = schema["oneOf"].as_array().cloned().unwrap_or_default();
    let mut page = HEAD.to_owned();
    let mut section = "";
    for code in ReasonCode::all() {
        if section_of(code) != section {
            section = section_of(code);
            let _ = write!(
                page,
                "\n## {section}\n\n| code | meaning | parameters | what helps |\n|---|---|---|---|\n"
            );
        }
        let found = variants.iter().find(|variant| variant["properties"]["code"]["enum"][0] == code.as_str());
        let found = found.cloned().unwrap_or_default();
        let meaning =
            found["description"].as_str().unwrap_or_default().trim_end_matches('.').replace('\n', " ");
        let parameters = parameters(&found["properties"]["params"]);
        let _ = writeln!(page, "| `{}` | {meaning} | {parameters} | {} |", code.as_str(), help(code));
    }
    page
}

fn parameters(params: &Value) -> String {
    if let Some(name) = params["$ref"].as_str().and_then(|path| path.rsplit('/').next()) {
        return format!("[{name}](../openapi.json)");
    }
    let names = params["properties"].as_object().into_iter().flatten().map(|(name, _)| format!("`{name}`"));
    names.collect::<Vec<_>>().join(", ")
}

fn section_of(code: ReasonCode) -> &'static str {
    match code {
        ReasonCode::Held | ReasonCode::NeedsApproval => "Held jobs",
        ReasonCode::SchedulingPending
        | ReasonCode::AboutToStart
        | ReasonCode::DevicesBusy
        | ReasonCode::CpusBusy
        | ReasonCode::MemoryBusy
        | ReasonCode::QueuedBehind
        | ReasonCode::Reserved
        | ReasonCode::WorkspaceLimit
        | ReasonCode::UserLimit
        | ReasonCode::GuaranteedToOthers
        | ReasonCode::AvoidingNode
        | ReasonCode::Preempting
        | ReasonCode::RetryBackoff
        | ReasonCode::InsufficientCapacity
        | ReasonCode::NodesCordoned
        | ReasonCode::RequeuedAfterPreemption
        | ReasonCode::RequeuedAfterDrain
        | ReasonCode::RequeuedByCluster => "Queued jobs",
        ReasonCode::Starting
        | ReasonCode::SlurmPending
        | ReasonCode::ClusterPending
        | ReasonCode::ClusterUnreachable
        | ReasonCode::NodeTrouble
        | ReasonCode::LaunchDelayed
        | ReasonCode::Running
        | ReasonCode::SlurmSuspended
        | ReasonCode::LauncherStalled
        | ReasonCode::SeemsHung
        | ReasonCode::StopRequested
        | ReasonCode::BeingPreempted
        | ReasonCode::BeingDrained
        | ReasonCode::BeingRequeued
        | ReasonCode::WorkerFailed => "Attempts under way",
        _ => "Ends",
    }
}

fn help(code: ReasonCode) -> &'static str {
    match code {
        ReasonCode::Held => "`danlu release JOB`",
        ReasonCode::NeedsApproval => "`danlu approve JOB`, by an owner of the workspace",
        ReasonCode::DevicesBusy => "fewer devices, another model, `any_of`; or waiting",
        ReasonCode::CpusBusy => "smaller `cpus`",
        ReasonCode::MemoryBusy => "smaller `memory`",
        ReasonCode::QueuedBehind => "a larger `priority`, if that is fair",
        ReasonCode::Reserved => "a `max_time` that ends before that job starts",
        ReasonCode::WorkspaceLimit => "another workspace, or waiting until its jobs end",
        ReasonCode::UserLimit => "another workspace, or waiting until your jobs end",
        ReasonCode::GuaranteedToOthers => "`preemptible: true`, where guarantees are lent",
        ReasonCode::RetryBackoff => "`danlu logs JOB` shows why the attempt failed",
        ReasonCode::InsufficientCapacity => "`danlu nodes` shows which nodes and devices are out of service",
        ReasonCode::NodesCordoned => "`danlu nodes uncordon NODE`, by an administrator",
        ReasonCode::SlurmSuspended => "`scontrol resume SLURM_JOB`",
        ReasonCode::SlurmPending => "Slurm's word says what; `squeue` and `scontrol show job` say more",
        ReasonCode::ClusterUnreachable | ReasonCode::NodeTrouble | ReasonCode::LauncherStalled => {
            "the detail says what; `danlu doctor`, by an administrator"
        }
        ReasonCode::SeemsHung => {
            "`danlu exec JOB` to look inside; `hang_after` and `on_hang` act by themselves"
        }
        ReasonCode::Exit | ReasonCode::ProgramError | ReasonCode::SetupFailed => "`danlu logs JOB`",
        ReasonCode::OutOfMemory => "larger `memory`, or a smaller batch",
        ReasonCode::TimeLimit => "larger `max_time`, or checkpoints",
        ReasonCode::DeviceError | ReasonCode::NodeLost => "`retry`; Danlu avoids the node for a while",
        ReasonCode::Hang => "`danlu logs JOB`, `danlu metrics JOB`",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_a_meaning() {
        let page = markdown();
        for code in ReasonCode::all() {
            let row = page.lines().find(|line| line.starts_with(&format!("| `{}` |", code.as_str())));
            let meaning = row.and_then(|row| row.split(" | ").nth(1)).unwrap_or_default();
            assert!(!meaning.trim().is_empty(), "{code:?}: {row:?}");
        }
    }
}
