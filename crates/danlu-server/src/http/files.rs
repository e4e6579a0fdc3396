//! What jobs left: their files, to look at and to take along.

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::header::{
    CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_SECURITY_POLICY, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS,
};
use axum::response::{IntoResponse, Response};
use danlu_core::authorization::Action;
use danlu_types::api::{FileEntry, FileQuery, Page};
use danlu_types::{JobId, Problem};
use futures::StreamExt as _;
use tokio::io::AsyncReadExt as _;
use tokio_util::io::ReaderStream;

use super::Context;
use super::extract::{ApiError, PathParams, Query};
use crate::accounts::Caller;

/// List files of a job
///
/// One folder of what it wrote, kept between attempts, or worked in.
#[utoipa::path(get, path = "/jobs/{id}/files", tag = "jobs", operation_id = "files", params(("id" = u64, Path), FileQuery), responses(
    (status = 200, body = Page<FileEntry>), (status = 404, body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn list(
    State(context): State<Context>,
    caller: Caller,
    PathParams(id): PathParams<JobId>,
    Query(query): Query<FileQuery>,
) -> Result<Json<Page<FileEntry>>, ApiError> {
    let job = context.app.job_for(&caller, id, Action::EnterJob).await?;
    Ok(Json(Page { items: context.app.files(&job, query).await?, next: None }))
}

/// Take a file of a job along
///
/// Always as a download: what a program wrote is never shown as a page of this server.
#[utoipa::path(get, path = "/jobs/{id}/files/content", tag = "jobs", operation_id = "file_content", params(("id" = u64, Path), FileQuery), responses(
    (status = 200, content_type = "application/octet-stream"),
    (status = 404, body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn content(
    State(context): State<Context>,
    caller: Caller,
    PathParams(id): PathParams<JobId>,
    Query(query): Query<FileQuery>,
) -> Result<Response, ApiError> {
    let job = context.app.job_for(&caller, id, Action::EnterJob).await?;
    let (file, length) = context.app.file(&job, query).await?;
    // A file that grows meanwhile is sent as long as it was announced.
    let content = ReaderStream::new(tokio::fs::File::from_std(file).take(length));
    let forbidden = async move { context.app.forbidden(&caller, id, Action::EnterJob).await };
    let body = Body::from_stream(content.take_until(Box::pin(forbidden)));
    let headers = [
        (CONTENT_TYPE, "application/octet-stream".to_owned()),
        (CONTENT_LENGTH, length.to_string()),
        (CONTENT_DISPOSITION, "attachment".to_owned()),
        (X_CONTENT_TYPE_OPTIONS, "nosniff".to_owned()),
        (CONTENT_SECURITY_POLICY, "sandbox; default-src 'none'".to_owned()),
    ];
    Ok((headers, body).into_response())
}
