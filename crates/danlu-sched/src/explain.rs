//! Why one job waits, with the numbers and the names.
//!
//! It runs the scheduler's own pass up to the job, so that the answer cannot differ from what the scheduler does.

use std::collections::BTreeMap;

use danlu_core::{Job, Life};
use danlu_types::JobId;
use danlu_types::api::{Explanation, Reason};
use jiff::Timestamp;

use crate::cluster::Cluster;
use crate::plan::{Decision, Pass, Waiting};
use crate::reason::{ReasonCode, WaitReason, asked, model};

/// Lists of holders stop here: past a dozen names, a list explains no more than its length.
const MOST_HOLDERS: usize = 12;

/// Explains a job; `queue` is in the order of [`Job::place`] and includes it, if it waits.
pub fn explain<'a>(
    cluster: &Cluster,
    queue: impl IntoIterator<Item = Waiting<'a>>,
    job: &Job,
    now: Timestamp,
) -> Explanation {
    if !matches!(job.life, Life::Queued { .. }) {
        let reason = danlu_core::view::reason(job, None);
        return explanation(job, reason, None, &[]);
    }
    let mut pass = Pass::new(cluster, now);
    let mut position = 1u32;
    let mut heads: BTreeMap<JobId, Reason> = BTreeMap::new();
    for Waiting { job: ahead } in queue {
        if ahead.place() >= job.place() {
            break;
        }
        let Some(decision) = pass.consider(ahead) else { continue };
        position += 1;
        if let Decision::Wait(reason) = decision
            && !matches!(reason, WaitReason::BehindOthers { .. } | WaitReason::BackOff { .. })
        {
            heads.insert(ahead.id, reason.reason(&ahead.spec));
        }
    }
    let mut details = vec![format!("asks for {}", asked(&job.spec))];
    let reason = match pass.consider(job) {
        Some(Decision::Wait(reason)) => {
            if let WaitReason::BehindOthers { head } = &reason
                && let Some(why) = heads.get(head)
            {
                details.push(format!("job {head}, ahead of it, is {}", why.text));
            }
            reason.reason(&job.spec)
        }
        Some(Decision::Start(_)) | None => Reason {
            code: ReasonCode::NotYetConsidered.as_str().to_owned(),
            text: "fits now; the next pass of the scheduler starts it".to_owned(),
        },
    };
    details.extend(devices_in_sight(cluster, job));
    explanation(job, reason, Some(position), &details)
}

fn explanation(job: &Job, reason: Reason, position: Option<u32>, details: &[String]) -> Explanation {
    let mut text = reason.text.clone();
    for detail in details {
        text.push_str("; ");
        text.push_str(detail);
    }
    Explanation {
        job: job.id,
        state: job.state(),
        reason,
        text,
        position,
        supply: Vec::new(),
        quota: None,
        holders: Vec::new(),
        estimate: None,
        offers: Vec::new(),
    }
}

/// How much there is of each model the job would take, and who has it.
fn devices_in_sight(cluster: &Cluster, job: &Job) -> Vec<String> {
    let layout = &cluster.layout;
    if job.spec.devices.count.devices() == 0 {
        return cpus_in_sight(cluster);
    }
    let mut lines = Vec::new();
    let accepted = layout.accepted(&job.spec.devices);
    for &ordinal in &accepted {
        let about = &layout.models[ordinal];
        let free = layout.free_of(&cluster.free, ordinal);
        let all = layout.free_of(&cluster.whole, ordinal);
        let broken = match all - layout.free_of(&cluster.usable, ordinal) {
            0 => String::new(),
            1 => ", 1 does not work".to_owned(),
            failed => format!(", {failed} do not work"),
        };
        lines.push(format!("{free} of {} are free{broken}", model(about.kind, &about.name, all)));
    }
    let accepts = |node: usize, index: u32| {
        let device = cluster.nodes()[node].devices.iter().find(|device| device.index == index);
        device.is_some_and(|device| job.spec.devices.accepts(device))
    };
    let mut holders = Vec::new();
    for (holder, grants) in cluster.holders() {
        let mut on: BTreeMap<&str, usize> = BTreeMap::new();
        for grant in grants {
            let Some(node) = cluster.ordinal(&grant.node) else { continue };
            let count = grant.devices.iter().filter(|&&index| accepts(node, index)).count();
            *on.entry(grant.node.0.as_str()).or_default() += count;
        }
        on.retain(|_, count| *count > 0);
        if !on.is_empty() {
            let places: Vec<String> = on.iter().map(|(node, count)| format!("{count} of {node}")).collect();
            holders.push(format!("job {holder} holds {}", places.join(", ")));
        }
    }
    let more = holders.len().saturating_sub(MOST_HOLDERS);
    lines.extend(holders.into_iter().take(MOST_HOLDERS));
    if more > 0 {
        lines.push(format!("{more} more jobs hold some"));
    }
    lines
}

fn cpus_in_sight(cluster: &Cluster) -> Vec<String> {
    let mut lines = Vec::new();
    for node in cluster.nodes().iter().take(MOST_HOLDERS) {
        let used = cluster.usage(&node.name).unwrap_or_default();
        lines.push(format!(
            "{}: {} of {} CPUs and {} of {} memory are taken",
            node.name, used.cpus, node.capacity.cpus, used.memory, node.capacity.memory
        ));
    }
    lines
}
