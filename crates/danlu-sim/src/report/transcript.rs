//! What came of each job of a small simulation, for stories that people read.

use std::fmt;

use danlu_types::api::JobOutcome;
use danlu_types::{FieldError, JobId, Span};
use jiff::Timestamp;
use serde::Serialize;

use crate::measure::{self, used};
use crate::simulation::{Simulation, between};
use crate::story::SimJob;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SimulationReport {
    /// In the order in which they were given.
    pub jobs: Vec<JobReport>,
    /// From the start to the end of the last job.
    pub makespan: Span,
    /// The part of all device time up to then that jobs held, from 0 to 1; 0 where there are no devices.
    pub device_utilisation: f64,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct JobReport {
    pub name: String,
    /// `None` if it was refused.
    pub id: Option<JobId>,
    /// Why it was refused at submission.
    pub refused: Option<FieldError>,
    pub submitted_at: Span,
    /// Time without devices, between submission and end.
    pub waited: Span,
    /// Time with devices, over all attempts.
    pub ran: Span,
    pub attempts: u32,
    /// Work that was done and had to be done again, as time on its devices.
    pub lost: Span,
    /// `None` if it still waits for something that never comes.
    pub ended_at: Option<Span>,
    pub outcome: Option<JobOutcome>,
}

impl Simulation {
    pub fn report(&self) -> SimulationReport {
        let jobs: Vec<JobReport> = (0..self.stories().len()).map(|story| job_report(self, story)).collect();
        let makespan = measure::makespan(self);
        SimulationReport { jobs, makespan, device_utilisation: used(self.points(), makespan).utilisation }
    }
}

fn job_report(simulation: &Simulation, story: usize) -> JobReport {
    let SimJob { spec, submit_at, .. } = &simulation.stories()[story];
    let (id, refused) = match simulation.submission(story) {
        Some(Ok(id)) => (Some(*id), None),
        Some(Err(error)) => (None, Some(error.clone())),
        None => (None, None),
    };
    let mut report = JobReport {
        name: spec.name.clone(),
        id,
        refused,
        submitted_at: *submit_at,
        waited: Span::default(),
        ran: Span::default(),
        attempts: 0,
        lost: Span::default(),
        ended_at: None,
        outcome: None,
    };
    let Some(entry) = id.map(|id| simulation.entry(id)) else { return report };
    let job = &entry.job;
    let end = job.ended_at().unwrap_or(simulation.now());
    let live = job.active().map_or(0, |attempt| between(attempt.placed_at, end).milliseconds);
    report.ran = Span { milliseconds: entry.ran.milliseconds + live };
    let whole = between(job.submitted_at, end).milliseconds;
    report.waited = Span { milliseconds: whole.saturating_sub(report.ran.milliseconds) };
    report.attempts = entry.attempts;
    report.lost = entry.lost_time();
    report.ended_at = job.ended_at().map(|at| between(Timestamp::UNIX_EPOCH, at));
    report.outcome = job.outcome();
    report
}

/// A table for people.
impl fmt::Display for SimulationReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let head = ["job", "submitted", "waited", "ran", "lost", "attempts", "ended", "outcome"];
        row(f, head.map(str::to_owned))?;
        for job in &self.jobs {
            let outcome = match (&job.refused, job.outcome) {
                (Some(error), _) => format!("refused: `{}` {}", error.field, error.message),
                (None, Some(outcome)) => outcome.as_str().to_owned(),
                (None, None) => "still waiting".to_owned(),
            };
            row(
                f,
                [
                    job.name.clone(),
                    job.submitted_at.to_string(),
                    job.waited.to_string(),
                    job.ran.to_string(),
                    job.lost.to_string(),
                    job.attempts.to_string(),
                    job.ended_at.map_or("-".to_owned(), |at| at.to_string()),
                    outcome,
                ],
            )?;
        }
        writeln!(
            f,
            "all ended after {}, devices held {:.1} % of it",
            self.makespan,
            self.device_utilisation * 100.0
        )
    }
}

fn row(f: &mut fmt::Formatter<'_>, cells: [String; 8]) -> fmt::Result {
    let [job, submitted, waited, ran, lost, attempts, ended, outcome] = cells;
    writeln!(f, "{job:<12} {submitted:>9} {waited:>9} {ran:>9} {lost:>6} {attempts:>8} {ended:>9}  {outcome}")
}
