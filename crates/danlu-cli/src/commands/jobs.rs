//! `danlu jobs`: the list, newest first.

use std::process::ExitCode;

use clap::Args;
use comfy_table::{Cell, Table};
use danlu_client::Client;
use danlu_types::api::{JobQuery, JobView};
use jiff::Timestamp;

use crate::failure::Failure;
use crate::{output, table, terminal, words};

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
    /// Whole sentences, however long; on a terminal they are cut to its width otherwise
    #[arg(long)]
    wide: bool,
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
        let cut = output::stdout_is_terminal() && !arguments.wide;
        let width = cut.then(|| usize::from(terminal::size().columns));
        let table = jobs_table(&jobs, width, Timestamp::now());
        output::line(table::text(&table))?;
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

const NAME: usize = 1;
/// The column whose sentences are cut.
const STATE: usize = 2;
/// Narrower than this, a state says nothing; the lines wrap then.
const NARROWEST_STATE: usize = 12;
const LONGEST_NAME: usize = 32;

/// With a width, one line for each job: names and states are cut to it.
pub(crate) fn jobs_table(jobs: &[JobView], width: Option<usize>, now: Timestamp) -> Table {
    let header = ["id", "name", "state", "resources", "waited", "ran", "age"];
    let mut rows: Vec<[String; 7]> = jobs.iter().map(|job| job_row(job, now)).collect();
    if let Some(width) = width {
        for row in &mut rows {
            row[NAME] = shortened(&row[NAME], LONGEST_NAME);
        }
        let others = (0..header.len()).filter(|column| *column != STATE);
        let taken: usize = others
            .map(|column| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0))
            .zip(header.iter().enumerate().filter(|(column, _)| *column != STATE))
            .map(|(widest, (_, name))| widest.max(name.len()) + table::GAP)
            .sum();
        let room = width.saturating_sub(taken + table::GAP).max(NARROWEST_STATE);
        for row in &mut rows {
            row[STATE] = shortened(&row[STATE], room);
        }
    }
    let mut table = table::new(header);
    for (row, job) in rows.into_iter().zip(jobs) {
        let color = words::state_color(job.state, job.outcome);
        table.add_row(row.into_iter().enumerate().map(|(column, text)| match column {
            STATE => Cell::new(text).fg(color),
            _ => Cell::new(text),
        }));
    }
    table
}

fn job_row(job: &JobView, now: Timestamp) -> [String; 7] {
    let mut state = words::state_sentence(job.state, &job.reason);
    if let Some(done) = job.progress.as_ref().and_then(|progress| progress.done) {
        state = format!("{state}, {done}");
    }
    [
        job.id.to_string(),
        output::printable(&job.name),
        output::printable(&state),
        words::resources(&job.spec),
        words::waited(job, now),
        words::ran(job, now),
        words::ago(job.submitted_at, now),
    ]
}

/// At most so many characters, the last of which says that there were more.
fn shortened(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let kept: String = text.chars().take(most.saturating_sub(1)).collect();
    format!("{}…", kept.trim_end())
}
