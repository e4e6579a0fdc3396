//! Why a job waits, for whoever asks: the scheduler's answer, with only such offers as the caller can take.
//!
//! The scheduler has planned each offer. Here it is made to the job, as `danlu change` or a submission would make it, and
//! admitted with the caller's rights; what would be refused, or would wait for approval, is not offered.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use danlu_core::authorization::{self, Action, AuthzDecision};
use danlu_core::{Job, JobLifecycle, WorkerLifecycle};
use danlu_sched::Circumstances;
use danlu_types::api::{Explanation, JobState, Offer};
use danlu_types::{JobId, JobSpec, Problem, ProblemCode, Reason, ReasonCode, Span, format};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value};

use crate::accounts::Caller;
use crate::app::App;

/// The id of a job that was not submitted: behind everybody else of its priority, as a new job would be.
const NOT_SUBMITTED: JobId = JobId(u64::MAX);

impl App {
    /// What would happen to a job if it were submitted now.
    pub(crate) async fn dry_run(&self, caller: &Caller, spec: JobSpec) -> Result<Explanation, Problem> {
        let (spec, excesses) = self.check(caller, spec)?;
        let now = Timestamp::now();
        let mut job = Job::submitted(NOT_SUBMITTED, caller.name(), Arc::new(spec), now);
        if let Some(excess) = excesses.first() {
            job = job.waiting_for_approval(excess.need());
        }
        Ok(Explanation { job: JobId(0), ..self.explain_job(caller, job, now).await? })
    }

    pub(crate) async fn explain(&self, caller: &Caller, id: JobId) -> Result<Explanation, Problem> {
        let job = self.job_for(caller, id, Action::SeeJob).await?;
        let now = Timestamp::now();
        let mut explanation = self.explain_job(caller, Job::clone(&job), now).await?;
        let queued = job.state() == JobState::Queued;
        if let Some(remark) = self.remark_on(&job) {
            explanation.reason = remark;
        }
        if let Some(detail) = self.engine.trouble().filter(|_| queued) {
            explanation.further.push(Reason::ClusterUnreachable { detail });
        }
        let lacks_devices = queued && explanation.reason.code() == ReasonCode::InsufficientCapacity;
        if let Some((node, detail)) = self.engine.notices().pop_first().filter(|_| lacks_devices) {
            explanation.further.push(Reason::NodeTrouble { node, detail });
        }
        let progress = job.active().and_then(|attempt| self.reports.of(id, attempt.number));
        if let Some(detail) = progress.and_then(|progress| progress.hang) {
            explanation.further.push(Reason::SeemsHung { detail });
        }
        let placed = running_text(&job, now).filter(|_| job.state() == JobState::Running);
        explanation.text = match placed {
            Some(placed) => {
                let plain = Some(&explanation.reason).filter(|reason| reason.code() != ReasonCode::Running);
                let more = plain.into_iter().chain(&explanation.further);
                more.fold(placed, |text, reason| {
                    format!("{text} {}.", format::capitalized(&reason.to_string()))
                })
            }
            None => danlu_sched::explanation_text(&explanation, &job, now),
        };
        Ok(explanation)
    }

    async fn explain_job(&self, caller: &Caller, job: Job, now: Timestamp) -> Result<Explanation, Problem> {
        let waits = matches!(job.life, JobLifecycle::Queued { .. });
        let workspaces = if waits { self.workspaces_for(caller, &job) } else { Vec::new() };
        let ends = if waits { self.reported_ends(now) } else { BTreeMap::new() };
        let held = if waits { self.held_by_engine() } else { BTreeSet::new() };
        let circumstances = Circumstances { workspaces, ends, held };
        let explained = self.planner.explain(job.clone(), now, circumstances).await;
        let mut explanation = explained.map_err(|error| {
            tracing::error!("explaining failed: {error}");
            Problem::new(
                ProblemCode::Internal,
                "the scheduler failed at explaining this job; the log says more",
            )
        })?;
        let offered = explanation.offers.len();
        explanation.offers.retain(|offer| self.could_take(caller, &job, offer));
        let is_hidden = self.sight_of(caller).explanation(&mut explanation);
        if is_hidden || explanation.offers.len() < offered {
            explanation.text = danlu_sched::explanation_text(&explanation, &job, now);
        }
        Ok(explanation)
    }

    /// Workspaces to which the caller could move a job so that it need not be approved there.
    fn workspaces_for(&self, caller: &Caller, job: &Job) -> Vec<String> {
        let names = self.directory.submittable_by(&caller.person);
        let mut others: Vec<String> =
            names.into_iter().filter(|workspace| *workspace != job.spec.workspace).collect();
        others.retain(|workspace| {
            let set = BTreeMap::from([("workspace".to_owned(), workspace.clone())]);
            self.could_take(caller, job, &Offer { set, text: String::new() })
        });
        others
    }

    /// When running jobs will be done, going by the progress that they report, as `danlu show` has it.
    fn reported_ends(&self, now: Timestamp) -> BTreeMap<JobId, Timestamp> {
        let pages = self.live_state.read();
        let attempts = pages.active().filter_map(|job| Some((job.id, job.active()?.number)));
        let left = attempts.filter_map(|(id, attempt)| {
            let progress = self.reports.of(id, attempt)?;
            let left = SignedDuration::try_from(progress.left?.to_duration()).ok()?;
            let said_at = progress.at.unwrap_or(now).min(now);
            Some((id, said_at.saturating_add(left).unwrap_or(Timestamp::MAX).max(now)))
        });
        left.collect()
    }

    /// Jobs that the engine's own queue keeps from running.
    fn held_by_engine(&self) -> BTreeSet<JobId> {
        let pages = self.live_state.read();
        let attempts = pages.active().filter_map(|job| Some((job.id, job.active()?.number)));
        attempts
            .filter(|(id, attempt)| self.reports.queued(*id, *attempt).is_some())
            .map(|(id, _)| id)
            .collect()
    }

    /// Whether the caller could make this change, and the job would then be queued.
    fn could_take(&self, caller: &Caller, job: &Job, offer: &Offer) -> bool {
        let Some(patch) = patch_of(offer) else { return false };
        if job.id == NOT_SUBMITTED {
            let changed = crate::change::patched(&job.spec, patch);
            return changed
                .and_then(|spec| self.check(caller, spec))
                .is_ok_and(|(_, excesses)| excesses.is_empty());
        }
        let relation = self.directory.to_job(&caller.person, job);
        let permission =
            authorization::permission(relation, caller.person.scope, Action::ChangeJob, Action::SeeJob);
        permission == AuthzDecision::Yes
            && self.change_of(caller, job, &patch).is_ok_and(|change| change.is_queued())
    }
}

/// `danlu why` is a paragraph, and no list: `danlu show` has all nodes.
const NODES_SHOWN: usize = 4;

/// For how long a job has been running, and where.
fn running_text(job: &Job, now: Timestamp) -> Option<String> {
    let attempt = job.active()?;
    let since = attempt.workers.iter().filter_map(|worker| match worker.state {
        WorkerLifecycle::Running { since } => Some(since),
        WorkerLifecycle::Placed | WorkerLifecycle::Ended { .. } => None,
    });
    let ran = now.duration_since(since.min()?).as_secs().max(0);
    let mut nodes: BTreeMap<&str, BTreeSet<u32>> = BTreeMap::new();
    for worker in &attempt.workers {
        nodes.entry(&worker.grant.node.0).or_default().extend(&worker.grant.devices);
    }
    let places = nodes.iter().map(|(node, devices)| {
        let listed: Vec<String> = devices.iter().map(ToString::to_string).collect();
        match listed.len() {
            0 => format!("`{node}`"),
            1 => format!("`{node}` (device {})", listed[0]),
            _ => format!("`{node}` (devices {})", listed.join(", ")),
        }
    });
    let mut places: Vec<String> = places.collect();
    if places.len() > NODES_SHOWN {
        let more = places.len() - NODES_SHOWN;
        places.truncate(NODES_SHOWN);
        places.push(format!("{more} more nodes"));
    }
    let ran = Span::from_seconds(u64::try_from(ran).unwrap_or_default());
    Some(format!("Running for {ran} on {}.", places.join(", ")))
}

/// The fields of an offer as a patch of a spec: values are what `--set` would read them as.
fn patch_of(offer: &Offer) -> Option<Map<String, Value>> {
    let mut patch = Map::new();
    for (key, value) in &offer.set {
        let value = match (key.as_str(), value.as_str()) {
            ("workspace" | "devices.model", text) => Value::String(text.to_owned()),
            (_, text) => serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned())),
        };
        match key.split_once('.') {
            None => drop(patch.insert(key.clone(), value)),
            Some((outer, inner)) => {
                let outer = patch.entry(outer).or_insert_with(|| Value::Object(Map::new()));
                outer.as_object_mut()?.insert(inner.to_owned(), value);
            }
        }
    }
    Some(patch)
}
