//! What those are told for whom there is no place: how many there may be, and what to do.

use axum::http::HeaderValue;
use axum::http::header::RETRY_AFTER;
use axum::response::{IntoResponse as _, Response};
use danlu_types::{Problem, ProblemCode};

use super::extract::ApiError;
use crate::listener::places::{ConnectionBounds, Full};

/// In seconds. Streams and connections end at any time; it is enough that not all come back at once.
const ASK_AGAIN: HeaderValue = HeaderValue::from_static("5");

/// A refusal with when to ask again.
#[derive(Debug)]
pub(crate) struct NoPlace(Problem);

pub(crate) fn no_place(full: Full, bounds: ConnectionBounds) -> NoPlace {
    let ConnectionBounds { per_account, streams_per_account, .. } = bounds;
    let problem = match full {
        Full::StreamsOfAccount => Problem::new(
            ProblemCode::TooManyRequests,
            format!("this account has {streams_per_account} streams, downloads and terminals open, which is the most"),
        )
        .with_hint("close some; `danlu logs` without `--follow` and `danlu jobs` need none"),
        Full::Account => Problem::new(
            ProblemCode::TooManyRequests,
            format!("this account has {per_account} connections open, which is the most"),
        )
        .with_hint("close some, and send several requests over one connection"),
        Full::Streams => Problem::new(
            ProblemCode::Unavailable,
            "as many streams, downloads and terminals are open as this server has room for",
        )
        .with_hint("try again soon; an administrator can raise the server's limit of open files (`LimitNOFILE`)"),
        Full::Address | Full::Connections => crowded(full),
    };
    NoPlace(problem)
}

/// To whoever has not even got a connection.
pub(crate) fn refuse(full: Full) -> Response {
    NoPlace(crowded(full)).into_response()
}

fn crowded(full: Full) -> Problem {
    match full {
        Full::Address => Problem::new(
            ProblemCode::TooManyRequests,
            "this address has as many connections open as one may have",
        )
        .with_hint("close some, and send several requests over one connection"),
        _ => Problem::new(
            ProblemCode::Unavailable,
            "as many connections are open as this server has room for",
        )
        .with_hint(
            "try again soon; an administrator can raise the server's limit of open files (`LimitNOFILE`)",
        ),
    }
}

impl axum::response::IntoResponse for NoPlace {
    fn into_response(self) -> Response {
        let mut response = ApiError(self.0).into_response();
        response.headers_mut().insert(RETRY_AFTER, ASK_AGAIN);
        response
    }
}
