//! Sign-in through a provider, for browsers: there and back.

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::header::SET_COOKIE;
use axum::response::{AppendHeaders, IntoResponse, Redirect, Response};
use danlu_types::api::WaysIn;
use danlu_types::{Problem, ProblemCode};
use serde::Deserialize;
use utoipa::IntoParams;

use super::Context;
use super::auth::{From, cookie_named};
use super::extract::{Failure, Query};
use super::signing_in::{SESSION_SECONDS, session_cookie};
use crate::oidc::Oidc;
use crate::people::Asker;

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
/// For browsers. Somebody who is signed in already links the account to what the provider calls them.
#[utoipa::path(get, path = "/oidc/start", tag = "accounts", security(()), responses((status = 303),
    (status = 404, body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn oidc_start(State(context): State<Context>) -> Result<Response, Failure> {
    let departure = provider(&context)?.depart().await.map_err(|error| failed(&error))?;
    let cookie = state_cookie(&context, &departure.state, STATE_SECONDS);
    Ok(([(SET_COOKIE, cookie)], Redirect::to(&departure.address)).into_response())
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
    asker: Option<Asker>,
    From(from): From,
    headers: HeaderMap,
    Query(query): Query<Return>,
) -> Result<Response, Failure> {
    let oidc = provider(&context)?;
    if cookie_named(&headers, STATE_COOKIE) != Some(query.state.as_str()) {
        let detail = "this sign-in did not begin in this browser";
        return Err(Failure(Problem::new(ProblemCode::Unauthenticated, detail).with_hint("begin again")));
    }
    let Some(code) = query.code else {
        let why: String =
            query.error.unwrap_or_default().chars().filter(|c| !c.is_control()).take(100).collect();
        let detail = format!("the provider did not sign you in: `{why}`");
        return Err(Failure(Problem::new(ProblemCode::Unauthenticated, detail)));
    };
    let identity = oidc.arrive(&query.state, &code).await.map_err(|error| failed(&error))?;
    let directory = &context.app.directory;
    let groups = &oidc.settings.groups;
    let (secret, _) = directory.sign_in_by_subject(identity, asker.as_ref(), groups, from).await?;
    let cookies = AppendHeaders([
        (SET_COOKIE, session_cookie(&context, &secret, SESSION_SECONDS)),
        (SET_COOKIE, state_cookie(&context, "", 0)),
    ]);
    // Never to an address that the request names.
    Ok((cookies, Redirect::to("/")).into_response())
}

fn provider(context: &Context) -> Result<&Oidc, Failure> {
    let none = || Problem::new(ProblemCode::NotFound, "nobody signs in through a provider here");
    context.oidc.as_deref().ok_or_else(|| Failure(none()))
}

fn state_cookie(context: &Context, state: &str, seconds: u32) -> String {
    let secure = if context.entrance.is_private() { "; Secure" } else { "" };
    format!("{STATE_COOKIE}={state}; HttpOnly; SameSite=Lax; Path=/api/v1/oidc; Max-Age={seconds}{secure}")
}

/// What went wrong between us and the provider is for the log; a person can only try again.
fn failed(error: &anyhow::Error) -> Failure {
    tracing::warn!("a sign-in through the provider failed: {error:#}");
    let detail = "the sign-in through the provider failed; the server's log says why";
    Failure(
        Problem::new(ProblemCode::Unauthenticated, detail).with_hint("try again, or sign in with a password"),
    )
}
