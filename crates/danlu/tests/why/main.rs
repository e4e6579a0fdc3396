//! `danlu why` and `danlu change` on the real binary: what is said of a job that waits is so, and every command that is
//! printed, run as it is printed by whoever asked, starts the job.

#![expect(
    clippy::unwrap_used,
    reason = "a test says what it expects by failing; a panic there is the message"
)]

mod changes;
mod site;
mod situations;
mod walk;
