//! `danlu stop`, `hold`, `release`, `approve`, `delete`: one thing, done to each of the jobs that are named.
//!
//! A job to which it cannot be done keeps none of the others from it: each is reported, and the exit code says whether
//! one failed.

use std::process::ExitCode;

use clap::Args;
use danlu_client::Client;
use danlu_types::Span;
use danlu_types::api::{JobApproval, StopRequest};

use crate::failure::{CliError, UNREACHABLE, USAGE};
use crate::{output, target, words};

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Job ids or names
    #[arg(required = true, value_name = "JOB")]
    jobs: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct StopArguments {
    #[command(flatten)]
    each: Arguments,
    /// Grace period before the job is killed, e.g. `2m`; `0s` kills it at once [default: the job's `grace`]
    #[arg(long, value_name = "DURATION")]
    grace: Option<Span>,
}

#[derive(Debug, Args)]
pub(crate) struct ApproveArguments {
    #[command(flatten)]
    each: Arguments,
    /// Generation of the job that you looked at, from `danlu show`; a job that has changed since is not approved
    #[arg(long, value_name = "NUMBER")]
    generation: Option<u64>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum JobAction {
    Stop { grace: Option<Span> },
    Hold,
    Release,
    Approve { seen: Option<u64> },
    Delete,
}

pub(crate) async fn stop(client: Client, arguments: StopArguments) -> Result<ExitCode, CliError> {
    run(client, JobAction::Stop { grace: arguments.grace }, arguments.each).await
}

pub(crate) async fn approve(client: Client, arguments: ApproveArguments) -> Result<ExitCode, CliError> {
    let ApproveArguments { each, generation: seen } = arguments;
    if seen.is_some() && each.jobs.len() > 1 {
        let failure = CliError::new("`--generation` is of one job, and several are named").with_code(USAGE);
        return Err(failure.hint("approve each with a command of its own"));
    }
    run(client, JobAction::Approve { seen }, each).await
}

pub(crate) async fn run(client: Client, deed: JobAction, arguments: Arguments) -> Result<ExitCode, CliError> {
    let mut failures = Failures::default();
    let count = arguments.jobs.len();
    for job in &arguments.jobs {
        match one(&client, deed, job).await {
            Ok(said) => output::say(said),
            // The other jobs are of the same server.
            Err(failure) if failure.code() == UNREACHABLE => return Err(failure),
            Err(failure) => failures.note(failure),
        }
    }
    Ok(failures.exit_code(count))
}

async fn one(client: &Client, deed: JobAction, job: &str) -> Result<String, CliError> {
    let id = target::job_id(client, job).await?;
    let job = match deed {
        JobAction::Stop { grace } => client.job_stop(id, &StopRequest { grace }).await?,
        JobAction::Hold => client.job_hold(id).await?,
        JobAction::Release => client.job_release(id).await?,
        JobAction::Approve { seen } => {
            let generation = if let Some(seen) = seen {
                seen
            } else {
                // Told what is approved, people see at least now if it is not what they meant.
                let job = client.job_fetch(id).await?;
                let asked = words::resources(&job.spec);
                output::say(format!("job {id} of {}: {asked}", job.owner));
                job.generation
            };
            client.job_approve(id, &JobApproval { generation }).await?
        }
        JobAction::Delete => {
            client.job_delete(id).await?;
            return Ok(format!("deleted job {id}"));
        }
    };
    Ok(format!("job {id}: {}", words::state_sentence(job.state, &job.reason)))
}

/// The exit code of a command that does one thing to several: that of its failures where they agree, else 1.
#[derive(Debug, Default)]
struct Failures {
    codes: Vec<u8>,
}

impl Failures {
    fn note(&mut self, failure: CliError) {
        self.codes.push(failure.code());
        // The code is kept above; the report is for people.
        let _ = failure.report();
    }

    fn exit_code(&self, count: usize) -> ExitCode {
        let Some(&first) = self.codes.first() else { return ExitCode::SUCCESS };
        if count > 1 {
            output::say(format!("{} of {count} jobs: done", count - self.codes.len()));
        }
        ExitCode::from(combined(first, &self.codes))
    }
}

fn combined(first: u8, codes: &[u8]) -> u8 {
    if codes.iter().all(|code| *code == first) { first } else { crate::failure::FAILED }
}

#[cfg(test)]
mod tests {
    use super::combined;
    use crate::failure::{FAILED, NOT_FOUND};

    #[test]
    fn exit_code_is_that_of_failures_that_agree() {
        assert_eq!(combined(NOT_FOUND, &[NOT_FOUND, NOT_FOUND]), NOT_FOUND);
        assert_eq!(combined(NOT_FOUND, &[NOT_FOUND, FAILED]), FAILED);
    }
}
