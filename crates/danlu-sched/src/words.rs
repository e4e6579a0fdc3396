//! An explanation as one paragraph, for terminals.

use std::fmt;

use danlu_core::Job;
use danlu_types::api::{
    EstimateBasis, Explanation, ForeignHolder, HIDDEN_JOB, Holder, QuotaUse, StartEstimate, Supply,
};
use danlu_types::reason::{self, ReasonCode};
use danlu_types::{DeviceKind, ForeignKind, Span, format};
use jiff::Timestamp;

/// "8 Ascend 910B3".
pub(crate) fn model(kind: DeviceKind, model: &str, count: u32) -> String {
    format!("{count} {}", kind.labelled(model))
}

/// "`910B3` and `A100-80G`".
pub(crate) fn listed<T: fmt::Display>(names: &[T]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    if quoted.is_empty() { "none".to_owned() } else { format::list(&quoted) }
}

/// Everything an explanation has, in one paragraph.
pub fn paragraph(explanation: &Explanation, job: &Job, now: Timestamp) -> String {
    let reasons = std::iter::once(&explanation.reason).chain(&explanation.further);
    let mut sentences: Vec<String> = reasons.map(|reason| format::capitalized(&reason.to_string())).collect();
    let supply: Vec<String> = explanation.supply.iter().map(supply_clause).collect();
    if !supply.is_empty() {
        sentences.push(format::capitalized(&supply.join("; ")));
    }
    if let Some(position) = explanation.position {
        sentences.push(format!("Queue position: {position} in workspace `{}`", job.spec.workspace));
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
    if !explanation.cordoned.is_empty() && explanation.reason.code() != ReasonCode::NodesCordoned {
        sentences.push(format::capitalized(&reason::cordoned(&explanation.cordoned)));
    }
    if let Some(estimate) = &explanation.estimate {
        sentences.push(estimate_sentence(estimate, now));
    }
    if !explanation.offers.is_empty() {
        let offers: Vec<&str> = explanation.offers.iter().map(|offer| offer.text.as_str()).collect();
        sentences.push(format!("Suggestions: {}", offers.join("; ")));
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
        clauses.push(format!("{} reserved for jobs ahead", supply.reserved));
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
    let (resource, used, guaranteed) = (quota.resource.as_str(), &quota.used, &quota.guaranteed);
    format!("{whose} uses {used} {resource} ({guaranteed} guaranteed{limit})")
}

fn holders_sentence(holders: &[Holder]) -> String {
    const NAMED: usize = 3;
    let named: Vec<String> = holders
        .iter()
        .take(NAMED)
        .map(|holder| {
            let amount = match (holder.devices, holder.cpus, holder.memory) {
                (_, Some(cpus), _) => Some(format::cpus(cpus)),
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
    format!("Expected to start {when}, based on {}", estimate.rests_on)
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
        parts.push("free resources and queue positions".to_owned());
    }
    parts.join(" and ")
}

fn counted(count: u32, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}
