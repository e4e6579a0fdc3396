//! A job as the values of a row, and back. What a row says and how JSON says it is decided here, for all databases.

use std::borrow::Cow;
use std::sync::Arc;

use danlu_core::{Job, JobLifecycle, PastAttempt};
use danlu_types::JobId;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// The values of a row of `jobs`.
pub(crate) struct JobRow<'a> {
    pub(crate) id: i64,
    pub(crate) name: Cow<'a, str>,
    pub(crate) workspace: Cow<'a, str>,
    pub(crate) owner: Cow<'a, str>,
    pub(crate) priority: i64,
    pub(crate) state: &'static str,
    pub(crate) outcome: Option<&'static str>,
    pub(crate) submitted_at: i64,
    pub(crate) ended_at: Option<i64>,
    pub(crate) generation: i64,
    pub(crate) code: Option<Cow<'a, str>>,
    pub(crate) spec: String,
    pub(crate) life: String,
}

/// The column `life`. The time is here again because the column of that name keeps microseconds only.
#[derive(Serialize, Deserialize)]
struct LifeColumn<'a> {
    submitted_at: Timestamp,
    life: Cow<'a, JobLifecycle>,
    #[serde(default, skip_serializing_if = "<[PastAttempt]>::is_empty")]
    past: Cow<'a, [PastAttempt]>,
}

impl<'a> JobRow<'a> {
    pub(crate) fn of(job: &'a Job) -> Result<Self, sqlx::Error> {
        let life = LifeColumn {
            submitted_at: job.submitted_at,
            life: Cow::Borrowed(&job.life),
            past: Cow::Borrowed(&job.past),
        };
        Ok(JobRow {
            id: number(job.id.0)?,
            name: text(&job.spec.name),
            workspace: text(&job.spec.workspace),
            owner: text(&job.owner),
            priority: i64::from(job.spec.priority()),
            state: job.state().as_str(),
            outcome: job.outcome().map(danlu_types::api::JobOutcome::as_str),
            submitted_at: job.submitted_at.as_microsecond(),
            ended_at: job.ended_at().map(Timestamp::as_microsecond),
            generation: number(job.generation)?,
            code: job.spec.code.as_deref().map(text),
            spec: json(&*job.spec)?,
            life: json(&life)?,
        })
    }
}

impl JobRow<'_> {
    /// What the job is counted and listed as: its outcome once it has ended, its state before.
    pub(crate) fn status(&self) -> &'static str {
        self.outcome.unwrap_or(self.state)
    }
}

/// The job that a row says.
pub(crate) fn job(
    id: JobId,
    owner: String,
    generation: i64,
    spec: &str,
    life: &str,
) -> Result<Job, serde_json::Error> {
    let spec = Arc::new(danlu_types::from_stored_json(spec)?);
    let LifeColumn { submitted_at, life, past } = danlu_types::from_stored_json(life)?;
    Ok(Job {
        id,
        owner,
        spec,
        submitted_at,
        generation: generation.cast_unsigned(),
        life: life.into_owned(),
        past: past.into_owned(),
    })
}

pub(crate) fn job_id(id: i64) -> JobId {
    JobId(id.cast_unsigned())
}

/// Databases count to 2⁶³ - 1.
pub(crate) fn number(number: u64) -> Result<i64, sqlx::Error> {
    i64::try_from(number).map_err(|error| sqlx::Error::Encode(Box::new(error)))
}

/// PostgreSQL's text cannot hold a NUL, and a program's last words may: it becomes U+FFFD, in what is stored and in
/// what is looked for alike.
pub(crate) fn text(text: &str) -> Cow<'_, str> {
    if text.contains('\0') { Cow::Owned(text.replace('\0', "\u{fffd}")) } else { Cow::Borrowed(text) }
}

/// The pattern for `lower(name) LIKE … ESCAPE '\'` that finds `part` anywhere, whatever its characters.
pub(crate) fn like_pattern(part: &str) -> String {
    let mut pattern = String::from("%");
    for c in text(part).chars() {
        if matches!(c, '%' | '_' | '\\') {
            pattern.push('\\');
        }
        pattern.push(c.to_ascii_lowercase());
    }
    pattern.push('%');
    pattern
}

pub(crate) fn json<T: Serialize>(value: &T) -> Result<String, sqlx::Error> {
    serde_json::to_string(value).map_err(|error| sqlx::Error::Encode(Box::new(error)))
}
