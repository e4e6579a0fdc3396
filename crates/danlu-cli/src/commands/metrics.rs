//! `danlu metrics`: what a job's program last said of its training.

use std::collections::BTreeMap;
use std::process::ExitCode;

use clap::Args;
use comfy_table::Cell;
use danlu_client::Client;
use danlu_types::api::{MetricPoint, SeriesQuery};
use danlu_types::{AttemptNumber, WorkerIndex};

use crate::failure::CliError;
use crate::{output, table, target, words};

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Job id or name
    job: String,
    /// Number of the attempt [default: the last]
    #[arg(long, value_name = "N")]
    attempt: Option<u32>,
    /// Index of the worker whose ranks to show, from 0
    #[arg(long, value_name = "N", default_value_t = 0)]
    worker: u32,
    /// Number of reports to read, counted from the newest
    #[arg(long, value_name = "N", default_value_t = 1000)]
    tail: u32,
    /// Print all these reports as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(client: Client, arguments: Arguments) -> Result<ExitCode, CliError> {
    let id = target::job_id(&client, &arguments.job).await?;
    let query = SeriesQuery {
        attempt: arguments.attempt.map(AttemptNumber),
        worker: Some(WorkerIndex(arguments.worker)),
        tail: Some(arguments.tail),
        ..SeriesQuery::default()
    };
    let points = client.metrics_read(id, &query).await?.items;
    if arguments.json {
        output::json(&points)?;
        return Ok(ExitCode::SUCCESS);
    }
    if points.is_empty() {
        output::say(
            "the program has reported no metrics; it does so with lines such as `::danlu metric loss=0.31`",
        );
        return Ok(ExitCode::SUCCESS);
    }
    let mut table = table::new(["metric", "value", "step", "rank", "at"]);
    for (name, (point, value)) in last_values(&points) {
        table.add_row([
            Cell::new(output::printable(name)),
            Cell::new(value.map_or("not a number".to_owned(), |value| value.to_string())),
            Cell::new(point.step.map_or(String::new(), |step| step.to_string())),
            Cell::new(point.rank),
            Cell::new(words::clock(point.at)),
        ]);
    }
    table::print(&mut table)?;
    Ok(ExitCode::SUCCESS)
}

/// Of each metric the newest, with who said it.
fn last_values(points: &[MetricPoint]) -> BTreeMap<&str, (&MetricPoint, Option<f64>)> {
    let mut last = BTreeMap::new();
    for point in points {
        last.extend(point.values.iter().map(|(name, value)| (name.as_str(), (point, *value))));
    }
    last
}
