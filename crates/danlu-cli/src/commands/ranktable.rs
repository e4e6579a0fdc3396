//! `danlu ranktable`: HCCL's rank tables by hand, for jobs that Danlu does not start and tables that others wrote.

mod generate;

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand};
use danlu_ranktable::{ParsedTable, TableIssue, Version, Weight};
use danlu_types::Family;
use serde_json::json;

use crate::failure::{CliError, FAILED};
use crate::output;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Print the rank table of this machine or of other nodes
    Generate(generate::Arguments),
    /// Report problems in a rank table; exit with 1 if HCCL cannot use it
    Validate {
        /// Rank table; `-` reads standard input
        file: PathBuf,
        /// Hardware of the nodes: `910A`, `A2`, `A3`, `A5`, `310P` or a chip such as `910B3`
        #[arg(long)]
        family: Option<Family>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Print a rank table in another version
    Convert {
        /// Rank table; `-` reads standard input
        file: PathBuf,
        /// Version to convert to: `1.0`, `group_list`, `board_id` (MindSpore up to 0.5), `1.2` or `2.0`
        #[arg(long, value_name = "VERSION")]
        to: Version,
    },
}

pub(crate) fn run(arguments: Arguments) -> Result<ExitCode, CliError> {
    match arguments.action {
        Action::Generate(arguments) => generate::run(arguments),
        Action::Validate { file, family, json } => validate(&file, family, json),
        Action::Convert { file, to } => {
            let ParsedTable { table, findings } = read(&file)?;
            for finding in &findings {
                output::say(finding.to_string());
            }
            let converted = danlu_ranktable::convert(table.clone(), to)
                .map_err(|error| CliError::new(error.to_string()))?;
            for sentence in danlu_ranktable::left_out(&table, &converted) {
                output::say(sentence);
            }
            write(&danlu_ranktable::render(&converted))
        }
    }
}

fn validate(file: &Path, family: Option<Family>, as_json: bool) -> Result<ExitCode, CliError> {
    let ParsedTable { table, mut findings } = read(file)?;
    findings.extend(danlu_ranktable::validate(&table, family));
    let wrong = findings.iter().filter(|finding| finding.weight == Weight::Wrong).count();
    if as_json {
        let shown = |finding: &TableIssue| json!({ "wrong": finding.weight == Weight::Wrong, "place": finding.place, "problem": finding.problem });
        let shown: Vec<_> = findings.iter().map(shown).collect();
        let version = table.version.as_str();
        output::json(&json!({ "version": version, "ranks": table.ranks(), "findings": shown }))?;
    } else {
        output::lines(findings.iter().map(ToString::to_string))?;
        let what = format!("a rank table of version {} with {} ranks", table.version, table.ranks());
        output::say(match (wrong, findings.len()) {
            (0, 0) => format!("{what}; nothing is wrong with it"),
            (0, _) => format!("{what}; HCCL can use it"),
            (wrong, _) => format!("{what}; {wrong} of it wrong"),
        });
        if family.is_none() {
            output::say("with `--family 910B3` it is also checked against what the hardware needs");
        }
    }
    Ok(if wrong == 0 { ExitCode::SUCCESS } else { ExitCode::from(FAILED) })
}

fn read(file: &Path) -> Result<ParsedTable, CliError> {
    let text = if file == Path::new("-") {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).map(|_| text)
    } else {
        fs::read_to_string(file)
    };
    let text =
        text.map_err(|error| CliError::new(format!("cannot read `{}`", file.display())).caused_by(&error))?;
    danlu_ranktable::parse(&text).map_err(|error| {
        CliError::new(format!("`{}` is not a usable rank table", file.display())).caused_by(&error)
    })
}

fn write(text: &str) -> Result<ExitCode, CliError> {
    output::lines(text.lines().map(str::to_owned))?;
    Ok(ExitCode::SUCCESS)
}
