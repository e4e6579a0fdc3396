//! What would have been.

use axum::Json;
use axum::extract::State;
use danlu_core::authorization::Action;
use danlu_sim::Comparison;
use danlu_types::Problem;
use danlu_types::api::SimulationRequest;

use super::Context;
use super::extract::{ApiError, Body};
use crate::accounts::{Caller, require_of_platform};

/// Replay recorded jobs under other rules or on other machines
///
/// The answer is what `danlu sim replay --json` prints: the figures and curves of each run. One simulation runs at a time, for
/// a minute at most.
#[utoipa::path(post, path = "/simulations", tag = "cluster", request_body = SimulationRequest, responses(
    (status = 200, body = Object), (status = 422, body = Problem, content_type = "application/problem+json"),
    (status = 429, body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn simulate(
    State(context): State<Context>,
    caller: Caller,
    Body(request): Body<SimulationRequest>,
) -> Result<Json<Comparison>, ApiError> {
    require_of_platform(&caller, Action::Simulate)?;
    Ok(Json(context.app.simulate(&caller, request).await?))
}
