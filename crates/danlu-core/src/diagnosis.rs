//! Why a rank failed, told from its last words.
//!
//! What is known stands in `diagnosis/table.txt`, one entry per line, and in `docs/reference/diagnosis.md` for readers. Here it
//! is only looked up: nothing in the code knows any message.

use std::fmt::Write;
use std::sync::LazyLock;

use danlu_types::api::LogStream;
use danlu_types::device::glob_matches;

use crate::job::{FailureCause, ProcessExit};

mod evidence;

use evidence::{Evidence, Output};

const TABLE: &str = include_str!("diagnosis/table.txt");

/// Lines are compared up to here.
const LONGEST_LINE: usize = 2000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiagnosisKind {
    /// Another attempt would end the same way.
    Program,
    Device,
    /// Another attempt may succeed.
    Passing,
    /// Another rank failed first.
    Symptom,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiagnosisRule {
    pub name: &'static str,
    pub says: Says,
    pub kind: DiagnosisKind,
    pub meaning: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Says {
    Text(&'static str),
    Ended(ProcessExit),
}

/// What became of a rank, and in which of its words it shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnosis {
    pub entry: DiagnosisRule,
    /// The line that says so; empty where it only ended.
    pub line: String,
    /// Whether the rank said so at its end, as a statement. What was printed earlier, or quoted, is a guess: it is told to
    /// people, and changes nothing.
    pub is_certain: bool,
}

/// Each with what it says in small letters.
static ENTRIES: LazyLock<Vec<(DiagnosisRule, String)>> =
    LazyLock::new(|| entries().map(with_small_letters).collect());

fn with_small_letters(entry: DiagnosisRule) -> (DiagnosisRule, String) {
    let text = match entry.says {
        Says::Text(text) => text.to_lowercase(),
        Says::Ended(_) => String::new(),
    };
    (entry, text)
}

/// `tail`: the rank's last lines, oldest first. `has_devices`: whether the rank's worker was given any; otherwise no device can
/// have failed it.
pub fn diagnose<'a>(
    tail: impl Iterator<Item = (LogStream, &'a str)>,
    exit: Option<ProcessExit>,
    has_devices: bool,
) -> Option<Diagnosis> {
    let output = Output::new(tail, LONGEST_LINE);
    let told = |entry: &DiagnosisRule, text: &str| match entry.says {
        Says::Ended(end) => {
            let told = Diagnosis { entry: *entry, line: String::new(), is_certain: true };
            (exit == Some(end)).then_some(told)
        }
        Says::Text(_) => {
            let lines = output.lines.iter().enumerate();
            let found = lines
                .filter(|(_, (_, _, lower))| holds(lower, text))
                .filter_map(|(at, _)| Some((output.evidence(at, text)?, at)))
                .max()?;
            let (evidence, at) = found;
            let line = output.lines[at].1.trim().to_owned();
            Some(Diagnosis { entry: *entry, line, is_certain: evidence == Evidence::Certain })
        }
    };
    let applies = |entry: &DiagnosisRule| has_devices || !entry.is_of_devices();
    let all: Vec<Diagnosis> = ENTRIES
        .iter()
        .filter(|(entry, _)| applies(entry))
        .filter_map(|(entry, text)| told(entry, text))
        .collect();
    let certain = all.iter().find(|found| found.is_certain);
    certain.or(all.first()).cloned()
}

impl DiagnosisRule {
    fn is_of_devices(&self) -> bool {
        self.kind == DiagnosisKind::Device || self.meaning.starts_with("the device's memory")
    }
}

/// Both are in small letters.
fn holds(line: &str, text: &str) -> bool {
    // Nearly no line holds the first word, and that is quick to see.
    let first = text.split('*').next().unwrap_or_default();
    line.contains(first) && (!text.contains('*') || glob_matches(&format!("*{text}*"), line))
}

impl DiagnosisKind {
    /// The cause under which a failure of this kind is filed.
    pub fn cause(self) -> FailureCause {
        match self {
            DiagnosisKind::Program => FailureCause::ProgramError,
            DiagnosisKind::Device => FailureCause::DeviceError,
            DiagnosisKind::Passing | DiagnosisKind::Symptom => FailureCause::Exit,
        }
    }

    /// For people.
    pub fn advice(self) -> &'static str {
        match self {
            DiagnosisKind::Program => "another attempt would end the same way",
            DiagnosisKind::Device => "another attempt goes elsewhere",
            DiagnosisKind::Passing => "another attempt may succeed",
            DiagnosisKind::Symptom => "look at who failed first; another attempt may succeed",
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            DiagnosisKind::Program => "program",
            DiagnosisKind::Device => "device",
            DiagnosisKind::Passing => "passing",
            DiagnosisKind::Symptom => "symptom",
        }
    }
}

/// Entries that cannot be read are left out; a test sees to it that there are none.
fn entries() -> impl Iterator<Item = DiagnosisRule> {
    TABLE.lines().filter(|line| !line.starts_with('#')).filter_map(read_entry)
}

fn read_entry(line: &'static str) -> Option<DiagnosisRule> {
    let fields: Vec<&str> = line.split(" | ").map(str::trim).collect();
    let [name, says, kind, meaning] = fields[..] else { return None };
    let kind =
        [DiagnosisKind::Program, DiagnosisKind::Device, DiagnosisKind::Passing, DiagnosisKind::Symptom]
            .into_iter()
            .find(|known| known.as_str() == kind)?;
    let number = |text: &str| text.parse::<i32>().ok();
    let says = match says.split_once(' ') {
        Some(("exit", code)) if number(code).is_some() => Says::Ended(ProcessExit::Code(number(code)?)),
        Some(("signal", signal)) if number(signal).is_some() => {
            Says::Ended(ProcessExit::Signal(number(signal)?))
        }
        _ => Says::Text(says),
    };
    Some(DiagnosisRule { name, says, kind, meaning })
}

/// The table as a page.
pub fn reference() -> String {
    let mut page = String::from(
        "# Why a rank failed\n\n\
         <!-- Written by a test of danlu-core from the table itself: `DANLU_BLESS=1 cargo test -p danlu-core` rewrites it. -->\n\n\
         When a rank fails, its launcher looks for these in its last lines, in this order, and puts what it finds into the \
         reason that `danlu show` prints, with the rank and the node. `program`: another attempt would end the same way, so \
         `retry` makes none. `device`: it is retried elsewhere under `device_error`, and a device that keeps failing is taken out of \
         service if its own readings are bad as well and attempts of several people failed on it: what a program prints never condemns a \
         device alone. `passing`: it is retried if `retry.on` names `exit`. `symptom`: the same, but another rank of the worker that \
         has said more is blamed instead. `*` stands for anything.\n\n\
         What counts is what the rank said at its end, as a statement: the exception of its last traceback (or one that led to it), or \
         one of the last lines of standard error, or a complaint among the last lines of standard output. Sources that a \
         traceback shows count for nothing. Anything else that matches, such as a tip or a quoted message, is told as a guess \
         (`perhaps`) and leaves `retry` as it is. Entries that speak of devices apply only to jobs that were given some. The table is \
         [one line per entry](../../crates/danlu-core/src/diagnosis/table.txt); a new line is all it takes.\n\n\
         | name | what the rank says | kind | what it means, and what to do |\n|---|---|---|---|\n",
    );
    for entry in entries() {
        let says = match entry.says {
            Says::Text(text) => format!("`{text}`"),
            Says::Ended(ProcessExit::Code(code)) => format!("nothing, and ends with code {code}"),
            Says::Ended(ProcessExit::Signal(signal)) => format!("nothing, and is killed by signal {signal}"),
        };
        let _ = writeln!(page, "| `{}` | {says} | {} | {} |", entry.name, entry.kind.as_str(), entry.meaning);
    }
    page
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_line_of_the_table_is_an_entry_with_a_name_of_its_own() {
        let lines = TABLE.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).count();
        let names: BTreeSet<&str> = entries().map(|entry| entry.name).collect();
        assert_eq!((entries().count(), names.len()), (lines, lines));
    }
}
