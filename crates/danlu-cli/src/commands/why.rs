//! `danlu why`: what a job waits for.

use std::process::ExitCode;

use clap::Args;
use danlu_client::Client;

use crate::failure::Failure;
use crate::{output, target, words};

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The job's number or name
    job: String,
    /// Prints JSON
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(client: Client, arguments: Arguments) -> Result<ExitCode, Failure> {
    let id = target::job_id(&client, &arguments.job).await?;
    let explanation = client.job_why(id).await?;
    if arguments.json {
        output::json(&explanation)?;
        return Ok(ExitCode::SUCCESS);
    }
    let sentence = words::state_sentence(explanation.state, &explanation.reason);
    output::line(format!("job {id} is {}", output::printable(&sentence)))?;
    if let Some(position) = explanation.position {
        let place = match position {
            1 => "it is the next in the queue".to_owned(),
            _ => format!("{} jobs are before it in the queue", position - 1),
        };
        output::line(format!("  {place}"))?;
    }
    output::line(output::printable(&explanation.text))?;
    Ok(ExitCode::SUCCESS)
}
