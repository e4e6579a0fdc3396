//! `danlu sim replay`: reads a trace, runs it once for each variant, and shows the runs side by side.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;

use clap::{Args, ValueEnum};
use comfy_table::{Attribute, Cell, CellAlignment, Table};
use danlu_sim::trace::{Assumptions, Trace, TraceError, history, kueue, openb, philly, simple};
use danlu_sim::{Comparison, Faults, Row, Run, Scenario, Simulation, html};
use danlu_types::{HeadOfLine, Span};
use indicatif::ProgressBar;

use super::variants::{self, Variant};
use crate::failure::{CliError, USAGE};
use crate::{output, progress, table};

/// The bar is told of ended jobs after so many steps of a simulation.
const STEPS_BETWEEN_REPORTS: u32 = 500;

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  danlu history export > history.jsonl\n  danlu sim replay history.jsonl --policy backfill,strict --html report.html\n  danlu sim replay history.jsonl --nodes +4x8:ascend:910B3\n  danlu sim replay jobs.csv --nodes 8x8:nvidia:A100-80G --faults mtbf=30d,repair=4h\n  danlu sim replay philly.csv --preset philly --scale 0.35 --lending off,on\n  danlu sim replay --preset kueue --json\n\nFormats and metrics: docs/guide/simulator.md"
)]
pub(crate) struct Arguments {
    /// Trace: a `danlu history export`, a table of jobs (CSV) or the input of a preset; `-` reads standard input
    #[arg(required_unless_present = "preset")]
    trace: Option<PathBuf>,
    /// Known workload and its cluster
    #[arg(long, value_enum)]
    preset: Option<Preset>,
    /// File of workspaces and quotas (YAML or JSON), as for `danlu up --workspaces`
    #[arg(long, value_name = "FILE")]
    workspaces: Option<PathBuf>,
    /// Whether idle guarantees are lent; `off,on` compares both
    #[arg(long, value_enum, value_delimiter = ',', value_name = "SWITCH")]
    lending: Vec<Switch>,
    /// Queue policies to compare: `backfill`, `strict`, `skip` or `balance`, e.g. `backfill,strict`
    #[arg(long, value_delimiter = ',', value_name = "POLICIES", value_parser = variants::policy)]
    policy: Vec<HeadOfLine>,
    /// Factor for the number of the preset's nodes, e.g. `0.35`
    #[arg(long, value_name = "FACTOR", requires = "preset", value_parser = factor)]
    scale: Option<f64>,
    /// Nodes of the preset `openb`: CSV with the columns `sn`, `cpu_milli`, `memory_mib`, `gpu` and `model`
    #[arg(long, value_name = "FILE", requires = "preset")]
    machines: Option<PathBuf>,
    /// Nodes, as for `danlu up --simulate`; with a leading `+`, in addition to those of the trace
    #[arg(long, value_name = "NODES")]
    nodes: Option<String>,
    /// File of `runs` to compare (YAML), each with a `name` and its differences
    #[arg(long, value_name = "FILE", conflicts_with_all = ["policy", "lending"])]
    compare: Option<PathBuf>,
    /// Random failures of nodes and devices, e.g. `mtbf=30d,device-mtbf=365d,repair=4h`
    #[arg(long, value_name = "FAULTS")]
    faults: Option<Faults>,
    /// Seed of the random failures, e.g. `7`
    #[arg(long, value_name = "NUMBER", requires = "faults")]
    seed: Option<u64>,
    /// Time between two checkpoints of a job; with `0s`, interrupted jobs start over
    #[arg(long, value_name = "DURATION", default_value = "30m")]
    checkpoint_every: Span,
    /// Time that an interrupted job needs to start again from its checkpoint
    #[arg(long, value_name = "DURATION", default_value = "1m")]
    restart_cost: Span,
    /// HTML report to write, with plots and in one file, e.g. `report.html`
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Preset {
    /// Microsoft's Philly trace (CSV) as in the Helios study; each virtual cluster is a workspace
    Philly,
    /// Like `philly`, with separate nodes for each virtual cluster
    PhillyPartitioned,
    /// Pods of Alibaba's openb trace (CSV) over time, on the nodes of `--machines`
    Openb,
    /// The 15,000 jobs of Kueue's baseline performance test; needs no trace
    Kueue,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Switch {
    On,
    Off,
}

fn factor(text: &str) -> Result<f64, String> {
    let factor = text.parse::<f64>().ok().filter(|factor| (0.001..=1000.0).contains(factor));
    factor.ok_or_else(|| "write a number from 0.001 to 1000, such as 0.35".to_owned())
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, CliError> {
    let mut trace = read(arguments)?;
    let faults =
        arguments.faults.map(|faults| Faults { seed: arguments.seed.unwrap_or(faults.seed), ..faults });
    if faults.is_some() {
        trace.retry_after_faults();
    }
    let free_limits = matches!(arguments.preset, Some(Preset::Philly | Preset::PhillyPartitioned));
    let base = variants::Base { trace: &trace, lend: free_limits.then_some(philly::lend) };
    let variants = match &arguments.compare {
        Some(file) => base.of_file(file, arguments.workspaces.as_deref(), arguments.nodes.as_deref())?,
        None => base.of_flags(
            arguments.workspaces.as_deref(),
            arguments.nodes.as_deref(),
            &arguments.policy,
            &arguments.lending,
        )?,
    };
    let runs = simulate(&trace, variants, faults);
    for run in runs.iter().filter(|run| run.gave_up_after_seconds.is_some()) {
        output::say(format!(
            "warning: `{}` was given up: its jobs made room for each other without end; this is a bug of the scheduler",
            run.name
        ));
    }
    let comparison = Comparison::new(&trace.name, std::mem::take(&mut trace.notes), runs);
    if let Some(path) = &arguments.html {
        std::fs::write(path, html(&comparison))
            .map_err(|error| CliError::new(format!("cannot write `{}`", path.display())).caused_by(&error))?;
    }
    if arguments.json {
        output::json(&comparison)?;
    } else {
        output::line(tables(&comparison))?;
    }
    if let Some(path) = &arguments.html {
        output::say(format!("wrote {}", path.display()));
    }
    Ok(ExitCode::SUCCESS)
}

fn read(arguments: &Arguments) -> Result<Trace, CliError> {
    let assumptions = Assumptions {
        checkpoint_every: Some(arguments.checkpoint_every).filter(|every| every.milliseconds > 0),
        restart_cost: arguments.restart_cost,
        ..Assumptions::default()
    };
    let scale = arguments.scale.unwrap_or(1.0);
    if arguments.preset == Some(Preset::Kueue) {
        if arguments.trace.is_some() || arguments.scale.is_some() {
            let message =
                "the preset `kueue` makes its own jobs and cluster: it takes no trace and no `--scale`";
            return Err(CliError::new(message).with_code(USAGE));
        }
        return Ok(kueue::generate());
    }
    let Some(path) = &arguments.trace else {
        let hint = if arguments.preset == Some(Preset::Openb) {
            "name one of the trace's lists of pods, such as openb_pod_list_default.csv"
        } else {
            "name the trace's CSV file with the columns timestamp, duration, num_gpus, gpu_time and cluster"
        };
        return Err(CliError::new("this preset replays a file").with_code(USAGE).hint(hint));
    };
    if arguments.machines.is_some() && arguments.preset != Some(Preset::Openb) {
        return Err(CliError::new("only the preset `openb` takes `--machines`").with_code(USAGE));
    }
    let name = path.file_name().map_or_else(|| "standard input".into(), |name| name.to_string_lossy());
    let mut input = open(path)?;
    let failed = |error: TraceError| CliError::new(error.to_string()).caused_by(&error);
    match arguments.preset {
        Some(Preset::Philly) => philly::read(&name, input, scale, &assumptions).map_err(failed),
        Some(Preset::PhillyPartitioned) => {
            let mut trace = philly::read(&name, input, scale, &assumptions).map_err(failed)?;
            philly::partition(&mut trace);
            Ok(trace)
        }
        Some(Preset::Openb) => {
            let nodes = match &arguments.machines {
                Some(machines) => {
                    openb::read_nodes(&machines.display().to_string(), open(machines)?).map_err(failed)?
                }
                None => Vec::new(),
            };
            openb::read(&name, input, openb::scaled(&nodes, scale), &assumptions).map_err(failed)
        }
        Some(Preset::Kueue) | None => {
            let begin = input.fill_buf().map_err(|error| {
                CliError::new(format!("cannot read `{}`", path.display())).caused_by(&error)
            })?;
            let is_history = begin.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{');
            if is_history {
                history::read(&name, input, &assumptions).map_err(failed)
            } else {
                simple::read(&name, input, &assumptions).map_err(failed)
            }
        }
    }
}

pub(super) fn open(path: &Path) -> Result<Box<dyn BufRead>, CliError> {
    if path == Path::new("-") {
        return Ok(Box::new(BufReader::new(io::stdin())));
    }
    let file = File::open(path)
        .map_err(|error| CliError::new(format!("cannot read `{}`", path.display())).caused_by(&error))?;
    Ok(Box::new(BufReader::new(file)))
}

/// As many at a time as there are processors; the order of the answers is that of the variants.
fn simulate(trace: &Trace, variants: Vec<Variant>, faults: Option<Faults>) -> Vec<Run> {
    let bar = progress::jobs((trace.jobs.len() * variants.len()) as u64, "simulating");
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(variants.len());
    let waiting = Mutex::new(variants.into_iter().enumerate());
    let done = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let next = || waiting.lock().ok()?.next();
                while let Some((position, variant)) = next() {
                    let run = simulate_one(trace, variant, faults, &bar);
                    if let Ok(mut done) = done.lock() {
                        done.push((position, run));
                    }
                }
            });
        }
    });
    bar.finish_and_clear();
    let mut done = done.into_inner().unwrap_or_default();
    done.sort_by_key(|(position, _)| *position);
    done.into_iter().map(|(_, run)| run).collect()
}

fn simulate_one(trace: &Trace, variant: Variant, faults: Option<Faults>, bar: &ProgressBar) -> Run {
    let mut simulation = Simulation::new(Scenario {
        nodes: variant.nodes,
        sharing: variant.sharing,
        jobs: trace.jobs.clone(),
        interventions: trace.interventions.clone(),
        faults,
    });
    let mut told = 0;
    let mut steps = 0u32;
    while simulation.step() {
        steps += 1;
        if steps.is_multiple_of(STEPS_BETWEEN_REPORTS) {
            let (ended, _) = simulation.progress();
            bar.inc((ended - told) as u64);
            told = ended;
        }
    }
    bar.inc((simulation.progress().0 - told) as u64);
    Run::of(&simulation, variant.name)
}

/// Everything that is shown on a terminal.
pub(crate) fn tables(comparison: &Comparison) -> String {
    let mut text = vec![table::text(&runs_table("all jobs", comparison, &comparison.rows()))];
    let workspaces = comparison.workspace_rows();
    if workspaces.len() > 1 {
        text.push(table::text(&runs_table("workspace: mean wait", comparison, &workspaces)));
    }
    let classes = comparison.class_rows();
    if !classes.is_empty() {
        text.push(table::text(&runs_table("class: mean time to start", comparison, &classes)));
    }
    let refusals =
        comparison.runs.iter().flat_map(|run| run.refusals.iter().map(move |refusal| (run, refusal)));
    let refusals: Vec<String> = refusals
        .map(|(run, (why, jobs))| format!("{}: refused {jobs}: {}", run.name, output::printable(why)))
        .collect();
    if !refusals.is_empty() {
        text.push(refusals.join("\n"));
    }
    text.push(comparison.notes.iter().map(|note| output::printable(note)).collect::<Vec<_>>().join("\n"));
    text.join("\n\n")
}

fn runs_table(first: &str, comparison: &Comparison, rows: &[Row]) -> Table {
    let names: Vec<String> = comparison.runs.iter().map(|run| output::printable(&run.name)).collect();
    let header: Vec<&str> = std::iter::once(first).chain(names.iter().map(String::as_str)).collect();
    let mut table = table::of_columns(&header);
    for row in rows {
        let value = |(run, value): (usize, &String)| {
            let cell = Cell::new(value).set_alignment(CellAlignment::Right);
            if row.best == Some(run) { cell.add_attribute(Attribute::Bold) } else { cell }
        };
        let cells = std::iter::once(Cell::new(output::printable(&row.name)));
        table.add_row(cells.chain(row.values.iter().enumerate().map(value)));
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}
