//! The scheduler's interface as simulations use it.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use danlu_core::{Job, Life};
use danlu_sched::{Cluster, Start, Waiting, next_wake, plan};
use danlu_types::{FieldError, JobId, JobSpec, Node, Sharing};
use jiff::Timestamp;

/// Strict order within each workspace, which never exceeds its limit of devices.
#[derive(Debug)]
pub(crate) struct Scheduler {
    cluster: Cluster,
    sharing: Sharing,
    queues: BTreeMap<String, BTreeSet<(Reverse<u8>, JobId)>>,
    /// Those that wait or run.
    jobs: BTreeMap<JobId, Job>,
    used: BTreeMap<String, u32>,
}

#[derive(Debug, Default)]
pub(crate) struct Plan {
    pub(crate) starts: Vec<Start>,
    pub(crate) preemptions: Vec<Preemption>,
    pub(crate) next_wake: Option<Timestamp>,
}

#[derive(Debug)]
pub(crate) struct Preemption {
    pub(crate) victim: JobId,
    pub(crate) for_job: JobId,
}

impl Scheduler {
    pub(crate) fn new(nodes: &[Node], sharing: Sharing) -> Self {
        Scheduler {
            cluster: Cluster::new(nodes),
            sharing,
            queues: BTreeMap::new(),
            jobs: BTreeMap::new(),
            used: BTreeMap::new(),
        }
    }

    pub(crate) fn set_nodes(&mut self, nodes: &[Node]) -> bool {
        self.cluster.update_nodes(nodes)
    }

    pub(crate) fn file(&mut self, job: &Job) {
        let queue = self.queues.entry(job.spec.workspace.clone()).or_default();
        if matches!(job.life, Life::Queued { .. }) {
            queue.insert(job.place());
        } else {
            queue.remove(&job.place());
        }
        let held_before = !self.cluster.held_by(job.id).is_empty();
        match (job.active(), held_before) {
            (Some(attempt), false) => {
                let grants: Vec<_> = attempt.workers.iter().map(|worker| worker.grant.clone()).collect();
                let devices: usize = grants.iter().map(|grant| grant.devices.len()).sum();
                *self.used.entry(job.spec.workspace.clone()).or_default() += count(devices);
                self.cluster.adopt(job.id, &grants).expect("what runs was planned here");
            }
            (None, true) => {
                let devices: usize =
                    self.cluster.held_by(job.id).iter().map(|grant| grant.devices.len()).sum();
                *self.used.entry(job.spec.workspace.clone()).or_default() -= count(devices);
                self.cluster.give_back(job.id);
            }
            _ => {}
        }
        if matches!(job.life, Life::Queued { .. }) {
            self.jobs.insert(job.id, job.clone());
        } else {
            self.jobs.remove(&job.id);
        }
    }

    pub(crate) fn plan(&mut self, now: Timestamp) -> Plan {
        if self.sharing.workspaces.is_empty() {
            let order: BTreeSet<_> = self.queues.values().flatten().collect();
            let queue = || order.iter().map(|(_, id)| Waiting { job: &self.jobs[id] });
            let starts = plan(&self.cluster, queue(), now).starts;
            let next_wake = next_wake(queue(), now);
            return Plan { starts, preemptions: Vec::new(), next_wake };
        }
        let mut starts: Vec<Start> = Vec::new();
        let mut wake = None;
        for (name, queue) in &self.queues {
            let limit = self.sharing.workspaces.get(name).map_or(u32::MAX, limit);
            let mut used = self.used.get(name).copied().unwrap_or(0);
            for (_, id) in queue {
                let job = &self.jobs[id];
                let asked = job.spec.workers * job.spec.devices.count.devices();
                if used + asked > limit {
                    break;
                }
                let waiting = || [Waiting { job }];
                wake = [wake, next_wake(waiting(), now)].into_iter().flatten().min();
                let Some(start) = plan(&self.cluster, waiting(), now).starts.pop() else { break };
                used += asked;
                self.cluster.take(start.job, &start.grants).expect("a plan fits its cluster");
                starts.push(start);
            }
        }
        for start in &starts {
            self.cluster.give_back(start.job);
        }
        Plan { starts, preemptions: Vec::new(), next_wake: wake }
    }

    pub(crate) fn check(&mut self, spec: &JobSpec) -> Result<(), Vec<FieldError>> {
        self.cluster.can_ever_run(spec).map_err(|error| vec![error])
    }
}

fn limit(workspace: &danlu_types::Workspace) -> u32 {
    workspace.limit.nvidia.or(workspace.limit.ascend).map_or(u32::MAX, danlu_types::DeviceCount::devices)
}

fn count(devices: usize) -> u32 {
    u32::try_from(devices).unwrap_or(u32::MAX)
}
