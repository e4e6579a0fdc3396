//! The command line: one file for each command under `commands`, and what they share beside it.
//!
//! stdout carries data, stderr carries talk. Nothing here decides about jobs; it asks the server and shows the answer.

mod arguments;
mod commands;
mod database_address;
mod diagnostics;
mod explanation;
mod failure;
mod help_groups;
mod job_file;
mod job_flags;
mod migration;
mod output;
mod progress;
mod runtime;
mod shell;
mod table;
mod target;
mod terminal;
mod upload;
mod words;
mod workspaces_file;

use std::process::ExitCode;

use clap::Parser as _;
use clap::error::ErrorKind;
use owo_colors::OwoColorize as _;

pub use danlu_server::migrate_snapshot;

/// Runs the command that the process was started with.
pub fn main() -> ExitCode {
    match arguments::Arguments::try_parse() {
        Ok(arguments) => commands::run(arguments).unwrap_or_else(failure::CliError::report),
        Err(error) => {
            // Also the way in which `--help` and `--version` arrive. A closed pipe is no reason to complain.
            let _ = error.print();
            if let Some(command) = missing_dashes(&error, &std::env::args().collect::<Vec<_>>()) {
                output::say(format!("\n{}: what to run comes after `--`: `{command}`", "hint".cyan().bold()));
            }
            ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
        }
    }
}

/// `danlu run python3 train.py` as it was meant: with `--` before the first word that is no flag and no flag's value.
fn missing_dashes(error: &clap::Error, words: &[String]) -> Option<String> {
    let is_command = |word: &String| matches!(word.as_str(), "run" | "submit" | "launch" | "exec");
    let start = words.iter().position(is_command)? + 1;
    if error.kind() != ErrorKind::UnknownArgument || words.iter().any(|word| word == "--") {
        return None;
    }
    // A job comes before the command of `exec`.
    let start = if words[start - 1] == "exec" { start + 1 } else { start };
    let complete = |end: usize| match arguments::Arguments::try_parse_from(&words[..end]) {
        Ok(_) => true,
        // `launch` and `exec` need the command that is still to come.
        Err(error) => error.kind() == ErrorKind::MissingRequiredArgument,
    };
    let first = (start..words.len()).find(|&at| !words[at].starts_with('-') && complete(at))?;
    let quoted = |words: &[String]| words.iter().map(|word| words::shell_word(word)).collect::<Vec<_>>();
    let (before, command) = (quoted(&words[1..first]), quoted(&words[first..]));
    Some(format!("danlu {} -- {}", before.join(" "), command.join(" ")))
}

#[cfg(test)]
mod tests;
