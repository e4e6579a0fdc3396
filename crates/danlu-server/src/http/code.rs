//! Code snapshots: uploaded once, named by what they hold.

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::StatusCode;
use danlu_core::authorization::Action;
use danlu_types::api::CodeView;
use danlu_types::{Problem, ProblemCode};
use futures::{StreamExt as _, stream};
use tokio_util::io::{StreamReader, SyncIoBridge};

use super::Context;
use super::extract::{ApiError, PathParams};
use crate::accounts::{Caller, require_of_platform};

/// Ask whether a snapshot is here
#[utoipa::path(head, path = "/code/{digest}", tag = "code", params(("digest" = String, Path, pattern = "^sha256:[0-9a-f]{64}$")),
    responses((status = 200), (status = 404)))]
pub(crate) async fn look(
    State(context): State<Context>,
    caller: Caller,
    PathParams(digest): PathParams<String>,
) -> Result<StatusCode, ApiError> {
    require_of_platform(&caller, Action::BringCode)?;
    Ok(if context.app.code.has(&digest) { StatusCode::OK } else { StatusCode::NOT_FOUND })
}

/// Upload a snapshot
///
/// The body is a zstd-compressed tar archive; its SHA-256 must be the digest in the address.
#[utoipa::path(put, path = "/code/{digest}", tag = "code", params(("digest" = String, Path, pattern = "^sha256:[0-9a-f]{64}$")),
    request_body(content = String, content_type = "application/octet-stream"), responses(
    (status = 201, body = CodeView), (status = 422, body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn upload(
    State(context): State<Context>,
    caller: Caller,
    PathParams(digest): PathParams<String>,
    body: Body,
) -> Result<(StatusCode, Json<CodeView>), ApiError> {
    require_of_platform(&caller, Action::BringCode)?;
    let patience = context.listen_config.patience;
    // Large ones take their time, but they move: each piece has to come before long.
    let pieces = stream::unfold(body.into_data_stream(), move |mut body| async move {
        match tokio::time::timeout(patience, body.next()).await {
            Ok(piece) => piece.map(|piece| (piece.map_err(std::io::Error::other), body)),
            Err(_) => Some((Err(std::io::ErrorKind::TimedOut.into()), body)),
        }
    });
    let reader = SyncIoBridge::new(StreamReader::new(Box::pin(pieces)));
    let named = digest.clone();
    let stored = tokio::task::spawn_blocking(move || context.app.code.put(&named, reader)).await;
    let size = match stored {
        Ok(Ok(size)) => size,
        Ok(Err(error)) => {
            let code = match error {
                danlu_objects::ObjectsError::Io { .. } => ProblemCode::Unavailable,
                danlu_objects::ObjectsError::WrongDigest { .. } => ProblemCode::InvalidFields,
                _ => ProblemCode::BadRequest,
            };
            return Err(ApiError(Problem::new(code, crate::error_chain(&error))));
        }
        Err(_) => return Err(ApiError(Problem::new(ProblemCode::Internal, "storing the snapshot failed"))),
    };
    Ok((StatusCode::CREATED, Json(CodeView { digest, size })))
}
