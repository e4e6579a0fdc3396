//! `danlu change`: another spec for a job that waits.

use std::process::ExitCode;

use clap::Args;
use danlu_client::Client;
use danlu_jobfile::JobFile;

use super::submit::refused;
use crate::failure::CliError;
use crate::{job_file, output, target, words};

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Job id or name
    job: String,
    /// Field to change, e.g. `devices.count=4`; an empty value resets it
    #[arg(long, value_name = "KEY=VALUE", required = true)]
    set: Vec<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(client: Client, arguments: Arguments) -> Result<ExitCode, CliError> {
    let mut draft = JobFile::empty();
    for assignment in &arguments.set {
        draft.set(assignment);
    }
    let changes = job_file::overrides(&mut draft)?;
    let id = target::job_id(&client, &arguments.job).await?;
    let job = client.job_change(id, &changes).await.map_err(|error| refused(error, &draft))?;
    if arguments.json {
        output::json(&job)?;
    } else {
        output::say(format!("changed job {id}: {}", words::state_sentence(job.state, &job.reason)));
    }
    Ok(ExitCode::SUCCESS)
}
