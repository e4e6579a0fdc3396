//! `danlu logs`: what a job wrote.

use std::process::ExitCode;

use clap::Args;
use danlu_client::{Client, Followed};
use danlu_types::api::{LogLine, LogMessage, LogQuery};
use danlu_types::{AttemptNumber, JobId, Rank};

use super::follow::LineStyle;
use crate::failure::Failure;
use crate::{output, target};

const LINES_A_PAGE: u32 = 10_000;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The job's number or name
    job: String,
    /// Goes on as lines come, until the job has ended
    #[arg(short, long)]
    follow: bool,
    /// Only this rank
    #[arg(long, value_name = "N")]
    rank: Option<u32>,
    /// Another attempt than the last
    #[arg(long, value_name = "N")]
    attempt: Option<u32>,
    /// Only lines that hold this text
    #[arg(long, value_name = "TEXT")]
    search: Option<String>,
    /// Reads `--search` as a regular expression
    #[arg(long, requires = "search")]
    regex: bool,
    /// Only the last so many lines
    #[arg(long, value_name = "N")]
    tail: Option<u32>,
    /// Begins each line with its time
    #[arg(long)]
    timestamps: bool,
    /// Prints one JSON object a line
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(client: Client, arguments: Arguments) -> Result<ExitCode, Failure> {
    let id = target::job_id(&client, &arguments.job).await?;
    let job = client.job_fetch(id).await?;
    let query = LogQuery {
        attempt: arguments.attempt.map(AttemptNumber),
        rank: arguments.rank.map(Rank),
        search: arguments.search.clone(),
        regex: arguments.regex.then_some(true),
        tail: arguments.tail,
        ..LogQuery::default()
    };
    let mut style = LineStyle::of(&job);
    style.with_rank &= arguments.rank.is_none();
    style.with_time = arguments.timestamps;
    let print = |lines: &[LogLine]| {
        let text = |line: &LogLine| {
            if arguments.json {
                serde_json::to_string(line).expect("log lines are plain values")
            } else {
                style.text(line)
            }
        };
        output::lines(lines.iter().map(text))
    };
    if arguments.follow {
        follow(&client, id, query, print).await?;
    } else {
        read(&client, id, query, print).await?;
    }
    Ok(ExitCode::SUCCESS)
}

async fn read(
    client: &Client,
    id: JobId,
    mut query: LogQuery,
    print: impl Fn(&[LogLine]) -> Result<(), Failure>,
) -> Result<(), Failure> {
    query.limit = Some(query.tail.unwrap_or(LINES_A_PAGE).clamp(1, LINES_A_PAGE));
    loop {
        let page = client.logs_read(id, &query).await?;
        print(&page.items)?;
        // A page of a search may be empty although there is more to read.
        match page.next {
            Some(next) if query.tail.is_none() => query.cursor = Some(next),
            _ => return Ok(()),
        }
    }
}

async fn follow(
    client: &Client,
    id: JobId,
    query: LogQuery,
    print: impl Fn(&[LogLine]) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut follow = client.logs_follow(id, query);
    while let Some(followed) = follow.next().await? {
        match followed {
            Followed::Message(LogMessage::Lines { lines }) => print(&lines)?,
            Followed::Message(LogMessage::End { reason, .. }) => {
                output::say(format!("job {id}: {}", reason.text));
            }
            Followed::Message(LogMessage::State { .. }) => {}
            Followed::Lost => output::say("the server went away; waiting for it…"),
            Followed::Back => output::say("the server is back"),
        }
    }
    Ok(())
}
