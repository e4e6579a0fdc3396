//! A small world around a scheduler: nodes, jobs and a clock, in which plans are carried out as a server would.

use std::collections::BTreeMap;
use std::sync::Arc;

use danlu_core::job::{FailureCause, WorkerEnd, WorkerFailure, WorkerLifecycle};
use danlu_core::{Grant, Job, JobLifecycle, Transition, Trigger, apply};
use danlu_sched::{Plan, Scheduler, WaitReason};
use danlu_types::{
    Bytes, Cpus, Device, DeviceKind, ForeignHold, ForeignKind, Health, JobId, JobSpec, Node, NodeCapacity,
    NodeName, Sharing, Topology, Wiring, WorkerIndex,
};
use jiff::Timestamp;

pub(crate) fn start_of_time() -> Timestamp {
    "2026-01-01T00:00:00Z".parse().unwrap()
}

/// A node whose devices stand in islands of the given size.
pub(crate) fn node(name: &str, devices: &[(u32, DeviceKind, &str)], island: u32) -> Node {
    let mut all = Vec::new();
    for (count, kind, model) in devices {
        for _ in 0..*count {
            let index = u32::try_from(all.len()).unwrap();
            let memory = Bytes(64 << 30);
            let (model, health) = ((*model).to_owned(), Health::Ok);
            all.push(Device {
                index,
                kind: *kind,
                model,
                memory,
                island: index / island,
                health,
                wiring: Wiring::default(),
            });
        }
    }
    Node {
        name: NodeName(name.to_owned()),
        architecture: "aarch64".to_owned(),
        capacity: NodeCapacity { cpus: Cpus::whole(64), memory: Bytes(512 << 30) },
        devices: all,
        address: "127.0.0.1".to_owned(),
        labels: BTreeMap::new(),
        cordoned: None,
        topology: Topology::default(),
        simulated: true,
        foreign: Vec::new(),
    }
}

/// What a job of somebody else's holds of a node: its first devices.
pub(crate) fn foreign(devices: u32, cpus: u64, until: Option<Timestamp>) -> ForeignHold {
    ForeignHold {
        kind: ForeignKind::ClusterJob,
        job: "4711".to_owned(),
        name: "theirs".to_owned(),
        user: "eve".to_owned(),
        devices: (0..devices).collect(),
        cpus: Cpus::whole(cpus),
        memory: Bytes(0),
        until,
    }
}

pub(crate) struct World {
    pub(crate) nodes: Vec<Node>,
    pub(crate) sharing: Sharing,
    pub(crate) scheduler: Scheduler,
    pub(crate) jobs: BTreeMap<JobId, Job>,
    pub(crate) now: Timestamp,
    submitted: u64,
}

impl World {
    pub(crate) fn new(nodes: Vec<Node>, sharing: Sharing) -> Self {
        let scheduler = Scheduler::new(&nodes, sharing.clone());
        World { nodes, sharing, scheduler, jobs: BTreeMap::new(), now: start_of_time(), submitted: 0 }
    }

    /// Tells the scheduler of changed nodes and rules.
    pub(crate) fn refresh(&mut self) {
        self.scheduler.set_nodes(&self.nodes);
        self.scheduler.set_sharing(self.sharing.clone());
    }

    pub(crate) fn submit(&mut self, id: u64, owner: &str, spec: JobSpec) {
        self.file(Job::submitted(JobId(id), owner.to_owned(), Arc::new(spec), self.now));
    }

    pub(crate) fn file(&mut self, job: Job) {
        self.scheduler.file(&job);
        self.jobs.insert(job.id, job);
    }

    /// Plans, and does what the plan says: starts run at once, victims are asked to end and have not yet.
    pub(crate) fn plan(&mut self) -> Plan {
        let plan = self.scheduler.plan(self.now);
        self.carry_out(&plan);
        plan
    }

    pub(crate) fn carry_out(&mut self, plan: &Plan) {
        for start in &plan.starts {
            self.apply(start.job, Trigger::Place { grants: start.grants.clone() });
            self.each_worker(start.job, |attempt, worker| Trigger::WorkerRunning { attempt, worker });
        }
        for preemption in &plan.preemptions {
            self.apply(preemption.victim, Trigger::Preempt { for_job: preemption.for_job });
        }
    }

    /// All workers of a job end; by success it is over, by a stop it is queued again if it was preempted.
    pub(crate) fn end(&mut self, job: JobId, exit: &WorkerEnd) {
        self.each_worker(job, |attempt, worker| Trigger::WorkerEnded { attempt, worker, exit: exit.clone() });
    }

    /// One worker fails and takes the others with it.
    pub(crate) fn fail(&mut self, job: JobId, worker: u32, cause: FailureCause) {
        let attempt = self.jobs[&job].active().unwrap().number;
        let failure = WorkerFailure { cause, rank: None, exit: None, detail: String::new() };
        let exit = WorkerEnd::Failed(failure);
        self.apply(job, Trigger::WorkerEnded { attempt, worker: WorkerIndex(worker), exit });
        self.end(job, &WorkerEnd::Stopped);
    }

    /// It has written a checkpoint, unless it did so at this very moment already.
    pub(crate) fn save(&mut self, job: JobId) {
        let attempt = self.jobs[&job].active().unwrap();
        if attempt.saved_at < Some(self.now) {
            let attempt = attempt.number;
            self.apply(job, Trigger::Saved { attempt });
        }
    }

    /// It is over, and nobody remembers how long it took.
    pub(crate) fn vanish(&mut self, job: JobId) {
        self.jobs.remove(&job);
        self.scheduler.forget(job);
    }

    pub(crate) fn next_id(&mut self) -> u64 {
        self.submitted += 1;
        self.submitted
    }

    pub(crate) fn apply(&mut self, job: JobId, event: Trigger) {
        match apply(&self.jobs[&job], event.clone(), self.now) {
            Transition::Next { job, .. } => self.file(*job),
            refused => panic!("job {job} did not take {event:?}: {refused:?}"),
        }
    }

    fn each_worker(
        &mut self,
        job: JobId,
        event: impl Fn(danlu_types::AttemptNumber, WorkerIndex) -> Trigger,
    ) {
        let Some(attempt) = self.jobs[&job].active().cloned() else { return };
        for (index, worker) in (0..).zip(&attempt.workers) {
            if !matches!(worker.state, WorkerLifecycle::Ended { .. }) {
                self.apply(job, event(attempt.number, WorkerIndex(index)));
            }
        }
    }

    /// The same, to look at.
    pub(crate) fn copy(&self) -> World {
        World {
            nodes: self.nodes.clone(),
            sharing: self.sharing.clone(),
            scheduler: Scheduler::new(&[], Sharing::default()),
            jobs: self.jobs.clone(),
            now: self.now,
            submitted: self.submitted,
        }
    }

    /// Why everybody waits.
    pub(crate) fn reasons(&mut self) -> Vec<(JobId, Option<WaitReason>)> {
        let waiting: Vec<JobId> = self.queued().map(|job| job.id).collect();
        waiting.into_iter().map(|job| (job, self.scheduler.wait_reason(job))).collect()
    }

    /// Jobs that wait, in the order in which they were submitted.
    pub(crate) fn queued(&self) -> impl Iterator<Item = &Job> {
        self.jobs.values().filter(|job| matches!(job.life, JobLifecycle::Queued { .. }))
    }

    /// Jobs that hold something, with what they hold.
    pub(crate) fn holders(&self) -> impl Iterator<Item = (&Job, Vec<Grant>)> {
        self.jobs.values().filter_map(|job| {
            let workers = &job.active()?.workers;
            Some((job, workers.iter().map(|worker| worker.grant.clone()).collect()))
        })
    }
}
