//! `danlu history export`: what became of jobs, as lines that `danlu sim replay` reads.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use danlu_client::Client;
use danlu_types::api::JobQuery;
use danlu_types::history::{Header, JobRecord};
use jiff::Timestamp;
use serde::Serialize;

use crate::failure::CliError;
use crate::output;

const A_PAGE: u32 = 1000;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Print nodes, jobs and their attempts as JSON lines
    #[command(
        after_help = "Examples:\n  danlu history export > history.jsonl\n  danlu sim replay history.jsonl --policy backfill,strict\n\nThe export contains no commands, parameters or environments of jobs."
    )]
    Export(Export),
}

#[derive(Debug, Args)]
struct Export {
    /// Only jobs of this workspace
    #[arg(long)]
    workspace: Option<String>,
}

pub(crate) async fn run(client: Client, arguments: Arguments) -> Result<ExitCode, CliError> {
    let Command::Export(Export { workspace }) = arguments.command;
    let nodes = client.nodes_list().await?.items.into_iter().map(|view| view.node).collect();
    output::line(json(&Header::new(Timestamp::now(), nodes))?)?;
    let mut query = JobQuery { workspace, limit: Some(A_PAGE), ..JobQuery::default() };
    loop {
        let page = client.jobs_list(&query).await?;
        let records: Result<Vec<String>, CliError> =
            page.items.into_iter().map(|job| json(&JobRecord::from(job))).collect();
        output::lines(records?)?;
        if page.next.is_none() {
            return Ok(ExitCode::SUCCESS);
        }
        query.cursor = page.next;
    }
}

fn json(value: &impl Serialize) -> Result<String, CliError> {
    serde_json::to_string(value)
        .map_err(|error| CliError::new("cannot write a line of history as JSON").caused_by(&error))
}
