//! `danlu submit`: a job into the queue.

use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher, RandomState};
use std::process::ExitCode;

use clap::Args;
use danlu_client::{Client, ClientError};
use danlu_jobfile::{ARRAY_TASK, JobFile};
use danlu_types::api::{Explanation, JobView};
use danlu_types::{JobId, JobSpec, Reason};
use jiff::Timestamp;
use owo_colors::OwoColorize as _;

use crate::explanation::Taking;
use crate::failure::{CliError, FAILED, USAGE};
use crate::job_flags::{JobFlags, folder_of};
use crate::{explanation, job_file, output, shell, terminal, upload, words};

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    job: JobFlags,
    /// Print whether the job would start now, and why not, without submitting it
    #[arg(long)]
    dry_run: bool,
    /// With `--dry-run`: print JSON
    #[arg(long, requires = "dry_run")]
    json: bool,
}

pub(crate) async fn run(
    client: impl FnOnce() -> Result<Client, ClientError>,
    arguments: Arguments,
) -> Result<ExitCode, CliError> {
    if arguments.dry_run {
        return dry_run(client, &arguments).await;
    }
    let prepared = prepare(client, &arguments.job, arguments.job.draft()?).await?;
    let array = prepared.draft.array();
    if !array.is_empty() {
        return submit_array(&prepared, array, arguments.job.key.as_deref()).await;
    }
    let job = prepared.submit(&prepared.spec, arguments.job.key.as_deref()).await?;
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

/// A job that was found to be good, with its code uploaded.
struct Prepared {
    client: Client,
    draft: JobFile,
    spec: JobSpec,
}

/// Checks and uploads. The server is looked for after the job was found to be good.
async fn prepare(
    client: impl FnOnce() -> Result<Client, ClientError>,
    flags: &JobFlags,
    mut draft: JobFile,
) -> Result<Prepared, CliError> {
    let (spec, code) = job_file::finish(&mut draft)?;
    let mut spec = flags.migration.on_ascend(spec)?;
    let client = client()?;
    if let Some(folder) = folder_of(&code) {
        spec.code = Some(upload::code(&client, folder).await?);
    }
    flags.migration.migrate(&client, &mut spec).await?;
    tell_of_surroundings(&client, flags, &mut spec);
    Ok(Prepared { client, draft, spec })
}

/// What of here the job has, and what not: commands that are typed are about the files and programs that are here.
fn tell_of_surroundings(client: &Client, flags: &JobFlags, spec: &mut JobSpec) {
    let here = shell::is_here(&client.address());
    if !flags.has_command() {
        return;
    }
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    if let Some(sentence) = shell::take_along(spec, variable, here) {
        output::say(sentence);
    }
    if let (None, Some(folder), false) = (&spec.code, &spec.working_directory, here) {
        output::say(format!(
            "the job runs in `{folder}` as it is on the server's machines; `--code .` takes this folder along"
        ));
    }
}

impl Prepared {
    async fn submit(&self, spec: &JobSpec, key: Option<&str>) -> Result<JobView, CliError> {
        let job = self.client.job_submit(spec, key).await.map_err(|error| refused(error, &self.draft))?;
        output::say(format!("submitted job {} ({})", job.id, job.name));
        Ok(job)
    }
}

/// For `run`, which follows one job.
pub(crate) async fn submit_one(
    client: impl FnOnce() -> Result<Client, ClientError>,
    flags: &JobFlags,
) -> Result<(Client, JobView), CliError> {
    let draft = flags.draft()?;
    if let Some(first) = draft.array().first() {
        let file = flags.file.as_deref().map_or("…".to_owned(), danlu_types::spec::shell_quote);
        return Err(CliError::new("an array is many jobs, and `danlu run` follows one")
            .with_code(USAGE)
            .hint(format!(
                "`danlu submit {file}` submits all of them, `--env {ARRAY_TASK}={first}` makes it one"
            )));
    }
    let prepared = prepare(client, flags, draft).await?;
    let job = prepared.submit(&prepared.spec, flags.key.as_deref()).await?;
    Ok((prepared.client, job))
}

/// A job for each number. They are known by a label, and to each other by the number of the first.
async fn submit_array(prepared: &Prepared, tasks: &[u32], key: Option<&str>) -> Result<ExitCode, CliError> {
    // With a key the same each time: what is submitted again is what was submitted before.
    let name = match key {
        Some(key) => BuildHasherDefault::<DefaultHasher>::default().hash_one(key),
        None => RandomState::new().hash_one(0),
    };
    let name = format!("{:08x}", name >> 32);
    let mut first = None;
    for (done, task) in tasks.iter().enumerate() {
        let mut spec = prepared.spec.clone();
        spec.labels.insert("array".to_owned(), name.clone());
        let ends = [tasks.first(), tasks.last()].map(|task| task.copied().unwrap_or_default());
        for (variable, value) in [
            (ARRAY_TASK, Some(u64::from(*task))),
            ("SLURM_ARRAY_TASK_COUNT", Some(tasks.len() as u64)),
            ("SLURM_ARRAY_TASK_MIN", Some(u64::from(ends[0]))),
            ("SLURM_ARRAY_TASK_MAX", Some(u64::from(ends[1]))),
            // The first does not know its own yet; its launcher will.
            ("SLURM_ARRAY_JOB_ID", first.map(|JobId(first)| first)),
        ] {
            if let Some(value) = value {
                spec.env.insert(variable.to_owned(), value.to_string());
            }
        }
        let key = key.map(|key| format!("{key}.{task}"));
        let submitted = prepared.client.job_submit(&spec, key.as_deref()).await;
        let job = submitted.map_err(|error| {
            let failure = refused(error, &prepared.draft);
            if done == 0 {
                failure
            } else {
                failure.hint(format!("{done} of {} jobs of the array are submitted", tasks.len()))
            }
        })?;
        first.get_or_insert(job.id);
        output::line(job.id.to_string())?;
    }
    output::say(format!(
        "submitted {} jobs ({}); `danlu jobs --label array={name}` lists them",
        tasks.len(),
        prepared.spec.name
    ));
    Ok(ExitCode::SUCCESS)
}

async fn dry_run(
    client: impl FnOnce() -> Result<Client, ClientError>,
    arguments: &Arguments,
) -> Result<ExitCode, CliError> {
    let mut draft = arguments.job.draft()?;
    let (spec, code) = job_file::finish(&mut draft)?;
    let mut spec = arguments.job.migration.on_ascend(spec)?;
    if folder_of(&code).is_some() {
        // Nothing is uploaded for a question, and when a job starts does not depend on what it runs.
        spec.code = None;
    }
    if let [first, .., last] = draft.array() {
        let count = draft.array().len();
        output::say(format!("an array of {count} jobs, {first} to {last}; this is about one of them"));
    }
    let explanation = client()?.job_dry_run(&spec).await.map_err(|error| refused(error, &draft))?;
    if arguments.json {
        output::json(&explanation)?;
        return Ok(ExitCode::SUCCESS);
    }
    output::line(output::printable(&would_sentence(&explanation)))?;
    if explanation.reason != Reason::AboutToStart {
        let words: Vec<String> = std::env::args().skip(1).collect();
        let width = usize::from(terminal::size().columns);
        output::line(explanation::page(&explanation, &Taking::submission(&words), width, Timestamp::now()))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn would_sentence(explanation: &Explanation) -> String {
    if explanation.reason == Reason::AboutToStart {
        return "would start now".to_owned();
    }
    format!("would be {}", words::state_sentence(explanation.state, &explanation.reason))
}

/// Fields that the server refused are shown at their lines, like those refused here.
pub(crate) fn refused(error: ClientError, draft: &JobFile) -> CliError {
    match error {
        ClientError::Problem(problem) if !problem.errors.is_empty() => {
            let failure = job_file::refuse_by_server(draft, problem.errors).with_code(FAILED);
            match problem.hint {
                Some(hint) => failure.hint(hint),
                None => failure,
            }
        }
        other => other.into(),
    }
}
