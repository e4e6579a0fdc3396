//! `danlu version`: of this program, and of the server if there is one.

use std::process::ExitCode;

use clap::Args;
use danlu_client::{Client, ClientError};
use serde_json::json;

use crate::failure::CliError;
use crate::output;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(
    client: Result<Client, ClientError>,
    arguments: Arguments,
) -> Result<ExitCode, CliError> {
    let server = match client {
        Ok(client) => client.health().await.ok().map(|health| (client.address(), health.version)),
        Err(_) => None,
    };
    let version = env!("CARGO_PKG_VERSION");
    if arguments.json {
        let server = server.map(|(address, version)| json!({ "address": address, "version": version }));
        output::json(&json!({ "version": version, "server": server }))?;
        return Ok(ExitCode::SUCCESS);
    }
    output::line(format!("danlu {version}"))?;
    match server {
        Some((address, version)) => output::line(format!("server {version} at {address}"))?,
        None => output::say("no server is running"),
    }
    Ok(ExitCode::SUCCESS)
}
