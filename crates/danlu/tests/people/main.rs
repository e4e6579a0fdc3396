//! Who may do what, and how people come in.

#![expect(
    clippy::unwrap_used,
    reason = "a test says what it expects by failing; a panic there is the message"
)]

mod links;
mod matrix;
mod signing_in;
mod site;
mod workspaces;
