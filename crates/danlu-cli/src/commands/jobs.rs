//! `danlu jobs`: the list, newest first.

use std::process::ExitCode;

use clap::Args;
use comfy_table::{Cell, Table};
use danlu_client::Client;
use danlu_types::api::{JobQuery, JobView};
use jiff::Timestamp;

use crate::failure::Failure;
use crate::{output, table, words};

const A_SCREENFUL: u32 = 20;
const A_PAGE: u32 = 1000;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// States or outcomes: `--state queued,running` or `--state failed`
    #[arg(long, value_name = "STATES")]
    state: Option<String>,
    /// Every job, not only the newest
    #[arg(long, conflicts_with = "limit")]
    all: bool,
    /// How many at most [default: 20]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    limit: Option<u32>,
    /// Part of the name
    #[arg(long, value_name = "TEXT")]
    search: Option<String>,
    /// Only this workspace
    #[arg(long)]
    workspace: Option<String>,
    /// Only what this person submitted
    #[arg(long, value_name = "NAME")]
    owner: Option<String>,
    /// Only jobs with this label
    #[arg(long, value_name = "KEY=VALUE")]
    label: Option<String>,
    /// How many there are in each state, instead of a list
    #[arg(long, conflicts_with_all = ["all", "limit"])]
    count: bool,
    /// Prints JSON
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(client: Client, arguments: Arguments) -> Result<ExitCode, Failure> {
    let most = if arguments.all { usize::MAX } else { arguments.limit.unwrap_or(A_SCREENFUL) as usize };
    let mut query = JobQuery {
        state: arguments.state,
        workspace: arguments.workspace,
        owner: arguments.owner,
        search: arguments.search,
        label: arguments.label,
        ..JobQuery::default()
    };
    if arguments.count {
        return count(&client, &query, arguments.json).await;
    }
    let mut jobs = Vec::new();
    let mut more = true;
    while more && jobs.len() < most {
        let wanted = u32::try_from(most - jobs.len()).unwrap_or(A_PAGE).min(A_PAGE);
        query.limit = Some(wanted);
        let page = client.jobs_list(&query).await?;
        jobs.extend(page.items);
        more = page.next.is_some();
        query.cursor = page.next;
    }
    if arguments.json {
        output::json(&jobs)?;
    } else if jobs.is_empty() {
        output::say("no jobs; `danlu run -- python train.py` starts one");
    } else {
        table::print(&mut jobs_table(&jobs, Timestamp::now()))?;
        if more {
            output::say(format!("the newest {}; `danlu jobs --all` lists every job", jobs.len()));
        }
    }
    Ok(ExitCode::SUCCESS)
}

async fn count(client: &Client, query: &JobQuery, json: bool) -> Result<ExitCode, Failure> {
    let counts = client.jobs_count(query).await?;
    if json {
        output::json(&counts)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut table = table::new(["state", "jobs"]);
    for (state, number) in &counts.by_state {
        table.add_row([state.clone(), number.to_string()]);
    }
    table::print(&mut table)?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn jobs_table(jobs: &[JobView], now: Timestamp) -> Table {
    let mut table = table::new(["id", "name", "state", "resources", "waited", "ran", "age"]);
    for job in jobs {
        let mut state = words::state_sentence(job.state, &job.reason);
        if let Some(done) = job.progress.as_ref().and_then(|progress| progress.done) {
            state = format!("{state}, {done}");
        }
        table.add_row([
            Cell::new(job.id),
            Cell::new(output::printable(&job.name)),
            Cell::new(output::printable(&state)).fg(words::state_color(job.state, job.outcome)),
            Cell::new(words::resources(&job.spec)),
            Cell::new(words::waited(job, now)),
            Cell::new(words::ran(job, now)),
            Cell::new(words::ago(job.submitted_at, now)),
        ]);
    }
    table
}
