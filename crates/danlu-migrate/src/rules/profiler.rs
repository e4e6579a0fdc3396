//! `torch.profiler`.

use super::{Grade, Rule};
use crate::checker::Checker;
use crate::finding::FindingKind;
use crate::hooks::{Hooks, Reference};
use ruff_python_ast::StmtImportFrom;
use ruff_text_size::{Ranged as _, TextRange};

pub(crate) const RULE: Rule = Rule {
    name: "profiler",
    grade: Grade::Safe,
    what: "Takes `profile`, `ProfilerActivity`, `ProfilerAction`, `schedule` and `tensorboard_trace_handler` from \
           `torch_npu.profiler`, and turns `ProfilerActivity.CUDA` into `ProfilerActivity.NPU`, in files that profile CUDA. \
           `record_function` stays where it is. `use_cuda=True` of the old profiler and `key_averages()` are reported.",
    why: "Device activity of an NPU is recorded by torch_npu's profiler only; the two cannot be mixed.",
    before: "from torch.profiler import ProfilerActivity, profile\n\nwith profile(activities=[ProfilerActivity.CUDA]):\n    step()\n",
    after: "from torch_npu.profiler import ProfilerActivity, profile\n\nwith profile(activities=[ProfilerActivity.NPU]):\n    step()\n",
    references: &["https://docs.pytorch.org/docs/stable/profiler.html"],
    hooks: Hooks { reference: Some(on_reference), import_from: Some(on_import_from), ..Hooks::NONE },
};

const MOVED: &[&str] =
    &["profile", "ProfilerActivity", "ProfilerAction", "schedule", "tensorboard_trace_handler"];

/// A program that profiles the CPU alone needs nothing of `torch_npu`.
fn profiles_cuda(checker: &Checker<'_>) -> bool {
    checker.source.contains("ProfilerActivity.CUDA")
}

fn on_reference<'a>(checker: &mut Checker<'a>, rule: &'static Rule, reference: &Reference<'a>) {
    let full = reference.path.full.as_str();
    if let Some(call) = reference.call
        && matches!(full, "torch.autograd.profiler.profile" | "torch.autograd.profiler.emit_nvtx")
        && (full.ends_with("nvtx") || call.arguments.find_keyword("use_cuda").is_some())
    {
        let message = "the old profiler does not see NPUs; use `torch_npu.profiler.profile`";
        checker.report(rule, FindingKind::NeedsPerson, reference.expression.range(), full, message);
        return;
    }
    let Some(below) = full.strip_prefix("torch.profiler.") else { return };
    if !MOVED.contains(&below.split('.').next().unwrap_or(below)) || !profiles_cuda(checker) {
        return;
    }
    // Activities of other devices have no counterpart in torch_npu.
    if below.strip_prefix("ProfilerActivity.").is_some_and(|activity| !matches!(activity, "CPU" | "CUDA")) {
        return;
    }
    if below == "ProfilerActivity.CUDA"
        && let Some(last) = reference.parts.last()
    {
        checker.replace_with_npu(
            rule,
            Grade::Safe,
            last.range,
            "NPU",
            "replace attribute \"CUDA\" with \"NPU\"",
        );
    }
    // Where the chain spells `torch.profiler`, torch becomes torch_npu; where it does not, an import was changed.
    if reference.path.shift == 0 && reference.parts.len() > 1 {
        let start = reference.expression.range().start();
        let root = TextRange::at(start, reference.parts[0].range.start() - start);
        let name = checker.text(root).trim_end_matches(['.', ' ', '\n', '\\']);
        let Ok(length) = u32::try_from(name.len()) else { return };
        let range = TextRange::at(start, length.into());
        let message = format!("change function {full} to torch_npu.profiler.{below}");
        checker.replace_with_npu(rule, Grade::Safe, range, "torch_npu", message);
    }
}

fn on_import_from<'a>(
    checker: &mut Checker<'a>,
    rule: &'static Rule,
    import: &'a StmtImportFrom,
    module: &str,
) {
    if !profiles_cuda(checker) || import.level > 0 {
        return;
    }
    let message = "change module torch.profiler to torch_npu.profiler";
    if module == "torch" {
        if let Some(alias) = import.names.iter().find(|alias| alias.name.as_str() == "profiler") {
            let kept = alias.asname.as_ref().unwrap_or(&alias.name);
            let shown = if kept.as_str() == "profiler" { String::new() } else { format!(" as {kept}") };
            move_names(
                checker,
                rule,
                import,
                &[alias],
                &format!("from torch_npu import profiler{shown}"),
                message,
            );
        }
        return;
    }
    if module != "torch.profiler" {
        return;
    }
    let moved: Vec<_> = import.names.iter().filter(|alias| MOVED.contains(&alias.name.as_str())).collect();
    if moved.is_empty() {
        return;
    }
    if moved.len() == import.names.len()
        && let Some(name) = &import.module
    {
        checker.replace_with_npu(rule, Grade::Safe, name.range, "torch_npu.profiler", message);
        return;
    }
    let names: Vec<&str> = moved.iter().map(|alias| checker.text(alias.range)).collect();
    let statement = format!("from torch_npu.profiler import {}", names.join(", "));
    move_names(checker, rule, import, &moved, &statement, message);
}

/// Takes names out of an import and puts the statement that has them before it.
fn move_names<'a>(
    checker: &mut Checker<'a>,
    rule: &'static Rule,
    import: &'a StmtImportFrom,
    moved: &[&'a ruff_python_ast::Alias],
    statement: &str,
    message: &str,
) {
    if moved.len() == import.names.len() {
        checker.replace_with_npu(rule, Grade::Safe, import.range, statement, message);
        return;
    }
    let before = checker.as_statement_before(import.range, statement);
    checker.replace_with_npu(rule, Grade::Safe, TextRange::empty(import.range.start()), before, message);
    let kept: Vec<&str> = import
        .names
        .iter()
        .filter(|alias| !moved.iter().any(|other| other.range == alias.range))
        .map(|alias| checker.text(alias.range))
        .collect();
    // From the first name to the last: brackets and what follows them stay.
    if let (Some(first), Some(last)) = (import.names.first(), import.names.last()) {
        let range = first.range.cover(last.range);
        checker.replace_with_npu(rule, Grade::Safe, range, kept.join(", "), message);
    }
}
