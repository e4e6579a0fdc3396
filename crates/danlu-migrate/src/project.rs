//! The shell: reads a folder, has every file migrated on all cores, and writes what is wanted.
//!
//! Each file is on its own: what fails costs that file only and is in the report. Nothing is written until it is whole
//! (a temporary file beside it, then a rename), and a file without a change is copied byte for byte, with its mode.

mod files;
mod reports;
mod totals;
mod write;

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde::Serialize;
use thiserror::Error;

pub use self::files::{SourceFile, SourceFileKind};
pub use self::reports::{PLATFORM_REPORTS, REPORT_NAMES, REPORTS, write_reports};
pub use self::totals::{MigrationTotals, RuleTotals};
use crate::edit::{self, LineIndex};
use crate::finding::{Finding, FindingKind};
use crate::rules::{Grade, cuda_source};
use crate::{Edit, FileMigration, Module, Options, Portable, ProjectFacts, text};

#[derive(Debug, Error)]
pub enum ProjectError {
    #[error("cannot read `{}`", path.display())]
    Read { path: PathBuf, source: std::io::Error },
    #[error("cannot write `{}`", path.display())]
    Write { path: PathBuf, source: std::io::Error },
    #[error("`{}` is not a folder", path.display())]
    NotAFolder { path: PathBuf },
    #[error("the output `{}` lies inside of the input", path.display())]
    OutputInside { path: PathBuf },
    #[error("`{main}` is no Python file of the project")]
    NoMain { main: String },
    #[error("the migration was given up before its end")]
    GivenUp,
}

/// Where results go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Destination {
    /// Nothing is written.
    Nowhere,
    /// A whole copy of the project.
    Folder(PathBuf),
    /// The files themselves.
    InPlace,
}

/// One change, as reports show it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SourceChange {
    pub start_line: usize,
    pub end_line: usize,
    pub column: usize,
    pub operation: &'static str,
    pub rule: &'static str,
    pub grade: Grade,
    pub message: String,
}

/// One finding, as reports show it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Note {
    pub start_line: usize,
    pub end_line: usize,
    pub column: usize,
    pub rule: &'static str,
    pub kind: FindingKind,
    pub subject: String,
    pub message: String,
}

/// What became of one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FileReport {
    /// Relative to the project, with `/`.
    pub path: String,
    pub kind: SourceFileKind,
    pub lines: usize,
    pub changes: Vec<SourceChange>,
    pub findings: Vec<Note>,
    /// A unified diff, where one was asked for.
    #[serde(skip)]
    pub diff: String,
    /// Operators that C++ and CUDA sources define for Python.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub operators: Vec<String>,
}

/// What became of the whole project; files in the order of their paths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MigrationReport {
    pub torch: &'static str,
    pub files: Vec<FileReport>,
}

impl MigrationReport {
    pub fn changed(&self) -> impl Iterator<Item = &FileReport> {
        self.files.iter().filter(|file| !file.changes.is_empty())
    }

    pub fn changes(&self) -> usize {
        self.files.iter().map(|file| file.changes.len()).sum()
    }

    pub fn count(&self, kind: FindingKind) -> usize {
        self.files.iter().flat_map(|file| &file.findings).filter(|note| note.kind == kind).count()
    }
}

/// Migrates the project at `root`.
pub fn migrate(
    root: &Path,
    destination: &Destination,
    options: &Options,
    with_diffs: bool,
) -> Result<MigrationReport, ProjectError> {
    migrate_while(root, destination, options, with_diffs, &|| true)
}

/// The same for as long as `goes_on` says so, which is asked before each file.
pub fn migrate_while(
    root: &Path,
    destination: &Destination,
    options: &Options,
    with_diffs: bool,
    goes_on: &(dyn Fn() -> bool + Sync),
) -> Result<MigrationReport, ProjectError> {
    if !root.is_dir() {
        return Err(ProjectError::NotAFolder { path: root.to_owned() });
    }
    if let Destination::Folder(output) = destination {
        write::refuse_inside(root, output)?;
    }
    let mut tree = files::list(root)?;
    if let Some(distributed) = &options.distributed {
        let main = tree
            .files
            .iter_mut()
            .find(|file| file.path == distributed.main && file.kind == SourceFileKind::Python);
        match main {
            Some(main) => main.module.is_main = true,
            None => return Err(ProjectError::NoMain { main: distributed.main.clone() }),
        }
    }
    let facts = gather(root, &tree.files, goes_on).ok_or(ProjectError::GivenUp)?;
    if let Destination::Folder(output) = destination {
        write::make_folders(output, &tree)?;
    }
    let copy = match destination {
        Destination::Nowhere => None,
        Destination::Folder(output) => Some(output.as_path()),
        Destination::InPlace => Some(root),
    };
    if let Some(copy) = copy.filter(|_| options.modelarts) {
        let main = options.distributed.as_ref().map_or("train.py", |distributed| distributed.main.as_str());
        write::add_modelarts(copy, main)?;
    }
    let failures: Mutex<Vec<ProjectError>> = Mutex::new(Vec::new());
    let work = |file: &SourceFile| {
        let (report, result) = one(root, file, &facts, options, destination, with_diffs);
        if let Err(error) = result {
            failures.lock().expect("no holder of this lock panics").push(error);
        }
        report
    };
    let files = on_all_cores(&tree.files, goes_on, work).ok_or(ProjectError::GivenUp)?;
    if let Some(error) = failures.into_inner().expect("no holder of this lock panics").into_iter().next() {
        return Err(error);
    }
    if let Some(copy) = copy.filter(|_| options.portable == Some(Portable::Shim)) {
        let changed = |file: &&SourceFile| {
            let place = files.binary_search_by(|report| report.path.cmp(&file.path));
            place.is_ok_and(|place| !files[place].changes.is_empty())
        };
        write::add_shims(copy, tree.files.iter().filter(changed))?;
    }
    Ok(MigrationReport { torch: options.torch.name(), files })
}

fn gather(root: &Path, files: &[SourceFile], goes_on: &(dyn Fn() -> bool + Sync)) -> Option<ProjectFacts> {
    let parts = on_all_cores(files, goes_on, |file| {
        if file.kind != SourceFileKind::Python {
            return ProjectFacts::default();
        }
        let Ok(bytes) = fs::read(root.join(&file.path)) else { return ProjectFacts::default() };
        if !(text::is_about_torch(&bytes) || text::hands_on(&bytes) || file.path.ends_with("__init__.py")) {
            return ProjectFacts::default();
        }
        // What panics here will panic again when its file is migrated, and is reported there.
        catch_unwind(|| crate::gather_facts(&bytes, &file.module)).unwrap_or_default()
    })?;
    let mut facts = ProjectFacts::default();
    for part in parts {
        facts.merge(part);
    }
    Some(facts)
}

fn one(
    root: &Path,
    file: &SourceFile,
    facts: &ProjectFacts,
    options: &Options,
    destination: &Destination,
    with_diffs: bool,
) -> (FileReport, Result<(), ProjectError>) {
    let path = root.join(&file.path);
    let mut report = FileReport {
        path: file.path.clone(),
        kind: file.kind,
        lines: 0,
        changes: Vec::new(),
        findings: Vec::new(),
        diff: String::new(),
        operators: Vec::new(),
    };
    if file.kind == SourceFileKind::Other {
        return (report, write::copy(&path, &file.path, destination));
    }
    let bytes = match fs::read(&path) {
        Ok(bytes) => bytes,
        Err(error) => {
            let outcome = crate::accept::broken(0, 0, format!("the file cannot be read: {error}"));
            report.findings = notes(b"", outcome.findings);
            return (report, Ok(()));
        }
    };
    report.lines = memchr::memchr_iter(b'\n', &bytes).count()
        + usize::from(!bytes.is_empty() && !bytes.ends_with(b"\n"));
    if file.kind == SourceFileKind::Cuda {
        let (findings, operators) = cuda_source::look(&file.path, &bytes);
        report.findings = notes(&bytes, findings);
        report.operators = operators;
        return (report, write::copy(&path, &file.path, destination));
    }
    let outcome = catch_unwind(AssertUnwindSafe(|| propose(file.kind, &bytes, &file.module, facts, options)))
        .unwrap_or_else(|_| {
            crate::accept::broken(0, 0, "the file was left as it is: the migrator failed on it".to_owned())
        });
    let changed = (!outcome.edits.is_empty()).then(|| edit::apply(&bytes, &outcome.edits));
    let result = match &changed {
        Some(changed) => write::replace(&path, &file.path, changed, destination),
        None => write::copy(&path, &file.path, destination),
    };
    if with_diffs {
        report.diff = crate::report::diff::unified(&file.path, &bytes, &outcome.edits);
    }
    report.changes = changes(&bytes, &outcome.edits);
    report.findings = notes(&bytes, outcome.findings);
    (report, result)
}

/// Proposes the changes to one file of any kind: the pure core, for those who have the bytes already.
pub fn propose(
    kind: SourceFileKind,
    bytes: &[u8],
    module: &Module,
    facts: &ProjectFacts,
    options: &Options,
) -> FileMigration {
    if options.portable.is_some() && kind != SourceFileKind::Python {
        return FileMigration::default();
    }
    match kind {
        SourceFileKind::Python => crate::migrate_project_python(bytes, module, facts, options),
        SourceFileKind::Notebook => text::notebook::migrate(bytes, facts, options),
        SourceFileKind::Shell => text::shell::migrate(bytes),
        SourceFileKind::Configuration => text::configuration::migrate(bytes),
        SourceFileKind::Requirements => text::requirements::migrate(bytes, options),
        SourceFileKind::Pyproject => text::pyproject::migrate(bytes),
        SourceFileKind::Cuda | SourceFileKind::Other => FileMigration::default(),
    }
}

fn changes(bytes: &[u8], edits: &[Edit]) -> Vec<SourceChange> {
    if edits.is_empty() {
        return Vec::new();
    }
    let lines = LineIndex::of(bytes);
    let change = |edit: &Edit| SourceChange {
        start_line: lines.line(edit.start),
        end_line: lines.line(edit.end),
        column: lines.column(edit.start),
        operation: if edit.is_insertion() {
            "INSERT"
        } else if edit.replacement.is_empty() {
            "DELETE"
        } else {
            "MODIFY"
        },
        rule: edit.rule,
        grade: edit.grade,
        message: edit.message.clone(),
    };
    edits.iter().map(change).collect()
}

fn notes(bytes: &[u8], findings: Vec<Finding>) -> Vec<Note> {
    if findings.is_empty() {
        return Vec::new();
    }
    let lines = LineIndex::of(bytes);
    let note = |finding: Finding| Note {
        start_line: lines.line(finding.start),
        end_line: lines.line(finding.end),
        column: lines.column(finding.start),
        rule: finding.rule,
        kind: finding.kind,
        subject: finding.subject,
        message: finding.message,
    };
    findings.into_iter().map(note).collect()
}

/// Deeply nested code needs a deep stack; the pages that nobody touches cost nothing.
const STACK_BYTES: usize = 256 << 20;

/// More cores wait for the disk, and the addresses of their stacks would not fit into what a server allows.
const MOST_THREADS: usize = 16;

/// Results in the order of the files, whoever was done first; nothing if it was given up.
fn on_all_cores<T: Send>(
    files: &[SourceFile],
    goes_on: &(dyn Fn() -> bool + Sync),
    work: impl Fn(&SourceFile) -> T + Sync,
) -> Option<Vec<T>> {
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<(usize, T)>> = Mutex::new(Vec::with_capacity(files.len()));
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let threads = cores.min(MOST_THREADS).min(files.len().max(1));
    std::thread::scope(|scope| {
        for _ in 0..threads {
            let worker = || {
                let mut mine = Vec::new();
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(file) = files.get(index).filter(|_| goes_on()) else { break };
                    mine.push((index, work(file)));
                }
                done.lock().expect("no holder of this lock panics").extend(mine);
            };
            std::thread::Builder::new()
                .stack_size(STACK_BYTES)
                .spawn_scoped(scope, worker)
                .expect("a thread can be started");
        }
    });
    let mut done = done.into_inner().expect("no holder of this lock panics");
    done.sort_by_key(|(index, _)| *index);
    (done.len() == files.len()).then(|| done.into_iter().map(|(_, result)| result).collect())
}

/// The module that a Python file is: `pkg/sub/module.py` is `pkg.sub.module` if `pkg` and `sub` are packages.
pub(crate) fn module_of(path: &str, is_package: impl Fn(&str) -> bool) -> Module {
    let without = path.strip_suffix(".py").unwrap_or(path);
    let (folder, stem) = without.rsplit_once('/').unwrap_or(("", without));
    let mut packages = Vec::new();
    let mut rest = folder;
    while !rest.is_empty() && is_package(rest) {
        let (above, name) = rest.rsplit_once('/').unwrap_or(("", rest));
        packages.push(name);
        rest = above;
    }
    packages.reverse();
    let package = packages.join(".");
    let name = match (stem, package.is_empty()) {
        ("__init__", _) => package.clone(),
        (_, true) => stem.to_owned(),
        (_, false) => format!("{package}.{stem}"),
    };
    Module { name, package, is_main: false, npu_twin: None }
}
