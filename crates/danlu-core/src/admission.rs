//! What a workspace's rules make of a job before it is taken: they fill in what it leaves open, and say what it may not
//! ask for and what somebody has to approve first.

use danlu_types::device::glob_matches;
use danlu_types::reason::{ApprovalExcess, QuotaResource};
use danlu_types::spec::HIGHEST_PRIORITY;
use danlu_types::{Amounts, DeviceCount, DeviceKind, DeviceRequest, FieldError, JobSpec, Workspace};

use crate::approval::ApprovalNeed;

/// The job as the workspace takes it.
pub fn apply_workspace_rules(mut spec: JobSpec, rules: &Workspace) -> Result<JobSpec, FieldError> {
    let highest = rules.highest_priority.unwrap_or(HIGHEST_PRIORITY);
    let priority = *spec.priority.get_or_insert_with(|| rules.priority());
    if priority > highest {
        let message = format!("is {priority}; in workspace `{}` it may be at most {highest}", spec.workspace);
        return Err(FieldError::new("priority", message));
    }
    if !rules.images.is_empty() && !rules.images.iter().any(|pattern| glob_matches(pattern, &spec.image)) {
        let allowed: Vec<String> = rules.images.iter().map(|pattern| format!("`{pattern}`")).collect();
        let message =
            format!("is `{}`; workspace `{}` allows {}", spec.image, spec.workspace, allowed.join(", "));
        return Err(FieldError::new("image", message));
    }
    if let Some(idle) = rules.idle
        && spec.hang_after.is_none()
        && !spec.is_cpu_only()
    {
        (spec.hang_after, spec.on_hang) = (Some(idle.after), idle.then);
    }
    Ok(spec)
}

/// Something that a job asks for and its workspace does not give without approval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Excess {
    resource: QuotaResource,
    /// In thousandths, or in bytes.
    asked: u64,
    limit: u64,
    workspace: String,
}

impl Excess {
    /// Whether whoever approved that one has approved this one: as much of the same, in the same workspace.
    pub fn is_within(&self, approved: &Excess) -> bool {
        self.resource == approved.resource
            && self.workspace == approved.workspace
            && self.asked <= approved.asked
    }

    pub fn need(&self) -> ApprovalNeed {
        let written = |amount| match self.resource {
            QuotaResource::Memory => danlu_types::Bytes(amount).to_string(),
            _ => thousandths(amount),
        };
        let (requested, limit) = (written(self.asked), written(self.limit));
        let workspace = self.workspace.clone();
        ApprovalNeed::Above(ApprovalExcess { workspace, resource: self.resource, requested, limit })
    }
}

/// All for which somebody has to approve the job before it may start. A job with alternatives is judged, for each resource, by
/// the one that asks for most.
pub fn excesses(spec: &JobSpec, rules: &Workspace) -> Vec<Excess> {
    let asked = asked_in_all(spec);
    let Amounts { nvidia, ascend, cpus, memory } = rules.approve_above;
    let of_devices = |kind: DeviceKind, most: Option<DeviceCount>| {
        (asked.devices[kind as usize], most.map(|most| u64::from(most.milli())))
    };
    let asked_and_limits = [
        (QuotaResource::Nvidia, of_devices(DeviceKind::Nvidia, nvidia)),
        (QuotaResource::Ascend, of_devices(DeviceKind::Ascend, ascend)),
        (QuotaResource::Cpus, (asked.milli_cpus, cpus.map(|most| most.milli))),
        (QuotaResource::Memory, (asked.memory, memory.map(|most| most.0))),
    ];
    let excess = |(resource, (asked, limit)): (_, (u64, Option<u64>))| {
        let limit = limit.filter(|limit| asked > *limit)?;
        Some(Excess { resource, asked, limit, workspace: spec.workspace.clone() })
    };
    asked_and_limits.into_iter().filter_map(excess).collect()
}

struct Asked {
    /// By kind, in thousandths.
    devices: [u64; 2],
    milli_cpus: u64,
    memory: u64,
}

fn asked_in_all(spec: &JobSpec) -> Asked {
    let workers = u64::from(spec.workers);
    let most_of = |kind: DeviceKind| {
        let may_be = |request: &&DeviceRequest| request.kind.is_none_or(|asked| asked == kind);
        let counts =
            spec.alternatives().iter().filter(may_be).map(|request| u64::from(request.count.milli()));
        counts.max().unwrap_or(0).saturating_mul(workers)
    };
    Asked {
        devices: [most_of(DeviceKind::Nvidia), most_of(DeviceKind::Ascend)],
        milli_cpus: spec.cpus.milli.saturating_mul(workers),
        memory: spec.memory.map_or(0, |memory| memory.0).saturating_mul(workers),
    }
}

fn thousandths(amount: u64) -> String {
    (amount as f64 / 1000.0).to_string()
}

#[cfg(test)]
mod tests {
    use danlu_types::IdlePolicy;
    use danlu_types::spec::OnHang;

    use super::*;

    fn rules(text: &str) -> Workspace {
        serde_saphyr::from_str(text).expect("rules of a workspace")
    }

    fn spec(text: &str) -> JobSpec {
        serde_saphyr::from_str(&format!("command: x\nworkspace: vision\n{text}")).expect("a job")
    }

    #[test]
    fn what_a_job_leaves_open_its_workspace_says() {
        let rules = rules("default_priority: 3\nhighest_priority: 6\nidle: {after: 2h, then: restart}");
        let job = apply_workspace_rules(spec("devices: {kind: nvidia, count: 1}"), &rules).unwrap();
        let IdlePolicy { after, then } = rules.idle.unwrap();
        assert_eq!((job.priority(), job.hang_after, job.on_hang), (3, Some(after), then));
        let job = apply_workspace_rules(
            spec("devices: {kind: nvidia, count: 1}\npriority: 6\nhang_after: 5m"),
            &rules,
        )
        .unwrap();
        assert_eq!((job.priority(), job.on_hang), (6, OnHang::Notify));
        let on_processors = apply_workspace_rules(spec("cpus: 2"), &rules).unwrap();
        assert_eq!(on_processors.hang_after, None, "it holds no device that could be idle");
        assert_eq!(apply_workspace_rules(spec(""), &Workspace::default()).unwrap().priority(), 5);
        let low = Workspace { highest_priority: Some(2), ..Workspace::default() };
        assert_eq!(apply_workspace_rules(spec(""), &low).unwrap().priority(), 2);
    }

    #[test]
    fn what_a_workspace_forbids_is_said_with_what_it_allows() {
        let rules = rules("highest_priority: 6\nimages: [host, 'lab/*']");
        let said = |job: &str| match apply_workspace_rules(spec(job), &rules) {
            Ok(_) => "taken".to_owned(),
            Err(FieldError { field, message }) => format!("`{field}` {message}"),
        };
        insta::assert_snapshot!(said("priority: 7"), @"`priority` is 7; in workspace `vision` it may be at most 6");
        insta::assert_snapshot!(said("image: other/torch"), @"`image` is `other/torch`; workspace `vision` allows `host`, `lab/*`");
        assert_eq!(said("image: lab/torch:2"), "taken");
    }

    #[test]
    fn what_is_above_needs_approval() {
        let rules = rules("approve_above: {nvidia: 4, ascend: 8, memory: 1Ti}");
        let said = |job: &str| {
            excesses(&spec(job), &rules)
                .first()
                .map_or_else(|| "may start".to_owned(), |excess| excess.need().to_string())
        };
        assert_eq!(said("devices: {kind: nvidia, count: 4}"), "may start");
        assert_eq!(said("devices: {kind: ascend, count: 8}\ncpus: 1000"), "may start");
        insta::assert_snapshot!(said("devices: {kind: nvidia, count: 4}\nworkers: 2"), @"requests 8 NVIDIA devices; workspace `vision` allows 4 without approval");
        insta::assert_snapshot!(said("any_of: [{kind: nvidia, count: 4}, {kind: ascend, count: 16}]"), @"requests 16 Ascend devices; workspace `vision` allows 8 without approval");
        insta::assert_snapshot!(said("devices: {count: 5}"), @"requests 5 NVIDIA devices; workspace `vision` allows 4 without approval");
        insta::assert_snapshot!(said("memory: 600Gi\nworkers: 2"), @"requests 1200Gi of memory; workspace `vision` allows 1Ti without approval");
    }

    #[test]
    fn an_approval_is_of_each_resource_and_as_much() {
        let rules = rules("approve_above: {nvidia: 4, ascend: 4, cpus: 8, memory: 1Gi}");
        let is_within = |job: &str, approved: &str| {
            let approved = excesses(&spec(approved), &rules);
            excesses(&spec(job), &rules).iter().all(|one| approved.iter().any(|other| one.is_within(other)))
        };
        let approved = "devices: {kind: nvidia, count: 16}\ncpus: 10";
        for within in ["cpus: 9", "devices: {kind: nvidia, count: 8}\nworkers: 2\ncpus: 5", approved, ""] {
            assert!(is_within(within, approved), "{within}");
        }
        for above in [
            "cpus: 11",
            "memory: 2Gi",
            "devices: {kind: nvidia, count: 17}",
            "devices: {count: 16}",
            "any_of: [{kind: nvidia, count: 16}, {kind: ascend, count: 5}]",
        ] {
            assert!(!is_within(above, approved), "{above}");
        }
        let elsewhere =
            Excess { workspace: "speech".to_owned(), ..excesses(&spec(approved), &rules)[0].clone() };
        assert!(!elsewhere.is_within(&excesses(&spec(approved), &rules)[0]));
    }
}
