//! What sidecars ask: on behalf of workers on nodes that share no disk with the server, and nobody else.

use axum::Json;
use axum::body::Body;
use axum::extract::{FromRequestParts, State};
use axum::http::StatusCode;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use danlu_types::api::{
    ClaimRequest, ClaimView, FileSize, NewsQuery, Page, PutQuery, SidecarNews, TreeArea, TreeEntry, TreePut,
    TreeQuery,
};
use danlu_types::{Problem, ProblemCode, WorkerIndex};
use tokio::io::AsyncReadExt as _;
use tokio_util::io::ReaderStream;

use super::Context;
use super::extract::{ApiError, Body as JsonBody, PathParams, Query, WholeBody};
use crate::app::App;
use crate::sidecar::{SidecarCaller, SidecarWorker};

impl<S: Sync> FromRequestParts<S> for SidecarCaller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        parts.extensions.get::<SidecarCaller>().cloned().ok_or_else(|| {
            let detail =
                "this address is for sidecars of workers on nodes that share no disk with the server";
            ApiError(Problem::new(ProblemCode::Forbidden, detail))
        })
    }
}

/// Claim an allocation
///
/// The first process of the cluster's job that asks gets it; all others run nothing.
#[utoipa::path(post, path = "/sidecar/claim", tag = "sidecar", request_body = ClaimRequest,
    responses((status = 200, body = ClaimView)))]
pub(crate) async fn claim(
    State(context): State<Context>,
    sidecar: SidecarCaller,
    JsonBody(request): JsonBody<ClaimRequest>,
) -> Result<Json<ClaimView>, ApiError> {
    let claimed = off_the_threads(context, move |app| app.claim(&sidecar, &request)).await?;
    Ok(Json(ClaimView { claimed }))
}

/// Fetch a file of an allocation
///
/// `order.json` or `granted`.
#[utoipa::path(get, path = "/sidecar/allocations/{allocation}/files/{file}", tag = "sidecar",
    params(("allocation" = String, Path), ("file" = String, Path)),
    responses((status = 200, content_type = "application/octet-stream")))]
pub(crate) async fn allocation_file(
    State(context): State<Context>,
    sidecar: SidecarCaller,
    PathParams((allocation, file)): PathParams<(String, String)>,
) -> Result<Vec<u8>, ApiError> {
    Ok(off_the_threads(context, move |app| app.allocation_file(&sidecar, &allocation, &file)).await?)
}

/// Fetch a file that a worker's launcher reads
///
/// `launch.json` or `secrets.json`.
#[utoipa::path(get, path = "/sidecar/workers/{worker}/files/{file}", tag = "sidecar",
    params(("worker" = u32, Path), ("file" = String, Path)),
    responses((status = 200, content_type = "application/octet-stream")))]
pub(crate) async fn fetch_worker_file(
    State(context): State<Context>,
    sidecar: SidecarCaller,
    PathParams((worker, file)): PathParams<(WorkerIndex, String)>,
) -> Result<Vec<u8>, ApiError> {
    let carried = sidecar.worker(worker)?;
    Ok(off_the_threads(context, move |app| app.sidecar_read(&carried, &file)).await?)
}

/// Bring a file of a worker's, or what is new of it
///
/// Files that grow are sent in pieces with their `offset`. The answer says how much is here; what would leave a gap is not
/// taken.
#[utoipa::path(put, path = "/sidecar/workers/{worker}/files/{file}", tag = "sidecar",
    params(("worker" = u32, Path), ("file" = String, Path), PutQuery),
    request_body(content = String, content_type = "application/octet-stream"), responses((status = 200, body = FileSize)))]
pub(crate) async fn bring_worker_file(
    State(context): State<Context>,
    sidecar: SidecarCaller,
    PathParams((worker, file)): PathParams<(WorkerIndex, String)>,
    Query(query): Query<PutQuery>,
    WholeBody(body): WholeBody,
) -> Result<Json<FileSize>, ApiError> {
    let carried = sidecar.worker(worker)?;
    let size =
        off_the_threads(context, move |app| app.sidecar_write(&carried, &file, query.offset, &body)).await?;
    Ok(Json(FileSize { size }))
}

/// Hear what a worker has to hear
///
/// Answered at once where there is something new, and otherwise as soon as there is, or after a while.
#[utoipa::path(get, path = "/sidecar/workers/{worker}/news", tag = "sidecar", params(("worker" = u32, Path), NewsQuery),
    responses((status = 200, body = SidecarNews)))]
pub(crate) async fn worker_news(
    State(context): State<Context>,
    sidecar: SidecarCaller,
    PathParams(worker): PathParams<WorkerIndex>,
    Query(query): Query<NewsQuery>,
) -> Result<Json<SidecarNews>, ApiError> {
    let carried = sidecar.worker(worker)?;
    Ok(Json(context.app.sidecar_news(&carried, &query.since, &context.stop).await?))
}

/// Fetch the job's code
#[utoipa::path(get, path = "/sidecar/workers/{worker}/code", tag = "sidecar", params(("worker" = u32, Path)),
    responses((status = 200, content_type = "application/octet-stream")))]
pub(crate) async fn worker_code(
    State(context): State<Context>,
    sidecar: SidecarCaller,
    PathParams(worker): PathParams<WorkerIndex>,
) -> Result<Response, ApiError> {
    let none = || Problem::new(ProblemCode::NotFound, "the job has no code of its own");
    let digest = sidecar.worker(worker)?.job.spec.code.clone().ok_or_else(none)?;
    let path = context.app.layout.code_archive(&digest);
    stream_file(&path).await.map_err(|_| ApiError(none()))
}

/// Fetch the program that runs on nodes
#[utoipa::path(get, path = "/sidecar/programs/{digest}", tag = "sidecar", params(("digest" = String, Path)),
    responses((status = 200, content_type = "application/octet-stream")))]
pub(crate) async fn node_program(
    State(context): State<Context>,
    _sidecar: SidecarCaller,
    PathParams(digest): PathParams<String>,
) -> Result<Response, ApiError> {
    let none = || Problem::new(ProblemCode::NotFound, "program not found");
    let is_digest = digest.len() == 64 && digest.bytes().all(|byte| byte.is_ascii_hexdigit());
    if !is_digest {
        return Err(none().into());
    }
    let path = context.app.sidecars()?.programs.join(&digest);
    stream_file(&path).await.map_err(|_| ApiError(none()))
}

/// List a job's outputs or checkpoints
#[utoipa::path(get, path = "/sidecar/workers/{worker}/trees/{area}", tag = "sidecar",
    params(("worker" = u32, Path), ("area" = TreeArea, Path)), responses((status = 200, body = Page<TreeEntry>)))]
pub(crate) async fn list_tree(
    State(context): State<Context>,
    sidecar: SidecarCaller,
    PathParams((worker, area)): PathParams<(WorkerIndex, TreeArea)>,
) -> Result<Json<Page<TreeEntry>>, ApiError> {
    let carried = sidecar.worker(worker)?;
    let items = off_the_threads(context, move |app| app.tree_list(&carried, area)).await?;
    Ok(Json(Page { items, next: None }))
}

/// Fetch a file of a job's outputs or checkpoints
#[utoipa::path(get, path = "/sidecar/workers/{worker}/trees/{area}/content", tag = "sidecar",
    params(("worker" = u32, Path), ("area" = TreeArea, Path), TreeQuery),
    responses((status = 200, content_type = "application/octet-stream")))]
pub(crate) async fn fetch_from_tree(
    State(context): State<Context>,
    sidecar: SidecarCaller,
    PathParams((worker, area)): PathParams<(WorkerIndex, TreeArea)>,
    Query(query): Query<TreeQuery>,
) -> Result<Response, ApiError> {
    let carried = sidecar.worker(worker)?;
    let (file, length) = off_the_threads(context, move |app| app.tree_read(&carried, area, &query)).await?;
    Ok(streamed(tokio::fs::File::from_std(file), length))
}

/// Bring a piece of a job's outputs or checkpoints
///
/// A file is put in place with its last byte. The answer says how much of it is here.
#[utoipa::path(put, path = "/sidecar/workers/{worker}/trees/{area}/content", tag = "sidecar",
    params(("worker" = u32, Path), ("area" = TreeArea, Path), TreePut),
    request_body(content = String, content_type = "application/octet-stream"), responses((status = 200, body = FileSize)))]
pub(crate) async fn bring_to_tree(
    State(context): State<Context>,
    sidecar: SidecarCaller,
    PathParams((worker, area)): PathParams<(WorkerIndex, TreeArea)>,
    Query(put): Query<TreePut>,
    WholeBody(body): WholeBody,
) -> Result<Json<FileSize>, ApiError> {
    let carried = sidecar.worker(worker)?;
    let size = off_the_threads(context, move |app| app.tree_write(&carried, area, &put, &body)).await?;
    Ok(Json(FileSize { size }))
}

/// Remove something from a job's outputs or checkpoints
#[utoipa::path(delete, path = "/sidecar/workers/{worker}/trees/{area}/content", tag = "sidecar",
    params(("worker" = u32, Path), ("area" = TreeArea, Path), TreeQuery), responses((status = 204)))]
pub(crate) async fn remove_from_tree(
    State(context): State<Context>,
    sidecar: SidecarCaller,
    PathParams((worker, area)): PathParams<(WorkerIndex, TreeArea)>,
    Query(query): Query<TreeQuery>,
) -> Result<StatusCode, ApiError> {
    let carried: SidecarWorker = sidecar.worker(worker)?;
    off_the_threads(context, move |app| app.tree_remove(&carried, area, &query)).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn off_the_threads<T: Send + 'static>(
    context: Context,
    work: impl FnOnce(&App) -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    let done = tokio::task::spawn_blocking(move || work(&context.app)).await;
    done.unwrap_or_else(|_| Err(Problem::new(ProblemCode::Internal, "the files could not be handled")))
}

async fn stream_file(path: &std::path::Path) -> std::io::Result<Response> {
    let file = tokio::fs::File::open(path).await?;
    let length = file.metadata().await?.len();
    Ok(streamed(file, length))
}

fn streamed(file: tokio::fs::File, length: u64) -> Response {
    let headers =
        [(CONTENT_TYPE, "application/octet-stream".to_owned()), (CONTENT_LENGTH, length.to_string())];
    (headers, Body::from_stream(ReaderStream::with_capacity(file.take(length), 256 << 10))).into_response()
}
