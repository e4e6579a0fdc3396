//! What programs and workers report over time, for charts.

use axum::Json;
use axum::extract::State;
use danlu_core::authorization::Action;
use danlu_core::report::METRICS_FILE;
use danlu_core::sample::{SAMPLES_FILE, Sample};
use danlu_store::logs::{Records, last_records, records};
use danlu_types::api::{MetricPoint, Page, SeriesQuery};
use danlu_types::{JobId, Problem, ProblemCode, WorkerIndex};
use serde::de::DeserializeOwned;

use super::Context;
use super::extract::{ApiError, PathParams, Query};
use super::logs::{bad_cursor, last_attempt, log_problem};
use crate::accounts::Caller;

const DEFAULT_LIMIT: u32 = 1000;
const LARGEST_LIMIT: u32 = 10_000;

/// Read what a job's program reports of itself
///
/// The metrics of one worker's ranks, oldest first; with `tail`, the last so many.
#[utoipa::path(get, path = "/jobs/{id}/metrics", tag = "logs", params(("id" = u64, Path), SeriesQuery),
    responses((status = 200, body = Page<MetricPoint>)))]
pub(crate) async fn metrics(
    State(context): State<Context>,
    caller: Caller,
    PathParams(id): PathParams<JobId>,
    Query(query): Query<SeriesQuery>,
) -> Result<Json<Page<MetricPoint>>, ApiError> {
    read(&context, &caller, id, query, METRICS_FILE).await
}

/// Read what a worker used
///
/// Processors, memory, disks, network and devices every few seconds, oldest first; with `tail`, the last so many. Short jobs
/// have none.
#[utoipa::path(get, path = "/jobs/{id}/samples", tag = "logs", params(("id" = u64, Path), SeriesQuery),
    responses((status = 200, body = Page<Sample>)))]
pub(crate) async fn samples(
    State(context): State<Context>,
    caller: Caller,
    PathParams(id): PathParams<JobId>,
    Query(query): Query<SeriesQuery>,
) -> Result<Json<Page<Sample>>, ApiError> {
    read(&context, &caller, id, query, SAMPLES_FILE).await
}

async fn read<T: DeserializeOwned>(
    context: &Context,
    caller: &Caller,
    id: JobId,
    query: SeriesQuery,
    file: &'static str,
) -> Result<Json<Page<T>>, ApiError> {
    let job = context.app.job_for(caller, id, Action::SeeJob).await?;
    let attempt = query.attempt.unwrap_or_else(|| last_attempt(&job));
    if attempt > last_attempt(&job) || attempt.0 == 0 {
        let detail = format!("job {id} has no attempt {attempt}");
        return Err(Problem::new(ProblemCode::NotFound, detail).into());
    }
    let worker = query.worker.unwrap_or(WorkerIndex(0));
    if worker.0 >= job.spec.workers {
        let last = job.spec.workers.saturating_sub(1);
        let detail = format!("job {id} has no worker {worker}: they are counted from 0 to {last}");
        return Err(Problem::new(ProblemCode::NotFound, detail).into());
    }
    let from = match &query.cursor {
        Some(cursor) => cursor.parse().map_err(|_| bad_cursor())?,
        None => 0,
    };
    let path = context.app.layout.run_folder(job.worker_id(attempt, worker)).join(file);
    let limit = query.limit.unwrap_or(DEFAULT_LIMIT).clamp(1, LARGEST_LIMIT) as usize;
    let found = tokio::task::spawn_blocking(move || match query.tail {
        Some(tail) => last_records(&path, tail.min(LARGEST_LIMIT) as usize),
        None => records(&path, from, limit),
    });
    let Records { lines, next, more } = found
        .await
        .map_err(|_| Problem::new(ProblemCode::Internal, "reading what was reported failed"))?
        .map_err(log_problem)?;
    // The folder is the program's as well: what it scribbles there is passed over.
    let items = lines.iter().filter_map(|line| serde_json::from_slice(line).ok()).collect();
    Ok(Json(Page { items, next: more.then(|| next.to_string()) }))
}
