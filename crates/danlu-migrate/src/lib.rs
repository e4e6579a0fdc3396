//! CUDA training code to Ascend NPU: understands Python, changes bytes, explains itself.
//!
//! The core is pure: [`migrate_python`] takes text and what the project knows ([`ProjectFacts`]) and answers with edits and
//! findings. [`project`] is the shell that reads and writes folders; nothing else touches a file. A file that cannot be
//! parsed, or whose result does not pass the check, stays as it was and is reported. Stands alone: no other crate of Danlu
//! is below it, and the Python parser is in no other.

mod accept;
mod aware;
mod checker;
mod depth;
mod devices;
mod edit;
mod facts;
mod finding;
mod guards;
mod hooks;
mod layout;
mod options;
mod portable;
pub mod project;
pub mod report;
mod roles;
mod rules;
mod scope;
mod source;
mod support;
mod text;
pub mod versions;
mod walk;

pub use crate::edit::{Edit, LineIndex, apply};
pub use crate::facts::ProjectFacts;
pub use crate::finding::{Finding, FindingKind};
pub use crate::options::{Distributed, Options, Portable};
pub use crate::portable::RULES as PORTABLE_RULES;
pub use crate::rules::{Grade, RULES, Rule};
pub use crate::source::SourceError;
pub use crate::support::{Support, TorchVersion, versions};

use ruff_python_ast::ModModule;
use ruff_python_parser::{Mode, ParseError, ParseErrorType, ParseOptions, Parsed};
use ruff_text_size::TextRange;

use crate::checker::Checker;

/// Where a Python file stands among its project's modules.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Module {
    /// `pkg.sub.module`
    pub name: String,
    /// `pkg.sub`: what relative imports are relative to.
    pub package: String,
    /// The entry script of `--distributed`.
    pub is_main: bool,
    /// The file beside it that does the same for NPUs: `npu_accelerator.py` for `cuda_accelerator.py`.
    pub npu_twin: Option<String>,
}

/// What became of a file: nothing but a proposal until somebody applies it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileMigration {
    /// In order, without overlaps.
    pub edits: Vec<Edit>,
    pub findings: Vec<Finding>,
}

/// What one Python file tells the others. A file that cannot be read tells nothing.
pub fn gather_facts(bytes: &[u8], module: &Module) -> ProjectFacts {
    let Ok(source) = source::read(bytes) else { return ProjectFacts::default() };
    match parse(&source.text, Mode::Module) {
        Ok(parsed) => facts::gather(parsed.syntax(), &module.name, &module.package),
        Err(_) => ProjectFacts::default(),
    }
}

/// Proposes the changes to one Python file.
pub fn migrate_python(
    bytes: &[u8],
    module: &Module,
    facts: &ProjectFacts,
    options: &Options,
) -> FileMigration {
    migrate_in_mode(bytes, module, facts, options, Mode::Module)
}

pub(crate) fn migrate_in_mode(
    bytes: &[u8],
    module: &Module,
    facts: &ProjectFacts,
    options: &Options,
    mode: Mode,
) -> FileMigration {
    let source = match source::read(bytes) {
        Ok(source) => source,
        Err(error) => return accept::broken(0, 0, format!("the file was left as it is: {error}")),
    };
    let parsed = match parse(&source.text, mode) {
        Ok(parsed) => parsed,
        Err(error) => return accept::syntax_error(&source, &error),
    };
    let mut checker = Checker::new(&source.text, source.skipped, &parsed, facts, options, &module.package);
    checker.is_main = module.is_main;
    checker.check();
    let (edits, mut findings) = (std::mem::take(&mut checker.edits), std::mem::take(&mut checker.findings));
    let edits = edit::in_order(bytes, edits);
    findings.sort_by_key(|finding| (finding.start, finding.end, finding.kind));
    findings.dedup();
    if edits.is_empty() {
        return FileMigration { edits, findings };
    }
    let mut edits = edits;
    let check = |edits: &[Edit]| accept::check(bytes, edits, &checker, module, facts, options, mode);
    let mut verdict = check(&edits);
    if let Err(refusal) = &verdict
        && !refusal.unbound.is_empty()
    {
        accept::without_unbound(&mut edits, &mut findings, &refusal.unbound);
        verdict = check(&edits);
    }
    match verdict {
        Ok(()) => FileMigration { edits, findings },
        Err(refusal) => accept::broken(0, 0, format!("the file was left as it is: {}", refusal.reason)),
    }
}

/// A Python file of a project: one without a word that concerns anybody here is only checked to parse.
pub(crate) fn migrate_project_python(
    bytes: &[u8],
    module: &Module,
    facts: &ProjectFacts,
    options: &Options,
) -> FileMigration {
    if let Some(twin) = module.npu_twin.as_ref().filter(|_| options.portable.is_none()) {
        return FileMigration { edits: Vec::new(), findings: vec![rules::npu_aware::has_twin(twin)] };
    }
    if text::is_about_torch(bytes) || module.is_main || options.modelarts {
        return migrate_python(bytes, module, facts, options);
    }
    match source::read(bytes) {
        Err(error) => accept::broken(0, 0, format!("the file was left as it is: {error}")),
        Ok(source) => match parse(&source.text, Mode::Module) {
            Ok(_) => FileMigration::default(),
            Err(error) => accept::syntax_error(&source, &error),
        },
    }
}

fn parse(text: &str, mode: Mode) -> Result<Parsed<ModModule>, ParseError> {
    if depth::is_beyond_reason(text, mode) {
        let error = ParseErrorType::OtherError("it nests deeper than Python itself compiles".to_owned());
        return Err(ParseError { error, location: TextRange::default() });
    }
    let parsed = ruff_python_parser::parse_unchecked(text, ParseOptions::from(mode));
    let parsed = parsed.try_into_module().expect("both modes that we use parse modules");
    match parsed.errors().first() {
        None => Ok(parsed),
        Some(error) => Err(error.clone()),
    }
}
