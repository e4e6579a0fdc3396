//! `"torch.cuda.FloatTensor"` and types in double precision.

use super::{Grade, Rule};
use crate::checker::Checker;
use crate::finding::FindingKind;
use crate::hooks::{Hooks, Reference, Text, TextShape};
use ruff_text_size::Ranged as _;

pub(crate) const RULE: Rule = Rule {
    name: "tensor-type",
    grade: Grade::Safe,
    what: "Turns the names of tensor types in texts into the NPU's: `\"torch.cuda.FloatTensor\"`. Reports `DoubleTensor`.",
    why: "`x.type(...)` and `set_default_tensor_type(...)` take types by name. NPUs compute float64 slowly or not at all.",
    before: "torch.set_default_tensor_type(\"torch.cuda.FloatTensor\")\n",
    after: "torch.set_default_tensor_type(\"torch.npu.FloatTensor\")\n",
    references: &["https://docs.pytorch.org/docs/stable/tensors.html#data-types"],
    hooks: Hooks { text: Some(on_text), reference: Some(on_reference), ..Hooks::NONE },
};

fn on_text<'a>(checker: &mut Checker<'a>, rule: &'static Rule, text: &Text<'a>) {
    let is_type = text.shape == TextShape::Whole
        && text.value.strip_prefix("torch.cuda.").is_some_and(|name| {
            name.ends_with("Tensor") && name.bytes().all(|byte| byte.is_ascii_alphanumeric())
        });
    if is_type {
        let new = text.value.replacen("cuda", "npu", 1);
        let message = format!("replace string \"{}\" with \"{new}\"", text.value);
        checker.replace_with_npu(rule, Grade::Safe, text.range, new, message);
    }
}

fn on_reference<'a>(checker: &mut Checker<'a>, rule: &'static Rule, reference: &Reference<'a>) {
    if reference.path.full == "torch.cuda.DoubleTensor" && !checker.is_aware() {
        let message = "NPUs compute float64 slowly or not at all; use float32 where the program allows it";
        checker.report(
            rule,
            FindingKind::Precision,
            reference.expression.range(),
            "torch.cuda.DoubleTensor",
            message,
        );
    }
}
