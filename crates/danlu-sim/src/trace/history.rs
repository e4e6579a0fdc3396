//! Danlu's own history, as `danlu history export` writes it: what if we had other quotas, policies or more nodes?
//!
//! A job's work is what its attempts did by themselves: a success, a failure of its program, a stop by its owner. What
//! the cluster did to it (preemptions, lost nodes) is left out, because another cluster would do otherwise; with
//! `checkpoint`, the time of such attempts still counts as work done. Jobs that had not ended are left out.

use std::io::BufRead;

use danlu_core::job::WorkerFailure;
use danlu_core::{FailureCause, WorkerEnd};
use danlu_types::Span;
use danlu_types::api::JobOutcome;
use danlu_types::history::{AttemptRecord, FORMAT, Header, JobRecord};
use jiff::Timestamp;

use super::{Assumptions, Trace, TraceError};
use crate::simulation::between;
use crate::story::{Happening, Intervention, SimJob, WorkerScript};

const CAUSES: [FailureCause; 11] = [
    FailureCause::Exit,
    FailureCause::OutOfMemory,
    FailureCause::TimeLimit,
    FailureCause::StartFailed,
    FailureCause::SetupFailed,
    FailureCause::GangTimeout,
    FailureCause::LauncherLost,
    FailureCause::NodeLost,
    FailureCause::DeviceError,
    FailureCause::ProgramError,
    FailureCause::Hang,
];

/// Reads the lines; assumptions about checkpoints hold for jobs that name a `checkpoint`.
pub fn read(file: &str, input: impl BufRead, assumptions: &Assumptions) -> Result<Trace, TraceError> {
    let mut lines = Lines { file, input, line: 0 };
    let header: Header = lines.next()?.ok_or_else(|| lines.wrong("the file is empty".to_owned()))?;
    if header.danlu_history != FORMAT {
        let problem = format!(
            "is of format {}, but this version reads {FORMAT}; export it with the same version of danlu",
            header.danlu_history
        );
        return Err(lines.wrong(problem));
    }
    let mut records: Vec<JobRecord> = Vec::new();
    let mut left_out = 0;
    while let Some(record) = lines.next::<JobRecord>()? {
        if record.outcome.is_some() { records.push(record) } else { left_out += 1 }
    }
    records.sort_by_key(|record| (record.submitted_at, record.id));
    let start = records.first().map_or(Timestamp::UNIX_EPOCH, |record| record.submitted_at);
    let mut interventions = Vec::new();
    for (position, record) in records.iter().enumerate() {
        if let (true, Some(ended_at)) = (record.attempts.is_empty(), record.ended_at) {
            // Its owner gave up waiting; he would have done so elsewhere too.
            let what = Happening::Stop { job: position };
            interventions.push(Intervention { at: between(start, ended_at), what });
        }
    }
    let mut notes = vec![format!("{} jobs of `{file}`", records.len())];
    if left_out > 0 {
        notes.push(format!("{left_out} jobs that had not ended are left out"));
    }
    notes.push(format!("where a job names a checkpoint folder, {}", assumptions.note()));
    let jobs = records.into_iter().map(|record| job(record, start, assumptions)).collect();
    let nodes = header.nodes;
    Ok(Trace { name: file.to_owned(), nodes, jobs, interventions, notes, ..Trace::default() })
}

fn job(record: JobRecord, start: Timestamp, assumptions: &Assumptions) -> SimJob {
    let submit_at = between(start, record.submitted_at);
    let parts = parts(&record);
    let checkpoints = record.spec.checkpoint.is_some();
    let mut job =
        SimJob { owner: record.owner, ..SimJob::succeeding(submit_at, record.spec, Span::default()) };
    job.parts = parts;
    assumptions.apply(&mut job);
    if !checkpoints {
        job.checkpoint_every = None;
    }
    job
}

fn parts(record: &JobRecord) -> Vec<WorkerScript> {
    let mut parts = Vec::new();
    let mut carried = 0;
    for (position, attempt) in record.attempts.iter().enumerate() {
        let last = position + 1 == record.attempts.len();
        let runs = runs(attempt).milliseconds;
        match exit(attempt, record.outcome, last) {
            Some(exit) => {
                parts.push(WorkerScript { runs: Span { milliseconds: carried + runs }, exit });
                carried = 0;
            }
            None if record.spec.checkpoint.is_some() => carried += runs,
            None => {}
        }
    }
    parts
}

/// How the attempt ended by itself; `None` if it was interrupted.
fn exit(attempt: &AttemptRecord, outcome: Option<JobOutcome>, last: bool) -> Option<WorkerEnd> {
    let cause = CAUSES.into_iter().find(|cause| cause.as_str() == attempt.reason);
    let by_the_cluster = matches!(
        cause,
        Some(FailureCause::NodeLost | FailureCause::LauncherLost | FailureCause::DeviceError)
    );
    match (attempt.reason.as_str(), cause) {
        ("succeeded", _) => Some(WorkerEnd::Succeeded),
        ("stopped", _) => Some(WorkerEnd::Stopped),
        (_, Some(cause)) if last || !by_the_cluster => {
            Some(WorkerEnd::Failed(WorkerFailure { cause, rank: None, exit: None, detail: String::new() }))
        }
        _ if last && outcome == Some(JobOutcome::Stopped) => Some(WorkerEnd::Stopped),
        _ => None,
    }
}

fn runs(attempt: &AttemptRecord) -> Span {
    let from = attempt.running_at.unwrap_or(attempt.placed_at);
    attempt.ended_at.map_or(Span::default(), |ended_at| between(from, ended_at))
}

struct Lines<'a, R> {
    file: &'a str,
    input: R,
    line: usize,
}

impl<R: BufRead> Lines<'_, R> {
    fn next<T: serde::de::DeserializeOwned>(&mut self) -> Result<Option<T>, TraceError> {
        let mut text = String::new();
        loop {
            text.clear();
            let read = self.input.read_line(&mut text).map_err(|source| TraceError::Read {
                file: self.file.to_owned(),
                line: self.line,
                source,
            })?;
            self.line += 1;
            if read == 0 {
                return Ok(None);
            }
            if !text.trim().is_empty() {
                break;
            }
        }
        serde_json::from_str(&text).map(Some).map_err(|error| {
            // The reader's own line number is always 1: each line is a value.
            let said = error.to_string();
            let said = said.split(" at line 1").next().unwrap_or(&said);
            let expected = if self.line == 1 { "the first line" } else { "a job" };
            self.wrong(format!(
                "column {}: {said}; expected {expected} of `danlu history export`",
                error.column()
            ))
        })
    }

    fn wrong(&self, problem: String) -> TraceError {
        TraceError::Line { file: self.file.to_owned(), line: self.line, problem }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = r#"{"danlu_history":1,"exported_at":"2026-01-02T00:00:00Z","nodes":[]}"#;

    fn read_text(text: &str) -> Result<Trace, TraceError> {
        read("history.jsonl", text.as_bytes(), &Assumptions::default())
    }

    fn line(id: u64, minute: u32, rest: &str) -> String {
        format!(
            r#"{{"id":{id},"owner":"ann","submitted_at":"2026-01-01T00:{minute:02}:00Z","spec":{{"command":"","workspace":"vision"}}{rest}}}"#
        )
    }

    fn attempt(from: u32, to: u32, reason: &str) -> String {
        format!(
            r#"{{"placed_at":"2026-01-01T00:{from:02}:00Z","running_at":"2026-01-01T00:{from:02}:10Z","ended_at":"2026-01-01T00:{to:02}:00Z","reason":"{reason}"}}"#
        )
    }

    #[test]
    fn a_jobs_work_is_what_its_attempts_did_by_themselves() {
        let ended = r#""ended_at":"2026-01-01T00:50:00Z","outcome""#;
        let attempts = [attempt(5, 10, "preempted"), attempt(12, 20, "exit"), attempt(21, 50, "succeeded")];
        let tried = line(2, 4, &format!(r#","attempts":[{}],{ended}:"succeeded""#, attempts.join(",")));
        let given_up = line(1, 2, &format!(r#","attempts":[],{ended}:"stopped""#));
        let running = line(3, 6, &format!(r#","attempts":[{}]"#, attempt(7, 8, "running")));
        let trace = read_text(&[HEADER, &tried, &given_up, &running].join("\n")).unwrap();
        assert_eq!(trace.jobs.len(), 2);
        assert_eq!(trace.interventions.len(), 1);
        assert_eq!(trace.interventions[0].at, Span::from_seconds(48 * 60));
        let job = &trace.jobs[1];
        assert_eq!((job.submit_at, job.owner.as_str()), (Span::from_seconds(120), "ann"));
        let runs: Vec<Span> = job.parts.iter().map(|part| part.runs).collect();
        assert_eq!(runs, [Span::from_seconds(470), Span::from_seconds(29 * 60 - 10)]);
        assert_eq!(job.parts[1].exit, WorkerEnd::Succeeded);
        assert_eq!(job.checkpoint_every, None, "it names no checkpoint folder");
    }

    #[test]
    fn bad_lines_are_named_with_what_would_be_right() {
        let said = |text: &str| read_text(text).unwrap_err().to_string();
        insta::assert_snapshot!(said(""), @"`history.jsonl` line 1: the file is empty");
        insta::assert_snapshot!(said("submit,duration"), @"`history.jsonl` line 1: column 1: expected value; expected the first line of `danlu history export`");
        insta::assert_snapshot!(said(&HEADER.replace(":1", ":9")), @"`history.jsonl` line 1: is of format 9, but this version reads 1; export it with the same version of danlu");
        insta::assert_snapshot!(said(&format!("{HEADER}\n{{\"id\":1}}")), @"`history.jsonl` line 2: column 8: missing field `owner`; expected a job of `danlu history export`");
    }
}
