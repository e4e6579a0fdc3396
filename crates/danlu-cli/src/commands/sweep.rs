//! `danlu sweep`: the evening's clean-up of devices that are used without a job.

use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use clap::Args;
use comfy_table::{Cell, Table};
use danlu_core::launch::ProcessIdentity;
use danlu_device::inventory;
use danlu_device::machine::Machine;
use danlu_device::sweep::{
    Exclusions, Here, HoldingProcess, KillResult, ProcessOwner, end, plan_sweep, tell,
};
use danlu_types::Span;
use jiff::Zoned;
use jiff::civil::Time;
use serde::Serialize;

use crate::failure::CliError;
use crate::{output, table, words};

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Terminate the processes, and kill those that still run after the grace period
    #[arg(long)]
    end: bool,
    /// Time to terminate them, e.g. `23:00` [default: at once]
    #[arg(long, value_name = "TIME", requires = "end")]
    at: Option<Time>,
    /// Grace period between SIGTERM and SIGKILL
    #[arg(long, default_value = "30s", value_name = "DURATION", requires = "end")]
    grace: Span,
    /// Users whose processes are left alone, e.g. `root,ci-*`
    #[arg(long, value_delimiter = ',', value_name = "USER")]
    except_user: Vec<String>,
    /// Names of processes that are left alone, e.g. `Xorg,jupyter*`
    #[arg(long, value_delimiter = ',', value_name = "NAME")]
    except_name: Vec<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Serialize)]
struct Line {
    #[serde(flatten)]
    holder: HoldingProcess,
    /// Absent in a dry run, and for those that were found too late to be told.
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<KillResult>,
}

pub(crate) fn run(arguments: Arguments) -> Result<ExitCode, CliError> {
    let exclusions =
        Exclusions { users: arguments.except_user.clone(), names: arguments.except_name.clone() };
    let reader = inventory::look(Machine::this()).reader;
    let look = || -> Result<Vec<HoldingProcess>, CliError> {
        let readings = reader.read().map_err(CliError::new)?;
        Ok(plan_sweep(&readings, &exclusions, &Here))
    };
    let found = look()?;
    let lines: Vec<Line> = if arguments.end {
        let known: Vec<_> = foreign(&found).filter_map(|holder| holder.identity).collect();
        let when = match arguments.at {
            None => "now".to_owned(),
            Some(at) => format!("at {}", at.strftime("%H:%M")),
        };
        for holder in foreign(&found) {
            let terminals = tell(holder.user.as_deref().unwrap_or_default(), &message(holder, &when));
            output::say(format!("pid {} of {}: told on {terminals} terminals", holder.pid, user(holder)));
        }
        let found = match arguments.at {
            Some(at) if !known.is_empty() => {
                wait_until(&next(&Zoned::now(), at)?);
                look()?
            }
            _ => found,
        };
        end_all(found, &known, arguments.grace.to_duration())
    } else {
        found.into_iter().map(|holder| Line { holder, outcome: None }).collect()
    };
    report(&lines, &arguments)
}

fn foreign(holders: &[HoldingProcess]) -> impl Iterator<Item = &HoldingProcess> {
    holders.iter().filter(|holder| holder.verdict == ProcessOwner::Foreign)
}

/// All at once: their graces run side by side. Only those whose owners were told.
fn end_all(found: Vec<HoldingProcess>, told: &[ProcessIdentity], grace: Duration) -> Vec<Line> {
    let act = |holder: HoldingProcess| {
        let process = holder.identity.filter(|process| told.iter().any(|known| known == process));
        let process = process.filter(|_| holder.verdict == ProcessOwner::Foreign);
        (holder, process.map(|process| thread::spawn(move || end(process, grace))))
    };
    let begun: Vec<_> = found.into_iter().map(act).collect();
    let line = |(holder, ending): (HoldingProcess, Option<thread::JoinHandle<KillResult>>)| Line {
        holder,
        outcome: ending.and_then(|ending| ending.join().ok()),
    };
    begun.into_iter().map(line).collect()
}

fn report(lines: &[Line], arguments: &Arguments) -> Result<ExitCode, CliError> {
    if arguments.json {
        output::json(&lines)?;
        return Ok(ExitCode::SUCCESS);
    }
    let foreign = lines.iter().filter(|line| line.holder.verdict == ProcessOwner::Foreign).count();
    if lines.is_empty() {
        output::say("nothing uses a device of this machine");
        return Ok(ExitCode::SUCCESS);
    }
    table::print(&mut sweep_table(lines))?;
    output::say(match (foreign, arguments.end) {
        (0, _) => "every program that uses a device is part of a job or left alone".to_owned(),
        (count, false) => format!(
            "{count} without a job; nothing was done: `danlu sweep --end --at 23:00` tells their owners and ends them then"
        ),
        (count, true) => format!("{count} without a job"),
    });
    Ok(ExitCode::SUCCESS)
}

fn sweep_table(lines: &[Line]) -> Table {
    let mut table = table::new(["pid", "user", "program", "devices", "memory", "what it is"]);
    for Line { holder, outcome } in lines {
        let devices: Vec<String> = holder.devices.iter().map(ToString::to_string).collect();
        let verdict = match &holder.verdict {
            ProcessOwner::Leased { job } => format!("part of job {job}"),
            ProcessOwner::Excluded => "left alone".to_owned(),
            ProcessOwner::OutOfReach => "in another container".to_owned(),
            ProcessOwner::Foreign => "no job".to_owned(),
        };
        let outcome = outcome.map_or("", |outcome| match outcome {
            KillResult::AlreadyGone => ": had ended by itself",
            KillResult::Ended => ": ended",
            KillResult::Killed => ": killed",
            KillResult::NotAllowed => ": could not be ended, run as root",
            KillResult::Stuck => ": was killed, but is stuck in the driver",
        });
        table.add_row([
            Cell::new(holder.pid),
            Cell::new(user(holder)),
            Cell::new(output::printable(&holder.name)),
            Cell::new(devices.join(", ")),
            Cell::new(words::size(holder.memory.0)),
            Cell::new(format!("{verdict}{outcome}")),
        ]);
    }
    table
}

fn user(holder: &HoldingProcess) -> &str {
    holder.user.as_deref().unwrap_or("unknown user")
}

fn message(holder: &HoldingProcess, when: &str) -> String {
    let devices: Vec<String> = holder.devices.iter().map(ToString::to_string).collect();
    format!(
        "Danlu: your process {} ({}) uses device {} without a job. It will be ended {when}. Save your work; `danlu run` and `danlu submit` give you devices.",
        holder.pid,
        output::printable(&holder.name),
        devices.join(", ")
    )
}

/// The next time that clocks here show this.
fn next(now: &Zoned, at: Time) -> Result<Zoned, CliError> {
    let on = |day: Zoned| day.with().time(at).build();
    let later = on(now.clone()).and_then(|today| if today > *now { Ok(today) } else { on(now.tomorrow()?) });
    later.map_err(|error| CliError::new(format!("there is no {at} to wait for")).caused_by(&error))
}

/// By the clock, looked at again and again: it may be set, and machines sleep.
fn wait_until(then: &Zoned) {
    const LOOK_AGAIN: Duration = Duration::from_secs(10);
    output::say(format!("waiting until {}", then.strftime("%Y-%m-%d %H:%M")));
    loop {
        let left = Duration::try_from(then.timestamp().duration_since(Zoned::now().timestamp()));
        match left {
            Ok(left) if !left.is_zero() => thread::sleep(left.min(LOOK_AGAIN)),
            _ => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::tz::TimeZone;

    use super::*;

    #[test]
    fn an_hour_that_is_past_today_is_tomorrows() {
        let now = jiff::civil::date(2026, 11, 15).at(15, 0, 0, 0).to_zoned(TimeZone::UTC).unwrap();
        let next = |at: &str| next(&now, at.parse().unwrap()).unwrap().strftime("%d %H:%M").to_string();
        assert_eq!(next("23:00"), "15 23:00");
        assert_eq!(next("07:30"), "16 07:30");
        assert_eq!(next("15:00"), "16 15:00");
    }
}
