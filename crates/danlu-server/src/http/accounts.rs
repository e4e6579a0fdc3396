//! Accounts, tokens, members, the audit.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use danlu_core::Trigger;
use danlu_core::authorization::Action;
use danlu_store::AuditFilter;
use danlu_types::account::AccountName;
use danlu_types::api::{
    AccountChange, AccountView, AuditEntry, AuditQuery, AuditVerification, Invitation, JobsOfAccount,
    MadeToken, MemberView, NewAccount, NewRole, NewToken, Page, TokenView, VerificationQuery, Whoami,
    WithProof,
};
use danlu_types::{Problem, ProblemCode};
use serde::Deserialize;
use utoipa::IntoParams;

use super::Context;
use super::extract::{ApiError, Body, OptionalBody, PathParams, Query, without_nul};
use crate::accounts::{Caller, Visitor, require_of_platform};
use crate::app::store_problem;

/// Who asks
#[utoipa::path(get, path = "/whoami", tag = "accounts", responses((status = 200, body = Whoami)))]
pub(crate) async fn whoami(State(context): State<Context>, caller: Caller) -> Result<Json<Whoami>, ApiError> {
    Ok(Json(context.app.directory.whoami(&caller)?))
}

/// List accounts
#[utoipa::path(get, path = "/accounts", tag = "accounts", responses((status = 200, body = Page<AccountView>)))]
pub(crate) async fn list_accounts(
    State(context): State<Context>,
    caller: Caller,
) -> Result<Json<Page<AccountView>>, ApiError> {
    require_of_platform(&caller, Action::RunAccounts)?;
    Ok(Json(Page { items: context.app.directory.accounts(), next: None }))
}

/// Make an account
///
/// Without a password, the answer has a secret by which its owner sets one.
#[utoipa::path(post, path = "/accounts", tag = "accounts", request_body = NewAccount, responses(
    (status = 201, body = Invitation), (status = 409, body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn create_account(
    State(context): State<Context>,
    caller: Caller,
    Body(new): Body<NewAccount>,
) -> Result<(StatusCode, Json<Invitation>), ApiError> {
    require_of_platform(&caller, Action::RunAccounts)?;
    Ok((StatusCode::CREATED, Json(context.app.directory.create_account(&caller, new).await?)))
}

/// Show an account
#[utoipa::path(get, path = "/accounts/{name}", tag = "accounts", params(("name" = String, Path)), responses(
    (status = 200, body = AccountView), (status = 404, body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn show_account(
    State(context): State<Context>,
    caller: Caller,
    PathParams(name): PathParams<AccountName>,
) -> Result<Json<AccountView>, ApiError> {
    Ok(Json(context.app.directory.account(&caller, &name)?))
}

/// Change an account: approve it, disable it, make it an administrator's
///
/// Asks for a proof where it becomes an administrator's.
#[utoipa::path(patch, path = "/accounts/{name}", tag = "accounts", params(("name" = String, Path)),
    request_body = AccountChange, responses(
    (status = 200, body = AccountView), (status = 404, body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn change_account(
    State(context): State<Context>,
    caller: Caller,
    visitor: Visitor,
    PathParams(name): PathParams<AccountName>,
    Body(change): Body<AccountChange>,
) -> Result<Json<AccountView>, ApiError> {
    let stop_jobs = change.jobs == Some(JobsOfAccount::Stop);
    let view = context.app.directory.change_account(&caller, &name, change, &visitor).await?;
    if stop_jobs {
        stop_jobs_of(&context, &caller, &name).await;
    }
    Ok(Json(view))
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct DeleteQuery {
    /// Stop what the account has waiting and running; otherwise it runs to its end.
    #[serde(default)]
    stop_jobs: bool,
}

/// Delete an account, with its tokens and its roles
#[utoipa::path(delete, path = "/accounts/{name}", tag = "accounts", params(("name" = String, Path), DeleteQuery),
    responses((status = 204), (status = 404, body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn delete_account(
    State(context): State<Context>,
    caller: Caller,
    PathParams(name): PathParams<AccountName>,
    Query(query): Query<DeleteQuery>,
) -> Result<StatusCode, ApiError> {
    require_of_platform(&caller, Action::RunAccounts)?;
    context.app.directory.delete_account(&caller, &name).await?;
    // Its own workspace may have had rules.
    context.app.share_anew().await;
    if query.stop_jobs {
        stop_jobs_of(&context, &caller, &name).await;
    }
    Ok(StatusCode::NO_CONTENT)
}

async fn stop_jobs_of(context: &Context, caller: &Caller, name: &AccountName) {
    let own: Vec<_> = {
        let live_state = context.app.live_state.read();
        live_state.jobs().filter(|job| job.owner == name.as_str()).map(|job| job.id).collect()
    };
    for id in own {
        // One that has just ended needs no stopping.
        let _ = context.app.change(id, Trigger::Stop { by: caller.name(), grace: None }).await;
    }
}

/// List an account's tokens and sessions
#[utoipa::path(get, path = "/accounts/{name}/tokens", tag = "accounts", params(("name" = String, Path)), responses(
    (status = 200, body = Page<TokenView>), (status = 404, body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn tokens(
    State(context): State<Context>,
    caller: Caller,
    PathParams(name): PathParams<AccountName>,
) -> Result<Json<Page<TokenView>>, ApiError> {
    Ok(Json(Page { items: context.app.directory.tokens(&caller, &name)?, next: None }))
}

/// Make a token for one's programs
///
/// Asks for the account's password, and for a code where it has an authenticator. A token that makes another shows nothing, and
/// what it makes ends with it.
#[utoipa::path(post, path = "/tokens", tag = "accounts", request_body = NewToken, responses(
    (status = 201, body = MadeToken), (status = 422, body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn make_token(
    State(context): State<Context>,
    caller: Caller,
    visitor: Visitor,
    Body(new): Body<NewToken>,
) -> Result<(StatusCode, Json<MadeToken>), ApiError> {
    Ok((StatusCode::CREATED, Json(context.app.directory.make_token(&caller, new, &visitor).await?)))
}

/// Revoke a token, or end a session
#[utoipa::path(delete, path = "/accounts/{name}/tokens/{id}", tag = "accounts",
    params(("name" = String, Path), ("id" = String, Path)), responses(
    (status = 204), (status = 404, body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn revoke_token(
    State(context): State<Context>,
    caller: Caller,
    PathParams((name, id)): PathParams<(AccountName, String)>,
) -> Result<StatusCode, ApiError> {
    context.app.directory.revoke(&caller, &name, &id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Give a token another secret
///
/// The old one ends. What it may do stays, and it is good for as long as it was when it was made. Asks for a proof as making one does.
#[utoipa::path(post, path = "/accounts/{name}/tokens/{id}/rotation", tag = "accounts",
    params(("name" = String, Path), ("id" = String, Path)), request_body = Option<WithProof>, responses((status = 200, body = MadeToken),
    (status = 404, body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn rotate_token(
    State(context): State<Context>,
    caller: Caller,
    visitor: Visitor,
    PathParams((name, id)): PathParams<(AccountName, String)>,
    OptionalBody(WithProof { proof }): OptionalBody<WithProof>,
) -> Result<Json<MadeToken>, ApiError> {
    Ok(Json(context.app.directory.rotate(&caller, &name, &id, proof, &visitor).await?))
}

/// List who was put into a workspace
#[utoipa::path(get, path = "/workspaces/{name}/members", tag = "accounts", params(("name" = String, Path)), responses(
    (status = 200, body = Page<MemberView>), (status = 404, body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn members(
    State(context): State<Context>,
    caller: Caller,
    PathParams(name): PathParams<String>,
) -> Result<Json<Page<MemberView>>, ApiError> {
    Ok(Json(Page { items: context.app.directory.members(&caller, &name)?, next: None }))
}

/// Put somebody into a workspace, or give them another role there
#[utoipa::path(put, path = "/workspaces/{name}/members/{account}", tag = "accounts",
    params(("name" = String, Path), ("account" = String, Path)), request_body = NewRole, responses(
    (status = 204), (status = 404, body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn set_role(
    State(context): State<Context>,
    caller: Caller,
    PathParams((name, account)): PathParams<(String, AccountName)>,
    Body(NewRole { role }): Body<NewRole>,
) -> Result<StatusCode, ApiError> {
    context.app.directory.set_role(&caller, &name, &account, Some(role)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Take somebody out of a workspace
#[utoipa::path(delete, path = "/workspaces/{name}/members/{account}", tag = "accounts",
    params(("name" = String, Path), ("account" = String, Path)), responses(
    (status = 204), (status = 404, body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn remove_member(
    State(context): State<Context>,
    caller: Caller,
    PathParams((name, account)): PathParams<(String, AccountName)>,
) -> Result<StatusCode, ApiError> {
    context.app.directory.set_role(&caller, &name, &account, None).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Check that nobody has changed the audit, or what it is about, behind the server's back
///
/// Reads the whole audit. An end that was cut off, entries and columns that were changed, and accounts, tokens, roles and rules
/// that were changed without an entry are found; what was found at a start of the server is told again until it is `known`.
#[utoipa::path(get, path = "/audit/verification", tag = "accounts", operation_id = "verify_audit", params(VerificationQuery),
    responses((status = 200, body = AuditVerification)))]
pub(crate) async fn verify_audit(
    State(context): State<Context>,
    caller: Caller,
    Query(query): Query<VerificationQuery>,
) -> Result<Json<AuditVerification>, ApiError> {
    require_of_platform(&caller, Action::SeeAudit)?;
    let known = query.known.unwrap_or_default();
    Ok(Json(context.app.trail.verify(&*context.app.store, known).await.map_err(store_problem)?))
}

/// List what was done by whom, oldest first
#[utoipa::path(get, path = "/audit", tag = "accounts", params(AuditQuery),
    responses((status = 200, body = Page<AuditEntry>)))]
pub(crate) async fn audit(
    State(context): State<Context>,
    caller: Caller,
    Query(query): Query<AuditQuery>,
) -> Result<Json<Page<AuditEntry>>, ApiError> {
    require_of_platform(&caller, Action::SeeAudit)?;
    let after = query.cursor.as_deref().map_or(Ok(0), str::parse).map_err(|_| {
        ApiError(Problem::new(ProblemCode::BadRequest, "invalid `cursor`: pass `next` of an earlier page"))
    })?;
    without_nul([("by", query.by.as_ref()), ("subject", query.subject.as_ref())])?;
    let limit = query.limit.unwrap_or(100).clamp(1, 1000);
    let filter = AuditFilter { by: query.by, subject: query.subject, after, limit: limit + 1 };
    let mut items = context.app.store.audit_list(&filter).await.map_err(store_problem)?;
    let more = items.len() > limit as usize;
    items.truncate(limit as usize);
    let next = if more { items.last().map(|entry| entry.number.to_string()) } else { None };
    Ok(Json(Page { items, next }))
}
