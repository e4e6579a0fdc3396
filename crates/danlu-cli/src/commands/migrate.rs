//! `danlu migrate`: CUDA training code to Ascend NPU. Needs no server.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand, ValueEnum};
use danlu_migrate::project::{self, Destination, MigrationReport};
use danlu_migrate::{Distributed, FindingKind, Options, Portable, TorchVersion, report, versions};
use jiff::Zoned;

use crate::failure::{CliError, FAILED, USAGE};
use crate::output;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Project folder to migrate
    #[arg(short, long, value_name = "FOLDER")]
    input: PathBuf,
    /// Folder for the migrated copy
    ///
    /// The copy is named `NAME_msft`, or `NAME_msft_multi` with `--distributed`, or `NAME_portable` with `--reverse` and `--portable`.
    #[arg(short, long, value_name = "FOLDER", required_unless_present_any = ["in_place", "check", "diff"])]
    output: Option<PathBuf>,
    /// PyTorch version to check API support against, e.g. `2.1.0` [default: the newest known]
    #[arg(short, long, value_name = "VERSION")]
    version: Option<String>,
    /// Change the project in place instead of a copy
    #[arg(long, conflicts_with_all = ["output", "check", "diff"])]
    in_place: bool,
    /// List changes and remaining problems without changing files; exit with 1 if there are any
    #[arg(long, conflicts_with = "output")]
    check: bool,
    /// Print the changes as a patch without changing files
    #[arg(long, conflicts_with_all = ["output", "format"])]
    diff: bool,
    /// Print the whole report in this format
    #[arg(long, value_enum, value_name = "FORMAT")]
    format: Option<Format>,
    /// Entry script to convert to one process per device, relative to the project, e.g. `train.py`
    #[arg(long, value_name = "FILE")]
    distributed: Option<String>,
    /// Variable that holds the model in the entry script
    #[arg(long, value_name = "NAME", default_value = "model")]
    model: String,
    /// Make entry scripts select the device in the environment variable `DEVICE_ID`
    #[arg(short, long)]
    specify_device: bool,
    /// Add an entry script for ModelArts and a table that maps paths to its folders
    #[arg(short, long)]
    modelarts: bool,
    /// Report faster equivalents of calls in `torch_npu`
    #[arg(long)]
    similar: bool,
    /// Convert code for GPUs or NPUs to code that runs on both; each file detects the device
    #[arg(long, conflicts_with_all = ["distributed", "specify_device", "modelarts", "similar"])]
    reverse: bool,
    /// Like `--reverse`, with the module `portable_device.py` to detect the device
    #[arg(long, conflicts_with_all = ["distributed", "specify_device", "modelarts", "similar", "reverse"])]
    portable: bool,
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Same as `--distributed` and `--model`, in the syntax of the vendor's tool
    Distributed {
        /// Entry script to convert to one process per device
        #[arg(short, long, value_name = "FILE")]
        main: PathBuf,
        /// Variable that holds the model in the entry script
        #[arg(short, long = "target_model", value_name = "NAME", default_value = "model")]
        target_model: String,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    Json,
    Sarif,
    Html,
}

pub(crate) fn run(arguments: Arguments) -> Result<ExitCode, CliError> {
    let distributed = distributed(&arguments)?;
    let portable = match (arguments.reverse, arguments.portable) {
        (_, true) => Some(Portable::Shim),
        (true, false) => Some(Portable::Inline),
        (false, false) => None,
    };
    let name = project_name(&arguments.input)?;
    let destination = match (&arguments.output, arguments.in_place) {
        (Some(output), _) => {
            let suffix = match (&distributed, portable) {
                (Some(_), _) => "_msft_multi",
                (None, Some(_)) => "_portable",
                (None, None) => "_msft",
            };
            Destination::Folder(output.join(format!("{name}{suffix}")))
        }
        (None, true) => Destination::InPlace,
        (None, false) => Destination::Nowhere,
    };
    let options = Options {
        torch: torch_version(arguments.version.as_deref())?,
        distributed,
        similar: arguments.similar,
        specify_device: arguments.specify_device,
        modelarts: arguments.modelarts,
        portable,
    };
    let is_writing = matches!(destination, Destination::Folder(_));
    let with_diffs = is_writing || arguments.diff || arguments.format == Some(Format::Html);
    let report = project::migrate(&arguments.input, &destination, &options, with_diffs).map_err(failed)?;
    if let Destination::Folder(folder) = &destination {
        let at = Zoned::now().strftime("%Y-%m-%d %H:%M:%S").to_string();
        let reports = folder.join(project::REPORTS);
        project::write_reports(&reports, &report, &options, &name, Some(&at)).map_err(failed)?;
        output::say(format!(
            "the migrated project is in `{}`, what was done to it in `{}`",
            folder.display(),
            reports.display()
        ));
    }
    print(&arguments, &report, &name)?;
    let verb = if destination == Destination::Nowhere { "would change" } else { "changed" };
    output::say(report::summary(&report, verb));
    Ok(exit_code(&arguments, &report))
}

fn print(arguments: &Arguments, report: &MigrationReport, name: &str) -> Result<(), CliError> {
    if arguments.diff {
        return output::lines(report::diffs(report).lines().map(str::to_owned));
    }
    match arguments.format {
        Some(Format::Json) => output::json(report),
        Some(Format::Sarif) => output::json(&report::sarif(report)),
        Some(Format::Html) => output::line(report::html(report, name)),
        Some(Format::Text) => output::lines(report::text(report).lines().map(output::printable)),
        None if arguments.check => output::lines(report::text(report).lines().map(output::printable)),
        None => Ok(()),
    }
}

/// Files that could not be migrated always fail; a check also fails where there is something to do.
fn exit_code(arguments: &Arguments, report: &MigrationReport) -> ExitCode {
    let open = report.count(FindingKind::Broken);
    let to_do =
        report.changes() + report.count(FindingKind::Unsupported) + report.count(FindingKind::NeedsPerson);
    if open > 0 || arguments.check && to_do > 0 { ExitCode::from(FAILED) } else { ExitCode::SUCCESS }
}

fn distributed(arguments: &Arguments) -> Result<Option<Distributed>, CliError> {
    let (main, model) = match (&arguments.action, &arguments.distributed) {
        (Some(Action::Distributed { main, target_model }), _) => (main.clone(), target_model),
        (None, Some(main)) => (PathBuf::from(main), &arguments.model),
        (None, None) => return Ok(None),
    };
    // The vendor's tool takes the path of the file, ours also one inside of the project.
    let inside = main.strip_prefix(&arguments.input).unwrap_or(&main);
    let main = inside.to_string_lossy().replace('\\', "/");
    let distributed = Distributed::new(main, model)
        .ok_or_else(|| CliError::new(format!("`{model}` is not the name of a variable")).with_code(USAGE))?;
    Ok(Some(distributed))
}

fn torch_version(asked: Option<&str>) -> Result<TorchVersion, CliError> {
    let Some(asked) = asked else { return Ok(TorchVersion::newest()) };
    let known = versions().join(", ");
    let (version, is_exact) = TorchVersion::nearest(asked).ok_or_else(|| {
        CliError::new(format!("`{asked}` is not a version of PyTorch"))
            .with_code(USAGE)
            .hint(format!("one of {known}"))
    })?;
    if !is_exact {
        output::say(format!(
            "no list for torch {asked}; the lists for {} are asked instead (there are {known})",
            version.name()
        ));
    }
    Ok(version)
}

fn project_name(input: &Path) -> Result<String, CliError> {
    let real = std::fs::canonicalize(input).map_err(|error| {
        CliError::new(format!("cannot read `{}`", input.display())).caused_by(&error).with_code(USAGE)
    })?;
    Ok(real.file_name().map_or("project".to_owned(), |name| name.to_string_lossy().into_owned()))
}

fn failed(error: project::ProjectError) -> CliError {
    let hint = match &error {
        project::ProjectError::NotAFolder { .. } => Some("give the folder of the project with `-i`"),
        project::ProjectError::OutputInside { .. } => Some("choose a folder beside the project with `-o`"),
        project::ProjectError::NoMain { .. } => {
            Some("name the entry script relative to the project, such as `tools/train.py`")
        }
        project::ProjectError::Read { .. }
        | project::ProjectError::Write { .. }
        | project::ProjectError::GivenUp => None,
    };
    let failure = CliError::new(error.to_string());
    let failure = match std::error::Error::source(&error) {
        Some(cause) => failure.caused_by(cause),
        None => failure.with_code(USAGE),
    };
    match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}
