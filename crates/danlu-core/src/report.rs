//! What a program says of itself: plain lines on its standard output.
//!
//! ```text
//! ::danlu progress 0.42
//! ::danlu checkpoint step=300
//! ::danlu metric loss=0.31 accuracy=0.9 step=12
//! ```
//!
//! A line that cannot be understood is only a line of the log: a program must not fail because of what it prints. The
//! launcher keeps a [`ProgramReport`] of its worker in [`REPORT_FILE`] and each metric as a line of [`METRICS_FILE`].

use std::collections::BTreeMap;

use danlu_types::{Fraction, ProgressView, Rank, Span};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Number;

pub const REPORT_FILE: &str = "progress.json";
pub const METRICS_FILE: &str = "metrics.jsonl";

/// What a line begins with that is for us.
pub const PREFIX: &[u8] = b"::danlu ";

/// No program needs more; one that makes names of its step numbers must not fill our memory.
const MOST_METRICS: usize = 256;
const LONGEST_NAME: usize = 64;
/// A rank is behind when it has done this much less than the middle one.
const BEHIND: u32 = 20_000;

#[derive(Debug, Clone, PartialEq)]
pub enum ReportLine {
    Progress(Fraction),
    Checkpoint { step: Option<u64> },
    Metric { step: Option<u64>, values: Vec<(String, f64)> },
}

/// Reads a line that begins with [`PREFIX`]; `None` for any other, and for what makes no sense.
pub fn read_line(line: &[u8]) -> Option<ReportLine> {
    let text = std::str::from_utf8(line.strip_prefix(PREFIX)?).ok()?;
    let mut words = text.split_ascii_whitespace();
    match words.next()? {
        "progress" => {
            let word = words.next()?;
            let value = match word.strip_suffix('%') {
                Some(percent) => percent.parse::<f64>().ok()? / 100.0,
                None => word.parse().ok()?,
            };
            Fraction::new(value).map(ReportLine::Progress)
        }
        "checkpoint" => {
            let step = words.filter_map(|word| word.strip_prefix("step=")).find_map(|step| step.parse().ok());
            Some(ReportLine::Checkpoint { step })
        }
        "metric" => {
            let (mut step, mut values) = (None, Vec::new());
            for (name, value) in words.filter_map(|word| word.split_once('=')) {
                if name == "step" {
                    step = value.parse().ok();
                } else if is_name(name)
                    && let Ok(value) = value.parse()
                {
                    values.push((name.to_owned(), value));
                }
            }
            (!values.is_empty()).then_some(ReportLine::Metric { step, values })
        }
        _ => None,
    }
}

fn is_name(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
    !name.is_empty() && name.len() <= LONGEST_NAME && name.chars().all(allowed)
}

/// What the ranks of one worker have said.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ProgramReport {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub ranks: BTreeMap<Rank, RankProgress>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<Checkpoint>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metrics: BTreeMap<String, Number>,
    /// The first metric that was no number, and whose it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_a_number: Option<(Rank, String)>,
    /// Set by the launcher while the worker seems to hang: how that shows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hang: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RankProgress {
    pub done: Fraction,
    pub at: Timestamp,
    /// What it said first in this attempt, from which its speed is known.
    pub first_done: Fraction,
    pub first_at: Timestamp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoint {
    pub at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<u64>,
}

impl ProgramReport {
    pub fn take(&mut self, rank: Rank, line: &ReportLine, at: Timestamp) {
        self.at = Some(at);
        match line {
            ReportLine::Progress(done) => {
                let first = RankProgress { done: *done, at, first_done: *done, first_at: at };
                let entry = self.ranks.entry(rank).or_insert(first);
                if *done < entry.first_done {
                    // It began again: another epoch, another phase.
                    *entry = first;
                }
                (entry.done, entry.at) = (*done, at);
            }
            ReportLine::Checkpoint { step } => self.checkpoint = Some(Checkpoint { at, step: *step }),
            ReportLine::Metric { values, .. } => {
                for (name, value) in values {
                    self.take_metric(rank, name, *value);
                }
            }
        }
    }

    fn take_metric(&mut self, rank: Rank, name: &str, value: f64) {
        match Number::from_f64(value) {
            Some(number) if self.metrics.len() < MOST_METRICS || self.metrics.contains_key(name) => {
                self.metrics.insert(name.to_owned(), number);
            }
            None if self.not_a_number.is_none() => self.not_a_number = Some((rank, name.to_owned())),
            _ => {}
        }
    }
}

/// How far a job is, of which these are the workers' reports.
pub fn progress(reports: &[ProgramReport]) -> ProgressView {
    let ranks = || reports.iter().flat_map(|report| &report.ranks);
    let slowest = ranks().map(|(_, progress)| progress).min_by_key(|progress| progress.done);
    let checkpoint =
        reports.iter().filter_map(|report| report.checkpoint).max_by_key(|checkpoint| checkpoint.at);
    // Most programs let the first rank speak for all; where each does, its word stands.
    let metrics = reports.iter().rev().flat_map(|report| report.metrics.clone()).collect();
    ProgressView {
        done: slowest.map(|progress| progress.done),
        left: slowest.and_then(time_left),
        checkpoint_at: checkpoint.map(|checkpoint| checkpoint.at),
        checkpoint_step: checkpoint.and_then(|checkpoint| checkpoint.step),
        metrics,
        stragglers: stragglers(&ranks().map(|(rank, progress)| (*rank, progress.done)).collect::<Vec<_>>()),
        hang: reports.iter().find_map(|report| report.hang.clone()),
        at: reports.iter().filter_map(|report| report.at).max(),
    }
}

fn time_left(progress: &RankProgress) -> Option<Span> {
    let done = progress.done.value() - progress.first_done.value();
    let took = progress.at.duration_since(progress.first_at).as_millis_f64();
    let left = took * (1.0 - progress.done.value()) / done;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "positive, and checked to be finite"
    )]
    (done > 0.0 && took > 0.0 && left.is_finite()).then_some(Span { milliseconds: left as u64 })
}

/// Those that are clearly behind the middle of all. Two ranks have no middle.
fn stragglers(ranks: &[(Rank, Fraction)]) -> Vec<Rank> {
    if ranks.len() < 3 {
        return Vec::new();
    }
    let mut all: Vec<u32> = ranks.iter().map(|(_, done)| done.millionths()).collect();
    all.sort_unstable();
    let middle = all[all.len() / 2];
    let behind = |done: Fraction| done.millionths().saturating_add(BEHIND.max(middle / 10)) < middle;
    ranks.iter().filter(|(_, done)| behind(*done)).map(|(rank, _)| *rank).collect()
}
