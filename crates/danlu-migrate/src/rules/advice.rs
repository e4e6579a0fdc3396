//! Calls that work and could be more exact or faster.

use super::{Grade, Rule};
use crate::checker::Checker;
use crate::finding::FindingKind;
use crate::hooks::{Hooks, Reference};
use ruff_text_size::Ranged as _;

pub(crate) const RULE: Rule = Rule {
    name: "advice",
    grade: Grade::NeedsPerson,
    what: "Names calls that the vendor has advice for: `api_precision_advice.csv`, `api_performance_advice.csv`, and with \
           `--similar` counterparts of torch_npu that compute the same faster (`affinity_api_call.csv`).",
    why: "A program that runs is the first step; these are the next.",
    before: "optimizer = torch.optim.AdamW(model.parameters())\n",
    after: "optimizer = torch.optim.AdamW(model.parameters())\n",
    references: &["https://www.hiascend.com/document"],
    hooks: Hooks { reference: Some(on_reference), ..Hooks::NONE },
};

const PRECISION: &[&str] = &[
    "torch.baddbmm",
    "torch.reshape",
    "torch.nn.Embedding",
    "torch.nn.functional.embedding",
    "torch.matmul",
];

const PERFORMANCE: &[(&str, &str)] = &[
    ("torch.optim.AdamW", "`torch_npu.optim.NpuFusedAdamW` is faster"),
    ("torch.optim.Adam", "`torch_npu.optim.NpuFusedAdam` is faster"),
    ("torch.optim.Adadelta", "`torch_npu.optim.NpuFusedAdadelta` is faster"),
    ("torch.optim.RMSprop", "`torch_npu.optim.NpuFusedRMSprop` is faster"),
    ("torch.optim.SGD", "`torch_npu.optim.NpuFusedSGD` is faster"),
    ("torch.autograd.set_detect_anomaly", "slow; for looking for errors only"),
    ("torch.autograd.detect_anomaly", "slow; for looking for errors only"),
    ("torch.autograd.gradcheck", "slow; for looking for errors only"),
];

/// Call, and what of `torch_npu` does the same.
pub(crate) const AFFINE: &[(&str, &str)] = &[
    ("torch.matmul", "torch_npu.contrib.function.matmul_transpose"),
    ("torch.roll", "torch_npu.contrib.function.roll"),
    ("torch.nn.SiLU", "torch_npu.contrib.module.SiLU"),
    ("torch.nn.Mish", "torch_npu.contrib.module.Mish"),
    ("torch.nn.MultiheadAttention", "torch_npu.contrib.module.MultiheadAttention"),
];

fn on_reference<'a>(checker: &mut Checker<'a>, rule: &'static Rule, reference: &Reference<'a>) {
    let Some(call) = reference.call else { return };
    let full = reference.path.full.as_str();
    let range = reference.expression.range();
    if PRECISION.contains(&full) {
        checker.report(rule, FindingKind::Precision, range, full, "compare its results with the original's");
    }
    if let Some((_, advice)) = PERFORMANCE.iter().find(|(name, _)| *name == full) {
        checker.report(rule, FindingKind::Performance, range, full, *advice);
    }
    if full == "torch.utils.data.DataLoader" {
        for (keyword, advice) in [("num_workers", "processes"), ("pin_memory", "pinned memory")] {
            let has_splat = call.arguments.keywords.iter().any(|keyword| keyword.arg.is_none());
            if call.arguments.find_keyword(keyword).is_none() && !has_splat {
                let message = format!("`{keyword}` is not set; loading with {advice} keeps the device busy");
                checker.report(rule, FindingKind::Performance, range, full, message);
            }
        }
    }
    if checker.options.similar
        && let Some((_, similar)) = AFFINE.iter().find(|(name, _)| *name == full)
    {
        checker.report(
            rule,
            FindingKind::Performance,
            range,
            full,
            format!("`{similar}` computes the same faster"),
        );
    }
}
