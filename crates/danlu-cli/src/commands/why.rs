//! `danlu why`: what a job waits for.

use std::process::ExitCode;

use clap::Args;
use danlu_client::Client;
use jiff::Timestamp;

use crate::explanation::Taking;
use crate::failure::CliError;
use crate::{explanation, output, target, terminal};

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Job id or name
    job: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(client: Client, arguments: Arguments) -> Result<ExitCode, CliError> {
    let id = target::job_id(&client, &arguments.job).await?;
    let explanation = client.job_why(id).await?;
    if arguments.json {
        output::json(&explanation)?;
        return Ok(ExitCode::SUCCESS);
    }
    let words: Vec<String> = std::env::args().skip(1).collect();
    let width = usize::from(terminal::size().columns);
    output::line(explanation::page(&explanation, &Taking::change(id, &words), width, Timestamp::now()))?;
    Ok(ExitCode::SUCCESS)
}
