//! The page that compares runs: one file, no script, nothing to fetch.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::axis::Axis;
use super::escape;
use super::plot::{BarGroup, COLORS, Hover, PlotLine, bars, lines};
use super::rows::Row;
use super::words::{duration, percent, thousands, whole};
use crate::measure::{Comparison, Group, Run};

const STYLE: &str = include_str!("style.css");

/// A self-contained page. Writing to a string cannot fail, so results of `write!` are dropped here.
pub fn html(comparison: &Comparison) -> String {
    let trace = escape(&comparison.trace);
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>Replay of {trace}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n\
         <h1>Replay of {trace}</h1>\n<p class=\"lead\">{}</p>\n",
        escape(&lead(comparison))
    );
    if comparison.runs.len() > 1 {
        let _ = write!(page, "<div class=\"legend\">");
        for (position, run) in comparison.runs.iter().enumerate() {
            let _ = write!(page, "<span class=\"c{}\">{}</span>", position % COLORS, escape(&run.name));
        }
        let _ = writeln!(page, "</div>");
    }
    let _ = writeln!(page, "<div class=\"cards\">");
    plots(&mut page, comparison);
    let _ = writeln!(page, "</div>\n<div class=\"cards\">");
    table(&mut page, "All jobs", "", comparison, &comparison.rows());
    let workspaces = comparison.workspace_rows();
    if workspaces.len() > 1 {
        table(&mut page, "Mean wait by workspace", "workspace", comparison, &workspaces);
    }
    let classes = comparison.class_rows();
    if !classes.is_empty() {
        table(&mut page, "Mean time to the first start by class", "class", comparison, &classes);
    }
    let _ = writeln!(page, "</div>\n<ul class=\"notes\">");
    for note in &comparison.notes {
        let _ = writeln!(page, "<li>{}</li>", escape(note));
    }
    let _ = writeln!(page, "{DEFINITIONS}</ul>\n</body>\n</html>");
    page
}

const DEFINITIONS: &str = "\
<li>wait: all time without devices between submission and end; completion time: from submission to end</li>
<li>free, but too scattered: of the free devices, those on nodes with fewer free devices than one worker of the median \
waiting job asks for, averaged over the time in which something waited</li>
<li>work lost: what was done after the last checkpoint before an interruption, and had to be done again</li>
";

fn lead(comparison: &Comparison) -> String {
    let Some(run) = comparison.runs.first() else { return String::new() };
    format!(
        "{} jobs on {} nodes with {} {}; {} in virtual time",
        thousands(run.jobs.submitted),
        thousands(run.nodes),
        whole(run.capacity),
        run.unit.as_str(),
        duration(run.makespan_seconds)
    )
}

fn plots(page: &mut String, comparison: &Comparison) {
    let runs = &comparison.runs;
    let longest = runs.iter().map(|run| run.makespan_seconds).fold(0.0, f64::max);
    let time = Axis::time("time since the first submission", longest);
    let utilisation = over_time(runs, |run| &run.series.utilisation_percent);
    figure(
        page,
        "Utilisation",
        &lines(
            "Utilisation over time",
            &time,
            &Axis::percent("held, % of what is there"),
            &utilisation,
            &hovers(runs, |run| &run.series.utilisation_percent, percent),
        ),
        "",
    );
    let queue = over_time(runs, |run| &run.series.queued);
    let most = queue.iter().flat_map(|line| &line.points).map(|(_, value)| *value).fold(0.0, f64::max);
    figure(
        page,
        "Queue",
        &lines(
            "Queue length over time",
            &time,
            &Axis::linear("jobs that wait", most),
            &queue,
            &hovers(runs, |run| &run.series.queued, |value| format!("{value:.1} jobs")),
        ),
        "",
    );
    let times = || runs.iter().flat_map(|run| run.completion_quantiles_seconds.iter().copied());
    let shortest = times().filter(|time| *time > 0.0).fold(f64::INFINITY, f64::min);
    let longest = times().fold(0.0, f64::max);
    let completion: Vec<PlotLine> =
        runs.iter().map(|run| cumulative(&run.completion_quantiles_seconds)).collect();
    figure(
        page,
        "Completion times",
        &lines(
            "Part of the jobs that completed within a time",
            &Axis::logarithmic_time(
                "from submission to end, each factor of ten as wide as the next",
                shortest,
                longest,
            ),
            &Axis::percent("jobs, %"),
            &completion,
            &[],
        ),
        "how many of the jobs were done within which time: further left is better",
    );
    let first_wait = |group: &Group| group.first_wait_seconds.mean;
    group_bars(page, comparison, "Mean time to the first start by class", |run| &run.classes, first_wait);
    let wait = |group: &Group| group.wait_seconds.mean;
    group_bars(page, comparison, "Mean wait by workspace", |run| &run.workspaces, wait);
}

fn figure(page: &mut String, title: &str, plot: &str, caption: &str) {
    let _ = write!(page, "<figure><h2>{title}</h2>{plot}");
    if !caption.is_empty() {
        let _ = write!(page, "<figcaption>{}</figcaption>", escape(caption));
    }
    let _ = writeln!(page, "</figure>");
}

fn group_bars(
    page: &mut String,
    comparison: &Comparison,
    title: &str,
    groups: fn(&Run) -> &BTreeMap<String, Group>,
    read: fn(&Group) -> f64,
) {
    let value = |run: &Run, name: &str| groups(run).get(name).map_or(0.0, read);
    let group = |name: &str| BarGroup {
        name: name.to_owned(),
        values: comparison.runs.iter().map(|run| value(run, name)).collect(),
    };
    let groups: Vec<BarGroup> = comparison.names(groups).into_iter().map(group).collect();
    if groups.len() > 1 {
        figure(page, title, &bars(title, &groups, duration), "");
    }
}

/// Means stand in the middle of the stretch they are of.
fn over_time(runs: &[Run], read: fn(&Run) -> &Vec<f64>) -> Vec<PlotLine> {
    let line = |run: &Run| {
        let middle = |position: usize| (position as f64 + 0.5) * run.series.step_seconds;
        let points = read(run).iter().enumerate().map(|(position, value)| (middle(position), *value));
        PlotLine { points: points.collect() }
    };
    runs.iter().map(line).collect()
}

/// Runs differ in length, so stretches are those of the longest.
fn hovers(runs: &[Run], read: fn(&Run) -> &Vec<f64>, word: impl Fn(f64) -> String) -> Vec<Hover> {
    let longest = runs.iter().max_by(|one, other| one.makespan_seconds.total_cmp(&other.makespan_seconds));
    let Some(longest) = longest else { return Vec::new() };
    let step = longest.series.step_seconds;
    let hover = |position: usize| {
        let (from, to) = (position as f64 * step, (position as f64 + 1.0) * step);
        let mut text = format!("after {}", duration(from));
        for run in runs {
            let middle = from + step / 2.0;
            let ends = (1..).map(|stretch| f64::from(stretch) * run.series.step_seconds);
            let value = read(run).iter().zip(ends).find(|(_, end)| *end > middle);
            if let Some((value, _)) = value {
                let _ = write!(text, "\n{}: {}", run.name, word(*value));
            }
        }
        Hover { from, to: to.min(longest.makespan_seconds), text }
    };
    (0..read(longest).len()).map(hover).collect()
}

fn cumulative(quantiles: &[f64]) -> PlotLine {
    let last = quantiles.len().saturating_sub(1).max(1) as f64;
    let points = quantiles.iter().enumerate().map(|(position, time)| (*time, position as f64 / last * 100.0));
    PlotLine { points: points.collect() }
}

fn table(page: &mut String, title: &str, first: &str, comparison: &Comparison, rows: &[Row]) {
    let _ = write!(page, "<section><h2>{title}</h2><div class=\"scroll\"><table><thead><tr><th>{first}</th>");
    for run in &comparison.runs {
        let _ = write!(page, "<th>{}</th>", escape(&run.name));
    }
    let _ = writeln!(page, "</tr></thead><tbody>");
    for row in rows {
        let _ = write!(page, "<tr><th>{}</th>", escape(&row.name));
        for (run, value) in row.values.iter().enumerate() {
            let class = if row.best == Some(run) { " class=\"best\"" } else { "" };
            let _ = write!(page, "<td{class}>{}</td>", escape(value));
        }
        let _ = writeln!(page, "</tr>");
    }
    let _ = writeln!(page, "</tbody></table></div></section>");
}
