//! Coming in: invitations into workspaces, and those who ask to be let in.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use danlu_types::Problem;
use danlu_types::account::AccountName;
use danlu_types::api::{
    AccountView, Applicant, InvitationView, MadeInvitation, NewInvitation, NewRegistration, Page,
};

use super::Context;
use super::extract::{ApiError, Body, PathParams};
use crate::accounts::{Caller, Visitor};

/// Ask for an account
///
/// Where registration is open, the account works once somebody has approved it: an administrator, or an owner of the
/// workspace that it names. With an invitation it works at once.
#[utoipa::path(post, path = "/registration", tag = "accounts", request_body = NewRegistration, security(()), responses(
    (status = 201, body = AccountView), (status = 403, body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn register(
    State(context): State<Context>,
    visitor: Visitor,
    Body(new): Body<NewRegistration>,
) -> Result<(StatusCode, Json<AccountView>), ApiError> {
    Ok((StatusCode::CREATED, Json(context.app.directory.register_self(new, &visitor).await?)))
}

/// List a workspace's invitations that are still good
#[utoipa::path(get, path = "/workspaces/{name}/invitations", tag = "accounts", params(("name" = String, Path)),
    responses((status = 200, body = Page<InvitationView>),
    (status = 404, body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn list_invitations(
    State(context): State<Context>,
    caller: Caller,
    PathParams(name): PathParams<String>,
) -> Result<Json<Page<InvitationView>>, ApiError> {
    Ok(Json(Page { items: context.app.directory.invitations(&caller, &name)?, next: None }))
}

/// Invite somebody who has no account into a workspace
///
/// Whoever has the secret makes an account, once, that needs no approval.
#[utoipa::path(post, path = "/workspaces/{name}/invitations", tag = "accounts", params(("name" = String, Path)),
    request_body = NewInvitation, responses((status = 201, body = MadeInvitation),
    (status = 404, body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn invite(
    State(context): State<Context>,
    caller: Caller,
    PathParams(name): PathParams<String>,
    Body(new): Body<NewInvitation>,
) -> Result<(StatusCode, Json<MadeInvitation>), ApiError> {
    Ok((StatusCode::CREATED, Json(context.app.directory.invite(&caller, &name, new).await?)))
}

/// Take an invitation back
#[utoipa::path(delete, path = "/workspaces/{name}/invitations/{id}", tag = "accounts",
    params(("name" = String, Path), ("id" = String, Path)), responses(
    (status = 204), (status = 404, body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn disinvite(
    State(context): State<Context>,
    caller: Caller,
    PathParams((name, id)): PathParams<(String, String)>,
) -> Result<StatusCode, ApiError> {
    context.app.directory.disinvite(&caller, &name, &id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// List who asks to be let into a workspace
#[utoipa::path(get, path = "/workspaces/{name}/applicants", tag = "accounts", params(("name" = String, Path)),
    responses((status = 200, body = Page<Applicant>),
    (status = 404, body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn applicants(
    State(context): State<Context>,
    caller: Caller,
    PathParams(name): PathParams<String>,
) -> Result<Json<Page<Applicant>>, ApiError> {
    Ok(Json(Page { items: context.app.directory.applicants(&caller, &name)?, next: None }))
}

/// Let somebody in: their account works, and they are a member
#[utoipa::path(post, path = "/workspaces/{name}/applicants/{account}", tag = "accounts",
    params(("name" = String, Path), ("account" = String, Path)), responses((status = 200, body = AccountView),
    (status = 404, body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn admit(
    State(context): State<Context>,
    caller: Caller,
    PathParams((name, account)): PathParams<(String, AccountName)>,
) -> Result<Json<AccountView>, ApiError> {
    Ok(Json(context.app.directory.admit(&caller, &name, &account).await?))
}

/// Turn somebody away; administrators may still approve the account
#[utoipa::path(delete, path = "/workspaces/{name}/applicants/{account}", tag = "accounts",
    params(("name" = String, Path), ("account" = String, Path)), responses(
    (status = 204), (status = 404, body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn turn_away(
    State(context): State<Context>,
    caller: Caller,
    PathParams((name, account)): PathParams<(String, AccountName)>,
) -> Result<StatusCode, ApiError> {
    context.app.directory.turn_away(&caller, &name, &account).await?;
    Ok(StatusCode::NO_CONTENT)
}
