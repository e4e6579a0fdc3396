//! Reading requests so that whatever is wrong with them becomes a problem with a reason.

use std::time::Duration;

use axum::extract::rejection::BytesRejection;
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use danlu_types::spec::FIELDS_OF_LATER_VERSIONS;
use danlu_types::{FieldError, Problem, ProblemCode};
use serde::de::DeserializeOwned;

use super::strict::Strict;
use crate::listener::accept::RequestTimeouts;

/// A problem as a response.
#[derive(Debug)]
pub(crate) struct ApiError(pub(crate) Problem);

impl From<Problem> for ApiError {
    fn from(problem: Problem) -> Self {
        ApiError(problem)
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.0.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let retry_after = self.0.retry_after;
        let mut response = (status, axum::Json(self.0)).into_response();
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if let Some(pause) = retry_after {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(pause.as_secs() + 1));
        }
        response
    }
}

/// Refuses parameters that hold NUL, which PostgreSQL takes in no text.
pub(crate) fn without_nul<'a>(
    texts: impl IntoIterator<Item = (&'static str, Option<&'a String>)>,
) -> Result<(), Problem> {
    let mut texts = texts.into_iter();
    match texts.find(|(_, text)| text.is_some_and(|text| text.contains('\0'))) {
        Some((name, _)) => {
            Err(Problem::invalid_fields(vec![FieldError::new(name, "may not hold NUL characters")]))
        }
        None => Ok(()),
    }
}

/// A JSON body. Errors name the field that could not be read.
#[derive(Debug)]
pub(crate) struct Body<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Body<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        let content_type = request.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        if !content_type.is_some_and(|value| value.trim_start().starts_with("application/json")) {
            let problem =
                Problem::new(ProblemCode::UnsupportedMediaType, "the body must be `application/json`");
            return Err(ApiError(problem));
        }
        read_json(&whole_body(request, state).await?).map(Body).map_err(ApiError)
    }
}

/// A JSON body that may be left out.
#[derive(Debug)]
pub(crate) struct OptionalBody<T>(pub(crate) T);

impl<T: DeserializeOwned + Default, S: Send + Sync> FromRequest<S> for OptionalBody<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        let bytes = whole_body(request, state).await?;
        if bytes.is_empty() {
            return Ok(OptionalBody(T::default()));
        }
        // What may be left out may be nothing.
        read_json::<Option<T>>(&bytes).map(|body| OptionalBody(body.unwrap_or_default())).map_err(ApiError)
    }
}

/// A body of any kind, read whole.
#[derive(Debug)]
pub(crate) struct WholeBody(pub(crate) Bytes);

impl<S: Send + Sync> FromRequest<S> for WholeBody {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        whole_body(request, state).await.map(WholeBody)
    }
}

/// A body that trickles in byte by byte is given up, whatever its size.
async fn whole_body<S: Send + Sync>(request: Request, state: &S) -> Result<Bytes, ApiError> {
    let patience =
        request.extensions().get::<RequestTimeouts>().copied().unwrap_or(RequestTimeouts(Duration::MAX));
    let read = tokio::time::timeout(patience.0, Bytes::from_request(request, state)).await;
    let bytes = read.map_err(|_| ApiError(too_slow()))?;
    bytes.map_err(|rejection| ApiError(too_large(&rejection)))
}

pub(crate) fn too_slow() -> Problem {
    Problem::new(ProblemCode::TooSlow, "the body did not arrive in time")
}

pub(crate) fn read_json<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let value = serde_path_to_error::deserialize(Strict(&mut reader)).map_err(|error| {
        let path = error.path().to_string();
        json_problem(&path, error.inner())
    })?;
    reader.end().map_err(|error| json_problem(".", &error))?;
    Ok(value)
}

pub(crate) fn json_problem(path: &str, error: &serde_json::Error) -> Problem {
    let message: String = error.to_string().chars().take(500).collect();
    if !error.is_data() {
        return Problem::new(ProblemCode::BadRequest, format!("the body is not valid JSON: {message}"));
    }
    // Where it is in the body says nothing to who filled in a form; the field says it.
    let message = message.split(" at line ").next().unwrap_or_default().to_owned();
    let field = if path == "." { String::new() } else { path.chars().take(200).collect() };
    for (name, sentence) in FIELDS_OF_LATER_VERSIONS {
        if message.starts_with(&format!("unknown field `{name}`")) {
            return Problem::invalid_fields(vec![FieldError::new(name, sentence)]);
        }
    }
    Problem::invalid_fields(vec![FieldError::new(field, message)])
}

fn too_large(rejection: &BytesRejection) -> Problem {
    if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE {
        let detail = format!("the body is larger than {} bytes", super::LARGEST_BODY);
        return Problem::new(ProblemCode::TooLarge, detail)
            .with_hint("put large files into `code`, or name their path");
    }
    Problem::new(ProblemCode::BadRequest, "the body ended before it was complete")
}

/// The query string.
#[derive(Debug)]
pub(crate) struct Query<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Query<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        match axum::extract::Query::<T>::from_request_parts(parts, state).await {
            Ok(axum::extract::Query(value)) => Ok(Query(value)),
            Err(rejection) => {
                let detail = rejection.body_text().chars().take(500).collect::<String>();
                Err(ApiError(Problem::new(ProblemCode::BadRequest, detail)))
            }
        }
    }
}

/// Path parameters.
#[derive(Debug)]
pub(crate) struct PathParams<T>(pub(crate) T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for PathParams<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        match axum::extract::Path::<T>::from_request_parts(parts, state).await {
            Ok(axum::extract::Path(value)) => Ok(PathParams(value)),
            // What is not an id names nothing.
            Err(rejection) => {
                let detail = rejection.body_text().chars().take(500).collect::<String>();
                Err(ApiError(Problem::new(ProblemCode::NotFound, detail)))
            }
        }
    }
}
