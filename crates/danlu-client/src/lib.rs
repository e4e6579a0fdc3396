//! The typed client of Danlu's HTTP API.
//!
//! One method for each endpoint, named like the endpoint's noun. Long reads ([`LogFollow`], [`HintStream`]) outlive
//! the server they started with: they connect again and go on from the last cursor they saw, so that nothing is
//! missing and nothing comes twice. Nothing here prints or decides; [`ClientError::hint`] says what a person can do.

mod client;
mod dial;
mod discover;
mod error;
mod follow;
mod keys;
mod people;
mod profile;
mod session;
mod sidecar;
pub mod sse;
mod trust;
mod workspaces;

pub use client::Client;
pub use dial::ServerStream;
pub use discover::{ServerFile, data_folder, default_data_folder};
pub use error::ClientError;
pub use follow::{Followed, HintStream, LogFollow};
pub use profile::{Profile, ProfileName};
pub use session::{SessionReceiver, SessionSender};
