//! Secrets of workspaces. Values come in and never go out.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use danlu_types::Problem;
use danlu_types::api::{NewSecret, Page, SecretView};

use super::Context;
use super::extract::{ApiError, Body, PathParams};
use crate::accounts::Caller;

/// List the names of a workspace's secrets
#[utoipa::path(get, path = "/workspaces/{name}/secrets", tag = "secrets", params(("name" = String, Path)),
    responses((status = 200, body = Page<SecretView>)))]
pub(crate) async fn list_secrets(
    State(context): State<Context>,
    caller: Caller,
    PathParams(name): PathParams<String>,
) -> Result<Json<Page<SecretView>>, ApiError> {
    Ok(Json(Page { items: context.app.secrets_list(&caller, &name)?, next: None }))
}

/// Set a secret of a workspace
///
/// Jobs that start from now on get this value.
#[utoipa::path(put, path = "/workspaces/{name}/secrets/{secret}", tag = "secrets",
    params(("name" = String, Path), ("secret" = String, Path)), request_body = NewSecret, responses(
    (status = 204), (status = 422, body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn set_secret(
    State(context): State<Context>,
    caller: Caller,
    PathParams((name, secret)): PathParams<(String, String)>,
    Body(new): Body<NewSecret>,
) -> Result<StatusCode, ApiError> {
    context.app.secret_set(&caller, &name, &secret, new).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Delete a secret of a workspace
///
/// Jobs that wait and ask for it fail when they are to start.
#[utoipa::path(delete, path = "/workspaces/{name}/secrets/{secret}", tag = "secrets",
    params(("name" = String, Path), ("secret" = String, Path)), responses(
    (status = 204), (status = 404, body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn delete_secret(
    State(context): State<Context>,
    caller: Caller,
    PathParams((name, secret)): PathParams<(String, String)>,
) -> Result<StatusCode, ApiError> {
    context.app.secret_delete(&caller, &name, &secret).await?;
    Ok(StatusCode::NO_CONTENT)
}
