//! `torch.backends.cudnn` and `torch.backends.cuda`.

use super::{Grade, Rule};
use crate::checker::Checker;
use crate::finding::FindingKind;
use crate::hooks::{Hooks, Reference};
use ruff_text_size::Ranged as _;

pub(crate) const RULE: Rule = Rule {
    name: "backends",
    grade: Grade::NeedsPerson,
    what: "Leaves switches of cuDNN and cuBLAS as they are and says what takes their place.",
    why: "Setting them does no harm and has no effect on an NPU. A program that relied on one (TF32, determinism, a kernel of \
          attention) should know.",
    before: "torch.backends.cuda.matmul.allow_tf32 = True\n",
    after: "torch.backends.cuda.matmul.allow_tf32 = True\n",
    references: &["https://docs.pytorch.org/docs/stable/backends.html"],
    hooks: Hooks { reference: Some(on_reference), ..Hooks::NONE },
};

const SWITCHES: &[(&str, &str)] = &[
    (
        "torch.backends.cuda.matmul.allow_tf32",
        "no effect on an NPU; `torch.npu.matmul.allow_hf32` is its counterpart",
    ),
    (
        "torch.backends.cudnn.allow_tf32",
        "no effect on an NPU; `torch.npu.conv.allow_hf32` is its counterpart",
    ),
    (
        "torch.backends.cudnn.deterministic",
        "no effect on an NPU; `torch.use_deterministic_algorithms(True)` has",
    ),
    ("torch.backends.cudnn.benchmark", "no effect on an NPU; operators are tuned ahead of time"),
    ("torch.backends.cudnn", "no effect on an NPU"),
    ("torch.backends.cuda", "no effect on an NPU"),
    (
        "torch.version.cuda",
        "none on an NPU; `torch_npu.__version__` and CANN's version say what is installed",
    ),
];

fn on_reference<'a>(checker: &mut Checker<'a>, rule: &'static Rule, reference: &Reference<'a>) {
    if reference.parts.is_empty() || checker.is_aware() {
        return;
    }
    if let Some((_, advice)) = SWITCHES.iter().find(|(name, _)| reference.path.is_in(name)) {
        let full = reference.path.full.clone();
        checker.report(rule, FindingKind::Note, reference.expression.range(), full, *advice);
    }
}
