//! The server: HTTP API, use-cases, reconcilers.
//!
//! Three parts, in the order in which a request meets them: `http` turns requests into use-cases of `app`, which hand
//! changes to the `job_writer`, the one writer. `reconcile` then makes the world follow the live state. No handler talks to the
//! engine, but for sessions and reading; no reconciler talks HTTP.

mod accounts;
mod app;
mod attempt_tokens;
mod audit_proof;
mod change;
mod database;
pub mod encryption;
mod explain;
mod files;
mod folder;
mod guarded;
mod health;
mod http;
mod identity;
mod job_files;
mod job_writer;
mod listener;
mod live_state;
mod measures;
mod migrations;
mod nodes;
mod notify;
mod oidc;
mod planner;
mod reconcile;
mod removals;
mod reports;
mod sandbox;
mod serve;
mod sidecar;
mod simulate;
mod stop;
mod troubles;
mod unix_users;
mod usage;
mod visibility;
mod workspaces;
mod workspaces_config;

pub use http::openapi_json;
pub use listener::{ListenConfig, Tls};
pub use migrations::migrate_snapshot;
pub use sandbox::SandboxOptions;
pub use serve::{EngineChoice, FirstSignIn, ServeOptions, serve};
pub use unix_users::UnixUsers;
pub use workspaces_config::SharingSource;

/// An error with its causes, on one line.
pub(crate) fn error_chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}
