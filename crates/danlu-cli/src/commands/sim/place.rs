//! `danlu sim place`: how well jobs that come one by one are packed, by the protocol of "Beware of Fragmentation" (FGD).

use std::path::PathBuf;
use std::process::ExitCode;
use std::str::FromStr;
use std::time::Instant;

use clap::Args;
use danlu_sim::place::{PlaceReport, mean, place};
use danlu_sim::trace::{TraceError, openb};
use serde::Serialize;

use super::replay::open;
use crate::failure::CliError;
use crate::{output, progress, table};

#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  danlu sim place --nodes openb_node_list_gpu_node.csv --pods openb_pod_list_default.csv\n\nMethod and results: docs/adr/0005-placement.md"
)]
pub(crate) struct Arguments {
    /// Nodes: CSV with the columns `sn`, `cpu_milli`, `memory_mib`, `gpu` and `model`
    #[arg(long, value_name = "FILE")]
    nodes: PathBuf,
    /// Pods: CSV with the columns `name`, `cpu_milli`, `memory_mib`, `num_gpu`, `gpu_milli` and optionally `gpu_spec`
    #[arg(long, value_name = "FILE")]
    pods: PathBuf,
    /// Seeds of the arrival orders to try: a number or a range
    #[arg(long, value_name = "SEEDS", default_value = "42-51")]
    seeds: Seeds,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Seeds {
    first: u64,
    last: u64,
}

const MOST_SEEDS: u64 = 10_000;

impl FromStr for Seeds {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let seeds = first.trim().parse().ok().zip(last.trim().parse().ok());
        let seeds = seeds.map(|(first, last)| Seeds { first, last });
        seeds
            .filter(|seeds| seeds.first <= seeds.last && seeds.last - seeds.first < MOST_SEEDS)
            .ok_or_else(|| format!("write a number or a range of at most {MOST_SEEDS}, such as 42-51"))
    }
}

#[derive(Debug, Serialize)]
struct Answer {
    seeds: Vec<PlaceReport>,
    mean: PlaceReport,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, CliError> {
    let failed = |error: TraceError| CliError::new(error.to_string()).caused_by(&error);
    let name = |path: &PathBuf| path.display().to_string();
    let nodes = openb::read_nodes(&name(&arguments.nodes), open(&arguments.nodes)?).map_err(failed)?;
    let pods = openb::read_pods(&name(&arguments.pods), open(&arguments.pods)?).map_err(failed)?;
    let Seeds { first, last } = arguments.seeds;
    let bar = progress::seeds(last - first + 1, "placing");
    let begin = Instant::now();
    // One after the other: placements per second are those of one thread.
    let mut seeds = Vec::new();
    for seed in first..=last {
        seeds.push(place(&nodes, &pods, seed, &mut || begin.elapsed()));
        bar.inc(1);
    }
    bar.finish_and_clear();
    let Some(mean) = mean(&seeds) else { return Ok(ExitCode::SUCCESS) };
    let answer = Answer { seeds, mean };
    if arguments.json {
        output::json(&answer)?;
    } else {
        output::line(figures(&answer))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn figures(answer: &Answer) -> String {
    let mut table =
        table::of_columns(&["seed", "unallocated % at 100 %", "at 130 %", "placed", "dropped", "per second"]);
    for report in answer.seeds.iter().chain([&answer.mean]) {
        let seed = report.seed.map_or_else(|| "mean".to_owned(), |seed| seed.to_string());
        table.add_row([
            seed,
            format!("{:.2}", report.unallocated_percent.at_100),
            format!("{:.2}", report.unallocated_percent.at_130),
            format!("{:.0}", report.placed),
            format!("{:.0}", report.dropped),
            format!("{:.0}", report.placements_per_second),
        ]);
    }
    for column in table.column_iter_mut() {
        column.set_cell_alignment(comfy_table::CellAlignment::Right);
    }
    table::text(&table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_a_number_or_a_range() {
        assert_eq!("7".parse(), Ok(Seeds { first: 7, last: 7 }));
        assert_eq!("42-51".parse(), Ok(Seeds { first: 42, last: 51 }));
        for text in ["", "x", "3-1", "0-10000", "-1", "1-2-3"] {
            assert!(text.parse::<Seeds>().is_err(), "{text}");
        }
    }
}
