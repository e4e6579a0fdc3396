//! `danlu profiles`: where one is signed in.

use std::process::ExitCode;

use clap::Args;
use comfy_table::Cell;
use danlu_client::Profile;
use serde_json::json;

use crate::failure::CliError;
use crate::{output, table};

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, CliError> {
    let profiles = Profile::list()?;
    if arguments.json {
        // Without their tokens: this is for looking.
        let plain = profiles.iter().map(|(name, profile)| {
            json!({
                "name": name,
                "account": profile.account,
                "server": profile.address,
                "fingerprint": profile.fingerprint,
            })
        });
        output::json(&plain.collect::<Vec<_>>())?;
    } else {
        let mut table = table::new(["profile", "account", "server"]);
        for (name, profile) in &profiles {
            table.add_row([
                Cell::new(name),
                Cell::new(output::printable(&profile.account)),
                Cell::new(output::printable(&profile.address)),
            ]);
        }
        table::print(&mut table)?;
    }
    Ok(ExitCode::SUCCESS)
}
