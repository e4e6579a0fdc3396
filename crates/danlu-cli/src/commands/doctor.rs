//! `danlu doctor`: whether the server can do all of its work, and what is wrong with this machine.

use std::process::ExitCode;

use clap::Args;
use danlu_client::{Client, ClientError};
use danlu_device::cgroup::Groups;
use danlu_device::inventory;
use danlu_device::machine::Machine;
use serde_json::json;

use crate::failure::{CliError, FAILED};
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
    let client = client?;
    let health = client.readiness_report().await?;
    let mut remarks: Vec<String> = Groups::detect().limitation().into_iter().collect();
    remarks.extend(inventory::look(Machine::this()).remarks);
    let is_well = health.problems.is_empty();
    if arguments.json {
        output::json(&json!({
            "address": client.address(),
            "version": health.version,
            "status": health.status,
            "problems": health.problems,
            "remarks_on_this_machine": remarks,
        }))?;
    } else {
        output::line(format!("server    {} at {}", health.version, client.address()))?;
        output::line(format!("status    {}", health.status))?;
        for problem in &health.problems {
            output::line(format!("problem   {problem}"))?;
        }
        for remark in &remarks {
            output::line(format!("machine   {remark}"))?;
        }
    }
    Ok(if is_well { ExitCode::SUCCESS } else { ExitCode::from(FAILED) })
}
