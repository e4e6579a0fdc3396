//! `danlu run`: submit, follow, and exit as the job does.

use std::process::ExitCode;

use clap::Args;
use danlu_client::{Client, ClientError, Followed, LogFollow};
use danlu_types::api::{LogMessage, LogQuery, StopRequest};
use danlu_types::{JobId, Span};
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::follow::Screen;
use super::submit;
use crate::failure::CliError;
use crate::job_flags::JobFlags;
use crate::output;

/// As a shell says it of a program that ended by SIGINT.
const INTERRUPTED: u8 = 130;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    job: JobFlags,
    /// Submit the job and print its id without following it
    #[arg(long)]
    detach: bool,
}

pub(crate) async fn run(
    client: impl FnOnce() -> Result<Client, ClientError>,
    arguments: Arguments,
) -> Result<ExitCode, CliError> {
    let (client, job) = submit::submit_one(client, &arguments.job).await?;
    if arguments.detach {
        output::line(job.id.to_string())?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut screen = Screen::new(&job);
    screen.state(job.state, &job.reason);
    let follow = client.logs_follow(job.id, LogQuery::default());
    let interrupts = signal(SignalKind::interrupt())
        .map_err(|error| CliError::new("cannot watch for Ctrl-C").caused_by(&error))?;
    follow_to_the_end(&client, job.id, follow, interrupts, &mut screen).await
}

async fn follow_to_the_end(
    client: &Client,
    job: JobId,
    mut follow: LogFollow,
    mut interrupts: Signal,
    screen: &mut Screen,
) -> Result<ExitCode, CliError> {
    let mut asked = 0;
    loop {
        let followed = tokio::select! {
            followed = follow.next() => followed?,
            _ = interrupts.recv() => {
                asked += 1;
                // The server may not answer; who is tired of waiting for it presses again.
                while asked <= 2 {
                    tokio::select! {
                        () = ask_to_stop(client, job, asked, screen) => break,
                        _ = interrupts.recv() => asked += 1,
                    }
                }
                if asked > 2 {
                    return Ok(ExitCode::from(INTERRUPTED));
                }
                continue;
            }
        };
        match followed {
            Some(Followed::Message(LogMessage::Lines { lines })) => screen.lines(&lines)?,
            Some(Followed::Message(LogMessage::State { state, reason })) => screen.state(state, &reason),
            Some(Followed::Message(LogMessage::End { outcome, exit_code, reason })) => {
                screen.end(outcome, &reason);
                return Ok(ExitCode::from(shell_code(exit_code)));
            }
            Some(Followed::Lost) => {
                screen.say("the server went away; the job goes on, waiting for the server…");
            }
            Some(Followed::Back) => screen.say("the server is back"),
            None => return Ok(ExitCode::SUCCESS),
        }
    }
}

async fn ask_to_stop(client: &Client, job: JobId, asked: u32, screen: &mut Screen) {
    let (text, grace) = if asked == 1 {
        (
            format!(
                "stopping job {job}; Ctrl-C again kills it at once (`danlu run --detach` leaves jobs running)"
            ),
            None,
        )
    } else {
        (format!("killing job {job}; Ctrl-C again leaves it to the server"), Some(Span::default()))
    };
    screen.say(&text);
    if let Err(error) = client.job_stop(job, &StopRequest { grace }).await {
        screen.say(&format!("could not ask the server to stop job {job}: {error}"));
    }
}

/// Exit codes are bytes; what is none of them still must not read as success.
fn shell_code(code: i32) -> u8 {
    match code {
        0 => 0,
        _ => u8::try_from(code & 0xff).ok().filter(|code| *code != 0).unwrap_or(1),
    }
}
