//! Batch scripts of Slurm's as job files: what their `#SBATCH` lines ask for, and everything of it that Danlu does
//! otherwise or not at all.
//!
//! Text in, values out. What cannot be honoured becomes a note, or a diagnostic where a job that runs without it would
//! not be the one that was meant; no option is passed over in silence.

mod amounts;
mod body;
mod header;
mod job;
mod options;
mod shell;
mod size;
mod steps;
mod steps_of_job;
mod surroundings;

use crate::diagnostic::{Diagnostic, ValueOrigin};
use crate::tree::SourceTree;

/// A script as a job, before it is checked.
#[derive(Debug)]
pub(super) struct BatchScript {
    pub(super) tree: SourceTree,
    pub(super) diagnostics: Vec<Diagnostic>,
    pub(super) notes: Vec<ImportNote>,
    /// The numbers of an array's jobs; a variable says which of them a job is.
    pub(super) array: Vec<u32>,
}

/// What becomes of an option that is not done as written.
#[derive(Debug, PartialEq, Eq)]
pub struct ImportNote {
    pub line: usize,
    pub text: String,
}

/// `sbatch` knows some two hundred. What is said of each is looked up in the whole file, so there is an end to it.
const MOST_OPTIONS: usize = 1000;

/// By what no YAML begins, or what nobody but Slurm reads.
pub(super) fn is_script(source: &str) -> bool {
    source.starts_with("#!") || source.lines().any(|line| line.starts_with("#SBATCH"))
}

/// `name` is the file's; jobs without a name of their own are called after it.
pub(super) fn read(name: &str, source: &str) -> BatchScript {
    let mut header = header::read(source);
    let too_many = header.given.get(MOST_OPTIONS).map(|given| given.place.clone());
    header.given.truncate(MOST_OPTIONS);
    header.diagnostics.truncate(MOST_OPTIONS);
    header.late.truncate(MOST_OPTIONS);
    let mut script = job::build(&header, name, source);
    if let Some(place) = too_many {
        script.diagnostics.push(Diagnostic {
            field: String::new(),
            message: format!("a script has at most {MOST_OPTIONS} options in its `#SBATCH` lines"),
            label: None,
            place: ValueOrigin::File(place),
        });
    }
    if let Some(at) = source.find("\r\n") {
        script.diagnostics.push(Diagnostic {
            field: String::new(),
            message: "lines end as on Windows, which no shell here reads".to_owned(),
            label: Some("`dos2unix` makes them plain".to_owned()),
            place: ValueOrigin::File(at..at),
        });
    }
    if !source.starts_with("#!") {
        script.diagnostics.push(Diagnostic {
            field: String::new(),
            message: "a batch script begins with the program that runs it".to_owned(),
            label: Some("write `#!/bin/bash` before this".to_owned()),
            place: ValueOrigin::File(0..source.find('\n').unwrap_or(source.len())),
        });
    }
    script
}

fn line_of(source: &str, at: usize) -> usize {
    source.as_bytes()[..at.min(source.len())].split(|byte| *byte == b'\n').count()
}

#[cfg(test)]
mod tests;
