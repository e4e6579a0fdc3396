//! The scheduler's tests: its rules as fixtures, what holds for every plan, and a slow planner to compare it with.

#![expect(
    clippy::unwrap_used,
    reason = "a test says what it expects by failing; a panic there is the message"
)]

mod cases;
mod differential;
mod fixture;
mod liveness;
mod offers;
mod properties;
mod reference;
mod rules;
mod world;
