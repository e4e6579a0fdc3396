//! `danlu events`: what happened, oldest first.

use std::process::ExitCode;

use clap::Args;
use comfy_table::Cell;
use danlu_client::Client;
use danlu_types::api::EventQuery;

use crate::failure::CliError;
use crate::{output, table, target, words};

const A_PAGE: u32 = 1000;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Job id or name [default: events of all jobs and nodes]
    job: Option<String>,
    /// Number of events to list, counted from the newest
    #[arg(long, value_name = "N", default_value_t = 100)]
    tail: usize,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(client: Client, arguments: Arguments) -> Result<ExitCode, CliError> {
    let job = match &arguments.job {
        Some(job) => Some(target::job_id(&client, job).await?),
        None => None,
    };
    let mut query = EventQuery { job, cursor: None, limit: Some(A_PAGE) };
    let mut events = Vec::new();
    loop {
        let page = client.events_list(&query).await?;
        let read_all = page.items.is_empty() || page.next.is_none();
        events.extend(page.items);
        events.drain(..events.len().saturating_sub(arguments.tail));
        if read_all {
            break;
        }
        query.cursor = page.next;
    }
    if arguments.json {
        output::json(&events)?;
        return Ok(ExitCode::SUCCESS);
    }
    if events.is_empty() {
        output::say("nothing has happened yet");
        return Ok(ExitCode::SUCCESS);
    }
    let mut table = table::new(["number", "at", "job", "by", "what"]);
    for event in &events {
        table.add_row([
            Cell::new(event.number),
            Cell::new(words::clock(event.at)),
            Cell::new(event.job.map_or(String::new(), |job| job.to_string())),
            Cell::new(&event.actor),
            Cell::new(output::printable(&event.message)),
        ]);
    }
    table::print(&mut table)?;
    Ok(ExitCode::SUCCESS)
}
