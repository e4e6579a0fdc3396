//! Calls of PyTorch that the vendor lists as unsupported, or not at all.

use super::{Grade, Rule, torch_cuda};
use crate::checker::Checker;
use crate::finding::Kind;
use crate::hooks::{Hooks, Reference};
use crate::support::Support;
use ruff_text_size::Ranged as _;

pub(crate) const RULE: Rule = Rule {
    name: "unsupported-api",
    grade: Grade::NeedsPerson,
    what: "Looks every call, base class and decorator of PyTorch up in the vendor's lists for the version given with `-v`. \
           Those that are listed as unsupported go to `unsupported_api.csv`, those that no list names to `unknown_api.csv`.",
    why: "A call without a kernel for NPUs fails when it is reached, or runs on the host and is slow.",
    before: "torch.cuda.get_device_capability()\n",
    after: "torch.cuda.get_device_capability()\n",
    references: &["https://www.hiascend.com/document"],
    hooks: Hooks { reference: Some(on_reference), ..Hooks::NONE },
};

fn on_reference<'a>(checker: &mut Checker<'a>, rule: &'static Rule, reference: &Reference<'a>) {
    if !reference.path.is_in("torch") || reference.is_stored {
        return;
    }
    let is_used = reference.call.is_some()
        || matches!(
            checker.ancestors.last(),
            Some(ruff_python_ast::AnyNodeRef::Decorator(_) | ruff_python_ast::AnyNodeRef::Arguments(_))
        ) && checker.is_base_class();
    let full = reference.path.full.as_str();
    // What is missing from `torch.cuda` has been said with better advice.
    if !is_used || torch_cuda::missing(checker, full).is_some() {
        return;
    }
    let version = checker.options.torch;
    let range = reference.expression.range();
    match version.support(full) {
        Support::Supported => {}
        Support::Unsupported => {
            let message = format!("torch_npu for torch {} does not support it", version.name());
            checker.report(rule, Kind::Unsupported, range, full, message);
        }
        Support::Unlisted => {
            let message = format!("no list for torch {} names it", version.name());
            checker.report(rule, Kind::Unknown, range, full, message);
        }
    }
}
