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
    /// Replay recorded jobs in virtual time under one or more policies
    Replay(Box<replay::Arguments>),
    /// Benchmark the scheduler on a large simulated cluster
    Bench(bench::Arguments),
    /// Place recorded pods on recorded nodes and measure the devices left unused
    Place(place::Arguments),
}

pub(crate) fn run(arguments: Arguments) -> Result<ExitCode, CliError> {
    match arguments.command {
        Command::Replay(arguments) => replay::run(&arguments),
        Command::Bench(arguments) => bench::run(&arguments),
        Command::Place(arguments) => place::run(&arguments),
    }
}
