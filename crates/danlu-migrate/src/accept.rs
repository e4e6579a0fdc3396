//! Whether a changed file may be kept: it still parses, and uses no name that nothing binds.

use ruff_python_parser::{Mode, ParseError};

use crate::checker::Checker;
use crate::edit::{self, Edit};
use crate::facts::ProjectFacts;
use crate::finding::{Finding, FindingKind};
use crate::rules::python2;
use crate::source::{self, Source};
use crate::{FileMigration, Module, Options};

/// Why a result is not kept.
#[derive(Debug)]
pub(crate) struct RejectedEdit {
    pub(crate) reason: String,
    /// Names that the changes use and nothing binds.
    pub(crate) unbound: Vec<String>,
}

impl RejectedEdit {
    fn of(reason: String) -> Self {
        RejectedEdit { reason, unbound: Vec::new() }
    }
}

/// Takes the changes that need a name which is not there out of the list, and reports them instead.
pub(crate) fn without_unbound(edits: &mut Vec<Edit>, findings: &mut Vec<Finding>, unbound: &[String]) {
    edits.retain(|edit| {
        let Some(name) = unbound.iter().find(|name| edit.replacement.contains(name.as_str())) else {
            return true;
        };
        findings.push(Finding {
            rule: edit.rule,
            kind: FindingKind::NeedsPerson,
            start: edit.start,
            end: edit.end,
            subject: edit.replacement.trim().to_owned(),
            message: format!("would be written here, but nothing binds `{name}` in this place"),
        });
        false
    });
}

/// Names of Python itself that our own lines use.
const BUILT_IN: &[&str] = &["int", "getattr", "__import__", "ImportError"];

pub(crate) fn check(
    before: &[u8],
    edits: &[Edit],
    checker: &Checker<'_>,
    module: &Module,
    facts: &ProjectFacts,
    options: &Options,
    mode: Mode,
) -> Result<(), RejectedEdit> {
    let after = edit::apply(before, edits);
    let source =
        source::read(&after).map_err(|error| RejectedEdit::of(format!("after the change {error}")))?;
    let parsed = crate::parse(&source.text, mode)
        .map_err(|error| RejectedEdit::of(format!("the change would not parse ({})", error.error)))?;
    let changed = Checker::new(&source.text, source.skipped, &parsed, facts, options, &module.package);
    if checker.has_star_import() {
        return Ok(());
    }
    let mut new: Vec<&str> = changed.unbound_names().into_iter().collect();
    new.retain(|name| !checker.unbound.contains(name) && !BUILT_IN.contains(name));
    new.sort_unstable();
    if new.is_empty() {
        return Ok(());
    }
    let reason = format!("the change would use `{}`, which nothing binds", new.join("`, `"));
    Err(RejectedEdit { reason, unbound: new.into_iter().map(str::to_owned).collect() })
}

/// What a file that Python cannot parse is told.
pub(crate) fn syntax_error(source: &Source<'_>, error: &ParseError) -> FileMigration {
    let start = error.location.start().to_usize().min(source.text.len());
    let message = match python2::looks_like(&source.text, start) {
        Some(what) => format!(
            "the file was left as it is: {what} of Python 2; `python -m lib2to3` of Python 3.12 or older converts it"
        ),
        None => format!("the file was left as it is: it does not parse ({})", error.error),
    };
    broken(start + source.skipped, start + source.skipped, message)
}

pub(crate) fn broken(start: usize, end: usize, message: String) -> FileMigration {
    let finding = Finding {
        rule: python2::RULE.name,
        kind: FindingKind::Broken,
        start,
        end,
        subject: String::new(),
        message,
    };
    FileMigration { edits: Vec::new(), findings: vec![finding] }
}
