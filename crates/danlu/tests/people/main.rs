//! Who may do what, and how people come in.

#![expect(
    clippy::unwrap_used,
    reason = "a test says what it expects by failing; a panic there is the message"
)]

mod coming_in;
mod crossing;
mod deleting;
mod entrance;
mod guessing;
mod lasting;
mod leaving;
mod linking;
mod links;
mod matrix;
mod mixing;
mod names;
mod providers;
mod second_factor;
mod signing_in;
mod site;
mod takeover;
mod tampering;
mod workspaces;
