//! `tensor.is_cuda`.

use super::{Grade, Rule};
use crate::checker::Checker;
use crate::finding::FindingKind;
use crate::hooks::{Hooks, Method};

pub(crate) const RULE: Rule = Rule {
    name: "is-cuda",
    grade: Grade::Likely,
    what: "Turns the attribute `is_cuda` into `is_npu`, unless the project has an `is_cuda` of its own.",
    why: "On an NPU `is_cuda` is false for every tensor, so code behind it would silently not run.",
    before: "if x.is_cuda:\n    y = y.to(x.device)\n",
    after: "if x.is_npu:\n    y = y.to(x.device)\n",
    references: &["https://docs.pytorch.org/docs/stable/generated/torch.Tensor.is_cuda.html"],
    hooks: Hooks { method: Some(on_method), ..Hooks::NONE },
};

fn on_method<'a>(checker: &mut Checker<'a>, rule: &'static Rule, method: &Method<'a>) {
    if method.name.as_str() != "is_cuda" {
        return;
    }
    if checker.facts.own_definitions.contains("is_cuda") || method.call.is_some() {
        let message = "the project defines `is_cuda` itself; look whether this one is a tensor's";
        checker.report(rule, FindingKind::NeedsPerson, method.name.range, "is_cuda", message);
        return;
    }
    let message = "replace attribute \"is_cuda\" with \"is_npu\"";
    checker.replace_with_npu(rule, Grade::Likely, method.name.range, "is_npu", message);
}
