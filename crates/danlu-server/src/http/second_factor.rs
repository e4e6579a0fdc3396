//! Authenticators: enrol, confirm, remove.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use danlu_types::Problem;
use danlu_types::account::AccountName;
use danlu_types::api::{NewTotp, RecoveryCodes, TotpCode, TotpEnrolment, TotpRemoval};

use super::Context;
use super::extract::{ApiError, Body, OptionalBody, PathParams};
use crate::accounts::{Caller, Visitor};

/// Begin to use an authenticator
///
/// Asks for the account's password, where it has one. Nothing is asked for at sign-in until a code was confirmed.
#[utoipa::path(post, path = "/accounts/{name}/totp", tag = "accounts", params(("name" = String, Path)),
    request_body = Option<NewTotp>, responses((status = 201, body = TotpEnrolment),
    (status = 409, body = Problem, content_type = "application/problem+json"),
    (status = 422, body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn enrol_totp(
    State(context): State<Context>,
    caller: Caller,
    visitor: Visitor,
    PathParams(name): PathParams<AccountName>,
    OptionalBody(new): OptionalBody<NewTotp>,
) -> Result<(StatusCode, Json<TotpEnrolment>), ApiError> {
    Ok((StatusCode::CREATED, Json(context.app.directory.enrol(&caller, &name, new, &visitor).await?)))
}

/// Confirm an authenticator with one of its codes
#[utoipa::path(post, path = "/accounts/{name}/totp/confirmation", tag = "accounts", params(("name" = String, Path)),
    request_body = TotpCode, responses((status = 200, body = RecoveryCodes),
    (status = 422, body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn confirm_totp(
    State(context): State<Context>,
    caller: Caller,
    PathParams(name): PathParams<AccountName>,
    Body(TotpCode { code }): Body<TotpCode>,
) -> Result<Json<RecoveryCodes>, ApiError> {
    Ok(Json(context.app.directory.confirm(&caller, &name, &code).await?))
}

/// Stop using an authenticator
///
/// One's own needs a code; administrators take others' away where they were lost, with a proof of their own.
#[utoipa::path(delete, path = "/accounts/{name}/totp", tag = "accounts", params(("name" = String, Path)),
    request_body = Option<TotpRemoval>, responses((status = 204),
    (status = 422, body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn remove_totp(
    State(context): State<Context>,
    caller: Caller,
    visitor: Visitor,
    PathParams(name): PathParams<AccountName>,
    OptionalBody(removal): OptionalBody<TotpRemoval>,
) -> Result<StatusCode, ApiError> {
    context.app.directory.remove_second_factor(&caller, &name, removal, &visitor).await?;
    Ok(StatusCode::NO_CONTENT)
}
