//! `danlu stop`: asks jobs to end.

use std::process::ExitCode;

use clap::Args;
use danlu_client::Client;
use danlu_types::Span;
use danlu_types::api::StopRequest;

use crate::failure::Failure;
use crate::{output, target, words};

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Numbers or names
    #[arg(required = true, value_name = "JOB")]
    jobs: Vec<String>,
    /// How long the program may take to end before it is killed; `0s` kills at once
    #[arg(long, value_name = "TIME")]
    grace: Option<Span>,
}

pub(crate) async fn run(client: Client, arguments: Arguments) -> Result<ExitCode, Failure> {
    let request = StopRequest { grace: arguments.grace };
    for job in &arguments.jobs {
        let id = target::job_id(&client, job).await?;
        let job = client.job_stop(id, &request).await?;
        output::say(format!("job {id}: {}", words::state_sentence(job.state, &job.reason)));
    }
    Ok(ExitCode::SUCCESS)
}
