//! Who a request comes from: a bearer token, or the cookie of somebody who signed in.
//!
//! Everything needs one of the two but what is listed in [`PUBLIC`]. What an caller may do is not decided here: handlers
//! ask the policy about the thing at hand.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::body::{Body, HttpBody as _};
use axum::extract::{ConnectInfo, FromRequestParts, OptionalFromRequestParts, Request, State};
use axum::http::header::{AUTHORIZATION, CONNECTION, COOKIE, HOST, ORIGIN, WWW_AUTHENTICATE};
use axum::http::request::Parts;
use axum::http::{Extensions, HeaderMap, HeaderValue, Method};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use danlu_types::{Problem, ProblemCode};
use futures::StreamExt as _;

use super::Context;
use super::crowding::no_place;
use super::extract::ApiError;
use crate::accounts::{Caller, Visitor};
use crate::attempt_tokens::{self, Speaker};
use crate::listener::origin;
use crate::listener::peer::{FromJob, Peer};
use crate::listener::places::ConnectionPermit;
use crate::sidecar::{self, SidecarCaller};

pub(crate) const SESSION_COOKIE: &str = "danlu_session";
/// Shown by browsers in which somebody has signed in before.
pub(crate) const DEVICE_COOKIE: &str = "danlu_device";
/// Sent by the console with every change. A page of another origin cannot add it without asking us first, and we do not
/// agree.
const CONSOLE_HEADER: &str = "x-danlu-console";
const FORWARDED_FOR: &str = "x-forwarded-for";

/// What one may ask for without being anybody, below `/api/v1`. A password is set by whoever knows the present one or a
/// link.
const PUBLIC: [(Method, &str); 6] = [
    (Method::POST, "/session"),
    (Method::POST, "/registration"),
    (Method::POST, "/password"),
    (Method::GET, "/ways_in"),
    (Method::GET, "/oidc/start"),
    (Method::GET, "/oidc/callback"),
];

/// Where a request came from, for throttling and the audit.
impl FromRequestParts<Context> for Visitor {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, context: &Context) -> Result<Self, Self::Rejection> {
        let from = address(context, &parts.extensions, &parts.headers);
        let peer = parts.extensions.get::<Peer>().copied().filter(|_| from.is_loopback());
        let user = match peer {
            // Reads a table of the kernel's, which is long where there are many connections.
            Some(peer) => tokio::task::spawn_blocking(move || peer.user()).await.ok().flatten(),
            None => None,
        };
        let device = cookie_named(&parts.headers, DEVICE_COOKIE).map(str::to_owned);
        Ok(Visitor { from, user, device })
    }
}

impl<S: Sync> OptionalFromRequestParts<S> for Caller {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Option<Self>, Self::Rejection> {
        Ok(parts.extensions.get::<Caller>().cloned())
    }
}

impl<S: Sync> FromRequestParts<S> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        parts.extensions.get::<Caller>().cloned().ok_or_else(|| ApiError(unknown()))
    }
}

fn address(context: &Context, extensions: &Extensions, headers: &HeaderMap) -> IpAddr {
    let peer = extensions.get::<ConnectInfo<SocketAddr>>().map(|ConnectInfo(peer)| peer.ip());
    let forwarded: Vec<&str> =
        headers.get_all(FORWARDED_FOR).iter().filter_map(|value| value.to_str().ok()).collect();
    let proxies = context.listen_config.proxies.as_deref().unwrap_or_default();
    // On this machine, jobs have the address that proxies have.
    let proxies = if extensions.get::<FromJob>().is_some() { &[] } else { proxies };
    origin(peer.unwrap_or(IpAddr::from([0, 0, 0, 0])), forwarded.into_iter(), proxies)
}

pub(crate) async fn identify(State(context): State<Context>, mut request: Request, next: Next) -> Response {
    let from = address(&context, request.extensions(), request.headers());
    let directory = &context.app.directory;
    let headers = request.headers();
    if let Some(secret) = bearer(headers).filter(|secret| secret.starts_with(attempt_tokens::PREFIX)) {
        let speaker = context.app.speaker(secret);
        return speak(speaker, request, next).await;
    }
    if let Some(secret) = bearer(headers).filter(|secret| sidecar::token_body(secret).is_some()) {
        let sidecar = context.app.sidecar(secret);
        return carry(sidecar, request, next).await;
    }
    let caller = match (bearer(headers), cookie(headers)) {
        (Some(secret), _) => directory.caller(secret, from),
        (None, Some(secret)) => {
            let caller = directory.caller(secret, from);
            if caller.is_some() && !is_from_console(&request) {
                let detail = "a request with a cookie must come from the console";
                let hint = format!("send `{CONSOLE_HEADER}: 1` from a page of this server, or use a token");
                return ApiError(Problem::new(ProblemCode::Forbidden, detail).with_hint(hint))
                    .into_response();
            }
            caller.map(Caller::in_browser)
        }
        (None, None) => None,
    };
    let path = request.uri().path();
    let is_public = PUBLIC.iter().any(|(method, public)| method == request.method() && *public == path);
    match caller {
        Some(caller) => {
            let place = request.extensions().get::<Arc<ConnectionPermit>>();
            if let Some(Err(full)) = place.map(|place| place.belongs_to(&caller.person.name)) {
                return closing(no_place(full, context.places.bounds()).into_response());
            }
            request.extensions_mut().insert(caller.clone());
            until_lapse(context, caller, next.run(request).await)
        }
        None if is_public => next.run(request).await,
        None => {
            let mut response = ApiError(unknown()).into_response();
            response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            response
        }
    }
}

/// What is sent piece by piece is one of so many of its account's, and ends with the token that it was opened with. Here,
/// so that no handler can forget it. (Terminals are not sent: [`super::session`] does the same.)
fn until_lapse(context: Context, caller: Caller, response: Response) -> Response {
    if response.body().size_hint().exact().is_some() {
        return response;
    }
    let ticket = match context.places.stream(&caller.person.name) {
        Ok(ticket) => ticket,
        Err(full) => return closing(no_place(full, context.places.bounds()).into_response()),
    };
    let lapse = async move { context.app.directory.lapsed(&caller).await };
    let (parts, body) = response.into_parts();
    let pieces = body.into_data_stream().take_until(Box::pin(lapse)).map(move |piece| {
        let _until_the_end = &ticket;
        piece
    });
    Response::from_parts(parts, Body::from_stream(pieces))
}

/// Whoever has too many connections is not to keep this one.
fn closing(mut response: Response) -> Response {
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}

/// A token of an attempt opens what is about that attempt, and nothing that anybody else may ask for.
async fn speak(speaker: Option<Speaker>, mut request: Request, next: Next) -> Response {
    let path = request.uri().path();
    let is_own = path == "/attempt" || path.starts_with("/attempt/");
    match speaker {
        Some(speaker) if is_own => {
            request.extensions_mut().insert(speaker);
            next.run(request).await
        }
        Some(_) => {
            let detail = "this token speaks for an attempt of a job, and may do nothing else";
            let hint =
                "for other requests from inside a job, unset `DANLU_SERVER` and `DANLU_TOKEN` and sign in";
            ApiError(Problem::new(ProblemCode::Forbidden, detail).with_hint(hint)).into_response()
        }
        None => {
            let detail = "this token is of no attempt that runs";
            ApiError(Problem::new(ProblemCode::Unauthenticated, detail)).into_response()
        }
    }
}

/// A sidecar's token opens what sidecars ask for, and nothing else.
async fn carry(sidecar: Result<SidecarCaller, Problem>, mut request: Request, next: Next) -> Response {
    match sidecar {
        Ok(sidecar) if request.uri().path().starts_with("/sidecar/") => {
            request.extensions_mut().insert(sidecar);
            next.run(request).await
        }
        Ok(_) => {
            let detail = "this token is of a sidecar, and may do nothing else";
            ApiError(Problem::new(ProblemCode::Forbidden, detail)).into_response()
        }
        Err(problem) => ApiError(problem).into_response(),
    }
}

fn unknown() -> Problem {
    Problem::new(ProblemCode::Unauthenticated, "this request carries no valid token").with_hint(
        "sign in with `danlu login`, or send `Authorization: Bearer TOKEN`; on the server's own machine the token is in the \
         file `token` of the data folder",
    )
}

pub(super) fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(AUTHORIZATION)?.to_str().ok()?;
    Some(value.strip_prefix("Bearer ")?.trim())
}

fn cookie(headers: &HeaderMap) -> Option<&str> {
    cookie_named(headers, SESSION_COOKIE)
}

pub(crate) fn cookie_named<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let pairs =
        headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok()).flat_map(|all| all.split(';'));
    pairs.filter_map(|pair| pair.trim().split_once('=')).find(|(own, _)| *own == name).map(|(_, value)| value)
}

/// Reading is harmless, because answers cannot be read across origins; a WebSocket can, so it must name its origin.
pub(super) fn is_from_console(request: &Request) -> bool {
    let headers = request.headers();
    let text = |name: &axum::http::HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let host = text(&HOST);
    let same_origin =
        text(&ORIGIN).is_none_or(|origin| origin.split_once("://").map(|(_, rest)| rest) == host);
    let is_upgrade = headers.contains_key("upgrade");
    let is_harmless = matches!(*request.method(), Method::GET | Method::HEAD) && !is_upgrade;
    is_harmless
        || (same_origin && (headers.contains_key(CONSOLE_HEADER) || (is_upgrade && text(&ORIGIN).is_some())))
}
