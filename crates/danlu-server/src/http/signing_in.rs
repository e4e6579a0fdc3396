//! Coming in: sessions, registration, links, passwords.

use axum::Json;
use axum::extract::State;
use axum::http::header::SET_COOKIE;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use danlu_core::policy::Action;
use danlu_types::Problem;
use danlu_types::account::AccountName;
use danlu_types::api::{AccountView, Invitation, NewAccount, NewPassword, SignIn, SignInLink, Whoami};
use serde::Deserialize;
use utoipa::ToSchema;

use super::Context;
use super::auth::{From, SESSION_COOKIE};
use super::extract::{Body, Failure, Path};
use crate::people::{Asker, require_of_platform};

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
    From(from): From,
    Body(request): Body<SignIn>,
) -> Result<Response, Failure> {
    let (secret, asker) = context.app.directory.sign_in(request, from).await?;
    let whoami = context.app.directory.whoami(&asker)?;
    let cookie = format!("{SESSION_COOKIE}={secret}; HttpOnly; SameSite=Lax; Path=/; Max-Age=604800");
    let mut response = Json(SignedIn { whoami, secret }).into_response();
    if let Ok(cookie) = HeaderValue::from_str(&cookie) {
        response.headers_mut().insert(SET_COOKIE, cookie);
    }
    Ok(response)
}

/// Sign out: end the session of this request
#[utoipa::path(delete, path = "/session", tag = "accounts", responses((status = 204)))]
pub(crate) async fn sign_out(State(context): State<Context>, asker: Asker) -> Result<Response, Failure> {
    context.app.directory.sign_out(&asker).await?;
    let gone = format!("{SESSION_COOKIE}=; HttpOnly; SameSite=Lax; Path=/; Max-Age=0");
    let mut response = StatusCode::NO_CONTENT.into_response();
    if let Ok(cookie) = HeaderValue::from_str(&gone) {
        response.headers_mut().insert(SET_COOKIE, cookie);
    }
    Ok(response)
}

/// Ask for an account
///
/// Where registration is open; the account works once somebody has approved it.
#[utoipa::path(post, path = "/registration", tag = "accounts", request_body = NewAccount, security(()), responses(
    (status = 201, body = AccountView), (status = 403, body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn register(
    State(context): State<Context>,
    From(from): From,
    Body(new): Body<NewAccount>,
) -> Result<(StatusCode, Json<AccountView>), Failure> {
    Ok((StatusCode::CREATED, Json(context.app.directory.register_self(new, from).await?)))
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
}

/// Set a password, with the present one or with the secret of a link
#[utoipa::path(post, path = "/password", tag = "accounts", request_body = PasswordOf, security(()), responses(
    (status = 204), (status = 401, body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn set_password(
    State(context): State<Context>,
    From(from): From,
    Body(PasswordOf { account, password, current, link }): Body<PasswordOf>,
) -> Result<StatusCode, Failure> {
    context.app.directory.set_password(&account, NewPassword { password, current, link }, from).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Make a link by which an account's owner sets a new password
#[utoipa::path(post, path = "/accounts/{name}/password_link", tag = "accounts", params(("name" = String, Path)),
    responses((status = 200, body = Invitation), (status = 404, body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn password_link(
    State(context): State<Context>,
    asker: Asker,
    Path(name): Path<AccountName>,
) -> Result<Json<Invitation>, Failure> {
    require_of_platform(&asker, Action::RunAccounts)?;
    Ok(Json(context.app.directory.password_link(&asker, &name).await?))
}

/// Make a link by which the asker signs in, once and within minutes: in a browser, say
#[utoipa::path(post, path = "/sign_in_link", tag = "accounts", responses(
    (status = 201, body = SignInLink), (status = 403, body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn sign_in_link(
    State(context): State<Context>,
    asker: Asker,
) -> Result<(StatusCode, Json<SignInLink>), Failure> {
    Ok((StatusCode::CREATED, Json(context.app.directory.sign_in_link(&asker).await?)))
}
