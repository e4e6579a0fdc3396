//! Why a job waits: few reasons, each a stable word with its numbers.

use std::sync::Arc;

use danlu_types::api::{CordonedNode, Reason};
use danlu_types::{Bytes, Cpus, JobId, JobSpec, NodeName};
use jiff::Timestamp;

use super::usage::QuotaResource;
use super::workspaces::OverQuota;
use crate::fleet::ShapeId;
use crate::words;

/// The words that programs may rely on. They are only ever added to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReasonCode {
    /// Too few devices of the wanted kind and model are free, or too few on one node.
    DevicesBusy,
    /// Devices are free, but not enough CPUs beside them (or, for a job without devices, not enough CPUs).
    CpusBusy,
    /// Devices and CPUs are free, but not enough memory beside them.
    MemoryBusy,
    /// A job further ahead in the workspace goes first.
    BehindOthers,
    /// What it would take is kept for a job further ahead.
    Reserved,
    /// The workspace uses as much as it may.
    WorkspaceLimit,
    /// Its owner uses as much as they may.
    UserLimit,
    /// What is free is guaranteed to other workspaces; only preemptible jobs may borrow it.
    GuaranteedToOthers,
    /// Other jobs are being stopped to make room for it.
    Preempting,
    /// The last attempt failed; the next is not made before a certain time.
    BackOff,
    /// It fits on the node that failed its last attempt, and keeps away from there for a while.
    KeepsAway,
    /// A person paused it; it starts after `danlu release`.
    Held,
    /// Not even the empty cluster could hold it now: nodes or devices went away, or failed, after it was accepted.
    NoSuchDevices,
    /// The nodes that could hold it are cordoned.
    NodesCordoned,
    /// It fits; the scheduler's next pass starts it.
    NotYetConsidered,
}

impl ReasonCode {
    pub const ALL: [ReasonCode; 15] = [
        ReasonCode::DevicesBusy,
        ReasonCode::CpusBusy,
        ReasonCode::MemoryBusy,
        ReasonCode::BehindOthers,
        ReasonCode::Reserved,
        ReasonCode::WorkspaceLimit,
        ReasonCode::UserLimit,
        ReasonCode::GuaranteedToOthers,
        ReasonCode::Preempting,
        ReasonCode::BackOff,
        ReasonCode::KeepsAway,
        ReasonCode::Held,
        ReasonCode::NoSuchDevices,
        ReasonCode::NodesCordoned,
        ReasonCode::NotYetConsidered,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            ReasonCode::DevicesBusy => "devices_busy",
            ReasonCode::CpusBusy => "cpus_busy",
            ReasonCode::MemoryBusy => "memory_busy",
            ReasonCode::BehindOthers => "behind_others",
            ReasonCode::Reserved => "reserved",
            ReasonCode::WorkspaceLimit => "workspace_limit",
            ReasonCode::UserLimit => "user_limit",
            ReasonCode::GuaranteedToOthers => "guaranteed_to_others",
            ReasonCode::Preempting => "preempting",
            ReasonCode::BackOff => "back_off",
            ReasonCode::KeepsAway => "keeps_away",
            ReasonCode::Held => "held",
            ReasonCode::NoSuchDevices => "no_such_devices",
            ReasonCode::NodesCordoned => "nodes_cordoned",
            ReasonCode::NotYetConsidered => "not_yet_considered",
        }
    }
}

/// What a pass found out about a class, cheaply; the numbers are drawn up when somebody asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Blocker {
    /// As what the job could have started, had there been room.
    NoRoom {
        shape: ShapeId,
    },
    Behind {
        head: JobId,
    },
    Reserved {
        for_job: JobId,
    },
    OverQuota(OverQuota),
    Preempting,
}

/// Why a job did not start, as it stood in the last pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WaitReason {
    DevicesBusy {
        free: u32,
        most_on_one_node: u32,
    },
    /// The most that is free on one node which has the devices.
    CpusBusy {
        most_on_one_node: Cpus,
    },
    MemoryBusy {
        most_on_one_node: Bytes,
    },
    BehindOthers {
        head: JobId,
    },
    Reserved {
        for_job: JobId,
    },
    WorkspaceLimit {
        resource: QuotaResource,
        asked: String,
        used: String,
        limit: String,
    },
    UserLimit {
        resource: QuotaResource,
        asked: String,
        used: String,
        limit: String,
    },
    GuaranteedToOthers {
        resource: QuotaResource,
        /// Whether preemptible jobs may borrow it.
        lends: bool,
    },
    /// Until then it keeps away from the node that failed its last attempt.
    KeepsAway {
        node: NodeName,
        until: Timestamp,
    },
    Preempting {
        victims: Vec<JobId>,
    },
    BackOff {
        not_before: Timestamp,
        /// Why the engine gave it back, where no attempt failed.
        given_back: Option<Arc<str>>,
    },
    NoSuchDevices,
    NodesCordoned {
        nodes: Vec<CordonedNode>,
    },
    NotYetConsidered,
}

impl WaitReason {
    pub fn code(&self) -> ReasonCode {
        match self {
            WaitReason::DevicesBusy { .. } => ReasonCode::DevicesBusy,
            WaitReason::CpusBusy { .. } => ReasonCode::CpusBusy,
            WaitReason::MemoryBusy { .. } => ReasonCode::MemoryBusy,
            WaitReason::BehindOthers { .. } => ReasonCode::BehindOthers,
            WaitReason::Reserved { .. } => ReasonCode::Reserved,
            WaitReason::WorkspaceLimit { .. } => ReasonCode::WorkspaceLimit,
            WaitReason::UserLimit { .. } => ReasonCode::UserLimit,
            WaitReason::GuaranteedToOthers { .. } => ReasonCode::GuaranteedToOthers,
            WaitReason::Preempting { .. } => ReasonCode::Preempting,
            WaitReason::BackOff { .. } => ReasonCode::BackOff,
            WaitReason::KeepsAway { .. } => ReasonCode::KeepsAway,
            WaitReason::NoSuchDevices => ReasonCode::NoSuchDevices,
            WaitReason::NodesCordoned { .. } => ReasonCode::NodesCordoned,
            WaitReason::NotYetConsidered => ReasonCode::NotYetConsidered,
        }
    }

    /// The reason as lists show it; `spec` is that of the job which waits.
    pub fn reason(&self, spec: &JobSpec) -> Reason {
        let reason = Reason::new(self.code().as_str(), words::wait_sentence(self, spec));
        match self {
            WaitReason::DevicesBusy { free, most_on_one_node } => reason
                .with("asked", words::alternatives(spec))
                .with("free", free)
                .with("most", most_on_one_node),
            WaitReason::CpusBusy { most_on_one_node } => {
                reason.with("asked", spec.cpus).with("most", most_on_one_node)
            }
            WaitReason::MemoryBusy { most_on_one_node } => {
                reason.with("asked", spec.memory.unwrap_or_default()).with("most", most_on_one_node)
            }
            WaitReason::BehindOthers { head: job } | WaitReason::Reserved { for_job: job } => {
                reason.with("job", job)
            }
            WaitReason::WorkspaceLimit { resource, asked, used, limit }
            | WaitReason::UserLimit { resource, asked, used, limit } => reason
                .with("workspace", &spec.workspace)
                .with("resource", resource.as_str())
                .with("asked", asked)
                .with("used", used)
                .with("limit", limit),
            WaitReason::GuaranteedToOthers { resource, .. } => reason.with("resource", resource.as_str()),
            WaitReason::KeepsAway { node, until } => reason.with("node", node).with("until", until),
            WaitReason::Preempting { victims } => {
                reason.with("jobs", victims.len()).with("victims", words::numbers(victims))
            }
            WaitReason::BackOff { not_before, .. } => reason.with("until", not_before),
            WaitReason::NoSuchDevices => reason.with("asked", words::asked(spec)),
            WaitReason::NodesCordoned { nodes } => {
                let names: Vec<&str> = nodes.iter().map(|node| node.node.0.as_str()).collect();
                let why = nodes.first().map_or("", |node| node.reason.as_str());
                reason.with("asked", words::asked(spec)).with("nodes", names.join(", ")).with("why", why)
            }
            WaitReason::NotYetConsidered => reason,
        }
    }
}
