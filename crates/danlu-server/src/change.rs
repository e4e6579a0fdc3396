//! Changes a job that waits, in place: it keeps its number and its queue position.
//!
//! The changed job is admitted as a new one would be, with the rights of whoever asks. A change is made from the job as it
//! is; where that has changed before it is written, it is made anew, so that of two changes at once none is lost.

use std::sync::Arc;

use danlu_core::admission::Excess;
use danlu_core::authorization::{Action, only_changes_scheduling};
use danlu_core::{ApprovalNeed, Job, JobLifecycle, Transition, TransitionError, Trigger};
use danlu_types::{JobId, JobSpec, Problem, ProblemCode};
use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::accounts::Caller;
use crate::app::{App, done, refused};
use crate::http::json_problem;
use crate::job_writer::WriteResult;

/// How often a change is made anew before the caller is told to try again.
const MOST_TRIES: usize = 16;

/// A change of a job that was admitted.
#[derive(Debug, Clone)]
pub(crate) struct JobChange {
    by: String,
    spec: Arc<JobSpec>,
    approval: Option<ApprovalNeed>,
    seen: u64,
}

impl JobChange {
    fn event(&self) -> Trigger {
        let JobChange { by, spec, approval, seen } = self.clone();
        Trigger::Change { by, spec, approval, seen }
    }

    /// Whether a queued job would still be queued after it.
    pub(crate) fn is_queued(&self) -> bool {
        self.approval.is_none()
    }
}

impl App {
    pub(crate) async fn change_spec(
        &self,
        caller: &Caller,
        id: JobId,
        patch: &Map<String, Value>,
    ) -> Result<Arc<Job>, Problem> {
        for _ in 0..MOST_TRIES {
            let job = self.job_for(caller, id, Action::ChangeJob).await?;
            let change = self.change_of(caller, &job, patch)?;
            match self.job_writer.apply(id, change.event()).await {
                Ok(WriteResult::Refused(TransitionError::ChangedMeanwhile { .. })) => {}
                // It ended just now.
                Ok(WriteResult::NoSuchJob) => {
                    return Err(refused(&TransitionError::NotWaiting {
                        job: id,
                        state: danlu_types::api::JobState::Ended,
                    }));
                }
                other => return done(other),
            }
        }
        Err(refused(&TransitionError::ChangedMeanwhile { job: id }))
    }

    /// The change that a patch is of a job, as the caller may make it.
    pub(crate) fn change_of(
        &self,
        caller: &Caller,
        job: &Job,
        patch: &Map<String, Value>,
    ) -> Result<JobChange, Problem> {
        let by = caller.name();
        let (spec, seen) = (job.spec.clone(), job.generation);
        let unchanged = JobChange { by: by.clone(), spec, approval: None, seen };
        // Said first: what is wrong with a change of a running job is that it runs.
        if let Transition::Refuse(refusal) = danlu_core::apply(job, unchanged.event(), Timestamp::now()) {
            return Err(refused(&refusal));
        }
        let spec = patched(&job.spec, patch.clone())?;
        if by != job.owner && !only_changes_scheduling(&job.spec, &spec) {
            let detail = format!("`{by}` may not change what job {} of `{}` runs", job.id, job.owner);
            let problem = Problem::new(ProblemCode::Forbidden, detail);
            return Err(problem.with_hint(
                "others than its owner can change its resources, `nodes`, `priority`, `max_time`, `preemptible`, `name` \
                 and `labels`",
            ));
        }
        let (spec, excesses) = self.check(caller, spec)?;
        // Whoever let it start has approved as much of each already, and no more.
        let approved = match &job.life {
            JobLifecycle::Queued { .. } => {
                self.directory.settle(JobSpec::clone(&job.spec)).map(|(_, excesses)| excesses)
            }
            _ => Ok(Vec::new()),
        };
        let approved = approved.unwrap_or_default();
        let is_new = |excess: &&Excess| !approved.iter().any(|other| excess.is_within(other));
        let approval = excesses.iter().find(is_new).map(Excess::need);
        Ok(JobChange { spec: Arc::new(spec), approval, ..unchanged })
    }
}

/// A spec with some of its fields replaced; `null` takes one away.
pub(crate) fn patched(spec: &JobSpec, patch: Map<String, Value>) -> Result<JobSpec, Problem> {
    let mut spec = serde_json::to_value(spec).expect("a spec is plain values");
    merge(&mut spec, Value::Object(patch));
    serde_path_to_error::deserialize(spec)
        .map_err(|error| json_problem(&error.path().to_string(), error.inner()))
}

/// RFC 7396.
fn merge(target: &mut Value, patch: Value) {
    let Value::Object(patch) = patch else {
        *target = patch;
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Value::Object(target) = target else { return };
    for (key, value) in patch {
        if value.is_null() {
            target.remove(&key);
        } else {
            merge(target.entry(key).or_insert(Value::Null), value);
        }
    }
}
