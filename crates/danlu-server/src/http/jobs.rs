//! Jobs: submit, list, show, stop, hold, release, clone, delete, explain.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use danlu_core::Trigger;
use danlu_core::authorization::Action;
use danlu_core::view::job_view;
use danlu_store::JobFilter;
use danlu_types::api::{
    Explanation, JobApproval, JobCounts, JobOutcome, JobQuery, JobState, JobView, Page, ParseRequest,
    ParsedJobFile, StopRequest,
};
use danlu_types::{JobId, JobSpec, Problem, ProblemCode};
use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::IntoParams;

use super::Context;
use super::extract::{ApiError, Body, OptionalBody, PathParams, Query, without_nul};
use crate::accounts::{Caller, require_of_platform};
use crate::app::store_problem;
use crate::change::patched;

const DEFAULT_LIMIT: u32 = 100;
const LARGEST_LIMIT: u32 = 1000;
const LONGEST_KEY: usize = 200;

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct SubmitQuery {
    /// Say what would happen, and submit nothing.
    #[serde(default)]
    dry_run: bool,
}

/// As the description of the API has it.
fn is_key(text: &str) -> bool {
    (1..=LONGEST_KEY).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// Submit a job
///
/// Answered when the job is durable. With an `Idempotency-Key`, a second request of the same key answers with the first
/// one's job, so a client that lost the answer may simply ask again. The same key with another body is refused
/// (`key_reused`).
#[utoipa::path(post, path = "/jobs", tag = "jobs", params(SubmitQuery, ("Idempotency-Key" = Option<String>, Header, pattern = "^[!-~]{1,200}$")),
    request_body = JobSpec, responses(
        (status = 201, body = JobView), (status = 200, description = "A dry run's answer", body = Explanation),
        (status = 409, description = "The key was used before, with another body", body = Problem, content_type = "application/problem+json"),
        (status = 422, body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn submit(
    State(context): State<Context>,
    caller: Caller,
    Query(query): Query<SubmitQuery>,
    headers: HeaderMap,
    Body(spec): Body<JobSpec>,
) -> Result<Response, ApiError> {
    if query.dry_run {
        return Ok(Json(context.app.dry_run(&caller, spec).await?).into_response());
    }
    let key = match headers.get("idempotency-key").map(|value| value.to_str()) {
        None => None,
        Some(Ok(key)) if is_key(key) => Some(key.to_owned()),
        Some(_) => {
            let detail = format!("`Idempotency-Key` must be 1 to {LONGEST_KEY} visible ASCII characters");
            return Err(ApiError(Problem::new(ProblemCode::BadRequest, detail)));
        }
    };
    let job = context.app.submit(&caller, spec, key).await?;
    Ok((StatusCode::CREATED, Json(job_view(&job, None))).into_response())
}

/// Read a job file or batch script
///
/// Answers with the job spec that `danlu submit FILE` would send, or with what is wrong and where, and with notes on what the job does
/// not have as written. Nothing is submitted or kept.
#[utoipa::path(post, path = "/jobs/parse", tag = "jobs", operation_id = "job_parse", request_body = ParseRequest, responses(
    (status = 200, body = ParsedJobFile), (status = 422, body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn parse(
    State(context): State<Context>,
    caller: Caller,
    Body(request): Body<ParseRequest>,
) -> Result<Json<ParsedJobFile>, ApiError> {
    Ok(Json(context.app.parse_job_file(&caller, request).await?))
}

/// List jobs, newest first
#[utoipa::path(get, path = "/jobs", tag = "jobs", params(JobQuery), responses((status = 200, body = Page<JobView>)))]
pub(crate) async fn list(
    State(context): State<Context>,
    caller: Caller,
    Query(query): Query<JobQuery>,
) -> Result<Json<Page<JobView>>, ApiError> {
    let mut filter = read_filter(query)?;
    filter.visible = context.app.directory.visible_to(&caller.person);
    let limit = filter.limit;
    // One more than asked for tells whether there is a next page.
    filter.limit += 1;
    let mut jobs = context.app.store.jobs_list(&filter).await.map_err(store_problem)?;
    let more = jobs.len() > limit as usize;
    jobs.truncate(limit as usize);
    let next = if more { jobs.last().map(|job| job.id.to_string()) } else { None };
    Ok(Json(Page { items: context.app.views(&jobs).await, next }))
}

/// Count jobs by their states
///
/// Takes what the list takes, less `cursor` and `limit`.
#[utoipa::path(get, path = "/jobs/counts", tag = "jobs", operation_id = "job_counts", params(JobQuery),
    responses((status = 200, body = JobCounts)))]
pub(crate) async fn counts(
    State(context): State<Context>,
    caller: Caller,
    Query(query): Query<JobQuery>,
) -> Result<Json<JobCounts>, ApiError> {
    let mut filter = read_filter(query)?;
    filter.visible = context.app.directory.visible_to(&caller.person);
    filter.before = None;
    let counts = context.app.store.jobs_count(&filter).await.map_err(store_problem)?;
    // The store knows when jobs were submitted; since when they wait, only their lives say.
    Ok(Json(JobCounts { oldest_queued_at: context.app.live_state.oldest_wait(&filter), ..counts }))
}

fn read_filter(query: JobQuery) -> Result<JobFilter, Problem> {
    let bad = |detail: String| Problem::new(ProblemCode::BadRequest, detail);
    let mut filter = JobFilter {
        workspace: query.workspace,
        owner: query.owner,
        name: query.name,
        search: query.search,
        limit: query.limit.unwrap_or(DEFAULT_LIMIT).clamp(1, LARGEST_LIMIT),
        ..JobFilter::default()
    };
    for word in
        query.state.iter().flat_map(|text| text.split(',')).map(str::trim).filter(|word| !word.is_empty())
    {
        let state = JobState::ALL.into_iter().find(|state| state.as_str() == word);
        let outcome = JobOutcome::ALL.into_iter().find(|outcome| outcome.as_str() == word);
        match (state, outcome) {
            (Some(state), _) => filter.states.push(state),
            (None, Some(outcome)) => filter.outcomes.push(outcome),
            (None, None) => {
                let shown: String = word.chars().take(40).collect();
                return Err(bad(format!(
                    "`{shown}` is no state; write held, queued, starting, running, stopping, ended, succeeded, failed \
                     or stopped"
                )));
            }
        }
    }
    if let Some(label) = query.label {
        let (key, value) =
            label.split_once('=').ok_or_else(|| bad("`label` must be `key=value`".to_owned()))?;
        filter.label = Some((key.to_owned(), value.to_owned()));
    }
    if let Some(cursor) = query.cursor {
        let before =
            cursor.parse().map_err(|_| bad("invalid `cursor`: pass `next` of an earlier page".to_owned()))?;
        filter.before = Some(before);
    }
    let label = filter.label.as_ref();
    without_nul([
        ("workspace", filter.workspace.as_ref()),
        ("owner", filter.owner.as_ref()),
        ("name", filter.name.as_ref()),
        ("search", filter.search.as_ref()),
        ("label", label.map(|(key, _)| key)),
        ("label", label.map(|(_, value)| value)),
    ])?;
    Ok(filter)
}

/// Show a job
#[utoipa::path(get, path = "/jobs/{id}", tag = "jobs", params(("id" = u64, Path)), responses(
    (status = 200, body = JobView), (status = 404, body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn show(
    State(context): State<Context>,
    caller: Caller,
    PathParams(id): PathParams<JobId>,
) -> Result<Json<JobView>, ApiError> {
    let job = context.app.job_for(&caller, id, Action::SeeJob).await?;
    Ok(Json(context.app.view(&job).await))
}

/// Delete a job that has ended, with its logs
#[utoipa::path(delete, path = "/jobs/{id}", tag = "jobs", params(("id" = u64, Path)), responses(
    (status = 204), (status = 409, body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn delete(
    State(context): State<Context>,
    caller: Caller,
    PathParams(id): PathParams<JobId>,
) -> Result<StatusCode, ApiError> {
    context.app.delete(&caller, id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Stop a job
///
/// A waiting job ends at once; a running one gets SIGTERM, its grace, then SIGKILL.
#[utoipa::path(post, path = "/jobs/{id}/stop", tag = "jobs", params(("id" = u64, Path)),
    request_body(content = Option<StopRequest>, description = "May be left out"), responses(
    (status = 200, body = JobView), (status = 409, body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn stop(
    State(context): State<Context>,
    caller: Caller,
    PathParams(id): PathParams<JobId>,
    OptionalBody(request): OptionalBody<StopRequest>,
) -> Result<Json<JobView>, ApiError> {
    let job = context.app.stop(&caller, id, request.grace).await?;
    Ok(Json(context.app.view(&job).await))
}

/// Keep a waiting job from starting
#[utoipa::path(post, path = "/jobs/{id}/hold", tag = "jobs", params(("id" = u64, Path)), responses(
    (status = 200, body = JobView), (status = 409, body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn hold(
    State(context): State<Context>,
    caller: Caller,
    PathParams(id): PathParams<JobId>,
) -> Result<Json<JobView>, ApiError> {
    change(context, &caller, id, Trigger::Hold { by: caller.name() }).await
}

/// Let a held job start
#[utoipa::path(post, path = "/jobs/{id}/release", tag = "jobs", params(("id" = u64, Path)), responses(
    (status = 200, body = JobView), (status = 409, body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn release(
    State(context): State<Context>,
    caller: Caller,
    PathParams(id): PathParams<JobId>,
) -> Result<Json<JobView>, ApiError> {
    change(context, &caller, id, Trigger::Release { by: caller.name() }).await
}

/// Let a job start that asks for more than its workspace gives without approval
///
/// The body names the generation that was looked at. A job that has changed since is refused (`wrong_state`).
#[utoipa::path(post, path = "/jobs/{id}/approval", tag = "jobs", params(("id" = u64, Path)), request_body = JobApproval, responses(
    (status = 200, body = JobView), (status = 409, body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn approve(
    State(context): State<Context>,
    caller: Caller,
    PathParams(id): PathParams<JobId>,
    Body(JobApproval { generation: seen }): Body<JobApproval>,
) -> Result<Json<JobView>, ApiError> {
    let job = context.app.job_for(&caller, id, Action::ApproveJob).await?;
    // Whether the caller may approve it was checked for the workspace that it is in now.
    let seen = if job.generation == seen { seen } else { 0 };
    if context.app.directory.is_personal(&job.spec.workspace) {
        // Everybody owns their own.
        require_of_platform(&caller, Action::RunWorkspaces)?;
    }
    let job = context.app.change(id, Trigger::Approve { by: caller.name(), seen }).await?;
    Ok(Json(context.app.view(&job).await))
}

async fn change(
    context: Context,
    caller: &Caller,
    id: JobId,
    event: Trigger,
) -> Result<Json<JobView>, ApiError> {
    context.app.job_for(caller, id, Action::ChangeJob).await?;
    let job = context.app.change(id, event).await?;
    Ok(Json(context.app.view(&job).await))
}

/// Change a job that waits
///
/// It keeps its number and its queue position. Fields of the body replace the job's own, `null` takes one away, and the
/// result is checked as at submission. Jobs that have been given devices, or have ended, are not changed.
#[utoipa::path(patch, path = "/jobs/{id}", tag = "jobs", operation_id = "job_change", params(("id" = u64, Path)),
    request_body(content = Object, description = "A JSON merge patch of the job's spec"), responses(
    (status = 200, body = JobView), (status = 409, body = Problem, content_type = "application/problem+json"),
    (status = 422, body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn change_spec(
    State(context): State<Context>,
    caller: Caller,
    PathParams(id): PathParams<JobId>,
    Body(changes): Body<Map<String, Value>>,
) -> Result<Json<JobView>, ApiError> {
    let job = context.app.change_spec(&caller, id, &changes).await?;
    Ok(Json(context.app.view(&job).await))
}

/// Submit a copy of a job
///
/// Fields of the body replace the job's own; `null` takes one away.
#[utoipa::path(post, path = "/jobs/{id}/clone", tag = "jobs", params(("id" = u64, Path)),
    request_body(content = Option<Object>, description = "A JSON merge patch of the job's spec; may be left out"), responses(
    (status = 201, body = JobView), (status = 422, body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn clone(
    State(context): State<Context>,
    caller: Caller,
    PathParams(id): PathParams<JobId>,
    OptionalBody(changes): OptionalBody<Map<String, Value>>,
) -> Result<Response, ApiError> {
    let job = context.app.job_for(&caller, id, Action::SeeJob).await?;
    let copy = context.app.submit(&caller, patched(&job.spec, changes)?, None).await?;
    Ok((StatusCode::CREATED, Json(job_view(&copy, None))).into_response())
}

/// Explain why a job waits, or what it is doing
#[utoipa::path(get, path = "/jobs/{id}/why", tag = "jobs", params(("id" = u64, Path)),
    responses((status = 200, body = Explanation)))]
pub(crate) async fn why(
    State(context): State<Context>,
    caller: Caller,
    PathParams(id): PathParams<JobId>,
) -> Result<Json<Explanation>, ApiError> {
    Ok(Json(context.app.explain(&caller, id).await?))
}
