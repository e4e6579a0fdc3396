//! What came of a simulation.

use std::fmt;

use danlu_types::api::JobOutcome;
use danlu_types::{FieldError, JobId, Span};
use serde::Serialize;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
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
    /// `None` if it still waits for something that never comes.
    pub ended_at: Option<Span>,
    pub outcome: Option<JobOutcome>,
}

/// A table for people.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let head = ["job", "submitted", "waited", "ran", "attempts", "ended", "outcome"];
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

fn row(f: &mut fmt::Formatter<'_>, cells: [String; 7]) -> fmt::Result {
    let [job, submitted, waited, ran, attempts, ended, outcome] = cells;
    writeln!(f, "{job:<12} {submitted:>9} {waited:>9} {ran:>9} {attempts:>8} {ended:>9}  {outcome}")
}
