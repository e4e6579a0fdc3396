//! `danlu sim`: clusters under virtual time, with the scheduler that runs the real one.

mod bench;
mod place;
mod replay;
mod variants;

use std::process::ExitCode;

use clap::{Args, Subcommand};

use crate::failure::CliError;

#[cfg(test)]
pub(crate) use replay::tables;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Replays recorded jobs in virtual time, under one or more sets of rules
    Replay(Box<replay::Arguments>),
    /// Measures the scheduler on a large cluster: passes, placements, explanations
    Bench(bench::Arguments),
    /// Packs recorded pods onto recorded nodes, and measures how many devices are left over
    Place(place::Arguments),
}

pub(crate) fn run(arguments: Arguments) -> Result<ExitCode, CliError> {
    match arguments.command {
        Command::Replay(arguments) => replay::run(&arguments),
        Command::Bench(arguments) => bench::run(&arguments),
        Command::Place(arguments) => place::run(&arguments),
    }
}
