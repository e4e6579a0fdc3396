//! The launcher as a process, with real ranks.

#![expect(clippy::unwrap_used, reason = "a test says what it expects by failing")]

mod background;
mod diagnoses;
mod ends;
mod gangs;
mod harness;
mod limits;
mod output;
mod platforms;
mod reports;
mod sessions;
mod srun;
mod steps;
mod watching;
