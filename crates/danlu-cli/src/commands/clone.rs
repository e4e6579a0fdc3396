//! `danlu clone`: a job like another one.

use std::process::ExitCode;

use clap::Args;
use danlu_client::Client;
use danlu_jobfile::JobFile;

use super::submit::refused;
use crate::failure::CliError;
use crate::{job_file, output, target};

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Job id or name
    job: String,
    /// Field to change in the copy, e.g. `workers=4`
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
}

pub(crate) async fn run(client: Client, arguments: Arguments) -> Result<ExitCode, CliError> {
    let mut draft = JobFile::empty();
    for assignment in &arguments.set {
        draft.set(assignment);
    }
    let overrides = job_file::overrides(&mut draft)?;
    let id = target::job_id(&client, &arguments.job).await?;
    let job = client.job_clone(id, &overrides).await.map_err(|error| refused(error, &draft))?;
    output::say(format!("submitted job {} ({}), like job {id}", job.id, job.name));
    output::line(job.id.to_string())?;
    Ok(ExitCode::SUCCESS)
}
