//! The command line: one file for each command under `commands`, and what they share beside it.
//!
//! stdout carries data, stderr carries talk. Nothing here decides about jobs; it asks the server and shows the answer.

mod arguments;
mod commands;
mod explanation;
mod failure;
mod job_file;
mod job_flags;
mod migration;
mod output;
mod progress;
mod runtime;
mod table;
mod target;
mod terminal;
mod upload;
mod words;
mod workspaces_file;

use std::process::ExitCode;

use clap::Parser as _;

pub use danlu_server::migrate_snapshot;

/// Runs the command that the process was started with.
pub fn main() -> ExitCode {
    match arguments::Arguments::try_parse() {
        Ok(arguments) => commands::run(arguments).unwrap_or_else(failure::Failure::report),
        Err(error) => {
            // Also the way in which `--help` and `--version` arrive. A closed pipe is no reason to complain.
            let _ = error.print();
            ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
        }
    }
}

#[cfg(test)]
mod tests;
