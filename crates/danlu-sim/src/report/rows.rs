//! The figures that stand in tables, in words: the same rows on a terminal and on a page.

use super::words::{duration, percent, thousands, whole};
use crate::measure::{Comparison, Group, Run};
use crate::simulation::meter::Unit;

type Count = fn(&Run) -> u64;

/// A measure with its value in each run.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    pub name: String,
    pub values: Vec<String>,
    /// Which run has the best value, where one is better than the others.
    pub best: Option<usize>,
}

impl Comparison {
    /// What matters of all jobs, one row for each measure.
    pub fn rows(&self) -> Vec<Row> {
        let unit = self.runs.first().map_or(Unit::Devices, |run| run.unit).as_str();
        let of = |read: fn(&Group) -> f64| move |run: &Run| Some(read(&run.all));
        let mut rows = vec![
            self.plain("jobs", |run| thousands(run.jobs.submitted)),
            self.plain("nodes", |run| thousands(run.nodes)),
            self.plain(unit, |run| whole(run.capacity)),
            self.least("mean wait", of(|group| group.wait_seconds.mean), duration),
            self.least("median wait", of(|group| group.wait_seconds.median), duration),
            self.least("90 % waited at most", of(|group| group.wait_seconds.p90), duration),
            self.least("99 % waited at most", of(|group| group.wait_seconds.p99), duration),
            self.least("mean time to first start", of(|group| group.first_wait_seconds.mean), duration),
            self.least("mean completion time", of(|group| group.completion_seconds.mean), duration),
            self.least("median completion time", of(|group| group.completion_seconds.median), duration),
            self.least("99 % completed within", of(|group| group.completion_seconds.p99), duration),
            self.least("makespan", |run| Some(run.makespan_seconds), duration),
            self.least("utilisation", |run| Some(-run.utilisation_percent), |value| percent(-value)),
            self.least("unallocated while jobs waited", |run| run.unallocated_percent_while_waiting, percent),
            self.least("free, but too scattered", |run| run.fragmentation_percent, percent),
            self.plain("longest queue", |run| thousands(run.most_queued)),
            self.plain("preemptions", |run| thousands(run.all.preemptions)),
        ];
        let lost = format!("work lost ({unit} × hours)");
        rows.push(self.plain(&lost, |run| format!("{:.1}", run.all.lost_unit_hours)));
        if self.runs.iter().any(|run| run.gave_up_after_seconds.is_some()) {
            let word = |run: &Run| run.gave_up_after_seconds.map_or("–".to_owned(), duration);
            rows.push(self.plain("given up, going in circles, after", word));
        }
        let seldom: [(&str, Count); 5] = [
            ("failed attempts", |run| run.all.failures),
            ("failed jobs", |run| run.jobs.failed),
            ("stopped jobs", |run| run.jobs.stopped),
            ("refused jobs", |run| run.jobs.refused),
            ("unfinished jobs", |run| run.jobs.unfinished),
        ];
        for (name, read) in seldom {
            if self.runs.iter().any(|run| read(run) > 0) {
                rows.push(self.plain(name, |run| thousands(read(run))));
            }
        }
        rows
    }

    /// Names of workspaces, or of classes, in all runs.
    pub(super) fn names(&self, groups: fn(&Run) -> &std::collections::BTreeMap<String, Group>) -> Vec<&str> {
        let mut names: Vec<&str> =
            self.runs.iter().flat_map(|run| groups(run).keys().map(String::as_str)).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// The mean wait of each workspace.
    pub fn workspace_rows(&self) -> Vec<Row> {
        self.group_rows(|run| &run.workspaces, |group| group.wait_seconds.mean)
    }

    /// The mean time to the first start of each class, for traces that name classes.
    pub fn class_rows(&self) -> Vec<Row> {
        self.group_rows(|run| &run.classes, |group| group.first_wait_seconds.mean)
    }

    fn group_rows(
        &self,
        groups: fn(&Run) -> &std::collections::BTreeMap<String, Group>,
        read: fn(&Group) -> f64,
    ) -> Vec<Row> {
        let row = |name: &str| self.least(name, |run| groups(run).get(name).map(read), duration);
        self.names(groups).into_iter().map(row).collect()
    }

    fn plain(&self, name: &str, word: impl Fn(&Run) -> String) -> Row {
        Row { name: name.to_owned(), values: self.runs.iter().map(word).collect(), best: None }
    }

    /// The smaller, the better.
    fn least(&self, name: &str, read: impl Fn(&Run) -> Option<f64>, word: impl Fn(f64) -> String) -> Row {
        let values: Vec<Option<f64>> = self.runs.iter().map(read).collect();
        let words: Vec<String> = values.iter().map(|value| value.map_or("–".to_owned(), &word)).collect();
        let known = || values.iter().enumerate().filter_map(|(run, value)| Some((run, (*value)?)));
        let best = known().min_by(|(_, one), (_, other)| one.total_cmp(other)).map(|(run, _)| run);
        // What reads alike is alike.
        let differs = words.iter().any(|word| Some(word) != words.first());
        Row { name: name.to_owned(), best: best.filter(|_| differs), values: words }
    }
}
