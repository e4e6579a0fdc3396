//! Sentences about what jobs ask for and why they wait.

use std::fmt;

use danlu_core::Job;
use danlu_types::api::{
    CordonedNode, EstimateBasis, Explanation, ForeignHolder, HIDDEN_JOB, Holder, QuotaUse, StartEstimate,
    Supply,
};
use danlu_types::{Cpus, DeviceKind, DeviceRequest, ForeignKind, JobId, JobSpec, Span};
use jiff::Timestamp;

use crate::scheduler::{QuotaResource, ReasonCode, WaitReason};

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
    format!("{count} {}", kind.labelled(model))
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

/// "3, 5, 8".
pub(crate) fn numbers(jobs: &[JobId]) -> String {
    let numbers: Vec<String> = jobs.iter().map(ToString::to_string).collect();
    numbers.join(", ")
}

/// "Ascend devices", "CPUs".
pub(crate) fn resource(resource: QuotaResource) -> &'static str {
    match resource {
        QuotaResource::Nvidia => "NVIDIA devices",
        QuotaResource::Ascend => "Ascend devices",
        QuotaResource::Cpus => "CPUs",
        QuotaResource::Memory => "memory",
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
        WaitReason::WorkspaceLimit { resource: what, asked, used, limit } => {
            let (workspace, what) = (&spec.workspace, resource(*what));
            format!(
                "workspace `{workspace}` uses {used} of at most {limit} {what}, and this job asks for {asked}"
            )
        }
        WaitReason::UserLimit { resource: what, asked, used, limit } => {
            let (workspace, what) = (&spec.workspace, resource(*what));
            format!(
                "its owner uses {used} of at most {limit} {what} in workspace `{workspace}`, and this job asks for \
                 {asked}"
            )
        }
        WaitReason::GuaranteedToOthers { resource: what, lends } => guaranteed_sentence(*what, *lends),
        WaitReason::KeepsAway { node, until } => {
            format!(
                "fits on node `{node}`, which failed its last attempt; keeps away from it until {until:.0}"
            )
        }
        WaitReason::Preempting { victims } => format!("{} must make room for it", jobs(victims)),
        WaitReason::BackOff { not_before, given_back: Some(reason) } => {
            danlu_core::view::requeued_sentence(reason, *not_before)
        }
        WaitReason::BackOff { not_before, given_back: None } => {
            format!("the last attempt failed; the next is made at {not_before:.0}")
        }
        WaitReason::NoSuchDevices => {
            format!("waiting for {}, which no nodes here could give even if idle", asked(spec))
        }
        WaitReason::NodesCordoned { nodes } => {
            format!("waiting for {}; {}", asked(spec), cordoned_clause(nodes))
        }
        WaitReason::NotYetConsidered => "about to start".to_owned(),
    }
}

/// "node `a` is cordoned (new fans)".
fn cordoned_clause(nodes: &[CordonedNode]) -> String {
    const NAMED: usize = 3;
    let named: Vec<String> = nodes
        .iter()
        .take(NAMED)
        .map(|CordonedNode { node, reason }| format!("node `{node}` is cordoned ({reason})"))
        .collect();
    let more = nodes.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(", and so are {more} more") } else { String::new() };
    format!("{}{more}", named.join(", "))
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
        (free, _) if most_on_one_node >= each && spec.nodes.same_rack => {
            format!("waiting for {gang}, {free} free but not in one rack")
        }
        (free, _) if most_on_one_node >= each => {
            format!("waiting for {gang}, {free} free but not in a combination that would do")
        }
        (free, 1) => {
            format!("waiting for {gang} on one node, {free} free but at most {most_on_one_node} together")
        }
        (free, _) => format!("waiting for {gang}, {free} free but at most {most_on_one_node} on one node"),
    }
}

fn guaranteed_sentence(what: QuotaResource, lends: bool) -> String {
    let (verb, them) = if what == QuotaResource::Memory { ("is", "it") } else { ("are", "them") };
    let borrow = if lends { format!("; only preemptible jobs may borrow {them}") } else { String::new() };
    format!("the free {} {verb} guaranteed to other workspaces{borrow}", resource(what))
}

fn amount_sentence(spec: &JobSpec, each: &str, most: impl fmt::Display) -> String {
    let workers = match spec.workers {
        1 => String::new(),
        workers => format!("{workers} workers of "),
    };
    let beside = if spec.is_cpu_only() { String::new() } else { format!(" beside {}", alternatives(spec)) };
    format!("waiting for {workers}{each}{beside}, at most {most} free on one node")
}

/// Everything an explanation has, in one paragraph.
pub fn paragraph(explanation: &Explanation, job: &Job, now: Timestamp) -> String {
    let mut sentences = vec![capitalised(&explanation.reason.text)];
    let supply: Vec<String> = explanation.supply.iter().map(supply_clause).collect();
    if !supply.is_empty() {
        sentences.push(capitalised(&supply.join("; ")));
    }
    if let Some(position) = explanation.position {
        let workspace = &job.spec.workspace;
        sentences.push(match position {
            1 => format!("It is the next in workspace `{workspace}`"),
            _ => format!("It is number {position} in workspace `{workspace}`"),
        });
    }
    if let Some(quota) = &explanation.quota {
        sentences.push(quota_sentence(quota));
    }
    if !explanation.holders.is_empty() {
        sentences.push(holders_sentence(&explanation.holders));
    }
    if !explanation.foreign.is_empty() {
        sentences.push(foreign_sentence(&explanation.foreign));
    }
    if !explanation.cordoned.is_empty() && explanation.reason.code != ReasonCode::NodesCordoned.as_str() {
        sentences.push(capitalised(&cordoned_clause(&explanation.cordoned)));
    }
    if let Some(estimate) = &explanation.estimate {
        sentences.push(estimate_sentence(estimate, now));
    }
    if !explanation.offers.is_empty() {
        let offers: Vec<&str> = explanation.offers.iter().map(|offer| offer.text.as_str()).collect();
        sentences.push(format!("Instead: {}", offers.join("; ")));
    }
    sentences.join(". ") + "."
}

fn supply_clause(supply: &Supply) -> String {
    let (Some(kind), Some(name)) = (supply.kind, &supply.model) else {
        return format!("{} of {} CPUs are free", supply.free, supply.total);
    };
    let mut clauses = vec![format!("{} of {} are free", supply.free, model(kind, name, supply.total))];
    if supply.free > 0 {
        clauses.push(format!("at most {} on one node", supply.most_on_one_node));
    }
    if supply.reserved > 0 {
        clauses.push(format!("{} of them kept for jobs ahead", supply.reserved));
    }
    if supply.usable < supply.total {
        clauses.push(format!("{} out of service", supply.total - supply.usable));
    }
    clauses.join(", ")
}

fn quota_sentence(quota: &QuotaUse) -> String {
    let whose = match &quota.user {
        Some(user) => format!("`{user}` in workspace `{}`", quota.workspace),
        None => format!("Workspace `{}`", quota.workspace),
    };
    let limit = quota.limit.as_ref().map(|limit| format!(", at most {limit}")).unwrap_or_default();
    let (resource, used, guaranteed) = (&quota.resource, &quota.used, &quota.guaranteed);
    format!("{whose} uses {used} {resource} ({guaranteed} guaranteed{limit})")
}

fn holders_sentence(holders: &[Holder]) -> String {
    const NAMED: usize = 3;
    let named: Vec<String> = holders
        .iter()
        .take(NAMED)
        .map(|holder| {
            let amount = match (holder.devices, holder.cpus, holder.memory) {
                (_, Some(cpus), _) => Some(cores(cpus)),
                (_, _, Some(memory)) => Some(memory.to_string()),
                (0, ..) => None,
                (devices, ..) => Some(devices.to_string()),
            };
            let amount = amount.map(|amount| format!(" ({amount})")).unwrap_or_default();
            match holder.job {
                Some(job) => format!("job {job} of {}{amount}", holder.owner),
                None => format!("{HIDDEN_JOB}{amount}"),
            }
        })
        .collect();
    let more = holders.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("Held by {}{more}", named.join(", "))
}

fn foreign_sentence(holders: &[ForeignHolder]) -> String {
    const NAMED: usize = 3;
    let of_devices = |holder: &ForeignHolder| match (&holder.device_indices[..], holder.devices) {
        (_, 0) => String::new(),
        (indices @ [_, ..], _) if holder.kind != ForeignKind::ClusterJob => {
            let indices: Vec<String> = indices.iter().map(ToString::to_string).collect();
            let (noun, nodes) = (if indices.len() == 1 { "device" } else { "devices" }, &holder.nodes);
            let on = nodes.first().map(|node| format!(" of {node}")).unwrap_or_default();
            format!(" ({noun} {}{on})", indices.join(", "))
        }
        (_, devices) => format!(" ({devices})"),
    };
    let name = |holder: &ForeignHolder| match holder.kind {
        ForeignKind::ClusterJob => format!("{} of {}", holder.job, holder.user),
        ForeignKind::Process => format!("process {} ({}) of {}", holder.job, holder.name, holder.user),
        ForeignKind::UnknownProcess => "an unknown process".to_owned(),
    };
    // Engines have either jobs of a cluster or processes beside them.
    let is_cluster = holders.iter().all(|holder| holder.kind == ForeignKind::ClusterJob);
    let whose = if is_cluster { "the cluster's jobs " } else { "" };
    let named: Vec<String> =
        holders.iter().take(NAMED).map(|holder| format!("{}{}", name(holder), of_devices(holder))).collect();
    let more = holders.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("Held outside Danlu by {whose}{}{more}", named.join(", "))
}

fn estimate_sentence(estimate: &StartEstimate, now: Timestamp) -> String {
    let from_now = |at: Timestamp| {
        let seconds = u64::try_from(at.duration_since(now).as_secs()).unwrap_or(0);
        // Nobody plans a day by the second.
        let rounded = if seconds >= 3600 { seconds / 60 * 60 } else { seconds };
        Span::from_seconds(rounded)
    };
    let earliest = from_now(estimate.earliest);
    let when = match estimate.latest.map(from_now) {
        Some(latest) if latest == earliest => format!("in about {earliest}"),
        Some(latest) => format!("in {earliest} to {latest}"),
        None => format!("in {earliest} at the earliest"),
    };
    format!("It should start {when}, going by {}", estimate.rests_on)
}

/// "2 time limits and 3 past durations of like jobs".
pub(crate) fn rests_on(basis: &EstimateBasis) -> String {
    let EstimateBasis { time_limits, past_durations, progress, guesses, preemptions } = *basis;
    let mut parts = Vec::new();
    if preemptions > 0 {
        parts.push(format!("the preemption of {}", counted(preemptions, "job")));
    }
    if time_limits > 0 {
        parts.push(format!("the time limits of {}", counted(time_limits, "running job")));
    }
    if progress > 0 {
        parts.push(format!("the reported progress of {}", counted(progress, "running job")));
    }
    if past_durations > 0 {
        parts.push(format!("past durations of jobs like {}", counted(past_durations, "running one")));
    }
    if guesses > 0 {
        parts.push(format!("a guess for {} without limit or history", counted(guesses, "running job")));
    }
    if parts.is_empty() {
        parts.push("what is free now and who is ahead".to_owned());
    }
    parts.join(" and ")
}

fn counted(count: u32, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
