//! Code for other devices.

use axum::Json;
use axum::extract::State;
use axum::http::header::{
    CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_SECURITY_POLICY, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS,
};
use axum::response::{IntoResponse, Response};
use danlu_core::authorization::Action;
use danlu_types::Problem;
use danlu_types::api::{MigrationRequest, MigrationView};

use super::Context;
use super::extract::{ApiError, Body, PathParams};
use crate::accounts::{Caller, require_of_platform};

/// Migrate uploaded code from CUDA to Ascend NPU
///
/// Answers with a new snapshot, which jobs can name, and with what was done. Nothing of the code is run. One migration runs at a
/// time, for a minute at most, over 512 MiB and 50,000 files at most.
#[utoipa::path(post, path = "/migrations", tag = "code", request_body = MigrationRequest, responses(
    (status = 200, body = MigrationView), (status = 422, body = Problem, content_type = "application/problem+json"),
    (status = 429, body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn migrate(
    State(context): State<Context>,
    caller: Caller,
    Body(request): Body<MigrationRequest>,
) -> Result<Json<MigrationView>, ApiError> {
    require_of_platform(&caller, Action::MigrateCode)?;
    Ok(Json(context.app.migrate(request).await?))
}

/// Take a report of a migration along
///
/// By the digest of the migrated copy and a name that `POST /migrations` answered with. Always as a download: a snapshot may hold
/// whatever somebody put into it.
#[utoipa::path(get, path = "/migrations/{code}/reports/{report}", tag = "code", operation_id = "migration_report",
    params(("code" = String, Path), ("report" = String, Path)), responses(
    (status = 200, content_type = "application/octet-stream"),
    (status = 404, body = Problem, content_type = "application/problem+json"),
    (status = 429, body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn report(
    State(context): State<Context>,
    caller: Caller,
    PathParams((code, report)): PathParams<(String, String)>,
) -> Result<Response, ApiError> {
    require_of_platform(&caller, Action::MigrateCode)?;
    let mut reading = context.app.migration_report(&code, &report).await?;
    let size = reading.size;
    let content = async_stream::stream! {
        while let Some(piece) = reading.pieces.recv().await {
            yield piece;
        }
    };
    let media_type = match report.rsplit_once('.') {
        Some((_, "html")) => "text/html; charset=utf-8",
        Some((_, "json" | "sarif")) => "application/json",
        Some((_, "csv")) => "text/csv; charset=utf-8",
        _ => "text/plain; charset=utf-8",
    };
    let headers = [
        (CONTENT_TYPE, media_type.to_owned()),
        (CONTENT_LENGTH, size.to_string()),
        (CONTENT_DISPOSITION, format!("attachment; filename=\"{report}\"")),
        (X_CONTENT_TYPE_OPTIONS, "nosniff".to_owned()),
        (CONTENT_SECURITY_POLICY, "sandbox; default-src 'none'; style-src 'unsafe-inline'".to_owned()),
    ];
    Ok((headers, axum::body::Body::from_stream(content)).into_response())
}
