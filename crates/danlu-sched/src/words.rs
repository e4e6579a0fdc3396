//! Sentences about what jobs ask for and why they wait.

use std::fmt;

use danlu_types::{Cpus, DeviceKind, DeviceRequest, JobId, JobSpec};

use crate::scheduler::{Resource, WaitReason};

/// "8 Ascend 910B*", "1 device", "0.5 NVIDIA".
pub(crate) fn devices(request: &DeviceRequest) -> String {
    let kind = match request.kind {
        Some(kind) => kind.label(),
        None if request.count.devices() == 1 => "device",
        None => "devices",
    };
    let model = request.model.as_deref().map(|model| format!(" {model}")).unwrap_or_default();
    format!("{} {kind}{model}", request.count)
}

/// "8 Ascend 910B3".
pub(crate) fn model(kind: DeviceKind, model: &str, count: u32) -> String {
    format!("{count} {} {model}", kind.label())
}

/// "96 CPUs", "1 CPU".
pub(crate) fn cores(cpus: Cpus) -> String {
    match cpus.milli {
        1000 => "1 CPU".to_owned(),
        _ => format!("{cpus} CPUs"),
    }
}

/// "8 Ascend 910B* or 8 NVIDIA A100*", empty for a job without devices.
pub(crate) fn alternatives(spec: &JobSpec) -> String {
    let asked: Vec<String> =
        spec.alternatives().iter().filter(|request| !request.count.is_none()).map(devices).collect();
    asked.join(" or ")
}

/// "2 workers with 8 Ascend 910B*, 96 CPUs and 256Gi of memory each".
pub(crate) fn asked(spec: &JobSpec) -> String {
    let mut parts = Vec::new();
    if !spec.is_cpu_only() {
        parts.push(alternatives(spec));
    }
    parts.push(cores(spec.cpus));
    parts.extend(spec.memory.map(|memory| format!("{memory} of memory")));
    let last = parts.pop().unwrap_or_default();
    let list = if parts.is_empty() { last } else { format!("{} and {last}", parts.join(", ")) };
    match spec.workers {
        1 => list,
        workers => format!("{workers} workers with {list} each"),
    }
}

/// "`910B3` and `A100-80G`".
pub(crate) fn listed<T: fmt::Display>(names: &[T]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    match &quoted[..] {
        [] => "none".to_owned(),
        [one] => one.clone(),
        [rest @ .., last] => format!("{} and {last}", rest.join(", ")),
    }
}

/// "jobs 3, 5 and 8", "job 3", "jobs 1, 2, 3 and 40 more".
pub(crate) fn jobs(jobs: &[JobId]) -> String {
    const NAMED: usize = 3;
    let named: Vec<String> = jobs.iter().take(NAMED).map(ToString::to_string).collect();
    match (&named[..], jobs.len()) {
        ([], _) => "no job".to_owned(),
        ([one], 1) => format!("job {one}"),
        (_, count) if count > NAMED => format!("jobs {} and {} more", named.join(", "), count - NAMED),
        ([rest @ .., last], _) => format!("jobs {} and {last}", rest.join(", ")),
    }
}

/// "Ascend devices", "CPUs".
pub(crate) fn resource(resource: Resource) -> &'static str {
    match resource {
        Resource::Nvidia => "NVIDIA devices",
        Resource::Ascend => "Ascend devices",
        Resource::Cpus => "CPUs",
        Resource::Memory => "memory",
    }
}

/// Why a job waits, without its state: "waiting for 8 Ascend 910B*, 5 free".
pub(crate) fn wait_sentence(reason: &WaitReason, spec: &JobSpec) -> String {
    match reason {
        WaitReason::DevicesBusy { free, most_on_one_node } => {
            devices_sentence(spec, *free, *most_on_one_node)
        }
        WaitReason::CpusBusy { most_on_one_node } => {
            amount_sentence(spec, &cores(spec.cpus), most_on_one_node)
        }
        WaitReason::MemoryBusy { most_on_one_node } => {
            let asked = format!("{} of memory", spec.memory.unwrap_or_default());
            amount_sentence(spec, &asked, most_on_one_node)
        }
        WaitReason::BehindOthers { head } => {
            let what = if spec.is_cpu_only() { "CPUs and memory" } else { "devices" };
            format!("behind job {head}, which waits for the same {what}")
        }
        WaitReason::Reserved { for_job } => {
            format!("what is free is kept for job {for_job}, which is ahead and would be delayed")
        }
        WaitReason::WorkspaceLimit { resource: what, used, limit } => {
            let (workspace, what) = (&spec.workspace, resource(*what));
            format!("workspace `{workspace}` uses {used} of at most {limit} {what}")
        }
        WaitReason::UserLimit { resource: what, used, limit } => {
            let (workspace, what) = (&spec.workspace, resource(*what));
            format!("its owner uses {used} of at most {limit} {what} in workspace `{workspace}`")
        }
        WaitReason::GuaranteedToOthers { resource: what } => {
            let what = resource(*what);
            format!(
                "the free {what} are guaranteed to other workspaces; only preemptible jobs may borrow them"
            )
        }
        WaitReason::Preempting { victims } => format!("{} must make room for it", jobs(victims)),
        WaitReason::BackOff { not_before } => {
            format!("the last attempt failed; the next is made at {not_before:.0}")
        }
        WaitReason::NoSuchDevices => {
            format!("waiting for {}, which no nodes here could give even if idle", asked(spec))
        }
        WaitReason::NotYetConsidered => "fits now; the next pass of the scheduler starts it".to_owned(),
    }
}

fn devices_sentence(spec: &JobSpec, free: u32, most_on_one_node: u32) -> String {
    let each = spec.alternatives().iter().map(|request| request.count.devices()).min().unwrap_or(0);
    let all = each.saturating_mul(spec.workers);
    let gang = match spec.workers {
        1 => alternatives(spec),
        workers => format!("{workers} workers of {}", alternatives(spec)),
    };
    match (free, spec.workers) {
        (free, _) if free < all => format!("waiting for {gang}, {free} free"),
        (free, 1) => {
            format!("waiting for {gang} on one node, {free} free but at most {most_on_one_node} together")
        }
        (free, _) => format!("waiting for {gang}, {free} free but at most {most_on_one_node} on one node"),
    }
}

fn amount_sentence(spec: &JobSpec, each: &str, most: impl fmt::Display) -> String {
    let workers = match spec.workers {
        1 => String::new(),
        workers => format!("{workers} workers of "),
    };
    let beside = if spec.is_cpu_only() { String::new() } else { format!(" beside {}", alternatives(spec)) };
    format!("waiting for {workers}{each}{beside}, at most {most} free on one node")
}
