//! The scheduler in the server: told what the live state has noted before anybody asks it anything.
//!
//! The live state's lock is held only while its notes are taken, never while a plan is made. Lock order: the scheduler, then the
//! live state. What a submission is refused for depends on nodes and workspaces only, so that is asked of a second scheduler,
//! which knows no jobs: submissions do not wait for a plan over a long queue.

use std::sync::{Arc, Mutex, PoisonError};

use danlu_core::Job;
use danlu_sched::{Circumstances, Plan, Scheduler};
use danlu_types::api::Explanation;
use danlu_types::{FieldError, JobSpec, Node, Sharing};
use jiff::Timestamp;
use tokio::sync::OwnedMutexGuard;
use tokio::task::JoinError;

use crate::live_state::{Changes, LiveState};

#[derive(Debug)]
pub(crate) struct Planner {
    live_state: Arc<LiveState>,
    scheduler: Arc<tokio::sync::Mutex<Scheduler>>,
    gate: Mutex<Gate>,
}

/// The scheduler that knows no jobs.
#[derive(Debug)]
struct Gate {
    nodes: Arc<Vec<Node>>,
    scheduler: Scheduler,
}

impl Planner {
    pub(crate) fn new(live_state: Arc<LiveState>, sharing: Sharing) -> Self {
        let nodes = live_state.nodes();
        let scheduler = Scheduler::new(&nodes, sharing.clone());
        let gate = Gate { scheduler: Scheduler::new(&nodes, sharing), nodes };
        Planner {
            live_state,
            scheduler: Arc::new(tokio::sync::Mutex::new(scheduler)),
            gate: Mutex::new(gate),
        }
    }

    /// What to do now.
    pub(crate) async fn plan(&self, now: Timestamp) -> Plan {
        let plan = self.ask(move |scheduler| scheduler.plan(now)).await;
        plan.unwrap_or_else(|panic| {
            tracing::error!("planning failed, and is tried again: {panic}");
            Plan::default()
        })
    }

    /// Why a job waits, or would, and what would start it.
    pub(crate) async fn explain(
        &self,
        job: Job,
        now: Timestamp,
        circumstances: Circumstances,
    ) -> Result<Explanation, JoinError> {
        self.ask(move |scheduler| scheduler.explain_with(&job, now, &circumstances)).await
    }

    /// Over a long queue an answer takes a while, for which no thread that serves requests should be kept.
    async fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&mut Scheduler) -> T + Send + 'static,
    ) -> Result<T, JoinError> {
        let mut scheduler = self.lock().await;
        let answer = tokio::task::spawn_blocking(move || question(&mut scheduler)).await;
        if answer.is_err() {
            // A mistake of ours left it half way through something.
            self.start_anew().await;
        }
        answer
    }

    async fn start_anew(&self) {
        let mut scheduler = self.scheduler.lock().await;
        let pages = self.live_state.read();
        *scheduler = Scheduler::new(&pages.nodes, scheduler.sharing().clone());
        pages.jobs().for_each(|job| scheduler.file(job));
    }

    /// The scheduler, up to date with the live state.
    pub(crate) async fn lock(&self) -> OwnedMutexGuard<Scheduler> {
        let mut scheduler = self.scheduler.clone().lock_owned().await;
        let Changes { jobs, nodes } = self.live_state.write().take_changes();
        if let Some(nodes) = nodes {
            scheduler.set_nodes(&nodes);
        }
        for job in jobs.values() {
            scheduler.file(job);
        }
        scheduler
    }

    /// Everything for which nothing here could ever run the job.
    pub(crate) fn check(&self, spec: &JobSpec) -> Result<(), FieldError> {
        let nodes = self.live_state.nodes();
        let mut gate = self.gate.lock().unwrap_or_else(PoisonError::into_inner);
        if !Arc::ptr_eq(&gate.nodes, &nodes) {
            gate.scheduler.set_nodes(&nodes);
            gate.nodes = nodes;
        }
        gate.scheduler.check(spec)
    }

    pub(crate) async fn set_sharing(&self, sharing: Sharing) {
        self.gate.lock().unwrap_or_else(PoisonError::into_inner).scheduler.set_sharing(sharing.clone());
        self.scheduler.lock().await.set_sharing(sharing);
    }

    /// Learns from jobs that ended before this server started.
    pub(crate) async fn remember(&self, ended: &[Job]) {
        let mut scheduler = self.scheduler.lock().await;
        for job in ended {
            scheduler.file(job);
        }
    }
}
