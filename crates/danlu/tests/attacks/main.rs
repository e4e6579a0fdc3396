//! What attackers try, against a real server: all of it refused.

#![expect(
    clippy::unwrap_used,
    reason = "a test says what it expects by failing; a panic there is the message"
)]

mod forgery;
mod injection;
mod overload;
mod replay;
#[path = "../people/site.rs"]
#[expect(dead_code, reason = "shared with the tests of people, who need more of it")]
mod site;
mod snooping;
mod walk;
