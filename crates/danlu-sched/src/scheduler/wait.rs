//! Why a job waits, as a pass finds it and as people are told.

use danlu_types::reason::{
    CordonedNode, DeviceShortage, QuotaResource, QuotaShortage, Reason, RequestedResources,
};
use danlu_types::{Bytes, Cpus, JobId, JobSpec, NodeName};
use jiff::Timestamp;

use super::workspaces::OverQuota;
use crate::fleet::ShapeId;

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
    /// It is not to start before a certain time: after a failed attempt, or because the cluster put it back.
    BackOff,
    NoSuchDevices,
    NodesCordoned {
        nodes: Vec<CordonedNode>,
    },
    NotYetConsidered,
}

impl WaitReason {
    /// The reason as people and programs read it; `None` where the job itself knows more. `spec` is the waiting job's.
    pub fn reason(self, spec: &JobSpec) -> Option<Reason> {
        let requested = || RequestedResources::from(spec);
        let over = |resource, requested, used, limit| {
            let workspace = spec.workspace.clone();
            QuotaShortage { workspace, resource, requested, used, limit }
        };
        Some(match self {
            WaitReason::DevicesBusy { free, most_on_one_node } => Reason::DevicesBusy {
                requested: requested(),
                free,
                most_on_one_node,
                shortage: device_shortage(spec, free, most_on_one_node),
            },
            WaitReason::CpusBusy { most_on_one_node } => {
                Reason::CpusBusy { requested: requested(), most_on_one_node }
            }
            WaitReason::MemoryBusy { most_on_one_node } => {
                Reason::MemoryBusy { requested: requested(), most_on_one_node }
            }
            WaitReason::BehindOthers { head } => Reason::QueuedBehind { job: head },
            WaitReason::Reserved { for_job } => Reason::Reserved { job: for_job },
            WaitReason::WorkspaceLimit { resource, asked, used, limit } => {
                Reason::WorkspaceLimit(over(resource, asked, used, limit))
            }
            WaitReason::UserLimit { resource, asked, used, limit } => {
                Reason::UserLimit(over(resource, asked, used, limit))
            }
            WaitReason::GuaranteedToOthers { resource, lends } => {
                Reason::GuaranteedToOthers { resource, lendable: lends }
            }
            WaitReason::KeepsAway { node, until } => Reason::AvoidingNode { node, until },
            WaitReason::Preempting { victims } => Reason::Preempting { jobs: victims },
            WaitReason::BackOff => return None,
            WaitReason::NoSuchDevices => Reason::InsufficientCapacity { requested: requested() },
            WaitReason::NodesCordoned { nodes } => Reason::NodesCordoned { requested: requested(), nodes },
            WaitReason::NotYetConsidered => Reason::AboutToStart,
        })
    }
}

fn device_shortage(spec: &JobSpec, free: u32, most_on_one_node: u32) -> DeviceShortage {
    let each = spec.alternatives().iter().map(|request| request.count.devices()).min().unwrap_or(0);
    if free < each.saturating_mul(spec.workers) {
        DeviceShortage::TooFew
    } else if most_on_one_node < each {
        DeviceShortage::TooFewOnOneNode
    } else if spec.nodes.same_rack {
        DeviceShortage::NotInOneRack
    } else {
        DeviceShortage::NoCombination
    }
}
