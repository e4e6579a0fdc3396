//! What others recorded, as something to simulate.
//!
//! Each reader turns a text into a [`Trace`] and says what it took for granted. Readers open no files: they are given
//! what to read, and the name by which errors should call it.

mod csv;
pub mod history;
#[cfg(test)]
mod hostile;
pub mod kueue;
pub mod openb;
pub mod philly;
pub mod simple;

use std::collections::BTreeSet;
use std::io;

use danlu_types::{Node, Sharing, Span};
use thiserror::Error;

use crate::story::{Intervention, SimJob};

/// A workload, with the cluster it was made for where that is known.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Trace {
    pub name: String,
    /// Empty if the trace does not say.
    pub nodes: Vec<Node>,
    pub sharing: Sharing,
    pub jobs: Vec<SimJob>,
    pub interventions: Vec<Intervention>,
    /// What was taken for granted, in sentences.
    pub notes: Vec<String>,
}

impl Trace {
    /// Traces of other systems do not say what becomes of a job whose node is lost: here it is tried again.
    pub fn retry_after_faults(&mut self) {
        const ENOUGH: u32 = 1000;
        for job in &mut self.jobs {
            job.spec.retry.limit = job.spec.retry.limit.max(ENOUGH);
        }
        self.notes.push("jobs that lose a node or a device are tried again as often as it takes".to_owned());
    }

    /// The names of all workspaces in which jobs are.
    pub fn workspaces(&self) -> BTreeSet<&str> {
        self.jobs.iter().map(|job| job.spec.workspace.as_str()).collect()
    }
}

/// What traces do not say about their jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Assumptions {
    /// How much work lies between two checkpoints; `None`: an interrupted job begins anew.
    pub checkpoint_every: Option<Span>,
    /// What every attempt but the first spends before it goes on with the work.
    pub restart_cost: Span,
    /// From being told to stop to having stopped.
    pub takes_to_stop: Span,
}

impl Default for Assumptions {
    fn default() -> Self {
        Assumptions {
            checkpoint_every: Some(Span::from_seconds(30 * 60)),
            restart_cost: Span::from_seconds(60),
            takes_to_stop: Span::from_seconds(10),
        }
    }
}

impl Assumptions {
    fn apply(&self, job: &mut SimJob) {
        job.checkpoint_every = self.checkpoint_every;
        job.restart_cost = self.restart_cost;
        job.takes_to_stop = self.takes_to_stop;
    }

    fn note(&self) -> String {
        let checkpoints = match self.checkpoint_every {
            Some(every) => format!("jobs save a checkpoint every {every} of work"),
            None => "jobs save no checkpoints".to_owned(),
        };
        format!(
            "{checkpoints}, take {} to stop, and spend {} on each restart",
            self.takes_to_stop, self.restart_cost
        )
    }
}

/// Why a trace cannot be read: where, and what would be right.
#[derive(Debug, Error)]
pub enum TraceError {
    #[error("cannot read `{file}` after line {line}")]
    Read { file: String, line: usize, source: io::Error },
    #[error("`{file}` line {line}, column `{column}`: {problem}")]
    Cell { file: String, line: usize, column: String, problem: String },
    #[error("`{file}` line {line}: {problem}")]
    Line { file: String, line: usize, problem: String },
}

/// Times count from the first submission, and jobs stand in order of it.
fn from_first_submission(jobs: &mut [SimJob]) {
    jobs.sort_by_key(|job| job.submit_at);
    let Some(first) = jobs.first().map(|job| job.submit_at.milliseconds) else { return };
    for job in jobs {
        job.submit_at.milliseconds -= first;
    }
}
