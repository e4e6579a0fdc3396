//! Accounts, sign-in, tokens, members, the audit.

use axum::Json;
use axum::extract::State;
use axum::http::header::SET_COOKIE;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use danlu_core::Event;
use danlu_core::policy::Action;
use danlu_store::AuditFilter;
use danlu_types::account::AccountName;
use danlu_types::api::{
    AccountChange, AccountView, AuditEntry, AuditQuery, Invitation, MadeToken, MemberView, NewAccount,
    NewPassword, NewRole, NewToken, Page, SignIn, TokenView, Whoami,
};
use danlu_types::{Problem, ProblemCode};
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use super::Context;
use super::auth::{From, SESSION_COOKIE};
use super::extract::{Body, Failure, Path, Query};
use crate::app::store_problem;
use crate::people::{Asker, require_of_platform};

/// What a sign-in answers beside its cookie: for programs, the session's secret too.
#[derive(Debug, serde::Serialize, ToSchema)]
pub(crate) struct SignedIn {
    #[serde(flatten)]
    whoami: Whoami,
    /// A bearer token with the session's life.
    secret: String,
}

/// Sign in with a name and a password
///
/// Sets a cookie for browsers, and answers with the same secret for others.
#[utoipa::path(post, path = "/session", tag = "accounts", request_body = SignIn, security(()), responses(
    (status = 200, body = SignedIn), (status = 401, body = Problem, content_type = "application/problem+json"),
    (status = 429, body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn sign_in(
    State(context): State<Context>,
    From(from): From,
    Body(request): Body<SignIn>,
) -> Result<Response, Failure> {
    let (secret, asker) = context.app.directory.sign_in(request, from).await?;
    let whoami = context.app.directory.whoami(&asker)?;
    let cookie = format!("{SESSION_COOKIE}={secret}; HttpOnly; SameSite=Lax; Path=/; Max-Age=604800");
    let mut response = Json(SignedIn { whoami, secret }).into_response();
    if let Ok(cookie) = HeaderValue::from_str(&cookie) {
        response.headers_mut().insert(SET_COOKIE, cookie);
    }
    Ok(response)
}

/// Sign out: end the session of this request
#[utoipa::path(delete, path = "/session", tag = "accounts", responses((status = 204)))]
pub(crate) async fn sign_out(State(context): State<Context>, asker: Asker) -> Result<Response, Failure> {
    context.app.directory.sign_out(&asker).await?;
    let gone = format!("{SESSION_COOKIE}=; HttpOnly; SameSite=Lax; Path=/; Max-Age=0");
    let mut response = StatusCode::NO_CONTENT.into_response();
    if let Ok(cookie) = HeaderValue::from_str(&gone) {
        response.headers_mut().insert(SET_COOKIE, cookie);
    }
    Ok(response)
}

/// Ask for an account
///
/// Where registration is open; the account works once somebody has approved it.
#[utoipa::path(post, path = "/registration", tag = "accounts", request_body = NewAccount, security(()), responses(
    (status = 201, body = AccountView), (status = 403, body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn register(
    State(context): State<Context>,
    From(from): From,
    Body(new): Body<NewAccount>,
) -> Result<(StatusCode, Json<AccountView>), Failure> {
    Ok((
        StatusCode::CREATED,
        Json(context.app.directory.register_self(new, from, &context.app.planner.sharing()).await?),
    ))
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PasswordOf {
    account: AccountName,
    password: String,
    #[serde(default)]
    current: Option<String>,
    #[serde(default)]
    link: Option<String>,
}

/// Set a password, with the present one or with the secret of a link
#[utoipa::path(post, path = "/password", tag = "accounts", request_body = PasswordOf, security(()), responses(
    (status = 204), (status = 401, body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn set_password(
    State(context): State<Context>,
    From(from): From,
    Body(PasswordOf { account, password, current, link }): Body<PasswordOf>,
) -> Result<StatusCode, Failure> {
    context.app.directory.set_password(&account, NewPassword { password, current, link }, from).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Who asks
#[utoipa::path(get, path = "/whoami", tag = "accounts", responses((status = 200, body = Whoami)))]
pub(crate) async fn whoami(State(context): State<Context>, asker: Asker) -> Result<Json<Whoami>, Failure> {
    Ok(Json(context.app.directory.whoami(&asker)?))
}

/// List accounts
#[utoipa::path(get, path = "/accounts", tag = "accounts", responses((status = 200, body = Page<AccountView>)))]
pub(crate) async fn list_accounts(
    State(context): State<Context>,
    asker: Asker,
) -> Result<Json<Page<AccountView>>, Failure> {
    require_of_platform(&asker, Action::RunAccounts)?;
    Ok(Json(Page { items: context.app.directory.accounts(), next: None }))
}

/// Make an account
///
/// Without a password, the answer has a secret by which its owner sets one.
#[utoipa::path(post, path = "/accounts", tag = "accounts", request_body = NewAccount, responses(
    (status = 201, body = Invitation), (status = 409, body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn create_account(
    State(context): State<Context>,
    asker: Asker,
    Body(new): Body<NewAccount>,
) -> Result<(StatusCode, Json<Invitation>), Failure> {
    require_of_platform(&asker, Action::RunAccounts)?;
    Ok((
        StatusCode::CREATED,
        Json(context.app.directory.create_account(&asker, new, &context.app.planner.sharing()).await?),
    ))
}

/// Show an account
#[utoipa::path(get, path = "/accounts/{name}", tag = "accounts", params(("name" = String, Path)), responses(
    (status = 200, body = AccountView), (status = 404, body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn show_account(
    State(context): State<Context>,
    asker: Asker,
    Path(name): Path<AccountName>,
) -> Result<Json<AccountView>, Failure> {
    Ok(Json(context.app.directory.account(&asker, &name)?))
}

/// Change an account: approve it, disable it, make it an administrator's
#[utoipa::path(patch, path = "/accounts/{name}", tag = "accounts", params(("name" = String, Path)),
    request_body = AccountChange, responses(
    (status = 200, body = AccountView), (status = 404, body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn change_account(
    State(context): State<Context>,
    asker: Asker,
    Path(name): Path<AccountName>,
    Body(change): Body<AccountChange>,
) -> Result<Json<AccountView>, Failure> {
    Ok(Json(context.app.directory.change_account(&asker, &name, change).await?))
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
    asker: Asker,
    Path(name): Path<AccountName>,
    Query(query): Query<DeleteQuery>,
) -> Result<StatusCode, Failure> {
    require_of_platform(&asker, Action::RunAccounts)?;
    context.app.directory.delete_account(&asker, &name).await?;
    context.app.secrets_forget(&asker, name.as_str()).await?;
    if query.stop_jobs {
        let own = context
            .app
            .book
            .read()
            .jobs()
            .filter(|job| job.owner == name.as_str())
            .map(|job| job.id)
            .collect();
        let own: Vec<_> = own;
        for id in own {
            // One that has just ended needs no stopping.
            let _ = context.app.change(id, Event::Stop { by: asker.name(), grace: None }).await;
        }
    }
    Ok(StatusCode::NO_CONTENT)
}

/// Make a link by which an account's owner sets a new password
#[utoipa::path(post, path = "/accounts/{name}/password_link", tag = "accounts", params(("name" = String, Path)),
    responses((status = 200, body = Invitation), (status = 404, body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn password_link(
    State(context): State<Context>,
    asker: Asker,
    Path(name): Path<AccountName>,
) -> Result<Json<Invitation>, Failure> {
    require_of_platform(&asker, Action::RunAccounts)?;
    Ok(Json(context.app.directory.password_link(&asker, &name).await?))
}

/// List an account's tokens and sessions
#[utoipa::path(get, path = "/accounts/{name}/tokens", tag = "accounts", params(("name" = String, Path)), responses(
    (status = 200, body = Page<TokenView>), (status = 404, body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn tokens(
    State(context): State<Context>,
    asker: Asker,
    Path(name): Path<AccountName>,
) -> Result<Json<Page<TokenView>>, Failure> {
    Ok(Json(Page { items: context.app.directory.tokens(&asker, &name)?, next: None }))
}

/// Make a token for one's programs
#[utoipa::path(post, path = "/tokens", tag = "accounts", request_body = NewToken, responses(
    (status = 201, body = MadeToken), (status = 422, body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn make_token(
    State(context): State<Context>,
    asker: Asker,
    Body(new): Body<NewToken>,
) -> Result<(StatusCode, Json<MadeToken>), Failure> {
    Ok((StatusCode::CREATED, Json(context.app.directory.make_token(&asker, new).await?)))
}

/// Revoke a token, or end a session
#[utoipa::path(delete, path = "/accounts/{name}/tokens/{id}", tag = "accounts",
    params(("name" = String, Path), ("id" = String, Path)), responses(
    (status = 204), (status = 404, body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn revoke_token(
    State(context): State<Context>,
    asker: Asker,
    Path((name, id)): Path<(AccountName, String)>,
) -> Result<StatusCode, Failure> {
    context.app.directory.revoke(&asker, &name, &id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// List who was put into a workspace
#[utoipa::path(get, path = "/workspaces/{name}/members", tag = "accounts", params(("name" = String, Path)), responses(
    (status = 200, body = Page<MemberView>), (status = 404, body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn members(
    State(context): State<Context>,
    asker: Asker,
    Path(name): Path<String>,
) -> Result<Json<Page<MemberView>>, Failure> {
    Ok(Json(Page { items: context.app.directory.members(&asker, &name)?, next: None }))
}

/// Put somebody into a workspace, or give them another role there
#[utoipa::path(put, path = "/workspaces/{name}/members/{account}", tag = "accounts",
    params(("name" = String, Path), ("account" = String, Path)), request_body = NewRole, responses(
    (status = 204), (status = 404, body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn set_role(
    State(context): State<Context>,
    asker: Asker,
    Path((name, account)): Path<(String, AccountName)>,
    Body(NewRole { role }): Body<NewRole>,
) -> Result<StatusCode, Failure> {
    context.app.directory.set_role(&asker, &name, &account, Some(role)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Take somebody out of a workspace
#[utoipa::path(delete, path = "/workspaces/{name}/members/{account}", tag = "accounts",
    params(("name" = String, Path), ("account" = String, Path)), responses(
    (status = 204), (status = 404, body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn remove_member(
    State(context): State<Context>,
    asker: Asker,
    Path((name, account)): Path<(String, AccountName)>,
) -> Result<StatusCode, Failure> {
    context.app.directory.set_role(&asker, &name, &account, None).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// List what was done by whom, oldest first
#[utoipa::path(get, path = "/audit", tag = "accounts", params(AuditQuery),
    responses((status = 200, body = Page<AuditEntry>)))]
pub(crate) async fn audit(
    State(context): State<Context>,
    asker: Asker,
    Query(query): Query<AuditQuery>,
) -> Result<Json<Page<AuditEntry>>, Failure> {
    require_of_platform(&asker, Action::SeeAudit)?;
    let after = query.cursor.as_deref().map_or(Ok(0), str::parse).map_err(|_| {
        Failure(Problem::new(ProblemCode::BadRequest, "`cursor` is not one that this server gave"))
    })?;
    let limit = query.limit.unwrap_or(100).clamp(1, 1000);
    let filter = AuditFilter { by: query.by, subject: query.subject, after, limit: limit + 1 };
    let mut items = context.app.store.audit_list(&filter).await.map_err(store_problem)?;
    let more = items.len() > limit as usize;
    items.truncate(limit as usize);
    let next = if more { items.last().map(|entry| entry.number.to_string()) } else { None };
    Ok(Json(Page { items, next }))
}
