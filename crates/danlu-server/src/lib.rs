//! The server: HTTP API, use-cases, reconcilers.
//!
//! Three parts, in the order in which a request meets them: `http` turns requests into use-cases of `app`, which hand
//! changes to the `ledger`, the one writer. `reconcile` then makes the world follow the book. No handler talks to the
//! engine, but for sessions and reading; no reconciler talks HTTP.

mod app;
mod attempts;
mod book;
mod change;
mod courier;
mod database;
mod entrance;
mod explain;
mod files;
mod folder;
mod guarded;
mod health;
mod hiding;
mod http;
mod identity;
mod ledger;
mod measures;
mod migrations;
mod nodes;
mod oidc;
mod people;
mod planner;
mod reconcile;
mod removals;
mod reports;
mod sandbox;
pub mod sealing;
mod secrets;
mod serve;
mod sharing;
mod simulate;
mod stop;
mod trail;
mod troubles;
mod unix_users;
mod usage;
mod wake;
mod workspaces;

pub use entrance::{ListenConfig, Tls};
pub use http::openapi_json;
pub use migrations::migrate_snapshot;
pub use sandbox::SandboxOptions;
pub use serve::{EngineChoice, FirstSignIn, ServeOptions, serve};
pub use sharing::SharingSource;
pub use unix_users::UnixUsers;

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
