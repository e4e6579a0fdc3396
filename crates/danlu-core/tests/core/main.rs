//! The life of a job: its table, its rules as transcripts, what holds for every life; and the environment of its ranks.

#![expect(
    clippy::unwrap_used,
    reason = "a test says what it expects by failing; a panic there is the message"
)]

mod binding;
mod builders;
mod environment;
mod life_table;
mod properties;
mod report;
mod rules;
