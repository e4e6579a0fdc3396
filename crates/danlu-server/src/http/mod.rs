//! The HTTP API. Handlers read the request, call one use-case, and write the answer; they decide nothing.

mod accounts;
mod attempt;
mod auth;
mod cluster;
mod code;
mod console;
mod crowding;
mod extract;
mod files;
#[cfg(test)]
mod hostile;
mod invitations;
mod jobs;
mod keys;
mod logs;
mod metrics;
mod migrations;
mod oidc;
mod second_factor;
mod secrets;
mod series;
mod session;
mod sidecar;
mod sign_in;
mod simulations;
mod strict;
mod workspaces;

use std::fmt::Write as _;
use std::sync::Arc;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::HeaderValue;
use axum::http::header::{CACHE_CONTROL, STRICT_TRANSPORT_SECURITY};
use axum::middleware;
use axum::response::Response;
use axum::routing::get;
use danlu_types::{Problem, ProblemCode};
use tokio_util::sync::CancellationToken;
use tower_http::catch_panic::CatchPanicLayer;
use utoipa::OpenApi;
use utoipa::openapi::RefOr;
use utoipa::openapi::content::ContentBuilder;
use utoipa::openapi::response::{Response as DescribedResponse, ResponseBuilder};
use utoipa::openapi::schema::{Ref, Schema};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;
use crate::listener::ListenConfig;
use crate::listener::places::ConnectionLimits;
use crate::oidc::Oidc;
pub(crate) use crowding::refuse;
use extract::ApiError;
pub(crate) use extract::json_problem;
pub(crate) use logs::last_attempt;

/// Job files are small; anything larger is a mistake or an attack.
const LARGEST_BODY: usize = 1 << 20;

/// A year of a large cluster.
const LARGEST_TRACE: usize = 64 << 20;

/// Sidecars send large files in pieces.
const LARGEST_PIECE: usize = 8 << 20;

/// What every handler has.
#[derive(Debug, Clone)]
pub(crate) struct Context {
    pub(crate) app: Arc<App>,
    pub(crate) listen_config: Arc<ListenConfig>,
    pub(crate) oidc: Option<Arc<Oidc>>,
    pub(crate) places: Arc<ConnectionLimits>,
    /// Cancelled when the server shuts down: streams end then.
    pub(crate) stop: CancellationToken,
}

#[derive(Debug, OpenApi)]
#[openapi(
    info(
        title = "Danlu",
        description = "The API of Danlu, a training platform for shared GPUs and Ascend NPUs.",
        license(name = "Apache-2.0", identifier = "Apache-2.0")
    ),
    servers((url = "/api/v1")),
    security(("token" = [])),
    components(schemas(
        Problem,
        danlu_types::api::LogMessage,
        danlu_types::api::Hint,
        // Named by a parameter only, which is not enough for it to be found.
        danlu_types::api::FileArea,
        danlu_types::api::TreeArea
    ))
)]
struct ApiDocument;

fn api_routes() -> OpenApiRouter<Context> {
    OpenApiRouter::with_openapi(ApiDocument::openapi())
        .routes(routes!(jobs::list, jobs::submit))
        .routes(routes!(jobs::counts))
        .routes(routes!(jobs::parse))
        .routes(routes!(jobs::show, jobs::change_spec, jobs::delete))
        .routes(routes!(jobs::stop))
        .routes(routes!(jobs::hold))
        .routes(routes!(jobs::release))
        .routes(routes!(jobs::approve))
        .routes(routes!(jobs::clone))
        .routes(routes!(jobs::why))
        .routes(routes!(logs::page))
        .routes(routes!(logs::follow))
        .routes(routes!(series::metrics))
        .routes(routes!(series::samples))
        .routes(routes!(files::list))
        .routes(routes!(files::content))
        .routes(routes!(session::open))
        .routes(routes!(cluster::events))
        .routes(routes!(cluster::nodes))
        .routes(routes!(cluster::cordon))
        .routes(routes!(cluster::uncordon))
        .routes(routes!(cluster::drain))
        .routes(routes!(cluster::restore_device))
        .routes(routes!(cluster::devices))
        .routes(routes!(cluster::usage))
        .routes(routes!(metrics::show))
        .merge(
            OpenApiRouter::new()
                .routes(routes!(simulations::simulate))
                .layer(DefaultBodyLimit::max(LARGEST_TRACE)),
        )
        .routes(routes!(workspaces::list))
        .routes(routes!(workspaces::show, workspaces::set, workspaces::delete))
        .routes(routes!(workspaces::quota))
        .routes(routes!(workspaces::sharing, workspaces::set_sharing))
        .routes(routes!(cluster::hints))
        .routes(routes!(code::look, code::upload))
        .routes(routes!(migrations::migrate))
        .routes(routes!(migrations::report))
        .routes(routes!(sign_in::sign_in, sign_in::sign_out))
        .routes(routes!(invitations::register))
        .routes(routes!(sign_in::set_password))
        .routes(routes!(sign_in::sign_in_link))
        .routes(routes!(attempt::own_attempt))
        .routes(routes!(attempt::report_attempt))
        .routes(routes!(sidecar::claim))
        .routes(routes!(sidecar::allocation_file))
        .routes(routes!(sidecar::worker_news))
        .routes(routes!(sidecar::worker_code))
        .routes(routes!(sidecar::node_program))
        .routes(routes!(sidecar::list_tree))
        .merge(
            OpenApiRouter::new()
                .routes(routes!(sidecar::fetch_worker_file, sidecar::bring_worker_file))
                .routes(routes!(sidecar::fetch_from_tree, sidecar::bring_to_tree, sidecar::remove_from_tree))
                .layer(DefaultBodyLimit::max(LARGEST_PIECE)),
        )
        .routes(routes!(accounts::whoami))
        .routes(routes!(accounts::list_accounts, accounts::create_account))
        .routes(routes!(accounts::show_account, accounts::change_account, accounts::delete_account))
        .routes(routes!(sign_in::password_link))
        .routes(routes!(accounts::tokens))
        .routes(routes!(accounts::make_token))
        .routes(routes!(accounts::revoke_token))
        .routes(routes!(oidc::ways_in))
        .routes(routes!(oidc::oidc_start))
        .routes(routes!(oidc::oidc_callback))
        .routes(routes!(oidc::oidc_link))
        .routes(routes!(oidc::identities))
        .routes(routes!(oidc::unlink_identity))
        .routes(routes!(second_factor::enrol_totp, second_factor::remove_totp))
        .routes(routes!(second_factor::confirm_totp))
        .routes(routes!(accounts::rotate_token))
        .routes(routes!(keys::ssh_keys, keys::add_ssh_key))
        .routes(routes!(keys::remove_ssh_key))
        .routes(routes!(keys::s3_keys, keys::make_s3_key))
        .routes(routes!(keys::remove_s3_key))
        .routes(routes!(invitations::list_invitations, invitations::invite))
        .routes(routes!(invitations::disinvite))
        .routes(routes!(invitations::applicants))
        .routes(routes!(invitations::admit, invitations::turn_away))
        .routes(routes!(accounts::members))
        .routes(routes!(accounts::set_role, accounts::remove_member))
        .routes(routes!(secrets::list_secrets))
        .routes(routes!(secrets::set_secret, secrets::delete_secret))
        .routes(routes!(accounts::audit))
        .routes(routes!(accounts::verify_audit))
}

/// The API's description, as committed in `docs/openapi.json`.
pub fn openapi_json() -> String {
    let (_, mut document) = api_routes().split_for_parts();
    let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build();
    if let Some(components) = &mut document.components {
        components.add_security_scheme("token", SecurityScheme::Http(bearer));
        // A view of a workspace is its rules and more, which rules that are described as complete would forbid. Unknown
        // ones are refused all the same.
        if let Some(RefOr::T(Schema::Object(rules))) = components.schemas.get_mut("Workspace") {
            rules.additional_properties = None;
        }
    }
    for item in document.paths.paths.values_mut() {
        let methods =
            [&mut item.get, &mut item.put, &mut item.post, &mut item.delete, &mut item.patch, &mut item.head];
        for operation in methods.into_iter().flatten() {
            operation.responses.responses.insert("default".to_owned(), problem_response().into());
        }
    }
    let text = document.to_pretty_json().expect("the document is built from plain values");
    with_unsigned_numbers(&text)
}

/// `int32` and `int64` are said of numbers that may be larger and never negative: where nothing else bounds them, what they are
/// does.
fn with_unsigned_numbers(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let depth = |line: &str| line.len() - line.trim_start().len();
    let mut exact = String::with_capacity(text.len());
    let is_unbounded = |at: usize, line: &str| {
        // The rest of the same schema, up to the brace that closes it.
        let rest = lines[at + 1..].iter().take_while(|later| depth(later) >= depth(line));
        let own: Vec<&str> =
            rest.filter(|later| depth(later) == depth(line)).map(|later| later.trim()).collect();
        own.iter().any(|key| key.trim_end_matches(',') == "\"minimum\": 0")
            && !own.iter().any(|key| key.starts_with("\"maximum\""))
    };
    for (at, line) in lines.iter().enumerate() {
        let most = match line.trim() {
            "\"format\": \"int32\"," => Some(u64::from(u32::MAX)),
            "\"format\": \"int64\"," => Some(u64::MAX),
            _ => None,
        };
        if let Some(most) = most.filter(|_| is_unbounded(at, line)) {
            exact.push_str(&" ".repeat(depth(line)));
            // Writing into a text cannot fail.
            let _ = write!(exact, "\"maximum\": {most},");
        } else {
            exact.push_str(line);
        }
        exact.push('\n');
    }
    exact
}

/// Whatever is wrong with a request is said in one form, so it is described in one place.
fn problem_response() -> DescribedResponse {
    let content = ContentBuilder::new().schema(Some(Ref::from_schema_name("Problem"))).build();
    ResponseBuilder::new()
        .description("What is wrong; `code` tells problems apart")
        .content("application/problem+json", content)
        .build()
}

pub(crate) fn router(
    app: Arc<App>,
    listen_config: Arc<ListenConfig>,
    oidc: Option<Arc<Oidc>>,
    places: Arc<ConnectionLimits>,
    stop: CancellationToken,
) -> Router {
    let context = Context { app, listen_config, oidc, places, stop };
    let (api, _) = api_routes().split_for_parts();
    let api = api
        .route("/openapi.json", get(|| async { ([("content-type", "application/json")], openapi_json()) }))
        .fallback(no_such_address)
        .method_not_allowed_fallback(no_such_method)
        .layer(DefaultBodyLimit::max(LARGEST_BODY))
        .layer(middleware::from_fn_with_state(context.clone(), auth::identify))
        .layer(middleware::map_response(keep_nowhere));
    // Where those look who gather figures.
    let metrics = Router::new()
        .route("/metrics", get(metrics::show))
        .layer(middleware::from_fn_with_state(context.clone(), auth::identify))
        .layer(middleware::map_response(keep_nowhere));
    let insist = middleware::map_response_with_state(context.clone(), insist_on_tls);
    let router = Router::new()
        .nest("/api/v1", api)
        .route("/healthz", get(cluster::health))
        .route("/readyz", get(cluster::ready))
        .merge(metrics)
        .fallback(console::answer)
        .layer(CatchPanicLayer::custom(on_panic))
        .layer(insist)
        .with_state(context);
    // Around everything, because a router looks at an address before its layers do.
    Router::new().fallback_service(router).layer(middleware::map_request(from_old_address))
}

/// Sidecars were called couriers: those that an earlier version started for jobs that still run ask under that name.
async fn from_old_address(mut request: Request) -> Request {
    let rest = request.uri().path_and_query().and_then(|path| path.as_str().strip_prefix("/api/v1/courier/"));
    if let Some(Ok(address)) = rest.map(|rest| format!("/api/v1/sidecar/{rest}").parse()) {
        *request.uri_mut() = address;
    }
    request
}

/// Answers hold tokens, secrets and what only one person may see, so nobody on their way keeps them.
async fn keep_nowhere(mut response: Response) -> Response {
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// Whoever has come through TLS once comes that way for a year.
async fn insist_on_tls(State(context): State<Context>, mut response: Response) -> Response {
    if context.listen_config.is_private() {
        response
            .headers_mut()
            .insert(STRICT_TRANSPORT_SECURITY, HeaderValue::from_static("max-age=31536000"));
    }
    response
}

async fn no_such_address(uri: axum::http::Uri) -> ApiError {
    let path: String = uri.path().chars().take(200).collect();
    ApiError(Problem::new(ProblemCode::NotFound, format!("there is nothing at `{path}`")))
}

async fn no_such_method() -> ApiError {
    ApiError(Problem::new(ProblemCode::MethodNotAllowed, "this address does not take that method"))
}

#[expect(clippy::needless_pass_by_value, reason = "the signature that CatchPanicLayer wants")]
fn on_panic(panic: Box<dyn std::any::Any + Send>) -> Response {
    let text = panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_default();
    tracing::error!("a request handler panicked: {text}");
    axum::response::IntoResponse::into_response(ApiError(Problem::new(
        ProblemCode::Internal,
        "the server failed at this request; its log says more",
    )))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    /// Clients are generated by these names, so two operations may not share one.
    #[test]
    fn every_operation_has_a_name_of_its_own() {
        let document: serde_json::Value = serde_json::from_str(&super::openapi_json()).unwrap();
        let paths = document["paths"].as_object().unwrap().values();
        let operations = paths.flat_map(|item| item.as_object().unwrap().values());
        let mut seen = BTreeSet::new();
        for name in operations.filter_map(|operation| operation["operationId"].as_str()) {
            assert!(seen.insert(name), "two operations are called `{name}`: give one an `operation_id`");
        }
        assert!(seen.len() > 40, "the document was read");
    }

    #[test]
    fn numbers_that_are_never_negative_have_the_bound_that_they_have() {
        let schema = |more: &str| {
            format!(
                "{{\n  \"format\": \"int32\",\n  \"description\": \"of a worker\",{more}\n  \"minimum\": 0\n}}"
            )
        };
        assert!(super::with_unsigned_numbers(&schema("")).contains("{\n  \"maximum\": 4294967295,\n"));
        let bounded = schema("\n  \"maximum\": 9,");
        assert_eq!(super::with_unsigned_numbers(&bounded).trim_end(), bounded);
        let document: serde_json::Value = serde_json::from_str(&super::openapi_json()).unwrap();
        let worker = &document["components"]["schemas"]["WorkerIndex"];
        assert_eq!(
            (worker["maximum"].as_u64(), worker["format"].as_str()),
            (Some(4_294_967_295), None),
            "{worker}"
        );
    }

    #[test]
    fn every_schema_that_is_named_is_there() {
        let text = super::openapi_json();
        let document: serde_json::Value = serde_json::from_str(&text).unwrap();
        let schemas = document["components"]["schemas"].as_object().unwrap();
        let named = text.split("#/components/schemas/").skip(1).filter_map(|rest| rest.split('"').next());
        for name in named {
            assert!(schemas.contains_key(name), "`{name}` is named and not described");
        }
    }
}
