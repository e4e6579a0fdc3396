//! `danlu show`: one job on one page.

use std::fmt::Write as _;
use std::process::ExitCode;

use clap::Args;
use danlu_client::Client;
use danlu_types::api::{
    AttemptView, EventQuery, EventView, JobOutcome, JobState, JobView, WorkerPhase, WorkerView,
};
use jiff::Timestamp;
use owo_colors::OwoColorize as _;

use crate::failure::CliError;
use crate::{migration, output, target, words};

const MOST_EVENTS: u32 = 200;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Job id or name
    job: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(client: Client, arguments: Arguments) -> Result<ExitCode, CliError> {
    let id = target::job_id(&client, &arguments.job).await?;
    let job = client.job_fetch(id).await?;
    if arguments.json {
        output::json(&job)?;
        return Ok(ExitCode::SUCCESS);
    }
    let query = EventQuery { job: Some(id), cursor: None, limit: Some(MOST_EVENTS) };
    let events = client.events_list(&query).await?.items;
    output::line(page(&job, &events, Timestamp::now()))?;
    Ok(ExitCode::SUCCESS)
}

/// Writing to a string cannot fail, so results of `writeln!` are dropped here.
pub(crate) fn page(job: &JobView, events: &[EventView], now: Timestamp) -> String {
    let mut text = String::new();
    let mut told = Told::default();
    let _ = writeln!(text, "{}", format!("job {}: {}", job.id, output::printable(&job.name)).bold());
    for (label, value) in facts(job, now) {
        let _ = writeln!(text, "  {:<10} {}", label.dimmed(), output::printable(&value));
        told.once(&value);
    }
    for attempt in &job.attempts {
        attempt_lines(&mut text, &mut told, attempt, now);
    }
    if !events.is_empty() {
        let _ = writeln!(text, "\n{}", "timeline".bold());
        for event in events {
            let message = output::printable(told.once(&event.message));
            let _ = writeln!(text, "  {}  {message}", words::clock(event.at).dimmed());
        }
    }
    let _ = writeln!(text, "\n{}", "next".bold());
    for (command, what) in next_commands(job) {
        let _ = writeln!(text, "  {:<26} {}", command.cyan(), what.dimmed());
    }
    text.trim_end().to_owned()
}

/// What the page has said: a diagnosis of three lines is read once, not again for the attempt, the worker and the event.
#[derive(Debug, Default)]
struct Told(Vec<String>);

impl Told {
    /// Shorter than this may be said again.
    const WORTH_SHORTENING: usize = 20;

    /// The text, without what comes behind one of its colons if that was told before.
    fn once<'a>(&mut self, text: &'a str) -> &'a str {
        for (colon, _) in text.match_indices(": ") {
            let behind = &text[colon + 2..];
            let told = |before: &String| before.contains(behind);
            if behind.len() >= Self::WORTH_SHORTENING && self.0.iter().any(told) {
                return &text[..colon];
            }
        }
        self.0.push(text.to_owned());
        text
    }
}

fn facts(job: &JobView, now: Timestamp) -> Vec<(&'static str, String)> {
    let spec = &job.spec;
    let mut each = vec![danlu_types::format::cpus(spec.cpus)];
    each.extend(spec.memory.map(|memory| format!("{memory} memory")));
    each.extend(spec.shared_memory.map(|memory| format!("{memory} shared memory")));
    each.push(match words::ranks_per_worker(job) {
        1 => "1 rank".to_owned(),
        ranks => format!("{ranks} ranks"),
    });
    let mut facts = vec![
        ("state", words::state_sentence(job.state, &job.reason)),
        ("owner", format!("{} in workspace {}", job.owner, job.workspace)),
        ("submitted", format!("{} ({})", words::clock(job.submitted_at), words::ago(job.submitted_at, now))),
        ("waited", words::waited(job, now)),
        ("ran", words::ran(job, now)),
        ("resources", words::resources(spec)),
        ("each", each.join(", ")),
        ("priority", format!("{}{}", job.priority, if spec.preemptible { ", preemptible" } else { "" })),
        ("command", spec.full_command()),
    ];
    if let Some(progress) = &job.progress {
        let text = words::progress(progress, now);
        if !text.is_empty() {
            facts.insert(1, ("progress", text));
        }
        if let Some(hang) = &progress.hang {
            facts.insert(1, ("seems to hang", output::printable(hang)));
        }
    }
    facts.extend(spec.code.clone().map(|code| ("code", code)));
    if let Some(original) = spec.labels.get(migration::LABEL) {
        facts.push(("migrated", format!("from {original}; its report is `danlu-migration/report.html`")));
    }
    facts.extend(spec.working_directory.clone().map(|folder| ("folder", folder)));
    facts.extend(spec.max_time.map(|time| ("max time", time.to_string())));
    facts.extend(job.exit_code.map(|code| ("exit code", code.to_string())));
    facts
}

fn attempt_lines(text: &mut String, told: &mut Told, attempt: &AttemptView, now: Timestamp) {
    let title = format!("attempt {}", attempt.number);
    let lasted = words::between(attempt.placed_at, attempt.ended_at.unwrap_or(now));
    let reason = output::printable(told.once(&attempt.reason.to_string()));
    let _ = writeln!(text, "\n{}  {reason} ({lasted})", title.bold());
    for worker in &attempt.workers {
        let _ = writeln!(text, "  worker {}", worker_line(told, worker));
    }
}

fn worker_line(told: &mut Told, worker: &WorkerView) -> String {
    let devices = match &worker.devices[..] {
        [] => String::new(),
        devices => format!(", devices {}", words::index_ranges(devices)),
    };
    let doing = match (worker.phase, &worker.reason) {
        (_, Some(reason)) => output::printable(told.once(&reason.to_string())),
        (WorkerPhase::Starting, None) => "starting".to_owned(),
        (WorkerPhase::Running, None) => "running".to_owned(),
        (WorkerPhase::Ended, None) => "ended".to_owned(),
    };
    format!("{} on {}{devices}: {doing}", worker.index, worker.node)
}

fn next_commands(job: &JobView) -> Vec<(String, &'static str)> {
    let id = job.id;
    match (job.state, job.outcome) {
        (JobState::Held, _) if matches!(job.reason, danlu_types::Reason::NeedsApproval { .. }) => {
            let seen = job.generation;
            vec![(format!("danlu approve {id} --generation {seen}"), "approves it as it is shown here")]
        }
        (JobState::Held, _) => vec![(format!("danlu release {id}"), "lets it start")],
        (JobState::Queued, _) => vec![
            (format!("danlu why {id}"), "says what it waits for"),
            (format!("danlu hold {id}"), "keeps it from starting"),
            (format!("danlu stop {id}"), "takes it out of the queue"),
        ],
        (JobState::Starting | JobState::Running, _) => vec![
            (format!("danlu logs -f {id}"), "follows its output"),
            (format!("danlu exec -it {id}"), "opens a shell inside"),
            (format!("danlu stop {id}"), "ends it"),
        ],
        (JobState::Stopping, _) => vec![(format!("danlu stop --grace 0s {id}"), "kills it at once")],
        (JobState::Ended, Some(JobOutcome::Failed)) => vec![
            (format!("danlu logs --tail 50 {id}"), "shows its last lines"),
            (format!("danlu clone {id}"), "runs it again"),
        ],
        (JobState::Ended, _) => vec![
            (format!("danlu logs {id}"), "shows its output"),
            (format!("danlu clone {id}"), "runs it again"),
            (format!("danlu delete {id}"), "deletes it with its logs"),
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::Told;

    #[test]
    fn a_diagnosis_is_told_once() {
        let mut told = Told::default();
        let diagnosis = "rank 3 ended with code 1: the device's memory is full (lower the batch size)";
        assert_eq!(
            told.once(&format!("failed at attempt 2: worker 0, {diagnosis}")).len(),
            31 + diagnosis.len()
        );
        assert_eq!(told.once(&format!("failed: worker 0, {diagnosis}")), "failed");
        assert_eq!(told.once(&format!("failed: {diagnosis}")), "failed");
        assert_eq!(told.once(&format!("attempt 2 failed: worker 0, {diagnosis}")), "attempt 2 failed");
        let other = "failed: worker 1, it ran longer than its `max_time`";
        assert_eq!(told.once(other), other, "what is new is told");
    }
}
