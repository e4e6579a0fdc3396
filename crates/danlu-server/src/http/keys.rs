//! Keys of accounts: for SSH, and for S3.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use danlu_types::Problem;
use danlu_types::account::AccountName;
use danlu_types::api::{MadeS3Key, NewS3Key, NewSshKey, Page, S3KeyView, SshKeyView};

use super::Context;
use super::extract::{ApiError, Body, PathParams};
use crate::accounts::{Caller, Visitor};

/// List an account's SSH keys
#[utoipa::path(get, path = "/accounts/{name}/ssh_keys", tag = "accounts", params(("name" = String, Path)), responses(
    (status = 200, body = Page<SshKeyView>), (status = 404, body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn ssh_keys(
    State(context): State<Context>,
    caller: Caller,
    PathParams(name): PathParams<AccountName>,
) -> Result<Json<Page<SshKeyView>>, ApiError> {
    Ok(Json(Page { items: context.app.directory.ssh_keys(&caller, &name)?, next: None }))
}

/// Add an SSH key
///
/// A key stands for one account: one that is known already is refused. Asks for a proof.
#[utoipa::path(post, path = "/accounts/{name}/ssh_keys", tag = "accounts", params(("name" = String, Path)),
    request_body = NewSshKey, responses((status = 201, body = SshKeyView),
    (status = 409, body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn add_ssh_key(
    State(context): State<Context>,
    caller: Caller,
    visitor: Visitor,
    PathParams(name): PathParams<AccountName>,
    Body(new): Body<NewSshKey>,
) -> Result<(StatusCode, Json<SshKeyView>), ApiError> {
    Ok((StatusCode::CREATED, Json(context.app.directory.add_ssh_key(&caller, &name, new, &visitor).await?)))
}

/// Remove an SSH key
#[utoipa::path(delete, path = "/accounts/{name}/ssh_keys/{id}", tag = "accounts",
    params(("name" = String, Path), ("id" = String, Path)), responses(
    (status = 204), (status = 404, body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn remove_ssh_key(
    State(context): State<Context>,
    caller: Caller,
    PathParams((name, id)): PathParams<(AccountName, String)>,
) -> Result<StatusCode, ApiError> {
    context.app.directory.remove_ssh_key(&caller, &name, &id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// List an account's S3 keys
#[utoipa::path(get, path = "/accounts/{name}/s3_keys", tag = "accounts", params(("name" = String, Path)), responses(
    (status = 200, body = Page<S3KeyView>), (status = 404, body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn s3_keys(
    State(context): State<Context>,
    caller: Caller,
    PathParams(name): PathParams<AccountName>,
) -> Result<Json<Page<S3KeyView>>, ApiError> {
    Ok(Json(Page { items: context.app.directory.s3_keys(&caller, &name)?, next: None }))
}

/// Make an S3 key for oneself
///
/// The secret key is answered this once. Asks for a proof.
#[utoipa::path(post, path = "/accounts/{name}/s3_keys", tag = "accounts", params(("name" = String, Path)),
    request_body = NewS3Key, responses((status = 201, body = MadeS3Key),
    (status = 403, body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn make_s3_key(
    State(context): State<Context>,
    caller: Caller,
    visitor: Visitor,
    PathParams(name): PathParams<AccountName>,
    Body(new): Body<NewS3Key>,
) -> Result<(StatusCode, Json<MadeS3Key>), ApiError> {
    Ok((StatusCode::CREATED, Json(context.app.directory.make_s3_key(&caller, &name, new, &visitor).await?)))
}

/// Remove an S3 key
#[utoipa::path(delete, path = "/accounts/{name}/s3_keys/{access_key}", tag = "accounts",
    params(("name" = String, Path), ("access_key" = String, Path)), responses(
    (status = 204), (status = 404, body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn remove_s3_key(
    State(context): State<Context>,
    caller: Caller,
    PathParams((name, access_key)): PathParams<(AccountName, String)>,
) -> Result<StatusCode, ApiError> {
    context.app.directory.remove_s3_key(&caller, &name, &access_key).await?;
    Ok(StatusCode::NO_CONTENT)
}
