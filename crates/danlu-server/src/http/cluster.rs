//! Nodes, devices, history, hints and health.

use std::convert::Infallible;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::sse::{Event as SseEvent, KeepAlive, Sse};
use danlu_core::authorization::Action;
use danlu_store::EventFilter;
use danlu_types::api::{
    ClusterQuery, CordonRequest, DeviceView, DrainView, EventQuery, EventView, HealthView, Hint, NodeView,
    Page, UsagePoint, UsageQuery,
};
use danlu_types::{NodeName, Problem, ProblemCode};
use futures::Stream;
use jiff::{SignedDuration, Timestamp};
use tokio::sync::broadcast::error::RecvError;

use super::Context;
use super::extract::{ApiError, Body, PathParams, Query};
use crate::accounts::{Caller, require_of_platform};
use crate::app::store_problem;

/// List what has happened, oldest first
#[utoipa::path(get, path = "/events", tag = "cluster", params(EventQuery),
    responses((status = 200, body = Page<EventView>)))]
pub(crate) async fn events(
    State(context): State<Context>,
    caller: Caller,
    Query(query): Query<EventQuery>,
) -> Result<Json<Page<EventView>>, ApiError> {
    let after = match query.cursor.as_deref().map(str::parse) {
        None => 0,
        Some(Ok(after)) => after,
        Some(Err(_)) => {
            let problem =
                Problem::new(ProblemCode::BadRequest, "invalid `cursor`: pass `next` of an earlier page");
            return Err(ApiError(problem));
        }
    };
    let limit = query.limit.unwrap_or(100).clamp(1, 1000);
    require_of_platform(&caller, Action::SeeCluster)?;
    let visible = context.app.directory.visible_to(&caller.person);
    let filter = EventFilter { job: query.job, visible, after, limit: limit + 1 };
    let mut items = context.app.store.events_list(&filter).await.map_err(store_problem)?;
    let more = items.len() > limit as usize;
    items.truncate(limit as usize);
    let next = if more { items.last().map(|event| event.number.to_string()) } else { None };
    Ok(Json(Page { items, next }))
}

/// List nodes with what is taken of them
#[utoipa::path(get, path = "/nodes", tag = "cluster", params(ClusterQuery),
    responses((status = 200, body = Page<NodeView>)))]
pub(crate) async fn nodes(
    State(context): State<Context>,
    caller: Caller,
    Query(query): Query<ClusterQuery>,
) -> Result<Json<Page<NodeView>>, ApiError> {
    require_of_platform(&caller, Action::SeeCluster)?;
    Ok(Json(page_of(context.app.sight_of(&caller).nodes(context.app.node_views()), &query)?))
}

/// The part of a list that was asked for: all of it where no limit is given. A cursor is how many come before.
fn page_of<T>(items: Vec<T>, query: &ClusterQuery) -> Result<Page<T>, ApiError> {
    let start: usize = match query.cursor.as_deref().map(str::parse) {
        None => 0,
        Some(Ok(start)) => start,
        Some(Err(_)) => {
            let problem =
                Problem::new(ProblemCode::BadRequest, "invalid `cursor`: pass `next` of an earlier page");
            return Err(ApiError(problem));
        }
    };
    let limit = query.limit.map_or(usize::MAX, |limit| limit.max(1) as usize);
    let end = start.saturating_add(limit);
    let next = (end < items.len()).then(|| end.to_string());
    Ok(Page { items: items.into_iter().skip(start).take(limit).collect(), next })
}

/// Have nothing new start on a node
///
/// What runs there, runs on. Kept over restarts, until it is taken back.
#[utoipa::path(post, path = "/nodes/{name}/cordon", tag = "cluster", params(("name" = String, Path)),
    request_body = CordonRequest, responses(
    (status = 200, body = NodeView), (status = 404, body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn cordon(
    State(context): State<Context>,
    caller: Caller,
    PathParams(name): PathParams<NodeName>,
    Body(request): Body<CordonRequest>,
) -> Result<Json<NodeView>, ApiError> {
    require_of_platform(&caller, Action::RunCluster)?;
    Ok(Json(context.app.cordon(&caller.name(), &name, &request.why).await?))
}

/// Let jobs start on a node again
#[utoipa::path(post, path = "/nodes/{name}/uncordon", tag = "cluster", params(("name" = String, Path)), responses(
    (status = 200, body = NodeView), (status = 404, body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn uncordon(
    State(context): State<Context>,
    caller: Caller,
    PathParams(name): PathParams<NodeName>,
) -> Result<Json<NodeView>, ApiError> {
    require_of_platform(&caller, Action::RunCluster)?;
    Ok(Json(context.app.uncordon(&caller.name(), &name).await?))
}

/// Empty a node
///
/// Cordons it. Its preemptible jobs are asked to end and queued again in their old places; the others run to their end.
#[utoipa::path(post, path = "/nodes/{name}/drain", tag = "cluster", params(("name" = String, Path)),
    request_body = CordonRequest, responses(
    (status = 200, body = DrainView), (status = 404, body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn drain(
    State(context): State<Context>,
    caller: Caller,
    PathParams(name): PathParams<NodeName>,
    Body(request): Body<CordonRequest>,
) -> Result<Json<DrainView>, ApiError> {
    require_of_platform(&caller, Action::RunCluster)?;
    Ok(Json(context.app.drain(&caller.name(), &name, &request.why).await?))
}

/// Give a device out again that was taken out of service
#[utoipa::path(post, path = "/nodes/{name}/devices/{index}/restore", tag = "cluster",
    params(("name" = String, Path), ("index" = u32, Path)), responses(
    (status = 204), (status = 404, body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn restore_device(
    State(context): State<Context>,
    caller: Caller,
    PathParams((name, index)): PathParams<(NodeName, u32)>,
) -> Result<StatusCode, ApiError> {
    require_of_platform(&caller, Action::RunCluster)?;
    context.app.restore_device(&caller.name(), &name, index).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// List devices with who holds them and how they are doing
#[utoipa::path(get, path = "/devices", tag = "cluster", params(ClusterQuery),
    responses((status = 200, body = Page<DeviceView>)))]
pub(crate) async fn devices(
    State(context): State<Context>,
    caller: Caller,
    Query(query): Query<ClusterQuery>,
) -> Result<Json<Page<DeviceView>>, ApiError> {
    require_of_platform(&caller, Action::SeeCluster)?;
    let devices = context.app.devices_read().await;
    let devices = context.app.sight_of(&caller).devices(devices);
    Ok(Json(page_of(devices, &query)?))
}

/// Show how much of the cluster was in use over time
///
/// A look every minute, oldest first, a week back at most.
#[utoipa::path(get, path = "/usage", tag = "cluster", params(UsageQuery), responses((status = 200, body = Page<UsagePoint>)))]
pub(crate) async fn usage(
    State(context): State<Context>,
    caller: Caller,
    Query(query): Query<UsageQuery>,
) -> Result<Json<Page<UsagePoint>>, ApiError> {
    require_of_platform(&caller, Action::SeeCluster)?;
    let since = query.since.unwrap_or_else(|| Timestamp::now() - SignedDuration::from_hours(24));
    let limit = query.limit.unwrap_or(500).clamp(1, 20_000);
    Ok(Json(Page { items: context.app.usage.since(since, limit as usize), next: None }))
}

/// Follow what changes
///
/// A stream of server-sent events, each a `Hint`: the kind, id and generation of something that changed, and nothing
/// more. A client that falls behind is disconnected: it has missed hints, and should fetch what it shows.
#[utoipa::path(get, path = "/hints", tag = "cluster",
    responses((status = 200, content_type = "text/event-stream", body = danlu_types::api::Hint)))]
pub(crate) async fn hints(
    State(context): State<Context>,
    caller: Caller,
) -> Result<Sse<impl Stream<Item = Result<SseEvent, Infallible>>>, ApiError> {
    require_of_platform(&caller, Action::SeeCluster)?;
    let mut hints = context.app.wake.subscribe();
    let stop = context.stop.clone();
    let stream = async_stream::stream! {
        loop {
            let hint = tokio::select! {
                hint = hints.recv() => hint,
                () = stop.cancelled() => return,
            };
            match hint {
                Ok(hint) if !may_know(&context, &caller, &hint).await => {}
                Ok(hint) => yield Ok(SseEvent::default().data(serde_json::to_string(&hint).unwrap_or_default())),
                Err(RecvError::Lagged(_) | RecvError::Closed) => return,
            }
        }
    };
    Ok(Sse::new(stream).keep_alive(KeepAlive::default()))
}

/// That a job changes says that it exists.
async fn may_know(context: &Context, caller: &Caller, hint: &Hint) -> bool {
    let Some(caller) = context.app.directory.asker_now(caller) else { return false };
    if caller.person.admin || hint.kind != "job" {
        return true;
    }
    let Ok(id) = hint.id.parse() else { return false };
    context.app.job_for(&caller, id, Action::SeeJob).await.is_ok()
}

/// The process answers.
pub(crate) async fn health() -> Json<HealthView> {
    Json(HealthView { status: "ok".to_owned(), version: version(), problems: Vec::new() })
}

/// The server can do its work: its store and its data folder can be written, and there is room.
pub(crate) async fn ready(State(context): State<Context>) -> (StatusCode, Json<HealthView>) {
    let mut problems = Vec::new();
    if let Err(error) = context.app.store.check().await {
        problems.push(crate::error_chain(&error));
    }
    problems.extend(context.app.health.problems());
    let is_ready = problems.is_empty();
    problems.extend(context.app.engine.trouble());
    problems.extend(context.app.troubles.all());
    problems.extend(context.app.unreadable_jobs());
    // One worker that cannot be looked at is for a person to see to, and no reason to send requests elsewhere.
    let (code, status) = match (is_ready, problems.is_empty()) {
        (true, true) => (StatusCode::OK, "ok"),
        (true, false) => (StatusCode::OK, "degraded"),
        (false, _) => (StatusCode::SERVICE_UNAVAILABLE, "not ready"),
    };
    (code, Json(HealthView { status: status.to_owned(), version: version(), problems }))
}

fn version() -> String {
    env!("CARGO_PKG_VERSION").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_a_list_have_no_holes() {
        let ask = |cursor: Option<&str>, limit| {
            let query = ClusterQuery { cursor: cursor.map(str::to_owned), limit };
            page_of((1..=5).collect(), &query)
                .map(|page| (page.items, page.next))
                .map_err(|failure| failure.0.detail)
        };
        assert_eq!(ask(None, None), Ok((vec![1, 2, 3, 4, 5], None)));
        assert_eq!(ask(None, Some(2)), Ok((vec![1, 2], Some("2".to_owned()))));
        assert_eq!(ask(Some("2"), Some(2)), Ok((vec![3, 4], Some("4".to_owned()))));
        assert_eq!(ask(Some("4"), Some(2)), Ok((vec![5], None)));
        assert_eq!(ask(None, Some(0)), Ok((vec![1], Some("1".to_owned()))));
        assert_eq!(ask(Some("99"), None), Ok((vec![], None)));
        assert_eq!(ask(Some("18446744073709551615"), Some(u32::MAX)), Ok((vec![], None)));
        assert!(ask(Some("-1"), None).is_err());
    }
}
