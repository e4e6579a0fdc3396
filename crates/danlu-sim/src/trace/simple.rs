//! Danlu's own table of jobs: one line for each, columns by name, values as in job files.
//!
//! Only `submit` and `duration` are needed. `submit` is a time since the start (`90s`, `1h30m`) or a moment
//! (`2026-01-31T08:00:00Z`, `2026-01-31 08:00:00`); one file uses one of the two.

use std::io::BufRead;

use danlu_core::WorkerEnd;
use danlu_types::{DeviceRequest, JobSpec, Span};
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use super::csv::{Row, Table, shown};
use super::{Assumptions, Trace, TraceError, from_first_submission};
use crate::story::{SimJob, WorkerScript};

const REQUIRED: [&str; 2] = ["submit", "duration"];
const KNOWN: [&str; 12] = [
    "workers",
    "devices",
    "kind",
    "model",
    "cpus",
    "memory",
    "workspace",
    "user",
    "priority",
    "preemptible",
    "max_time",
    "name",
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Clock {
    SinceStart,
    Moments,
}

/// Reads the table; it says nothing about nodes.
pub fn read(file: &str, input: impl BufRead, assumptions: &Assumptions) -> Result<Trace, TraceError> {
    let mut table = Table::new(file, input, &REQUIRED, &KNOWN)?;
    let mut jobs = Vec::new();
    let mut clock = None;
    while let Some(row) = table.next_row()? {
        let (submit_at, written_as) = submit(&row)?;
        if *clock.get_or_insert(written_as) != written_as {
            let problem = "mixes times since the start and moments; use one of them".to_owned();
            return Err(row.wrong("submit", problem));
        }
        jobs.push(job(&row, submit_at, assumptions)?);
    }
    from_first_submission(&mut jobs);
    let notes = vec![format!("{} jobs of `{file}`", jobs.len()), assumptions.note()];
    Ok(Trace { name: file.to_owned(), jobs, notes, ..Trace::default() })
}

fn submit(row: &Row<'_>) -> Result<(Span, Clock), TraceError> {
    let text = row.required("submit")?;
    if let Ok(span) = text.parse() {
        return Ok((span, Clock::SinceStart));
    }
    let in_utc = |time: DateTime| time.to_zoned(TimeZone::UTC).ok().map(|zoned| zoned.timestamp());
    let moment: Option<Timestamp> =
        text.parse().ok().or_else(|| text.parse::<DateTime>().ok().and_then(in_utc));
    let since = moment.and_then(|moment| u64::try_from(moment.as_millisecond()).ok());
    let milliseconds = since.ok_or_else(|| {
        let problem = format!(
            "`{}` is not a time; write one since the start such as `1h30m`, or a moment such as `2026-01-31 08:00:00`",
            shown(text)
        );
        row.wrong("submit", problem)
    })?;
    Ok((Span { milliseconds }, Clock::Moments))
}

fn job(row: &Row<'_>, submit_at: Span, assumptions: &Assumptions) -> Result<SimJob, TraceError> {
    row.required("duration")?;
    let runs: Span = row.value("duration")?.unwrap_or_default();
    let mut spec = JobSpec::of_command("true");
    spec.name = row.text("name").map_or_else(|| format!("line-{}", row.line), str::to_owned);
    if let Some(workers) = row.number("workers", "a whole number such as `2`")? {
        spec.workers = workers;
    }
    spec.devices = DeviceRequest {
        kind: row.value("kind")?,
        model: row.text("model").map(str::to_owned),
        count: row.value("devices")?.unwrap_or_default(),
    };
    if let Some(cpus) = row.value("cpus")? {
        spec.cpus = cpus;
    }
    spec.memory = row.value("memory")?;
    if let Some(workspace) = row.text("workspace") {
        workspace.clone_into(&mut spec.workspace);
    }
    if let Some(priority) = row.number("priority", "a whole number from 1 to 9")? {
        spec.priority = Some(priority);
    }
    spec.preemptible = match row.text("preemptible") {
        Some("true" | "yes" | "1") => true,
        Some("false" | "no" | "0") | None => false,
        Some(other) => {
            let problem = format!("`{}` is neither `true` nor `false`", shown(other));
            return Err(row.wrong("preemptible", problem));
        }
    };
    spec.max_time = row.value("max_time")?;
    if let Some(error) = spec.check().into_iter().next() {
        let column = match error.field.as_str() {
            "devices.count" | "devices" => "devices",
            "devices.model" => "model",
            field => field,
        };
        return Err(row.wrong(column, error.message));
    }
    let mut job = SimJob::succeeding(submit_at, spec, runs);
    job.parts = vec![WorkerScript { runs, exit: WorkerEnd::Succeeded }];
    if let Some(user) = row.text("user") {
        user.clone_into(&mut job.owner);
    }
    assumptions.apply(&mut job);
    Ok(job)
}

#[cfg(test)]
mod tests {
    use danlu_types::DeviceKind;

    use super::*;

    fn read_text(text: &str) -> Result<Trace, TraceError> {
        read("jobs.csv", text.as_bytes(), &Assumptions::default())
    }

    #[test]
    fn every_column_finds_its_field() {
        let trace = read_text(
            "submit,duration,workers,devices,kind,model,cpus,memory,workspace,user,priority,preemptible,max_time,name\n\
             10s,2h,2,8,ascend,910B*,96,256Gi,vision,ann,7,true,1d,resnet\n\
             5s,90s,,0.5,,,,,,,,,,\n",
        )
        .unwrap();
        let [small, large] = &trace.jobs[..] else { panic!("two jobs") };
        assert_eq!((small.submit_at, small.parts[0].runs), (Span::default(), Span::from_seconds(90)));
        assert_eq!((small.spec.name.as_str(), small.spec.devices.count.milli()), ("line-3", 500));
        assert_eq!((large.submit_at, large.owner.as_str()), (Span::from_seconds(5), "ann"));
        let spec = &large.spec;
        assert_eq!((spec.workers, spec.devices.kind), (2, Some(DeviceKind::Ascend)));
        assert_eq!((spec.name.as_str(), spec.workspace.as_str(), spec.priority()), ("resnet", "vision", 7));
        assert!(spec.preemptible && spec.max_time == Some(Span::from_seconds(86_400)));
    }

    #[test]
    fn moments_count_from_the_first() {
        let trace = read_text("submit,duration\n2026-01-31T08:00:30Z,1m\n2026-01-31 08:00:00,1m\n").unwrap();
        let times: Vec<Span> = trace.jobs.iter().map(|job| job.submit_at).collect();
        assert_eq!(times, [Span::default(), Span::from_seconds(30)]);
    }

    #[test]
    fn bad_rows_are_named_with_what_would_be_right() {
        let said = |header: &str, row: &str| {
            read_text(&format!("submit,duration{header}\n0s,1h{row}\n")).unwrap_err().to_string()
        };
        let first = |row: &str| read_text(&format!("submit,duration\n{row}\n")).unwrap_err().to_string();
        insta::assert_snapshot!(first("soon,1h"), @"`jobs.csv` line 2, column `submit`: `soon` is not a time; write one since the start such as `1h30m`, or a moment such as `2026-01-31 08:00:00`");
        insta::assert_snapshot!(first("0s,long"), @"`jobs.csv` line 2, column `duration`: `long` is not a length of time; write a time with a unit, such as `90s`, `30m`, `24h` or `1d12h`");
        insta::assert_snapshot!(first("0s,"), @"`jobs.csv` line 2, column `duration`: is empty, but needed");
        insta::assert_snapshot!(first("0s,1h\n2026-01-31 08:00:00,1h"), @"`jobs.csv` line 3, column `submit`: mixes times since the start and moments; use one of them");
        insta::assert_snapshot!(said(",devices", ",1.5"), @"`jobs.csv` line 2, column `devices`: `1.5` is not a number of devices; write a whole number of devices such as `8`, or a share of one such as `0.5`");
        insta::assert_snapshot!(said(",kind", ",tpu"), @"`jobs.csv` line 2, column `kind`: `tpu` is not a device kind; write `nvidia` or `ascend`");
        insta::assert_snapshot!(said(",priority", ",12"), @"`jobs.csv` line 2, column `priority`: is 12; it must be between 1 and 9");
        insta::assert_snapshot!(said(",preemptible", ",maybe"), @"`jobs.csv` line 2, column `preemptible`: `maybe` is neither `true` nor `false`");
        insta::assert_snapshot!(said(",workers", ",0"), @"`jobs.csv` line 2, column `workers`: is 0; it must be between 1 and 65536");
    }
}
