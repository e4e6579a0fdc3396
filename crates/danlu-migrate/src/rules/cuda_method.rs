//! `.cuda()` of tensors, modules and storages.

use ruff_python_ast::{Expr, StmtFunctionDef};
use ruff_text_size::Ranged as _;

use super::{Grade, Rule};
use crate::checker::Checker;
use crate::finding::FindingKind;
use crate::hooks::{Hooks, Method, Reference};
use crate::scope::ScopeKind;

pub(crate) const RULE: Rule = Rule {
    name: "cuda-method",
    grade: Grade::Likely,
    what: "Turns `x.cuda(...)` into `x.npu(...)` and keeps the arguments. Where the project has methods called `cuda` of its \
           own, their definitions are renamed together with their uses. `x.cuda` without a call is a flag more often than \
           a method (`args.cuda`), so it is changed only for classes of PyTorch.",
    why: "torch_npu gives tensors, modules and storages a method `npu` that takes what `cuda` takes.",
    before: "model = model.cuda()\nx = x.cuda(rank, non_blocking=True)\n",
    after: "model = model.npu()\nx = x.npu(rank, non_blocking=True)\n",
    references: &["https://docs.pytorch.org/docs/stable/generated/torch.Tensor.cuda.html"],
    hooks: Hooks {
        reference: Some(on_reference),
        method: Some(on_method),
        function: Some(on_function),
        ..Hooks::NONE
    },
};

/// Libraries whose `cuda` is a module or a function of theirs.
const OTHERS: &[&str] =
    &["numba", "cupy", "cupyx", "pycuda", "jax", "tensorflow", "triton", "cuda", "numpy", "cv2"];
/// Names of things that hold options.
const OPTIONS: &[&str] =
    &["args", "opt", "opts", "options", "cfg", "config", "params", "hparams", "flags", "FLAGS"];

fn on_reference<'a>(checker: &mut Checker<'a>, rule: &'static Rule, reference: &Reference<'a>) {
    let Some(last) = reference.parts.last().filter(|last| last.as_str() == "cuda") else { return };
    let full = reference.path.full.as_str();
    let root = reference.path.part(0).unwrap_or_default();
    let is_torch = root == "torch"
        && full != "torch.cuda"
        && full != "torch.version.cuda"
        && full != "torch.backends.cuda";
    let is_object = reference.call.is_some() && root != "torch" && !OTHERS.contains(&root);
    if is_torch || is_object {
        let grade = if is_torch { Grade::Safe } else { Grade::Likely };
        checker.replace_with_npu(rule, grade, last.range, "npu", "change function cuda to npu");
    }
}

fn on_method<'a>(checker: &mut Checker<'a>, rule: &'static Rule, method: &Method<'a>) {
    if method.name.as_str() != "cuda" {
        return;
    }
    if method.call.is_some() {
        checker.replace_with_npu(
            rule,
            Grade::Likely,
            method.name.range,
            "npu",
            "change function cuda to npu",
        );
        return;
    }
    let holder = match method.receiver {
        Expr::Name(name) => name.id.as_str(),
        Expr::Attribute(attribute) => attribute.attr.as_str(),
        _ => "",
    };
    let is_stored = |checker: &Checker<'_>| {
        checker.source[method.name.range.end().to_usize()..].trim_start().starts_with('=')
    };
    if !OPTIONS.contains(&holder) && !is_stored(checker) && !checker.is_aware() {
        let subject = checker.text(method.receiver.range().cover(method.name.range));
        let message = "may be the method of a tensor or a flag of yours; if it is the method, write `npu`";
        checker.report(rule, FindingKind::NeedsPerson, method.name.range, subject, message);
    }
}

fn on_function<'a>(checker: &mut Checker<'a>, rule: &'static Rule, function: &'a StmtFunctionDef) {
    // A property is asked without a call, and so is a flag.
    let is_property = function.decorator_list.iter().any(|decorator| match &decorator.expression {
        Expr::Name(name) => name.id.as_str().ends_with("property"),
        Expr::Attribute(attribute) => {
            attribute.attr.as_str().ends_with("property") || attribute.attr.as_str() == "setter"
        }
        _ => false,
    });
    let is_method = checker.scopes.kind() == ScopeKind::Class && !is_property;
    if function.name.as_str() == "cuda" && is_method && !checker.facts.own_definitions.contains("npu") {
        checker.replace(rule, Grade::Likely, function.name.range, "npu", "change function cuda to npu");
    }
}
