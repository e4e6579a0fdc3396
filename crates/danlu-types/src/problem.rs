//! Errors on the wire: RFC 9457 `application/problem+json` with a stable code.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What went wrong, as a word that programs may rely on. Codes are only ever added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProblemCode {
    /// The body or a parameter could not be read at all.
    BadRequest,
    /// The body was read, but fields of it are wrong; `errors` names them.
    InvalidFields,
    /// The request is well-formed, but nothing here could ever run it.
    CannotEverRun,
    Unauthenticated,
    /// The password is right; a code of the account's authenticator is needed too.
    SecondFactorNeeded,
    /// The asker is known, and may not do this.
    Forbidden,
    NotFound,
    /// The thing is in a state in which this cannot be done to it.
    WrongState,
    /// The idempotency key was used before, with another body.
    KeyReused,
    TooLarge,
    /// The request took too long to arrive.
    TooSlow,
    /// Too many tries in too short a time.
    TooManyRequests,
    UnsupportedMediaType,
    MethodNotAllowed,
    /// Something the server needs (its disk, its database) does not answer now; nothing was changed, or it is shown once that answers. Try again.
    Unavailable,
    Internal,
}

impl ProblemCode {
    pub fn http_status(self) -> u16 {
        match self {
            ProblemCode::BadRequest => 400,
            ProblemCode::Unauthenticated | ProblemCode::SecondFactorNeeded => 401,
            ProblemCode::Forbidden => 403,
            ProblemCode::NotFound => 404,
            ProblemCode::MethodNotAllowed => 405,
            ProblemCode::TooSlow => 408,
            ProblemCode::WrongState | ProblemCode::KeyReused => 409,
            ProblemCode::TooLarge => 413,
            ProblemCode::UnsupportedMediaType => 415,
            ProblemCode::InvalidFields | ProblemCode::CannotEverRun => 422,
            ProblemCode::TooManyRequests => 429,
            ProblemCode::Internal => 500,
            ProblemCode::Unavailable => 503,
        }
    }

    pub fn title(self) -> &'static str {
        match self {
            ProblemCode::BadRequest => "the request could not be read",
            ProblemCode::InvalidFields => "some fields are not valid",
            ProblemCode::CannotEverRun => "this job can never run here",
            ProblemCode::Unauthenticated => "a valid token is needed",
            ProblemCode::SecondFactorNeeded => "a code is needed",
            ProblemCode::Forbidden => "this is not allowed",
            ProblemCode::NotFound => "not found",
            ProblemCode::WrongState => "not possible in this state",
            ProblemCode::KeyReused => "this key was used for something else",
            ProblemCode::TooLarge => "the request is too large",
            ProblemCode::TooSlow => "the request took too long to arrive",
            ProblemCode::TooManyRequests => "too many tries",
            ProblemCode::UnsupportedMediaType => "this content type is not understood",
            ProblemCode::MethodNotAllowed => "this address does not take that method",
            ProblemCode::Unavailable => "the server cannot do this right now",
            ProblemCode::Internal => "the server failed",
        }
    }
}

/// One wrong field: where it is, what is wrong, what would be right.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FieldError {
    /// A dotted path into the body, such as `devices.count`; empty for the body itself.
    pub field: String,
    pub message: String,
}

impl FieldError {
    pub fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        FieldError { field: field.into(), message: message.into() }
    }
}

/// The body of every response that is not a success.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Problem {
    /// Always `about:blank`: `code` tells problems apart.
    #[serde(rename = "type")]
    pub kind: String,
    pub title: String,
    pub status: u16,
    pub code: ProblemCode,
    pub detail: String,
    /// What the reader can do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<FieldError>,
    /// When to try again; told in the header `Retry-After`.
    #[serde(skip)]
    pub retry_after: Option<Duration>,
}

impl Problem {
    pub fn new(code: ProblemCode, detail: impl Into<String>) -> Self {
        Problem {
            kind: "about:blank".to_owned(),
            title: code.title().to_owned(),
            status: code.http_status(),
            code,
            detail: detail.into(),
            hint: None,
            errors: Vec::new(),
            retry_after: None,
        }
    }

    #[must_use]
    pub fn with_retry_after(mut self, pause: Duration) -> Self {
        self.retry_after = Some(pause);
        self
    }

    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub fn invalid_fields(errors: Vec<FieldError>) -> Self {
        let detail = match &errors[..] {
            [one] if one.field.is_empty() => one.message.clone(),
            [one] => format!("`{}`: {}", one.field, one.message),
            many => format!("{} fields are not valid", many.len()),
        };
        Problem { errors, ..Problem::new(ProblemCode::InvalidFields, detail) }
    }
}
