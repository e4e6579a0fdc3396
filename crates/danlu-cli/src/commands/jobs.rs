//! `danlu jobs`: the list, newest first.

use std::process::ExitCode;

use clap::Args;
use comfy_table::{Cell, Table};
use danlu_client::Client;
use danlu_types::api::{JobQuery, JobView};
use jiff::Timestamp;

use crate::failure::CliError;
use crate::{output, table, terminal, words};

const A_SCREENFUL: u32 = 20;
const A_PAGE: u32 = 1000;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Only jobs with these states or outcomes, e.g. `queued,running` or `failed`
    #[arg(long, value_name = "STATES")]
    state: Option<String>,
    /// List all jobs, not only the newest
    #[arg(long, conflicts_with = "limit")]
    all: bool,
    /// Number of jobs to list [default: 20]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    limit: Option<u32>,
    /// Only jobs whose name contains this text
    #[arg(long, value_name = "TEXT")]
    search: Option<String>,
    /// Only jobs of this workspace
    #[arg(long)]
    workspace: Option<String>,
    /// Only jobs of this account
    #[arg(long, value_name = "ACCOUNT")]
    owner: Option<String>,
    /// Only jobs with this label, e.g. `team=vision`
    #[arg(long, value_name = "KEY=VALUE")]
    label: Option<String>,
    /// Print the number of jobs in each state instead of a list
    #[arg(long, conflicts_with_all = ["all", "limit"])]
    count: bool,
    /// Print long reasons in full; by default, they are cut to the width of the terminal
    #[arg(long)]
    wide: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(client: Client, arguments: Arguments) -> Result<ExitCode, CliError> {
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

async fn count(client: &Client, query: &JobQuery, json: bool) -> Result<ExitCode, CliError> {
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
const STATE: usize = 2;
const RESOURCES: usize = 3;
const LONGEST_NAME: usize = 32;
/// Names and resources are cut to this before a state is cut below what says something.
const NARROWEST: usize = 12;
const READABLE_STATE: usize = 24;

/// With a width, one line for each job: names and states are cut to it.
pub(crate) fn jobs_table(jobs: &[JobView], width: Option<usize>, now: Timestamp) -> Table {
    let header = ["id", "name", "state", "resources", "waited", "ran", "age"];
    let mut rows: Vec<[String; 7]> = jobs.iter().map(|job| job_row(job, now)).collect();
    if let Some(width) = width {
        let widest = |column: usize| {
            let cells = rows.iter().map(|row| table::columns(&row[column]));
            cells.chain([header[column].len()]).max().unwrap_or(0)
        };
        let cut = [NAME, STATE, RESOURCES];
        let fixed: usize = (0..header.len()).filter(|column| !cut.contains(column)).map(widest).sum();
        let room = width.saturating_sub(fixed + header.len() * table::GAP);
        let widths = share([widest(NAME), widest(STATE), widest(RESOURCES)], room);
        for row in &mut rows {
            for (column, width) in cut.into_iter().zip(widths) {
                row[column] = shortened(&row[column], width);
            }
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

/// How wide names, states and resources are where this is the room for all three. States, which are sentences, give way
/// first, down to what can still be read; then names, then resources.
fn share([name, state, resources]: [usize; 3], room: usize) -> [usize; 3] {
    let name = name.min(LONGEST_NAME);
    let over = (name + resources + state.min(READABLE_STATE)).saturating_sub(room);
    let shorter_name = name.saturating_sub(over).max(name.min(NARROWEST));
    let over = over - (name - shorter_name);
    let shorter_resources = resources.saturating_sub(over).max(resources.min(NARROWEST));
    let left = room.saturating_sub(shorter_name + shorter_resources);
    [shorter_name, state.min(left.max(NARROWEST)), shorter_resources]
}

/// At most so many columns of a terminal, the last of which says that there was more.
fn shortened(text: &str, most: usize) -> String {
    if table::columns(text) <= most {
        return text.to_owned();
    }
    let mut kept = String::new();
    for character in text.chars() {
        if table::columns(&kept) + table::columns_of(character) + 1 > most {
            break;
        }
        kept.push(character);
    }
    format!("{}…", kept.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_give_way_first_then_names_then_resources() {
        assert_eq!(share([10, 30, 10], 60), [10, 30, 10], "all fit");
        assert_eq!(share([10, 90, 10], 60), [10, 40, 10]);
        assert_eq!(share([63, 90, 10], 60), [26, 24, 10]);
        assert_eq!(share([63, 90, 30], 60), [12, 24, 24]);
        assert_eq!(share([63, 90, 30], 40), [12, 16, 12]);
        assert_eq!(share([63, 90, 30], 0), [12, 12, 12], "the lines wrap");
        assert_eq!(share([4, 90, 6], 20), [4, 12, 6]);
    }

    #[test]
    fn what_is_cut_fits_also_where_characters_are_wide() {
        assert_eq!(shortened("abcdef", 6), "abcdef");
        assert_eq!(shortened("abcdefg", 6), "abcde…");
        assert_eq!(shortened("文件夹很长", 6), "文件…");
        assert_eq!(shortened("文件夹很长", 7), "文件夹…");
        assert_eq!(shortened("文件夹", 0), "…");
    }
}
