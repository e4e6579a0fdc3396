//! Sessions inside workers: exec and terminals, carried over a WebSocket.

use std::sync::Arc;

use axum::extract::ws::WebSocketUpgrade;
use axum::extract::{FromRequestParts, Request, State};
use axum::response::{IntoResponse as _, Response};
use danlu_core::authorization::Action;
use danlu_engine::WorkerStream;
use danlu_types::session::MOST_PAYLOAD_BYTES;
use danlu_types::{JobId, Problem, ProblemCode, WorkerId, WorkerIndex};

use super::Context;
use super::crowding::no_place;
use super::extract::{ApiError, PathParams};
use crate::accounts::Caller;
use crate::listener::places::ConnectionPermit;

/// Open a session inside a worker
///
/// A WebSocket whose binary messages are frames: a kind byte and a payload. The first message is the client's, of kind
/// 0 (open), with `{"command": […], "terminal": {"rows", "columns"}}`; the last is the server's, of kind 6 (exit) or 7
/// (error).
#[utoipa::path(get, path = "/jobs/{id}/workers/{worker}/session", tag = "jobs",
    params(("id" = u64, Path), ("worker" = u32, Path)), responses((status = 101),
    (status = 409, body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn open(
    State(context): State<Context>,
    caller: Caller,
    PathParams((id, worker)): PathParams<(JobId, WorkerIndex)>,
    request: Request,
) -> Result<Response, Response> {
    // Counted as a stream and a connection until its end, though it is no answer any more by then.
    let stream = context.places.stream(&caller.person.name);
    let stream = stream.map_err(|full| no_place(full, context.places.bounds()).into_response())?;
    let place = request.extensions().get::<Arc<ConnectionPermit>>().cloned();
    let prepared = prepare(&context, &caller, id, worker, request).await;
    let Prepared { worker, launcher, upgrade } = prepared.map_err(ApiError::into_response)?;
    Ok(upgrade.max_message_size(MOST_PAYLOAD_BYTES + 1).on_upgrade(async move |socket| {
        let ended = tokio::select! {
            ended = danlu_gateway::bridge(socket, launcher) => ended,
            // Whoever may not come in any more does not stay in either.
            () = context.app.forbidden(&caller, id, Action::EnterJob) => Ok(()),
        };
        if let Err(error) = ended {
            tracing::debug!("session in worker {worker} broke: {}", crate::error_chain(&error));
        }
        drop((stream, place));
    }))
}

/// Both ends of a session, before they are joined.
struct Prepared {
    worker: WorkerId,
    launcher: Box<dyn WorkerStream>,
    upgrade: WebSocketUpgrade,
}

async fn prepare(
    context: &Context,
    caller: &Caller,
    id: JobId,
    worker: WorkerIndex,
    request: Request,
) -> Result<Prepared, ApiError> {
    let job = context.app.job_for(caller, id, Action::EnterJob).await?;
    let wrong_state = |detail: String| ApiError(Problem::new(ProblemCode::WrongState, detail));
    let Some(attempt) = job.active() else {
        return Err(wrong_state(format!("job {id} is {}, so nothing runs in it", job.state().as_str())));
    };
    if worker.0 as usize >= attempt.workers.len() {
        let detail = match attempt.workers.len() {
            1 => format!("job {id} has one worker, which is 0"),
            workers => format!("job {id} has {workers} workers, counted from 0"),
        };
        return Err(ApiError(Problem::new(ProblemCode::NotFound, detail)));
    }
    let worker = WorkerId { job: id, attempt: attempt.number, worker };
    // Before the upgrade, so that a refusal is an ordinary answer.
    let launcher =
        context.app.engine.connect(worker).await.map_err(|error| wrong_state(crate::error_chain(&error)))?;
    let (mut parts, _) = request.into_parts();
    let upgrade = WebSocketUpgrade::from_request_parts(&mut parts, context).await.map_err(|rejection| {
        ApiError(Problem::new(
            ProblemCode::BadRequest,
            format!("this address wants a WebSocket: {rejection}"),
        ))
    })?;
    Ok(Prepared { worker, launcher, upgrade })
}
