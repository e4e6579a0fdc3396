//! The command line: one file for each command under `commands`, and what they share beside it.
//!
//! stdout carries data, stderr carries talk. Nothing here decides about jobs; it asks the server and shows the answer.

mod arguments;
mod commands;
mod diagnostics;
mod explanation;
mod failure;
mod help_groups;
mod job_file;
mod job_flags;
mod migration;
pub mod output;
mod progress;
mod proof;
mod runtime;
mod shell;
mod table;
mod target;
mod terminal;
mod upload;
mod words;
pub mod workspaces_file;

use std::path::Path;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{Arg, ArgMatches, CommandFactory as _, FromArgMatches as _, Parser as _};
use owo_colors::OwoColorize as _;

pub use commands::reference::markdown as reference;
pub use failure::{CliError, USAGE};

/// `danlu up`, which a program adds that has the server in it.
#[derive(Debug, Clone, Copy)]
pub struct ServerCommand {
    /// Adds the flags of the command.
    pub arguments: fn(clap::Command) -> clap::Command,
    /// Runs the server on the data folder that was given, if one was.
    pub run: fn(Option<&Path>, &ArgMatches) -> Result<ExitCode, CliError>,
}

/// All commands with their flags.
pub fn program(server: Option<&ServerCommand>) -> clap::Command {
    let mut program = arguments::Arguments::command();
    if let Some(up) = program.find_subcommand_mut("up") {
        let command = std::mem::take(up);
        *up = match server {
            Some(server) => (server.arguments)(command),
            // Whatever its flags are, the answer is the same.
            None => command.arg(
                Arg::new("any").num_args(0..).allow_hyphen_values(true).trailing_var_arg(true).hide(true),
            ),
        };
    }
    program
}

/// Runs the command that the process was started with.
pub fn main(server: Option<&ServerCommand>) -> ExitCode {
    let parsed = program(server).try_get_matches().and_then(|matches| {
        let arguments = arguments::Arguments::from_arg_matches(&matches);
        Ok((arguments.map_err(|error| error.format(&mut program(server)))?, matches))
    });
    match parsed {
        Ok((arguments, matches)) => {
            commands::run(arguments, &matches, server).unwrap_or_else(CliError::report)
        }
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
    let quoted =
        |words: &[String]| words.iter().map(|word| danlu_types::spec::shell_quote(word)).collect::<Vec<_>>();
    let (before, command) = (quoted(&words[1..first]), quoted(&words[first..]));
    Some(format!("danlu {} -- {}", before.join(" "), command.join(" ")))
}

#[cfg(test)]
mod tests;
