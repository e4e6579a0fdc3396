//! The typed client of Danlu's HTTP API.
//!
//! One method for each endpoint, named like the endpoint's noun. Long reads ([`LogFollow`], [`HintStream`]) outlive
//! the server they started with: they connect again and go on from the last cursor they saw, so that nothing is
//! missing and nothing comes twice. Nothing here prints or decides; [`ClientError::hint`] says what a person can do.

mod client;
mod discover;
mod error;
mod follow;
mod people;
mod session;
pub mod sse;
mod workspaces;

pub use client::Client;
pub use discover::{Profile, ServerFile, data_folder, default_data_folder};
pub use error::ClientError;
pub use follow::{Followed, HintStream, LogFollow};
pub use session::{SessionReceiver, SessionSender};
