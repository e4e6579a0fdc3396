//! `torch.cuda` and everything below it.

use ruff_python_ast::{AnyNodeRef, Expr, ExprCall, StmtImport, StmtImportFrom};
use ruff_text_size::Ranged as _;

use super::{Grade, Rule};
use crate::checker::Checker;
use crate::finding::FindingKind;
use crate::hooks::{Hooks, Reference};
use crate::support::Support;

pub(crate) const RULE: Rule = Rule {
    name: "torch-cuda",
    grade: Grade::Safe,
    what: "Turns `torch.cuda` into `torch.npu`, whatever it is called: through aliases, `from` imports, re-exports of the \
           project's own modules, `getattr` with a literal and `importlib`. A `from` import below `torch.cuda` names \
           `torch_npu.npu` instead, so that no submodule is loaded twice. `from torch import cuda` keeps its name: \
           `from torch_npu import npu as cuda`.",
    why: "torch_npu registers the device module `torch.npu` with the same functions. What it lacks is left as it is and \
          reported as unsupported.",
    before: "import torch as t\n\nif t.cuda.is_available():\n    t.cuda.set_device(0)\n",
    after: "import torch as t\nimport torch_npu  # noqa: F401\n\nif t.npu.is_available():\n    t.npu.set_device(0)\n",
    references: &["https://docs.pytorch.org/docs/stable/cuda.html", "https://gitee.com/ascend/pytorch"],
    hooks: Hooks {
        reference: Some(on_reference),
        call: Some(on_call),
        import: Some(on_import),
        import_from: Some(on_import_from),
        ..Hooks::NONE
    },
};

/// Parts of `torch.cuda` without a counterpart, and what to do instead. The vendor's lists say the rest.
const MISSING: &[(&str, &str)] = &[
    ("nvtx", "marks for NVIDIA's profiler; `torch_npu.npu.mstx` marks for Ascend's"),
    ("nccl", "NCCL itself; go through `torch.distributed` with the backend `hccl`"),
    ("comm", "copies between devices of one process; use one process for each device"),
    ("jiterator", "compiles CUDA kernels; write the operator with Ascend C or plain PyTorch"),
    ("cudart", "the CUDA runtime's library; there is no counterpart"),
    ("get_device_capability", "versions of CUDA hardware; ask `torch.npu.get_device_name()` instead"),
    ("get_arch_list", "versions of CUDA hardware; there is no counterpart"),
    ("get_gencode_flags", "flags of NVIDIA's compiler; there is no counterpart"),
    ("list_gpu_processes", "use `npu-smi info`"),
    ("memory_usage", "use `npu-smi info`"),
    ("_sleep", "spins a CUDA kernel; there is no counterpart"),
    ("CUDAGraph", "`torch.npu.NPUGraph` is its counterpart, from torch_npu 2.5 on"),
    ("sparse", "sparse CUDA tensor types; there is no counterpart"),
];

/// What `name` below `torch.cuda` misses, or nothing.
pub(crate) fn missing(checker: &Checker<'_>, path: &str) -> Option<String> {
    let below = path.strip_prefix("torch.cuda.")?;
    let first = below.split('.').next().unwrap_or(below);
    if let Some((_, advice)) = MISSING.iter().find(|(name, _)| *name == first) {
        return Some((*advice).to_owned());
    }
    let version = checker.options.torch;
    let listed = format!("torch.cuda.{first}");
    (version.support(path) == Support::Unsupported || version.support(&listed) == Support::Unsupported)
        .then(|| format!("torch_npu for torch {} does not support it", version.name()))
}

fn on_reference<'a>(checker: &mut Checker<'a>, rule: &'static Rule, reference: &Reference<'a>) {
    if !reference.path.is_in("torch.cuda") {
        return;
    }
    let full = reference.path.full.as_str();
    if let Some(advice) = missing(checker, full) {
        checker.report_lacking(rule, reference.expression.range(), full, advice);
        return;
    }
    if asks_for_hip(checker) {
        if !checker.is_aware() {
            let message = "stands beside a question for AMD's devices, so it asks who made the device";
            checker.report(rule, FindingKind::NeedsPerson, reference.expression.range(), full, message);
        }
        return;
    }
    if let Some(part) = reference.spelled(1) {
        checker.replace_with_npu(rule, Grade::Safe, part.range, "npu", "change module cuda to npu");
    }
}

/// Whether the expression around asks for `torch.version.hip` as well: `torch.version.hip and torch.cuda.is_available()`.
fn asks_for_hip(checker: &Checker<'_>) -> bool {
    let conditions = checker.ancestors.iter().rev().take(6);
    conditions.filter(|node| matches!(node, AnyNodeRef::ExprBoolOp(_))).any(|node| {
        let text = checker.text(node.range());
        // Nobody writes a longer question, and each of its parts would read it all.
        text.len() < 2000 && text.contains("version.hip")
    })
}

/// `getattr(torch, "cuda")`, `hasattr(torch, "cuda")` and `importlib.import_module("torch.cuda")` spell it in a text.
fn on_call<'a>(checker: &mut Checker<'a>, rule: &'static Rule, call: &'a ExprCall) {
    let arguments = &call.arguments.args;
    let is_asked = matches!(&*call.func, Expr::Name(name) if name.id.as_str() == "hasattr")
        && arguments
            .first()
            .and_then(|owner| checker.scopes.path(owner))
            .is_some_and(|path| path.full == "torch");
    let is_named = checker.scopes.path_of(call).is_some_and(|path| path.full == "torch.cuda");
    if !is_asked && !is_named {
        return;
    }
    for argument in arguments {
        let Expr::StringLiteral(literal) = argument else { continue };
        let new = match literal.value.to_str() {
            "cuda" => "npu",
            "torch.cuda" => "torch_npu.npu",
            _ => continue,
        };
        let old = literal.value.to_str();
        let text = checker.text(argument).replacen(old, new, 1);
        let message = format!("replace string \"{old}\" with \"{new}\"");
        checker.replace_with_npu(rule, Grade::Safe, argument.range(), text, message);
    }
}

fn on_import<'a>(checker: &mut Checker<'a>, rule: &'static Rule, import: &'a StmtImport) {
    for alias in &import.names {
        let name = alias.name.as_str();
        if !crate::scope::is_in(name, "torch.cuda") {
            continue;
        }
        if let Some(advice) = missing(checker, name) {
            checker.report(rule, FindingKind::Unsupported, alias.range, name, advice);
            continue;
        }
        let new = match &alias.asname {
            Some(_) => name.replacen("torch.cuda", "torch_npu.npu", 1),
            // The name `torch` has to stay bound; torch_npu is imported on its own line.
            None => "torch".to_owned(),
        };
        checker.replace_with_npu(rule, Grade::Safe, alias.name.range, new, "change module cuda to npu");
    }
}

fn on_import_from<'a>(
    checker: &mut Checker<'a>,
    rule: &'static Rule,
    import: &'a StmtImportFrom,
    module: &str,
) {
    if module == "torch" {
        let mut modules = import.names.iter().filter(|alias| alias.name.as_str() == "cuda");
        let Some(alias) = modules.next() else { return };
        if modules.next().is_some() {
            let message = "imports the module twice; give each name a line of its own";
            checker.report(rule, FindingKind::NeedsPerson, import.range, module, message);
            return;
        }
        let kept = alias.asname.as_ref().map_or("cuda", |name| name.as_str());
        let message = "change module cuda to npu";
        let new = format!("from torch_npu import npu as {kept}");
        match Checker::range_without(&import.names, alias) {
            None => checker.replace_with_npu(rule, Grade::Safe, import.range, new, message),
            Some(range) => {
                let before = checker.as_statement_before(import.range, &new);
                let start = ruff_text_size::TextRange::empty(import.range.start());
                checker.replace_with_npu(rule, Grade::Safe, start, before, message);
                checker.replace_with_npu(rule, Grade::Safe, range, "", message);
            }
        }
        return;
    }
    let Some(name) = import.module.as_ref().filter(|_| crate::scope::is_in(module, "torch.cuda")) else {
        return;
    };
    for alias in &import.names {
        let path = format!("{module}.{}", alias.name);
        if let Some(advice) = missing(checker, &path) {
            checker.report(rule, FindingKind::Unsupported, alias.range, path, advice);
            return;
        }
    }
    let new = module.replacen("torch.cuda", "torch_npu.npu", 1);
    let message = format!("change module {module} to {new}");
    checker.replace_with_npu(rule, Grade::Safe, name.range, new, message);
}
