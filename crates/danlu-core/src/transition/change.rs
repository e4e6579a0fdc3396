//! Replaces the spec of a job that waits.
//!
//! Id, submission time and the present wait stay as they are, so the job keeps its queue position. The caller has admitted
//! the new spec; `seen` guards against a spec that was made from an older one.

use std::sync::Arc;

use danlu_types::JobSpec;
use jiff::Timestamp;
use serde_json::{Map, Value};

use super::{Transition, TransitionError, record};
use crate::approval::ApprovalNeed;
use crate::event::EventKind;
use crate::job::{Job, JobLifecycle, QueueCause};

/// Longer values are named and not quoted in the history.
const LONGEST_QUOTED: usize = 40;

pub(super) fn on_change(
    job: &Job,
    by: &str,
    spec: Arc<JobSpec>,
    approval: Option<ApprovalNeed>,
    seen: u64,
    at: Timestamp,
) -> Transition {
    let life = match &job.life {
        JobLifecycle::Active(_) | JobLifecycle::Ended { .. } => {
            return Transition::Refuse(TransitionError::NotWaiting { job: job.id, state: job.state() });
        }
        _ if job.generation != seen => {
            return Transition::Refuse(TransitionError::ChangedMeanwhile { job: job.id });
        }
        _ if job.spec == spec => return Transition::Ignore,
        JobLifecycle::Held { since, by, approval: None } => {
            JobLifecycle::Held { since: *since, by: by.clone(), approval }
        }
        JobLifecycle::Held { since, by, approval: Some(_) } if approval.is_some() => {
            JobLifecycle::Held { since: *since, by: by.clone(), approval }
        }
        // It was held for nothing but the approval that it no longer needs.
        JobLifecycle::Held { .. } => JobLifecycle::Queued { since: at, why: QueueCause::Released },
        JobLifecycle::Queued { .. } if approval.is_some() => {
            JobLifecycle::Held { since: at, by: super::DANLU.to_owned(), approval }
        }
        queued @ JobLifecycle::Queued { .. } => queued.clone(),
    };
    let message = format!("changed {}", differences(&job.spec, &spec).join(", "));
    let records = vec![record(EventKind::JobChanged, None, by, message)];
    let job = Job { spec, life, generation: job.generation + 1, ..job.clone() };
    Transition::Next { job: Box::new(job), records }
}

/// "`devices.count` from 8 to 4", one for each field that differs.
fn differences(before: &JobSpec, after: &JobSpec) -> Vec<String> {
    let fields = |spec: &JobSpec| {
        let value = serde_json::to_value(spec).expect("a spec is plain values");
        let mut fields = Map::new();
        flatten(String::new(), value, &mut fields);
        fields
    };
    let (before, after) = (fields(before), fields(after));
    let mut names: Vec<&String> = before.keys().chain(after.keys()).collect();
    names.sort_unstable();
    names.dedup();
    let differing = names.into_iter().filter(|name| before.get(*name) != after.get(*name));
    differing
        .map(|name| match (quoted(before.get(name)), quoted(after.get(name))) {
            // History outlives the job, and people put passwords into variables.
            (Some(old), Some(new)) if !name.starts_with("env.") => format!("`{name}` from {old} to {new}"),
            _ => format!("`{name}`"),
        })
        .collect()
}

fn flatten(name: String, value: Value, fields: &mut Map<String, Value>) {
    match value {
        Value::Object(inner) => {
            for (key, value) in inner {
                let name = if name.is_empty() { key } else { format!("{name}.{key}") };
                flatten(name, value, fields);
            }
        }
        value => {
            fields.insert(name, value);
        }
    }
}

/// A short value of one line, as it is written.
fn quoted(value: Option<&Value>) -> Option<String> {
    let text = match value {
        None | Some(Value::Null) => "nothing".to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(value) => value.to_string(),
    };
    (text.len() <= LONGEST_QUOTED && !text.contains(char::is_control)).then_some(text)
}
