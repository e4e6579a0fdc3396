//! Sign-in through a provider, for browsers: there and back.

use axum::Json;
use axum::extract::State;
use axum::http::header::SET_COOKIE;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{AppendHeaders, IntoResponse, Redirect, Response};
use danlu_types::account::AccountName;
use danlu_types::api::{IdentityDeparture, IdentityView, NewIdentity, Page, WaysIn};
use danlu_types::{Problem, ProblemCode};
use serde::Deserialize;
use utoipa::IntoParams;

use super::Context;
use super::auth::cookie_named;
use super::extract::{ApiError, Body, PathParams, Query};
use super::sign_in::{SESSION_SECONDS, session_cookie};
use crate::accounts::{Caller, Visitor};
use crate::oidc::{LinkTo, Oidc};

/// Holds the state, so that a sign-in ends in the browser in which it began.
const STATE_COOKIE: &str = "danlu_oidc";
const STATE_SECONDS: u32 = 600;

/// How one comes in here
#[utoipa::path(get, path = "/ways_in", tag = "accounts", security(()), responses((status = 200, body = WaysIn)))]
pub(crate) async fn ways_in(State(context): State<Context>) -> Json<WaysIn> {
    Json(WaysIn { registration: context.app.directory.registration(), oidc: context.oidc.is_some() })
}

/// Go to the provider to sign in
///
/// For browsers. Whoever is signed in already signs in anew, as whom the provider says.
#[utoipa::path(get, path = "/oidc/start", tag = "accounts", security(()), responses((status = 303),
    (status = 404, body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn oidc_start(
    State(context): State<Context>,
    visitor: Visitor,
) -> Result<Response, ApiError> {
    let (cookie, address) = depart(&context, &visitor, None).await?;
    Ok(([(SET_COOKIE, cookie)], Redirect::to(&address)).into_response())
}

/// Link the account that is signed in to an identity at the provider
///
/// For browsers: the answer says where to go, and whoever comes back from there in the same session is linked. Asks for the
/// account's password, and for a code where it has an authenticator.
#[utoipa::path(post, path = "/oidc/link", tag = "accounts", request_body = NewIdentity, responses(
    (status = 200, body = IdentityDeparture),
    (status = 403, body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn oidc_link(
    State(context): State<Context>,
    caller: Caller,
    visitor: Visitor,
    Body(new): Body<NewIdentity>,
) -> Result<Response, ApiError> {
    let link_to = context.app.directory.begin_link(&caller, new, &visitor).await?;
    let (cookie, address) = depart(&context, &visitor, Some(link_to)).await?;
    Ok(([(SET_COOKIE, cookie)], Json(IdentityDeparture { address })).into_response())
}

async fn depart(
    context: &Context,
    visitor: &Visitor,
    link_to: Option<LinkTo>,
) -> Result<(String, String), ApiError> {
    let departure = provider(context)?.depart(visitor.from, link_to).await.map_err(|error| failed(&error))?;
    Ok((state_cookie(context, &departure.state, STATE_SECONDS), departure.address))
}

/// List the identities at the provider by which an account signs in
#[utoipa::path(get, path = "/accounts/{name}/identities", tag = "accounts", params(("name" = String, Path)), responses(
    (status = 200, body = Page<IdentityView>), (status = 404, body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn identities(
    State(context): State<Context>,
    caller: Caller,
    PathParams(name): PathParams<AccountName>,
) -> Result<Json<Page<IdentityView>>, ApiError> {
    Ok(Json(Page { items: context.app.directory.identities(&caller, &name)?, next: None }))
}

/// Unlink an identity at the provider from an account
#[utoipa::path(delete, path = "/accounts/{name}/identities/{id}", tag = "accounts",
    params(("name" = String, Path), ("id" = String, Path)), responses(
    (status = 204), (status = 404, body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn unlink_identity(
    State(context): State<Context>,
    caller: Caller,
    PathParams((name, id)): PathParams<(AccountName, String)>,
) -> Result<StatusCode, ApiError> {
    context.app.directory.unlink(&caller, &name, &id).await?;
    Ok(StatusCode::NO_CONTENT)
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Return {
    state: String,
    /// What the provider gives for a token.
    code: Option<String>,
    /// Why it gives none.
    error: Option<String>,
}

/// Come back from the provider
#[utoipa::path(get, path = "/oidc/callback", tag = "accounts", params(Return), security(()), responses((status = 303),
    (status = 401, body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn oidc_callback(
    State(context): State<Context>,
    caller: Option<Caller>,
    visitor: Visitor,
    headers: HeaderMap,
    Query(query): Query<Return>,
) -> Result<Response, ApiError> {
    let oidc = provider(&context)?;
    if cookie_named(&headers, STATE_COOKIE) != Some(query.state.as_str()) {
        let detail = "this sign-in did not begin in this browser";
        return Err(ApiError(Problem::new(ProblemCode::Unauthenticated, detail).with_hint("begin again")));
    }
    let Some(code) = query.code else {
        let why: String =
            query.error.unwrap_or_default().chars().filter(|c| !c.is_control()).take(100).collect();
        let detail = format!("the provider did not sign you in: `{why}`");
        return Err(ApiError(Problem::new(ProblemCode::Unauthenticated, detail)));
    };
    let (identity, link_to) = oidc.arrive(&query.state, &code).await.map_err(|error| failed(&error))?;
    let directory = &context.app.directory;
    let over = AppendHeaders([(SET_COOKIE, state_cookie(&context, "", 0))]);
    // Never to an address that the request names.
    if let Some(link_to) = link_to {
        directory.end_link(&identity, &link_to, caller.as_ref()).await?;
        return Ok((over, Redirect::to("/profile")).into_response());
    }
    let groups = &oidc.settings.groups;
    // Neither a password nor a code of this account was shown, so its browser is not known by it.
    let (secret, _) = directory.sign_in_by_subject(identity, groups, visitor.from).await?;
    let session = AppendHeaders([(SET_COOKIE, session_cookie(&context, &secret, SESSION_SECONDS))]);
    Ok((session, over, Redirect::to("/")).into_response())
}

fn provider(context: &Context) -> Result<&Oidc, ApiError> {
    let none = || Problem::new(ProblemCode::NotFound, "sign-in through a provider is not configured");
    context.oidc.as_deref().ok_or_else(|| ApiError(none()))
}

fn state_cookie(context: &Context, state: &str, seconds: u32) -> String {
    let secure = if context.listen_config.is_private() { "; Secure" } else { "" };
    format!("{STATE_COOKIE}={state}; HttpOnly; SameSite=Lax; Path=/api/v1/oidc; Max-Age={seconds}{secure}")
}

/// What went wrong between us and the provider is for the log; a person can only try again.
fn failed(error: &anyhow::Error) -> ApiError {
    tracing::warn!("a sign-in through the provider failed: {error:#}");
    let detail = "the sign-in through the provider failed; the server's log says why";
    ApiError(
        Problem::new(ProblemCode::Unauthenticated, detail).with_hint("try again, or sign in with a password"),
    )
}
