//! Everything that reads.

use std::collections::{BTreeMap, HashSet};

use danlu_core::{Job, NodeOverride};
use danlu_types::api::EventView;
use danlu_types::{AttemptNumber, JobId, NodeName};
use jiff::Timestamp;
use sqlx::{Pool, QueryBuilder, Row as _, query, query_as, query_scalar};

use super::listing::push_workspaces;
use super::{Db, Row};
use crate::row::{self, text};
use crate::unreadable::Unreadable;
use crate::{EventFilter, StoreError};

/// A query for jobs, with the columns that `job_of` reads.
macro_rules! select_jobs {
    ($rest:literal) => {
        concat!("SELECT id, owner, generation, spec, life FROM jobs WHERE ", $rest)
    };
}

pub(super) async fn job_fetch(pool: &Pool<Db>, id: JobId) -> Result<Option<Job>, StoreError> {
    let Ok(id) = i64::try_from(id.0) else { return Ok(None) };
    let found = query(select_jobs!("id = $1"))
        .bind(id)
        .fetch_optional(pool)
        .await
        .map_err(|error| StoreError::of("read a job", error))?;
    found.as_ref().map(job_of).transpose()
}

pub(super) async fn jobs_live(pool: &Pool<Db>, unreadable: &Unreadable) -> Result<Vec<Job>, StoreError> {
    let rows = query(select_jobs!("ended_at IS NULL ORDER BY id"))
        .fetch_all(pool)
        .await
        .map_err(|error| StoreError::of("read the live jobs", error))?;
    rows.iter().filter_map(|row| unreadable.noting(job_of(row)).transpose()).collect()
}

pub(super) async fn identity(pool: &Pool<Db>) -> Result<Option<String>, StoreError> {
    query_scalar("SELECT identity FROM counters")
        .fetch_one(pool)
        .await
        .map_err(|error| StoreError::of("read whose database this is", error))
}

pub(super) async fn job_last_id(pool: &Pool<Db>) -> Result<JobId, StoreError> {
    let id: i64 = query_scalar("SELECT job_last_id FROM counters")
        .fetch_one(pool)
        .await
        .map_err(|error| StoreError::of("read the last job's id", error))?;
    Ok(row::job_id(id))
}

pub(super) async fn jobs_ended_before(
    pool: &Pool<Db>,
    time: Timestamp,
    limit: u32,
) -> Result<Vec<JobId>, StoreError> {
    let ids: Vec<i64> =
        query_scalar("SELECT id FROM jobs WHERE ended_at < $1 ORDER BY ended_at, id LIMIT $2")
            .bind(time.as_microsecond())
            .bind(i64::from(limit))
            .fetch_all(pool)
            .await
            .map_err(|error| StoreError::of("find jobs that ended long ago", error))?;
    Ok(ids.into_iter().map(row::job_id).collect())
}

pub(super) async fn jobs_ended_last(
    pool: &Pool<Db>,
    unreadable: &Unreadable,
    limit: u32,
) -> Result<Vec<Job>, StoreError> {
    let rows = query(select_jobs!("ended_at IS NOT NULL ORDER BY ended_at DESC, id DESC LIMIT $1"))
        .bind(i64::from(limit))
        .fetch_all(pool)
        .await
        .map_err(|error| StoreError::of("read the jobs that ended last", error))?;
    rows.iter().filter_map(|row| unreadable.noting(job_of(row)).transpose()).collect()
}

pub(super) async fn codes_named(pool: &Pool<Db>) -> Result<HashSet<String>, StoreError> {
    let digests: Vec<String> = query_scalar("SELECT DISTINCT code FROM jobs WHERE code IS NOT NULL")
        .fetch_all(pool)
        .await
        .map_err(|error| StoreError::of("find the code snapshots that jobs name", error))?;
    Ok(digests.into_iter().collect())
}

pub(super) async fn node_notes(pool: &Pool<Db>) -> Result<BTreeMap<NodeName, NodeOverride>, StoreError> {
    let read = |error| StoreError::of("read what is known of nodes", error);
    let rows: Vec<(String, String)> =
        query_as("SELECT node, note FROM node_notes").fetch_all(pool).await.map_err(read)?;
    let note =
        |text: &str| serde_json::from_str(text).map_err(|error| read(sqlx::Error::Decode(Box::new(error))));
    rows.into_iter().map(|(node, text)| Ok((NodeName(node), note(&text)?))).collect()
}

pub(super) async fn submission_find(pool: &Pool<Db>, key: &str) -> Result<Option<JobId>, StoreError> {
    let id: Option<i64> = query_scalar("SELECT job FROM submissions WHERE key = $1")
        .bind(&*text(key))
        .fetch_optional(pool)
        .await
        .map_err(|error| StoreError::of("look up a submission", error))?;
    Ok(id.map(row::job_id))
}

pub(super) async fn submission_digest(pool: &Pool<Db>, key: &str) -> Result<Option<String>, StoreError> {
    let digest: Option<Option<String>> = query_scalar("SELECT digest FROM submissions WHERE key = $1")
        .bind(&*text(key))
        .fetch_optional(pool)
        .await
        .map_err(|error| StoreError::of("look up a submission", error))?;
    Ok(digest.flatten())
}

pub(super) async fn events_list(pool: &Pool<Db>, filter: &EventFilter) -> Result<Vec<EventView>, StoreError> {
    let mut sql = QueryBuilder::<Db>::new(
        "SELECT number, at, job, attempt, kind, actor, message FROM events WHERE number > ",
    );
    sql.push_bind(largest(filter.after));
    if let Some(job) = filter.job {
        sql.push(" AND job = ").push_bind(largest(job.0));
    }
    if let Some(visible) = &filter.visible {
        sql.push(" AND (job IS NULL OR job IN (SELECT id FROM jobs WHERE ");
        push_workspaces(&mut sql, visible);
        sql.push("))");
    }
    sql.push(" ORDER BY number LIMIT ").push_bind(i64::from(filter.limit));
    let rows = sql.build().fetch_all(pool).await;
    let events = rows.and_then(|rows| rows.iter().map(event_of).collect());
    events.map_err(|error| StoreError::of("read the history", error))
}

pub(super) fn job_of(row: &Row) -> Result<Job, StoreError> {
    let id = row_id(row)?;
    job_with_id(row, id).map_err(|source| StoreError::Corrupt { id, source })
}

pub(super) fn row_id(row: &Row) -> Result<JobId, StoreError> {
    let id = row.try_get(0).map_err(|error| StoreError::of("read a job", error))?;
    Ok(row::job_id(id))
}

/// A text that is none, and JSON that is none, are the same trouble.
fn job_with_id(row: &Row, id: JobId) -> Result<Job, Box<dyn std::error::Error + Send + Sync>> {
    Ok(row::job(id, row.try_get(1)?, row.try_get(2)?, row.try_get(3)?, row.try_get(4)?)?)
}

fn event_of(row: &Row) -> Result<EventView, sqlx::Error> {
    let number: i64 = row.try_get(0)?;
    let attempt: Option<i64> = row.try_get(3)?;
    Ok(EventView {
        number: number.cast_unsigned(),
        at: Timestamp::from_microsecond(row.try_get(1)?)
            .map_err(|error| sqlx::Error::Decode(Box::new(error)))?,
        job: row.try_get::<Option<i64>, _>(2)?.map(row::job_id),
        attempt: attempt.and_then(|attempt| u32::try_from(attempt).ok()).map(AttemptNumber),
        kind: row.try_get(4)?,
        actor: row.try_get(5)?,
        message: row.try_get(6)?,
    })
}

/// Numbers that people send may be larger than any that is stored.
pub(super) fn largest(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
