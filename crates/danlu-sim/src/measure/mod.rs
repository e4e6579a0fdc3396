//! The figures of a run: who waited how long, how well the cluster was used, what was lost.
//!
//! Everything here is read off a simulation that has ended; the JSON form of [`Run`] is documented in
//! `docs/guide/simulator.md` and kept stable.

mod distribution;
mod series;

use std::collections::BTreeMap;

use danlu_types::Span;
use danlu_types::api::JobOutcome;
use jiff::Timestamp;
use serde::Serialize;

use crate::simulation::meter::{Point, Unit};
use crate::simulation::{Simulation, between};
pub use distribution::Distribution;
pub use series::Series;
pub(crate) use series::used;

/// Jobs with this label are also counted by its value.
pub const CLASS_LABEL: &str = "class";

/// What a comparison of several runs of one trace shows.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// Grows when a field changes its meaning or goes away; new fields do not count.
    pub format: u32,
    pub trace: String,
    /// What the replay took for granted, in sentences.
    pub notes: Vec<String>,
    pub runs: Vec<Run>,
}

impl Comparison {
    pub fn new(trace: impl Into<String>, notes: Vec<String>, runs: Vec<Run>) -> Self {
        Comparison { format: 1, trace: trace.into(), notes, runs }
    }
}

/// The figures of one run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Run {
    pub name: String,
    pub nodes: u64,
    /// What capacity is counted in.
    pub unit: Unit,
    /// In whole units, at the start.
    pub capacity: f64,
    pub jobs: RunCounts,
    /// From the start to the end of the last job.
    pub makespan_seconds: f64,
    /// The part of what was there that jobs held, over the whole makespan.
    pub utilisation_percent: f64,
    /// The part that nobody held while at least one job waited; absent if nothing ever waited.
    pub unallocated_percent_while_waiting: Option<f64>,
    /// Of the free devices, those on nodes too full for one worker of the median waiting job; absent as above.
    pub fragmentation_percent: Option<f64>,
    pub most_queued: u64,
    pub scheduler_passes: u64,
    /// When the run was given up because the scheduler let jobs make room for each other without end; figures are of
    /// what had happened until then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gave_up_after_seconds: Option<f64>,
    pub all: Group,
    pub workspaces: BTreeMap<String, Group>,
    /// By the label `class`, where jobs have one.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub classes: BTreeMap<String, Group>,
    pub series: Series,
    /// Completion times in seconds at equal steps from the shortest (0 %) to the longest (100 %).
    pub completion_quantiles_seconds: Vec<f64>,
    /// Why jobs were refused, with how many.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub refusals: BTreeMap<String, u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct RunCounts {
    pub submitted: u64,
    pub succeeded: u64,
    pub failed: u64,
    pub stopped: u64,
    /// Could never have run.
    pub refused: u64,
    /// Still waiting, or running, when nothing could happen any more.
    pub unfinished: u64,
}

/// Jobs that belong together. Distributions are over those that ended, in seconds.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Group {
    pub jobs: u64,
    /// From submission to the first start.
    pub first_wait_seconds: Distribution,
    /// All time without devices, between submission and end.
    pub wait_seconds: Distribution,
    /// From submission to the end.
    pub completion_seconds: Distribution,
    /// Time with devices, over all attempts.
    pub run_seconds: Distribution,
    pub preemptions: u64,
    /// Attempts that failed.
    pub failures: u64,
    /// What they held, in units times hours.
    pub unit_hours: f64,
    /// Of that, work that was done and had to be done again.
    pub lost_unit_hours: f64,
}

#[derive(Default)]
struct Collected {
    jobs: u64,
    first_wait: Vec<u64>,
    wait: Vec<u64>,
    completion: Vec<u64>,
    run: Vec<u64>,
    preemptions: u64,
    failures: u64,
    held: u128,
    lost: u128,
}

impl Collected {
    fn group(mut self) -> Group {
        Group {
            jobs: self.jobs,
            first_wait_seconds: Distribution::of(&mut self.first_wait),
            wait_seconds: Distribution::of(&mut self.wait),
            completion_seconds: Distribution::of(&mut self.completion),
            run_seconds: Distribution::of(&mut self.run),
            preemptions: self.preemptions,
            failures: self.failures,
            unit_hours: unit_hours(self.held),
            lost_unit_hours: unit_hours(self.lost),
        }
    }
}

/// The end of the last job.
pub(crate) fn makespan(simulation: &Simulation) -> Span {
    let last = simulation.jobs().filter_map(danlu_core::Job::ended_at).max();
    last.map_or(Span::default(), |at| between(Timestamp::UNIX_EPOCH, at))
}

impl Run {
    /// The figures of a simulation that has ended.
    pub fn of(simulation: &Simulation, name: impl Into<String>) -> Run {
        let makespan = makespan(simulation);
        let used = used(simulation.points(), makespan);
        let mut run = Run {
            name: name.into(),
            nodes: simulation.nodes().len() as u64,
            unit: simulation.unit(),
            capacity: simulation.points().first().map_or(0, |point| point.capacity) as f64 / 1000.0,
            jobs: RunCounts { submitted: simulation.stories().len() as u64, ..RunCounts::default() },
            makespan_seconds: seconds(makespan.milliseconds),
            utilisation_percent: used.utilisation * 100.0,
            unallocated_percent_while_waiting: used.unallocated_while_waiting.map(|part| part * 100.0),
            fragmentation_percent: used.fragmented.map(|part| part * 100.0),
            most_queued: simulation.points().iter().map(|point: &Point| point.queued).max().unwrap_or(0),
            scheduler_passes: simulation.passes(),
            gave_up_after_seconds: simulation
                .went_in_circles()
                .then(|| seconds(between(Timestamp::UNIX_EPOCH, simulation.now()).milliseconds)),
            all: Group::default(),
            workspaces: BTreeMap::new(),
            classes: BTreeMap::new(),
            series: Series::of(simulation.points(), makespan),
            completion_quantiles_seconds: Vec::new(),
            refusals: BTreeMap::new(),
        };
        run.count_jobs(simulation);
        run
    }

    fn count_jobs(&mut self, simulation: &Simulation) {
        let mut all = Collected::default();
        let mut workspaces: BTreeMap<&str, Collected> = BTreeMap::new();
        let mut classes: BTreeMap<&str, Collected> = BTreeMap::new();
        for (story, told) in simulation.stories().iter().enumerate() {
            match simulation.submission(story) {
                Some(Ok(id)) => {
                    let entry = simulation.entry(*id);
                    self.jobs.count(entry.job.outcome());
                    add(&mut all, entry);
                    add(workspaces.entry(&told.spec.workspace).or_default(), entry);
                    if let Some(class) = told.spec.labels.get(CLASS_LABEL) {
                        add(classes.entry(class).or_default(), entry);
                    }
                }
                Some(Err(error)) => {
                    self.jobs.refused += 1;
                    let text = format!("`{}` {}", error.field, error.message);
                    *self.refusals.entry(text).or_default() += 1;
                }
                None => self.jobs.unfinished += 1,
            }
        }
        all.completion.sort_unstable();
        self.completion_quantiles_seconds = distribution::quantiles(&all.completion);
        self.all = all.group();
        let groups = |collected: BTreeMap<&str, Collected>| {
            collected.into_iter().map(|(name, group)| (name.to_owned(), group.group())).collect()
        };
        self.workspaces = groups(workspaces);
        self.classes = groups(classes);
    }
}

impl RunCounts {
    fn count(&mut self, outcome: Option<JobOutcome>) {
        match outcome {
            Some(JobOutcome::Succeeded) => self.succeeded += 1,
            Some(JobOutcome::Failed) => self.failed += 1,
            Some(JobOutcome::Stopped) => self.stopped += 1,
            None => self.unfinished += 1,
        }
    }
}

fn add(group: &mut Collected, entry: &crate::simulation::SimulatedJob) {
    group.jobs += 1;
    group.preemptions += u64::from(entry.preemptions);
    group.failures += u64::from(entry.failures);
    group.held += entry.held;
    group.lost += entry.lost;
    let Some(ended_at) = entry.job.ended_at() else { return };
    let whole = between(entry.job.submitted_at, ended_at).milliseconds;
    let first = between(entry.job.submitted_at, entry.first_start.unwrap_or(ended_at)).milliseconds;
    group.completion.push(whole);
    group.run.push(entry.ran.milliseconds);
    group.wait.push(whole.saturating_sub(entry.ran.milliseconds));
    group.first_wait.push(first);
}

pub(crate) fn seconds(milliseconds: u64) -> f64 {
    milliseconds as f64 / 1000.0
}

/// From thousandths of units times milliseconds.
fn unit_hours(amount: u128) -> f64 {
    amount as f64 / 3.6e9
}
