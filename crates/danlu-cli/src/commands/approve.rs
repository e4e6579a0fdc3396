//! `danlu approve`: lets jobs start that ask for much.

use std::process::ExitCode;

use clap::Args;
use danlu_client::Client;

use crate::failure::Failure;
use crate::{output, target, words};

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Numbers or names
    #[arg(required = true, value_name = "JOB")]
    jobs: Vec<String>,
}

pub(crate) async fn run(client: Client, arguments: Arguments) -> Result<ExitCode, Failure> {
    for job in &arguments.jobs {
        let id = target::job_id(&client, job).await?;
        let job = client.job_approve(id).await?;
        output::say(format!("job {id}: {}", words::state_sentence(job.state, &job.reason)));
    }
    Ok(ExitCode::SUCCESS)
}
