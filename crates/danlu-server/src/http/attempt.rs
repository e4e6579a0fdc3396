//! What the programs of a job may ask with the token of their attempt, and nobody else.

use axum::Json;
use axum::extract::{FromRequestParts, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use danlu_core::report::read_line;
use danlu_types::api::{NewReports, OwnAttempt};
use danlu_types::{FieldError, Problem, ProblemCode};

use super::Context;
use super::extract::{ApiError, Body};
use crate::attempt_tokens::{ReportError, Speaker};

impl<S: Sync> FromRequestParts<S> for Speaker {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        parts.extensions.get::<Speaker>().cloned().ok_or_else(|| {
            let detail = "this address is for the programs of a running job";
            ApiError(
                Problem::new(ProblemCode::Forbidden, detail)
                    .with_hint("they find their token in `DANLU_TOKEN`"),
            )
        })
    }
}

/// See what the token of an attempt speaks for
#[utoipa::path(get, path = "/attempt", tag = "attempt", responses((status = 200, body = OwnAttempt)))]
pub(crate) async fn own_attempt(speaker: Speaker) -> Json<OwnAttempt> {
    let Speaker { worker, job } = speaker;
    Json(OwnAttempt {
        job: worker.job,
        attempt: worker.attempt,
        worker: worker.worker,
        name: job.spec.name.clone(),
        workspace: job.spec.workspace.clone(),
    })
}

/// Report how the program is doing
///
/// The lines that a program would print otherwise, such as `::danlu progress 0.42`: for programs whose standard output is
/// not read.
#[utoipa::path(post, path = "/attempt/reports", tag = "attempt", request_body = NewReports, responses(
    (status = 204), (status = 422, body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn report_attempt(
    State(context): State<Context>,
    speaker: Speaker,
    Body(reports): Body<NewReports>,
) -> Result<StatusCode, ApiError> {
    let wrong = reports.lines.iter().position(|line| read_line(line.as_bytes()).is_none());
    if let Some(number) = wrong {
        let message = "is no report; write `::danlu progress 0.42`, `::danlu checkpoint step=300` or \
                       `::danlu metric loss=0.31 step=12`";
        return Err(Problem::invalid_fields(vec![FieldError::new(format!("lines.{number}"), message)]).into());
    }
    match context.app.report(&speaker, &reports).await {
        Ok(()) => Ok(StatusCode::NO_CONTENT),
        Err(ReportError::Refused(why)) => {
            Err(Problem::invalid_fields(vec![FieldError::new("rank", why)]).into())
        }
        Err(error) => Err(Problem::new(ProblemCode::Unavailable, crate::error_chain(&error))
            .with_hint("the worker is only beginning, or about to end; try again")
            .into()),
    }
}
