//! `danlu completions`: scripts for shells.

use std::process::ExitCode;

use clap::Args;
use clap_complete::Shell;

use crate::failure::CliError;
use crate::output;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Shell, e.g. `danlu completions bash > ~/.local/share/bash-completion/completions/danlu`
    shell: Shell,
}

pub(crate) fn run(arguments: &Arguments, mut program: clap::Command) -> Result<ExitCode, CliError> {
    // Into a buffer first: the generator panics when it cannot write.
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut program, "danlu", &mut script);
    output::line(String::from_utf8_lossy(&script).trim_end())?;
    Ok(ExitCode::SUCCESS)
}
