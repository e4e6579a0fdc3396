//! `danlu hold`, `release`, `approve`, `delete`: one thing, done to each of the jobs that are named.

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

#[derive(Debug, Clone, Copy)]
pub(crate) enum Deed {
    Hold,
    Release,
    Approve,
    Delete,
}

pub(crate) async fn run(client: Client, deed: Deed, arguments: Arguments) -> Result<ExitCode, Failure> {
    for job in &arguments.jobs {
        let id = target::job_id(&client, job).await?;
        let job = match deed {
            Deed::Hold => client.job_hold(id).await?,
            Deed::Release => client.job_release(id).await?,
            Deed::Approve => client.job_approve(id).await?,
            Deed::Delete => {
                client.job_delete(id).await?;
                output::say(format!("deleted job {id}"));
                continue;
            }
        };
        output::say(format!("job {id}: {}", words::state_sentence(job.state, &job.reason)));
    }
    Ok(ExitCode::SUCCESS)
}
