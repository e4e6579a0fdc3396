//! Placement from outside: rules by example, and what must hold whatever happens.

#![expect(
    clippy::unwrap_used,
    reason = "a test says what it expects by failing; a panic there is the message"
)]

mod decisions;
mod fixture;
mod properties;
mod rules;
