//! The bearer token. Until accounts exist there is one, and whoever has it may do everything.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use danlu_types::{Problem, ProblemCode};

use super::extract::Failure;

#[derive(Debug, Clone)]
pub(crate) struct Token(Arc<str>);

impl Token {
    pub(crate) fn new(token: &str) -> Self {
        Token(token.into())
    }

    /// In time that depends on the lengths only, so that nobody can guess a token byte by byte.
    fn matches(&self, offered: &str) -> bool {
        let (own, offered) = (self.0.as_bytes(), offered.as_bytes());
        let difference = own.iter().zip(offered).fold(0, |difference, (a, b)| difference | (a ^ b));
        own.len() == offered.len() && std::hint::black_box(difference) == 0
    }
}

pub(crate) async fn require(State(token): State<Token>, request: Request, next: Next) -> Response {
    let offered = request.headers().get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    match offered.and_then(|value| value.strip_prefix("Bearer ")) {
        Some(offered) if token.matches(offered.trim()) => next.run(request).await,
        _ => {
            let problem = Problem::new(ProblemCode::Unauthenticated, "this request carries no valid token")
                .with_hint(
                    "send `Authorization: Bearer TOKEN`; the token is in the file `token` of the data folder",
                );
            let mut response = Failure(problem).into_response();
            response.headers_mut().insert(WWW_AUTHENTICATE, axum::http::HeaderValue::from_static("Bearer"));
            response
        }
    }
}
