//! `danlu sim bench`: how fast the scheduler is on a large cluster, on this machine.

use std::process::ExitCode;
use std::time::Instant;

use clap::Args;
use danlu_sim::{BenchReport, BenchSize, bench};

use crate::failure::CliError;
use crate::output;

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  danlu sim bench --nodes 1000 --queued 10000")]
pub(crate) struct Arguments {
    /// Number of nodes with eight devices each, 95 % of them allocated
    #[arg(long, value_name = "N", default_value_t = BenchSize::default().nodes, value_parser = clap::value_parser!(u32).range(10..=100_000))]
    nodes: u32,
    /// Number of queued jobs, each of 1 to 128 devices
    #[arg(long, value_name = "N", default_value_t = BenchSize::default().queued, value_parser = clap::value_parser!(u64).range(100..=1_000_000))]
    queued: u64,
    /// Number of nodes in the placement benchmark
    #[arg(long, value_name = "N", default_value_t = BenchSize::default().placement_nodes, value_parser = clap::value_parser!(u32).range(10..=100_000))]
    placement_nodes: u32,
    /// Number of one-device jobs in the placement benchmark
    #[arg(long, value_name = "N", default_value_t = BenchSize::default().placements, value_parser = clap::value_parser!(u64).range(100..=1_000_000))]
    placements: u64,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, CliError> {
    let size = BenchSize {
        nodes: arguments.nodes,
        queued: arguments.queued,
        placement_nodes: arguments.placement_nodes,
        placements: arguments.placements,
    };
    let begin = Instant::now();
    let is_terminal = output::stderr_is_terminal();
    let report = bench(
        size,
        || begin.elapsed(),
        |what| {
            if is_terminal {
                output::say(format!("{what} …"));
            }
        },
    );
    if arguments.json {
        output::json(&report)?;
    } else {
        output::line(table(&report))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn table(report: &BenchReport) -> String {
    let BenchReport { nodes, devices, queued, placement_nodes, placements, .. } = report;
    let BenchReport { preemptible_nodes, preemptible_queued, .. } = report;
    [
        format!("{nodes} nodes with {devices} devices, 95 % held, {queued} jobs waiting"),
        format!(
            "  first full pass           {:>9.2} ms, {} starts",
            report.full_pass_ms, report.full_pass_starts
        ),
        format!(
            "  pass after one job ended  {:>9.2} ms median, {:.2} ms slowest of {}",
            report.incremental_pass_ms, report.slowest_incremental_pass_ms, report.incremental_passes
        ),
        format!(
            "  explanation               {:>9.2} ms median, {:.2} ms slowest of {}",
            report.explain_ms, report.slowest_explain_ms, report.explanations
        ),
        format!(
            "{preemptible_nodes} nodes, {preemptible_queued} jobs waiting, half of what runs preemptible"
        ),
        format!("  first full pass           {:>9.2} ms", report.full_pass_with_preemptible_ms),
        format!(
            "  pass after one job ended  {:>9.2} ms median, {:.2} ms slowest of {}",
            report.incremental_pass_with_preemptible_ms,
            report.slowest_incremental_pass_with_preemptible_ms,
            report.incremental_passes
        ),
        format!("{placement_nodes} idle nodes, {placements} jobs of one device"),
        format!("  placements per second     {:>9.0}", report.placements_per_second),
    ]
    .join("\n")
}
