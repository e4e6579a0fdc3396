//! NCCL in every guise.

use super::{Grade, Rule};
use crate::checker::Checker;
use crate::finding::FindingKind;
use crate::hooks::{Hooks, Reference, Text, TextShape};
use ruff_python_ast::{AnyNodeRef, Expr, StmtImportFrom};
use ruff_text_size::Ranged as _;

pub(crate) const RULE: Rule = Rule {
    name: "nccl",
    grade: Grade::Safe,
    what: "Turns the backend `nccl` into `hccl`: as a text, in lists such as `\"cpu:gloo,cuda:nccl\"` (both halves), in \
           comparisons, defaults and options, as `Backend.NCCL`, and `is_nccl_available()`. `ProcessGroupNCCL` is reported.",
    why: "HCCL is the collective library of Ascend; `torch.distributed` knows it as a backend once torch_npu is imported.",
    before: "dist.init_process_group(\"cpu:gloo,cuda:nccl\")\n",
    after: "dist.init_process_group(\"cpu:gloo,npu:hccl\")\n",
    references: &["https://docs.pytorch.org/docs/stable/distributed.html#backends"],
    hooks: Hooks {
        text: Some(on_text),
        reference: Some(on_reference),
        import_from: Some(on_import_from),
        ..Hooks::NONE
    },
};

fn on_text<'a>(checker: &mut Checker<'a>, rule: &'static Rule, text: &Text<'a>) {
    if text.shape != TextShape::Whole {
        return;
    }
    let new = match text.value {
        "nccl" => "hccl".to_owned(),
        "NCCL" => "HCCL".to_owned(),
        pairs if is_pairs(pairs) && pairs.contains("nccl") => {
            pairs.replace("cuda:", "npu:").replace(":nccl", ":hccl")
        }
        _ => return,
    };
    // In capitals it is the library's name as often as the backend's.
    if text.value == "NCCL" && !is_backend(checker) {
        return;
    }
    if is_of_one_library(checker) {
        return;
    }
    let is_key = match checker.ancestors.last() {
        Some(AnyNodeRef::ExprDict(dictionary)) => dictionary
            .items
            .iter()
            .any(|item| item.key.as_ref().is_some_and(|key| key.range().contains_range(text.range)))
            .then_some(dictionary),
        _ => None,
    };
    if let Some(dictionary) = is_key
        && !is_table_of_backends(checker, dictionary)
    {
        if !checker.is_aware() {
            let message = "a key; if somebody asks for it by the name of the backend, write \"hccl\"";
            checker.report(rule, FindingKind::NeedsPerson, text.range, text.value, message);
        }
        return;
    }
    let grade = if text.value == "NCCL" || is_key.is_some() { Grade::Likely } else { Grade::Safe };
    let message = format!("replace string \"{}\" with \"{new}\"", text.value);
    checker.replace_with_npu(rule, grade, text.range, new, message);
}

/// Whether the keys beside it are backends, or what it is kept in is called so.
fn is_table_of_backends(checker: &Checker<'_>, dictionary: &ruff_python_ast::ExprDict) -> bool {
    let is_backend = |item: &ruff_python_ast::DictItem| matches!(&item.key, Some(Expr::StringLiteral(key)) if matches!(key.value.to_str(), "gloo" | "mpi" | "ucc" | "xccl"));
    dictionary.items.iter().take(100).any(is_backend)
        || matches!(checker.ancestors.iter().rev().nth(1), Some(AnyNodeRef::StmtAssign(assign))
            if assign.targets.iter().any(|target| checker.text(target).to_ascii_lowercase().contains("backend")))
}

/// `NCCL_BACKEND = "nccl"` where there is an `HCCL_BACKEND` as well.
fn is_of_one_library(checker: &Checker<'_>) -> bool {
    let Some(AnyNodeRef::StmtAssign(assign)) = checker.ancestors.last() else { return false };
    assign.targets.iter().any(|target| {
        let name = checker.text(target);
        let other = name.replace("NCCL", "HCCL").replace("nccl", "hccl");
        other != name && checker.source.contains(&other)
    })
}

/// Whether what a text is given to, or compared with, is called a backend.
fn is_backend(checker: &Checker<'_>) -> bool {
    let names_backend = |text: &str| text.to_ascii_lowercase().contains("backend");
    checker.ancestors.iter().rev().find_map(|node| match node {
        AnyNodeRef::Keyword(keyword) => Some(keyword.arg.as_ref().is_some_and(|name| names_backend(name))),
        AnyNodeRef::ExprCompare(comparison) => Some(names_backend(checker.text(comparison.range))),
        AnyNodeRef::StmtAssign(assign) => {
            Some(assign.targets.iter().any(|target| names_backend(checker.text(target))))
        }
        AnyNodeRef::ExprCall(_) | AnyNodeRef::ExprDict(_) => Some(false),
        _ => None,
    }) == Some(true)
}

/// `cpu:gloo,cuda:nccl`
pub(crate) fn is_pairs(text: &str) -> bool {
    (text.contains("nccl") || text.contains("hccl"))
        && text.split(',').all(|pair| {
            pair.split_once(':').is_some_and(|(device, backend)| {
                [device, backend]
                    .iter()
                    .all(|word| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase()))
            })
        })
}

fn on_reference<'a>(checker: &mut Checker<'a>, rule: &'static Rule, reference: &Reference<'a>) {
    if !reference.path.is_in("torch.distributed") && !reference.path.is_in("torch._C._distributed_c10d") {
        return;
    }
    let full = reference.path.full.as_str();
    let range = reference.expression.range();
    match full.rsplit('.').next() {
        Some("NCCL") => {
            if let Some(last) = reference.parts.last() {
                let message = "replace attribute \"NCCL\" with \"HCCL\"";
                checker.replace_with_npu(rule, Grade::Safe, last.range, "HCCL", message);
            }
        }
        // Where it was imported by name, the import is changed instead.
        Some("is_nccl_available") if !reference.parts.is_empty() => {
            let new = "torch_npu.distributed.is_hccl_available";
            checker.replace_with_npu(
                rule,
                Grade::Safe,
                range,
                new,
                format!("change function {full} to {new}"),
            );
        }
        Some("ProcessGroupNCCL") => report_group(checker, rule, range, full),
        _ => {}
    }
}

fn report_group(
    checker: &mut Checker<'_>,
    rule: &'static Rule,
    range: ruff_text_size::TextRange,
    full: &str,
) {
    let message =
        "options of NCCL's process group; `torch_npu._C._distributed_c10d.ProcessGroupHCCL` has its own";
    checker.report(rule, FindingKind::NeedsPerson, range, full, message);
}

fn on_import_from<'a>(
    checker: &mut Checker<'a>,
    rule: &'static Rule,
    import: &'a StmtImportFrom,
    module: &str,
) {
    if !crate::scope::is_in(module, "torch.distributed") {
        return;
    }
    for alias in &import.names {
        match alias.name.as_str() {
            "is_nccl_available" => {
                let kept = alias.asname.as_ref().unwrap_or(&alias.name);
                let new = format!("from torch_npu.distributed import is_hccl_available as {kept}");
                let message = "change function torch.distributed.is_nccl_available to torch_npu.distributed.is_hccl_available";
                match Checker::range_without(&import.names, alias) {
                    None => checker.replace_with_npu(rule, Grade::Safe, import.range, new, message),
                    Some(range) => {
                        let before = checker.as_statement_before(import.range, &new);
                        let start = ruff_text_size::TextRange::empty(import.range.start());
                        checker.replace_with_npu(rule, Grade::Safe, start, before, message);
                        checker.replace_with_npu(rule, Grade::Safe, range, "", message);
                    }
                }
            }
            "ProcessGroupNCCL" => report_group(checker, rule, alias.range, "ProcessGroupNCCL"),
            _ => {}
        }
    }
}
