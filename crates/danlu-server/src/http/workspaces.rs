//! Workspaces: who shares the cluster, by which rules, and where each stands with what it was promised.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use danlu_core::authorization::Action;
use danlu_types::api::{Page, QuotaQuery, QuotaView, SharingRules, WorkspaceView};
use danlu_types::{Problem, Workspace};

use super::Context;
use super::extract::{ApiError, Body, PathParams, Query};
use crate::accounts::{Caller, require_of_platform};

/// List workspaces with what they may use, use, borrow and lend
#[utoipa::path(get, path = "/workspaces", tag = "workspaces", operation_id = "workspaces", responses((status = 200, body = Page<WorkspaceView>)))]
pub(crate) async fn list(
    State(context): State<Context>,
    caller: Caller,
) -> Result<Json<Page<WorkspaceView>>, ApiError> {
    require_of_platform(&caller, Action::SeeCluster)?;
    Ok(Json(Page { items: context.app.workspaces_seen_by(&caller), next: None }))
}

/// Show a workspace
#[utoipa::path(get, path = "/workspaces/{name}", tag = "workspaces", operation_id = "show_workspace", params(("name" = String, Path)), responses(
    (status = 200, body = WorkspaceView), (status = 404, body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn show(
    State(context): State<Context>,
    caller: Caller,
    PathParams(name): PathParams<String>,
) -> Result<Json<WorkspaceView>, ApiError> {
    require_of_platform(&caller, Action::SeeCluster)?;
    Ok(Json(context.app.workspace(&caller, &name)?))
}

/// Make a workspace, or give it other rules
///
/// Its owners set what concerns its people; what it may take of the cluster is set by administrators. The rules hold from
/// the next look at the queue on; what runs, runs on.
#[utoipa::path(put, path = "/workspaces/{name}", tag = "workspaces", operation_id = "set_workspace", params(("name" = String, Path)),
    request_body = Workspace, responses(
    (status = 200, body = WorkspaceView), (status = 422, body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn set(
    State(context): State<Context>,
    caller: Caller,
    PathParams(name): PathParams<String>,
    Body(rules): Body<Workspace>,
) -> Result<Json<WorkspaceView>, ApiError> {
    context.app.directory.set_workspace(&caller, &name, rules).await?;
    context.app.share_anew().await;
    Ok(Json(context.app.workspace(&caller, &name)?))
}

/// Take a workspace away, with the roles of its people
///
/// Refused while jobs of it wait or run.
#[utoipa::path(delete, path = "/workspaces/{name}", tag = "workspaces", operation_id = "delete_workspace", params(("name" = String, Path)), responses(
    (status = 204), (status = 409, body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn delete(
    State(context): State<Context>,
    caller: Caller,
    PathParams(name): PathParams<String>,
) -> Result<StatusCode, ApiError> {
    context.app.delete_workspace(&caller, &name).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// List where workspaces stand with what they were promised: used, borrowed, lent, broken, free
#[utoipa::path(get, path = "/quota", tag = "workspaces", params(QuotaQuery), responses(
    (status = 200, body = Page<QuotaView>), (status = 404, body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn quota(
    State(context): State<Context>,
    caller: Caller,
    Query(query): Query<QuotaQuery>,
) -> Result<Json<Page<QuotaView>>, ApiError> {
    require_of_platform(&caller, Action::SeeCluster)?;
    let quotas = context.app.quota(&caller, query.workspace.as_deref()).await?;
    Ok(Json(Page { items: context.app.sight_of(&caller).quotas(quotas), next: None }))
}

/// Show what holds for all workspaces
#[utoipa::path(get, path = "/sharing", tag = "workspaces", responses((status = 200, body = SharingRules)))]
pub(crate) async fn sharing(
    State(context): State<Context>,
    caller: Caller,
) -> Result<Json<SharingRules>, ApiError> {
    require_of_platform(&caller, Action::SeeCluster)?;
    Ok(Json(SharingRules::from(&context.app.directory.sharing())))
}

/// Say what holds for all workspaces: how guarantees are lent, and the rules of everybody's own
#[utoipa::path(put, path = "/sharing", tag = "workspaces", request_body = SharingRules, responses(
    (status = 204), (status = 422, body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn set_sharing(
    State(context): State<Context>,
    caller: Caller,
    Body(rules): Body<SharingRules>,
) -> Result<StatusCode, ApiError> {
    context.app.directory.set_sharing(&caller, rules).await?;
    context.app.share_anew().await;
    Ok(StatusCode::NO_CONTENT)
}
