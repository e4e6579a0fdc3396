//! The English of reasons: phrases whose subject is the job, the attempt or the worker.

use std::fmt;

use super::{
    ApprovalExcess, CordonedNode, DeviceShortage, FailedWorker, PendingCause, ProcessExit, QuotaResource,
    QuotaShortage, Reason, RequestedResources, SlurmWait,
};
use crate::format::{self, comma_separated};

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Held { by, job } => write!(f, "held by {by} (start it with `danlu release {job}`)"),
            Reason::NeedsApproval { job, excess } => needs_approval(f, job, excess.as_ref()),
            Reason::SchedulingPending { cause: PendingCause::Submitted } => f.write_str("just submitted"),
            Reason::SchedulingPending { cause: PendingCause::Released } => f.write_str("just released"),
            Reason::SchedulingPending { cause: PendingCause::Approved { by } } => {
                write!(f, "just approved by {by}")
            }
            Reason::AboutToStart => f.write_str("about to start"),
            Reason::DevicesBusy { requested, free, most_on_one_node, shortage } => {
                write!(f, "waiting for {} ({free} free", Devices(requested))?;
                match shortage {
                    DeviceShortage::TooFew => f.write_str(")"),
                    DeviceShortage::TooFewOnOneNode => write!(f, ", at most {most_on_one_node} on one node)"),
                    DeviceShortage::NotInOneRack => f.write_str(", but not in one rack)"),
                    DeviceShortage::NoCombination => {
                        f.write_str(", but no combination satisfies the placement rules)")
                    }
                }
            }
            Reason::CpusBusy { requested, most_on_one_node } => {
                amount(f, requested, &format::cpus(requested.cpus), most_on_one_node)
            }
            Reason::MemoryBusy { requested, most_on_one_node } => {
                let memory = format!("{} of memory", requested.memory.unwrap_or_default());
                amount(f, requested, &memory, most_on_one_node)
            }
            Reason::QueuedBehind { job } => {
                write!(f, "queued behind job {job}, which waits for the same resources")
            }
            Reason::Reserved { job } => {
                write!(f, "free resources are reserved for job {job}, which is ahead in the queue")
            }
            Reason::WorkspaceLimit(shortage) => quota(f, "quota of", shortage),
            Reason::UserLimit(shortage) => quota(f, "the owner's quota in", shortage),
            Reason::GuaranteedToOthers { resource, lendable } => guaranteed(f, *resource, *lendable),
            Reason::AvoidingNode { node, until } => {
                write!(f, "avoiding node `{node}`, where the last attempt failed, until {until:.0}")
            }
            Reason::Preempting { jobs } => write!(f, "preempting {}", format::jobs(jobs)),
            Reason::RetryBackoff { attempt, not_before, failure } => {
                write!(f, "waiting to try again, no earlier than {not_before:.0} (attempt {attempt} failed")?;
                match failure {
                    Some(failure) => write!(f, ": {})", culprit(failure)),
                    None => f.write_str(")"),
                }
            }
            Reason::InsufficientCapacity { requested } => {
                write!(f, "no node can provide {requested}, even when idle")
            }
            Reason::NodesCordoned { requested, nodes } => {
                write!(f, "waiting for {requested} ({})", cordoned(nodes))
            }
            Reason::RequeuedAfterPreemption { job } => {
                write!(f, "preempted by job {job}; requeued at its previous position")
            }
            Reason::RequeuedAfterDrain { node } => {
                write!(f, "preempted: node {node} is being drained; requeued at its previous position")
            }
            Reason::RequeuedByCluster { detail, not_before } => {
                write!(
                    f,
                    "requeued without using a retry, to start no earlier than {not_before:.0} ({detail})"
                )
            }
            _ => self.of_an_attempt(f),
        }
    }
}

impl Reason {
    fn of_an_attempt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Starting { started, workers } => write!(f, "{started} of {workers} workers started"),
            Reason::SlurmPending { slurm_job, cause, slurm_reason } => {
                slurm(f, *slurm_job, *cause, slurm_reason)
            }
            Reason::ClusterPending { detail } => write!(f, "waiting in the cluster's queue ({detail})"),
            Reason::ClusterUnreachable { detail } => write!(f, "waiting for the cluster ({detail})"),
            Reason::NodeTrouble { node, detail } => write!(f, "node `{node}`: {detail}"),
            Reason::LaunchDelayed { detail } => write!(f, "waiting to be launched ({detail})"),
            Reason::Running { workers: 1 } => f.write_str("running"),
            Reason::Running { workers } => write!(f, "running on {workers} workers"),
            Reason::SlurmSuspended { slurm_job } => {
                write!(
                    f,
                    "suspended by Slurm as its job {slurm_job} (resume it with `scontrol resume {slurm_job}`)"
                )
            }
            Reason::LauncherStalled { detail } => write!(f, "running without supervision ({detail})"),
            Reason::SeemsHung { detail } => write!(f, "seems to hang ({detail})"),
            Reason::StopRequested { by, grace } => {
                write!(f, "stopping, requested by {by} (grace period {grace})")
            }
            Reason::BeingPreempted { job, grace } => {
                write!(f, "being preempted by job {job} (grace period {grace})")
            }
            Reason::BeingDrained { node, grace } => {
                write!(f, "being preempted: node {node} is being drained (grace period {grace})")
            }
            Reason::BeingRequeued { detail } => write!(f, "being requeued ({detail})"),
            Reason::WorkerFailed { worker } => {
                write!(f, "worker {worker} failed; stopping the other workers")
            }
            Reason::Succeeded => f.write_str("succeeded"),
            Reason::Stopped { by: Some(by) } => write!(f, "stopped by {by}"),
            Reason::Stopped { by: None } => f.write_str("stopped as requested"),
            Reason::Preempted { job } => write!(f, "preempted by job {job}"),
            Reason::Drained { node } => write!(f, "preempted: node {node} was being drained"),
            Reason::Requeued { detail } => write!(f, "requeued without using a retry ({detail})"),
            Reason::Unrecognised { text, .. } => f.write_str(text),
            failed => {
                f.write_str("failed")?;
                if let Some(attempt) = failed.failed_worker().and_then(|failed| failed.attempt) {
                    write!(f, " at attempt {attempt}")?;
                }
                write!(f, ": {}", culprit(failed))
            }
        }
    }
}

/// "2 workers with 8 Ascend 910B*, 96 CPUs and 256Gi of memory each".
impl fmt::Display for RequestedResources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        if !self.devices.is_empty() {
            parts.push(self.alternatives());
        }
        parts.push(format::cpus(self.cpus));
        parts.extend(self.memory.map(|memory| format!("{memory} of memory")));
        match self.workers {
            1 => f.write_str(&format::list(&parts)),
            workers => write!(f, "{workers} workers with {} each", format::list(&parts)),
        }
    }
}

impl RequestedResources {
    /// "8 Ascend 910B* or 8 NVIDIA A100*", empty for a job without devices.
    pub fn alternatives(&self) -> String {
        self.devices.iter().map(format::devices).collect::<Vec<_>>().join(" or ")
    }
}

/// The devices alone: "2 workers of 8 Ascend 910B*".
struct Devices<'a>(&'a RequestedResources);

impl fmt::Display for Devices<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.workers {
            1 => f.write_str(&self.0.alternatives()),
            workers => write!(f, "{workers} workers of {}", self.0.alternatives()),
        }
    }
}

fn needs_approval(
    f: &mut fmt::Formatter<'_>,
    job: &impl fmt::Display,
    excess: Option<&ApprovalExcess>,
) -> fmt::Result {
    f.write_str("waiting for approval")?;
    if let Some(excess) = excess {
        write!(f, ": {excess}")?;
    }
    write!(f, " (an owner of the workspace can approve it with `danlu approve {job}`)")
}

impl fmt::Display for ApprovalExcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ApprovalExcess { workspace, resource, requested, limit } = self;
        let of = match resource {
            QuotaResource::Memory => "of memory",
            resource => resource.label(),
        };
        write!(f, "requests {requested} {of}; workspace `{workspace}` allows {limit} without approval")
    }
}

fn amount(
    f: &mut fmt::Formatter<'_>,
    requested: &RequestedResources,
    each: &str,
    most: impl fmt::Display,
) -> fmt::Result {
    f.write_str("waiting for ")?;
    if requested.workers > 1 {
        write!(f, "{} workers of ", requested.workers)?;
    }
    f.write_str(each)?;
    if !requested.devices.is_empty() {
        write!(f, " beside {}", requested.alternatives())?;
    }
    write!(f, " (at most {most} free on one node)")
}

fn quota(f: &mut fmt::Formatter<'_>, whose: &str, shortage: &QuotaShortage) -> fmt::Result {
    let QuotaShortage { workspace, resource, requested, used, limit } = shortage;
    let resource = resource.label();
    write!(
        f,
        "waiting for {whose} workspace `{workspace}` ({resource}: {used} used, limit {limit}, {requested} requested)"
    )
}

fn guaranteed(f: &mut fmt::Formatter<'_>, resource: QuotaResource, lendable: bool) -> fmt::Result {
    let (verb, them) = if resource == QuotaResource::Memory { ("is", "it") } else { ("are", "them") };
    write!(f, "free {} {verb} guaranteed to other workspaces", resource.label())?;
    if lendable { write!(f, " (only preemptible jobs can borrow {them})") } else { Ok(()) }
}

/// "node `a` is cordoned: new fans".
pub fn cordoned(nodes: &[CordonedNode]) -> String {
    const NAMED: usize = 3;
    let named = nodes.iter().take(NAMED);
    let named: Vec<String> =
        named.map(|CordonedNode { node, reason }| format!("node `{node}` is cordoned: {reason}")).collect();
    let more = match nodes.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    format!("{}{more}", comma_separated(&named))
}

fn slurm(f: &mut fmt::Formatter<'_>, job: u64, cause: SlurmWait, word: &str) -> fmt::Result {
    write!(f, "waiting in Slurm's queue as its job {job} (")?;
    if !word.is_empty() && cause != SlurmWait::NotConsidered {
        write!(f, "{word}")?;
        if cause != SlurmWait::Other {
            f.write_str(": ")?;
        }
    }
    f.write_str(match cause {
        SlurmWait::NotConsidered => "Slurm has not looked at it yet",
        SlurmWait::Resources => "too little is free on its nodes, perhaps because of jobs outside Danlu",
        SlurmWait::Priority => "jobs ahead in Slurm's queue go first",
        SlurmWait::NodeUnavailable => "a node that it is to run on is drained, down or reserved",
        SlurmWait::NodeDown => "a node that it is to run on is down",
        SlurmWait::BeginTime => "Slurm delays it for a while",
        SlurmWait::Held => "held in Slurm; release it with `scontrol release`",
        SlurmWait::PartitionClosed => "its partition is closed",
        SlurmWait::PartitionTimeLimit => "it asks for more time than its partition allows",
        SlurmWait::PartitionNodeLimit => "it asks for more nodes than its partition allows",
        SlurmWait::Reservation => "it waits for a reservation",
        SlurmWait::Licenses => "it waits for a license",
        SlurmWait::BadConstraints => "the nodes that it may use do not have what it asks for",
        SlurmWait::QosLimit => "a limit of its quality of service (QOS) is reached",
        SlurmWait::AccountLimit => "a limit of its Slurm account is reached",
        SlurmWait::Other => "",
    })?;
    f.write_str(")")
}

/// "worker 0: rank 3 exited with code 1 (…)".
fn culprit(failure: &Reason) -> String {
    let Some(failed) = failure.failed_worker() else { return failure.to_string() };
    let sentence = how(failure, failed);
    let detail = if failed.detail.is_empty() { String::new() } else { format!(" ({})", failed.detail) };
    match failed.worker {
        Some(worker) => format!("worker {worker}: {sentence}{detail}"),
        None => format!("{sentence}{detail}"),
    }
}

fn how(failure: &Reason, failed: &FailedWorker) -> String {
    let subject = failed.rank.map_or("its program".to_owned(), |rank| format!("rank {rank}"));
    match failure {
        Reason::Hang(_) => format!("{subject} hung"),
        Reason::OutOfMemory(_) => {
            format!("{subject} used more memory than the job requested, and was killed")
        }
        Reason::TimeLimit(_) => "time limit (`max_time`) reached".to_owned(),
        Reason::StartFailed(_) => "could not be started".to_owned(),
        Reason::SetupFailed(_) => match failed.exit {
            Some(exit) => format!("`setup` exited with code {}", exit.shell_code()),
            None => "`setup` failed".to_owned(),
        },
        Reason::GangTimeout(_) => "not all workers became ready in time".to_owned(),
        Reason::LauncherLost(_) => "its launcher exited unexpectedly".to_owned(),
        Reason::NodeLost(_) => "its node was lost".to_owned(),
        _ => match failed.exit {
            Some(ProcessExit::Code(code)) => format!("{subject} exited with code {code}"),
            Some(ProcessExit::Signal(signal)) => format!("{subject} was killed by signal {signal}"),
            None => format!("{subject} ended"),
        },
    }
}
