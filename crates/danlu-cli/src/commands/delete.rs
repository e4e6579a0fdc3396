//! `danlu delete`: forgets ended jobs.

use std::process::ExitCode;

use clap::Args;
use danlu_client::Client;

use crate::failure::Failure;
use crate::{output, target};

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Numbers or names
    #[arg(required = true, value_name = "JOB")]
    jobs: Vec<String>,
}

pub(crate) async fn run(client: Client, arguments: Arguments) -> Result<ExitCode, Failure> {
    for job in &arguments.jobs {
        let id = target::job_id(&client, job).await?;
        client.job_delete(id).await?;
        output::say(format!("deleted job {id}"));
    }
    Ok(ExitCode::SUCCESS)
}
