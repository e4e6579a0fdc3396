//! Whole clusters from the first submission to the last end: one story to read, and what holds for all of them.

#![expect(
    clippy::unwrap_used,
    reason = "a test says what it expects by failing; a panic there is the message"
)]

mod figures;
mod properties;
mod rules;
mod story;
