//! `danlu logs`: what a job wrote.

use std::process::ExitCode;

use clap::Args;
use danlu_client::{Client, Followed};
use danlu_types::api::{JobState, JobView, LogLine, LogMessage, LogQuery};
use danlu_types::{AttemptNumber, JobId, Rank};

use super::follow::{LineStyle, is_report};
use crate::failure::CliError;
use crate::{output, target, words};

const LINES_A_PAGE: u32 = 10_000;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Job id or name
    job: String,
    /// Print new lines as they arrive, until the job ends
    #[arg(short, long)]
    follow: bool,
    /// Only lines of this rank, e.g. `0`
    #[arg(long, value_name = "N")]
    rank: Option<u32>,
    /// Number of the attempt [default: the last; with `--search`, all]
    #[arg(long, value_name = "N")]
    attempt: Option<u32>,
    /// Only lines that contain this text
    #[arg(long, value_name = "TEXT")]
    search: Option<String>,
    /// Treat `--search` as a regular expression
    #[arg(long, requires = "search")]
    regex: bool,
    /// Number of lines to print, counted from the end
    #[arg(long, value_name = "N")]
    tail: Option<u32>,
    /// Start each line with its time
    #[arg(long)]
    timestamps: bool,
    /// Include the lines with which the program reports progress and metrics (`::danlu …`)
    #[arg(long, visible_alias = "raw")]
    reports: bool,
    /// Print each line as a JSON object, including program reports
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(client: Client, arguments: Arguments) -> Result<ExitCode, CliError> {
    let id = target::job_id(&client, &arguments.job).await?;
    let job = client.job_fetch(id).await?;
    let mut attempts = vec![arguments.attempt.map(AttemptNumber)];
    if arguments.search.is_some()
        && !arguments.follow
        && arguments.attempt.is_none()
        && job.attempts.len() > 1
    {
        attempts = job.attempts.iter().map(|attempt| Some(attempt.number)).collect();
    }
    let query = LogQuery {
        attempt: attempts[0],
        rank: arguments.rank.map(Rank),
        search: arguments.search.clone(),
        regex: arguments.regex.then_some(true),
        tail: arguments.tail.filter(|_| arguments.follow).map(|tail| tail.min(LINES_A_PAGE)),
        ..LogQuery::default()
    };
    let mut style = LineStyle::of(&job);
    style.with_rank &= arguments.rank.is_none();
    style.with_time = arguments.timestamps;
    style.with_attempt = attempts.len() > 1;
    // Who looks for reports means to see them.
    let sought = arguments.search.as_ref().is_some_and(|text| text.contains("::danlu"));
    let reports = arguments.reports || arguments.json || sought;
    let shown = |line: &LogLine| reports || !is_report(line);
    let print = |lines: &[LogLine]| {
        let text = |line: &LogLine| {
            if arguments.json {
                serde_json::to_string(line).expect("log lines are plain values")
            } else {
                style.text(line)
            }
        };
        output::lines(lines.iter().filter(|line| shown(line)).map(text))
    };
    if let Some(sentence) = nothing_yet(&job, arguments.follow) {
        output::say(sentence);
    }
    if arguments.follow {
        follow(&client, id, query, print).await?;
    } else if let Some(tail) = arguments.tail {
        let mut last = Vec::new();
        for attempt in attempts {
            let query = LogQuery { attempt, ..query.clone() };
            last.extend(read_tail(&client, id, query, tail as usize, shown).await?);
        }
        print(&last[last.len().saturating_sub(tail as usize)..])?;
    } else {
        for attempt in attempts {
            read(&client, id, LogQuery { attempt, ..query.clone() }, print).await?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Why there is nothing to print, of a job that has not started.
fn nothing_yet(job: &JobView, follow: bool) -> Option<String> {
    let waits = matches!(job.state, JobState::Queued | JobState::Held) && job.attempts.is_empty();
    let state = words::state_sentence(job.state, &job.reason);
    let id = job.id;
    waits.then(|| {
        if follow {
            format!("job {id} is {state}; its output follows when it starts")
        } else {
            format!("job {id} has no output yet: it is {state} (`danlu why {id}` says more)")
        }
    })
}

/// The last lines that are shown: where reports are left out, more has to be read for as many.
async fn read_tail(
    client: &Client,
    id: JobId,
    mut query: LogQuery,
    count: usize,
    shown: impl Fn(&LogLine) -> bool,
) -> Result<Vec<LogLine>, CliError> {
    let mut wanted = u32::try_from(count).unwrap_or(LINES_A_PAGE).clamp(1, LINES_A_PAGE);
    loop {
        (query.tail, query.limit) = (Some(wanted), Some(wanted));
        let page = client.logs_read(id, &query).await?;
        let enough = page.items.iter().filter(|line| shown(line)).count() >= count;
        if enough || wanted == LINES_A_PAGE || page.before.is_none() {
            return Ok(page.items.into_iter().filter(|line| shown(line)).collect());
        }
        wanted = wanted.saturating_mul(4).min(LINES_A_PAGE);
    }
}

async fn read(
    client: &Client,
    id: JobId,
    mut query: LogQuery,
    print: impl Fn(&[LogLine]) -> Result<(), CliError>,
) -> Result<(), CliError> {
    query.limit = Some(LINES_A_PAGE);
    loop {
        let page = client.logs_read(id, &query).await?;
        print(&page.items)?;
        // A page of a search may be empty although there is more to read.
        match page.next {
            Some(next) => query.cursor = Some(next),
            None => return Ok(()),
        }
    }
}

async fn follow(
    client: &Client,
    id: JobId,
    query: LogQuery,
    print: impl Fn(&[LogLine]) -> Result<(), CliError>,
) -> Result<(), CliError> {
    let mut follow = client.logs_follow(id, query);
    let mut said = String::new();
    while let Some(followed) = follow.next().await? {
        match followed {
            Followed::Message(LogMessage::Lines { lines }) => print(&lines)?,
            Followed::Message(LogMessage::End { reason, .. }) => {
                output::say(format!("job {id}: {reason}"));
            }
            // Between its attempts, too, a job may wait long.
            Followed::Message(LogMessage::State { state: JobState::Queued | JobState::Held, reason }) => {
                let sentence = format!("job {id} is not running yet: {reason}");
                if std::mem::replace(&mut said, sentence.clone()) != sentence {
                    output::say(sentence);
                }
            }
            Followed::Message(LogMessage::State { .. }) => {}
            Followed::Lost => output::say("the server went away; waiting for it…"),
            Followed::Back => output::say("the server is back"),
        }
    }
    Ok(())
}
