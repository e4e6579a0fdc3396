//! Sessions, links, passwords.

use std::iter;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::{HeaderName, SET_COOKIE};
use axum::response::{AppendHeaders, IntoResponse, Response};
use danlu_core::authorization::Action;
use danlu_types::Problem;
use danlu_types::account::AccountName;
use danlu_types::api::{Invitation, NewPassword, SignIn, SignInLink, Whoami, WithProof};
use serde::Deserialize;
use utoipa::ToSchema;

use super::Context;
use super::auth::{DEVICE_COOKIE, SESSION_COOKIE};
use super::extract::{ApiError, Body, OptionalBody, PathParams};
use crate::accounts::{Caller, Visitor, require_of_platform};

/// A session's life, as its token has it.
pub(crate) const SESSION_SECONDS: u32 = 7 * 24 * 3600;
/// How long a browser is known after it signed in: half a year.
const DEVICE_SECONDS: u32 = 180 * 24 * 3600;

/// What a sign-in answers beside its cookie: for programs, the session's secret too.
#[derive(Debug, serde::Serialize, ToSchema)]
pub(crate) struct SignedIn {
    #[serde(flatten)]
    whoami: Whoami,
    /// A bearer token with the session's life.
    secret: String,
}

/// Sign in with a name and a password, or with the secret of a link
///
/// Sets a cookie for browsers, and answers with the same secret for others.
#[utoipa::path(post, path = "/session", tag = "accounts", request_body = SignIn, security(()), responses(
    (status = 200, body = SignedIn), (status = 401, body = Problem, content_type = "application/problem+json"),
    (status = 429, body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn sign_in(
    State(context): State<Context>,
    visitor: Visitor,
    Body(request): Body<SignIn>,
) -> Result<Response, ApiError> {
    let is_by_password = request.password.is_some();
    let (secret, caller) = context.app.directory.sign_in(request, &visitor).await?;
    let whoami = context.app.directory.whoami(&caller)?;
    let session = (SET_COOKIE, session_cookie(&context, &secret, SESSION_SECONDS));
    // Whoever has a session makes links, and whoever has a link knows neither password nor code: a link makes no browser known.
    let device = if is_by_password { device_cookie(&context, &caller, &visitor) } else { None };
    let cookies: Vec<_> = iter::once(session).chain(device).collect();
    Ok((AppendHeaders(cookies), Json(SignedIn { whoami, secret })).into_response())
}

/// The sign by which a browser is known when others guess: for somebody who has just shown a password, and a code if there is an
/// authenticator.
fn device_cookie(context: &Context, caller: &Caller, visitor: &Visitor) -> Option<(HeaderName, String)> {
    let device = context.app.directory.device_cookie(&caller.person.name, visitor)?;
    let secure = if context.listen_config.is_private() { "; Secure" } else { "" };
    let cookie = format!(
        "{DEVICE_COOKIE}={device}; HttpOnly; SameSite=Strict; Path=/api/v1; Max-Age={DEVICE_SECONDS}{secure}"
    );
    Some((SET_COOKIE, cookie))
}

/// As a header. Where browsers come through TLS, they are told to send it through nothing else.
pub(crate) fn session_cookie(context: &Context, secret: &str, seconds: u32) -> String {
    let secure = if context.listen_config.is_private() { "; Secure" } else { "" };
    format!("{SESSION_COOKIE}={secret}; HttpOnly; SameSite=Lax; Path=/; Max-Age={seconds}{secure}")
}

/// Sign out: end the session of this request
#[utoipa::path(delete, path = "/session", tag = "accounts", responses((status = 204)))]
pub(crate) async fn sign_out(State(context): State<Context>, caller: Caller) -> Result<Response, ApiError> {
    context.app.directory.sign_out(&caller).await?;
    Ok((StatusCode::NO_CONTENT, [(SET_COOKIE, session_cookie(&context, "", 0))]).into_response())
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PasswordOf {
    account: AccountName,
    password: String,
    #[serde(default)]
    current: Option<String>,
    #[serde(default)]
    link: Option<String>,
    /// With the present password, where the account has an authenticator.
    #[serde(default)]
    code: Option<String>,
    /// Keep the account's tokens for programs; without it they end, like its sessions.
    #[serde(default)]
    keep_tokens: bool,
}

/// Set a password, with the present one or with the secret of a link
#[utoipa::path(post, path = "/password", tag = "accounts", request_body = PasswordOf, security(()), responses(
    (status = 204), (status = 401, body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn set_password(
    State(context): State<Context>,
    visitor: Visitor,
    Body(PasswordOf { account, password, current, link, code, keep_tokens }): Body<PasswordOf>,
) -> Result<StatusCode, ApiError> {
    let new = NewPassword { password, current, link, code, keep_tokens };
    context.app.directory.set_password(&account, new, &visitor).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Make a link by which an account's owner sets a new password
///
/// Asks for a proof of the administrator's own. The link ends with the rights of that administrator.
#[utoipa::path(post, path = "/accounts/{name}/password_link", tag = "accounts", params(("name" = String, Path)),
    request_body = Option<WithProof>, responses((status = 200, body = Invitation), (status = 404, body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn password_link(
    State(context): State<Context>,
    caller: Caller,
    visitor: Visitor,
    PathParams(name): PathParams<AccountName>,
    OptionalBody(WithProof { proof }): OptionalBody<WithProof>,
) -> Result<Json<Invitation>, ApiError> {
    require_of_platform(&caller, Action::RunAccounts)?;
    Ok(Json(context.app.directory.password_link(&caller, &name, proof, &visitor).await?))
}

/// Make a link by which the caller signs in, once and within minutes: in a browser, say
#[utoipa::path(post, path = "/sign_in_link", tag = "accounts", responses(
    (status = 201, body = SignInLink), (status = 403, body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn sign_in_link(
    State(context): State<Context>,
    caller: Caller,
) -> Result<(StatusCode, Json<SignInLink>), ApiError> {
    Ok((StatusCode::CREATED, Json(context.app.directory.sign_in_link(&caller).await?)))
}
