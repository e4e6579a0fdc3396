//! `danlu submit`: a job into the queue.

use std::process::ExitCode;

use clap::Args;
use danlu_client::{Client, ClientError};
use danlu_types::api::{Explanation, JobView};
use jiff::Timestamp;
use owo_colors::OwoColorize as _;

use crate::explanation::Resubmission;
use crate::failure::{FAILED, Failure};
use crate::job_file::Draft;
use crate::job_flags::{JobFlags, folder_of};
use crate::{explanation, output, terminal, upload, words};

/// The reason of a job that the next pass starts.
const STARTS_NOW: &str = "not_yet_considered";

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    job: JobFlags,
    /// Only says whether the job would start, and if not, why
    #[arg(long)]
    dry_run: bool,
    /// With `--dry-run`: prints the whole answer as JSON
    #[arg(long, requires = "dry_run")]
    json: bool,
}

pub(crate) async fn run(
    client: impl FnOnce() -> Result<Client, ClientError>,
    arguments: Arguments,
) -> Result<ExitCode, Failure> {
    if arguments.dry_run {
        return dry_run(client, &arguments).await;
    }
    let (_, job) = submit(client, &arguments.job).await?;
    output::line(job.id.to_string())?;
    if output::stderr_is_terminal() {
        for (command, what) in
            [("logs -f", "follows its output"), ("why", "says what it waits for"), ("stop", "ends it")]
        {
            let command = format!("danlu {command} {}", job.id);
            output::say(format!("  {:<20} {}", command.cyan(), what.dimmed()));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Reads, checks, uploads and submits; for `run`, too. The server is looked for after the job was found to be good.
pub(crate) async fn submit(
    client: impl FnOnce() -> Result<Client, ClientError>,
    flags: &JobFlags,
) -> Result<(Client, JobView), Failure> {
    let mut draft = flags.draft()?;
    let (spec, code) = draft.finish()?;
    let mut spec = flags.migration.on_ascend(spec)?;
    let client = client()?;
    if let Some(folder) = folder_of(&code) {
        spec.code = Some(upload::code(&client, folder).await?);
    }
    flags.migration.migrate(&client, &mut spec).await?;
    let job = client.job_submit(&spec, flags.key.as_deref()).await.map_err(|error| refused(error, &draft))?;
    output::say(format!("submitted job {} ({})", job.id, job.name));
    Ok((client, job))
}

async fn dry_run(
    client: impl FnOnce() -> Result<Client, ClientError>,
    arguments: &Arguments,
) -> Result<ExitCode, Failure> {
    let mut draft = arguments.job.draft()?;
    let (spec, code) = draft.finish()?;
    let mut spec = arguments.job.migration.on_ascend(spec)?;
    if folder_of(&code).is_some() {
        // Nothing is uploaded for a question, and when a job starts does not depend on what it runs.
        spec.code = None;
    }
    let explanation = client()?.job_dry_run(&spec).await.map_err(|error| refused(error, &draft))?;
    if arguments.json {
        output::json(&explanation)?;
        return Ok(ExitCode::SUCCESS);
    }
    output::line(output::printable(&would_sentence(&explanation)))?;
    if explanation.reason.code != STARTS_NOW {
        // Flags are the reader's to repeat; a file is named here already.
        let file = arguments.job.file.as_deref().map_or("…".to_owned(), words::shell_word);
        let resubmission = Resubmission(format!("danlu submit {file}"));
        let width = usize::from(terminal::size().columns);
        output::line(explanation::page(&explanation, &resubmission, width, Timestamp::now()))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn would_sentence(explanation: &Explanation) -> String {
    if explanation.reason.code == STARTS_NOW {
        return "would start now".to_owned();
    }
    format!("would be {}", words::state_sentence(explanation.state, &explanation.reason))
}

/// Fields that the server refused are shown at their lines, like those refused here.
fn refused(error: ClientError, draft: &Draft) -> Failure {
    match error {
        ClientError::Problem(problem) if !problem.errors.is_empty() => {
            let failure = draft.refuse_by_server(problem.errors).with_code(FAILED);
            match problem.hint {
                Some(hint) => failure.hint(hint),
                None => failure,
            }
        }
        other => other.into(),
    }
}
