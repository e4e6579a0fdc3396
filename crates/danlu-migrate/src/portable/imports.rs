//! Imports of one kind of device: names that were imported become names that are looked up.

use ruff_python_ast::{Alias, Stmt, StmtImport, StmtImportFrom};
use ruff_text_size::{TextRange, TextSize};

use super::{DEVICE, RULE};
use crate::checker::Checker;
use crate::finding::FindingKind;
use crate::rules::{Grade, Rule, torch_cuda};

const MESSAGE: &str = "look the name up in the device module that there is";

/// The path below the device module, such as `amp.autocast`; empty for the module itself.
fn below(path: &str) -> Option<&str> {
    ["torch.cuda", "torch.npu", "torch_npu.npu"].iter().find_map(|module| {
        let rest = path.strip_prefix(module)?;
        if rest.is_empty() { Some("") } else { rest.strip_prefix('.') }
    })
}

pub(super) fn on_import<'a>(checker: &mut Checker<'a>, rule: &'static Rule, import: &'a StmtImport) {
    for alias in &import.names {
        let name = alias.name.as_str();
        if name == "torch_npu" && alias.asname.is_none() {
            return drop_import(checker, rule, import);
        }
        // Without another name it binds `torch`, and importing `torch.cuda` needs no device.
        let Some(below) = below(name).filter(|_| alias.asname.is_some()) else { continue };
        if let Some(advice) = torch_cuda::missing(checker, name) {
            checker.report(rule, FindingKind::Unsupported, alias.range, name, advice);
            continue;
        }
        if import.names.len() > 1 {
            let message = "imports one kind of device; give it a line of its own";
            checker.report(rule, FindingKind::NeedsPerson, alias.range, name, message);
            continue;
        }
        bind(checker, import.range, &[(bound(alias), below.to_owned())]);
    }
}

fn bound(alias: &Alias) -> &str {
    alias.asname.as_ref().unwrap_or(&alias.name).as_str()
}

/// The definition of the device imports it where it can be imported.
fn drop_import(checker: &mut Checker<'_>, rule: &'static Rule, import: &StmtImport) {
    let is_alone = import.names.len() == 1 && checker.indentation(import.range) == Some("");
    let Some(end) = checker.line_end(import.range).filter(|_| is_alone) else {
        if !checker.is_aware() {
            let message =
                "cannot be imported where there is no NPU; the definition of `ACCELERATOR` imports it";
            checker.report(rule, FindingKind::NeedsPerson, import.range, "torch_npu", message);
        }
        return;
    };
    let rest = &checker.source[end..];
    let newline = if rest.starts_with("\r\n") { 2 } else { usize::from(!rest.is_empty()) };
    let Ok(end) = TextSize::try_from(end + newline) else { return };
    let range = TextRange::new(import.range.start(), end);
    checker.replace_with_npu(&RULE, Grade::Safe, range, "", "import torch_npu only where there is one");
}

pub(super) fn on_import_from<'a>(
    checker: &mut Checker<'a>,
    rule: &'static Rule,
    import: &'a StmtImportFrom,
    module: &str,
) {
    if import.level > 0 {
        return;
    }
    let mut names = Vec::new();
    for alias in &import.names {
        let path = format!("{module}.{}", alias.name);
        if let Some(advice) = torch_cuda::missing(checker, &path) {
            checker.report(rule, FindingKind::Unsupported, alias.range, path, advice);
            return;
        }
        match below(&path) {
            Some(below) => names.push((bound(alias), below.to_owned())),
            None if crate::scope::is_in(module, "torch_npu") => {
                let message = "exists for NPUs only; import it where there is one";
                checker.report(rule, FindingKind::NeedsPerson, alias.range, path, message);
                return;
            }
            None => {}
        }
    }
    if names.is_empty() {
        return;
    }
    if names.len() == import.names.len() {
        return bind(checker, import.range, &names);
    }
    // `from torch import nn, cuda`: the others stay where they are.
    let mut leaving =
        import.names.iter().filter(|alias| below(&format!("{module}.{}", alias.name)).is_some());
    if let (Some(alias), None) = (leaving.next(), leaving.next())
        && let Some(range) = Checker::range_without(&import.names, alias)
    {
        let statements = statements(checker, import.range, &names);
        let start = TextRange::empty(import.range.start());
        let text = lines(checker, import.range, &statements) + &separator(checker, import.range);
        checker.replace_with_npu(&RULE, Grade::Safe, start, text, MESSAGE);
        checker.replace_with_npu(&RULE, Grade::Safe, range, "", MESSAGE);
    }
}

/// Assignments in the place of an import.
fn bind(checker: &mut Checker<'_>, range: TextRange, names: &[(&str, String)]) {
    let statements = statements(checker, range, names);
    let text = lines(checker, range, &statements);
    checker.replace_with_npu(&RULE, Grade::Safe, range, text, MESSAGE);
}

fn statements(checker: &Checker<'_>, range: TextRange, names: &[(&str, String)]) -> Vec<String> {
    let binds_torch = |statement: &Stmt| {
        matches!(statement, Stmt::Import(import) if import.range.end() <= range.start()
            && import.names.iter().any(|alias| alias.name.as_str() == "torch" && alias.asname.is_none()))
    };
    let torch = if checker.body.iter().any(binds_torch) { "torch" } else { "__import__(\"torch\")" };
    let assignment = |(name, below): &(&str, String)| {
        let dot = if below.is_empty() { "" } else { "." };
        format!("{name} = getattr({torch}, {DEVICE}){dot}{below}")
    };
    names.iter().map(assignment).collect()
}

fn separator(checker: &Checker<'_>, range: TextRange) -> String {
    match checker.indentation(range) {
        Some(indentation) => format!("{}{indentation}", checker.newline()),
        None => "; ".to_owned(),
    }
}

fn lines(checker: &Checker<'_>, range: TextRange, statements: &[String]) -> String {
    statements.join(&separator(checker, range))
}
