//! Idioms of `DeepSpeed`, Megatron, accelerate, Lightning and transformers.

use super::{Grade, Rule};
use crate::checker::Checker;
use crate::finding::FindingKind;
use crate::hooks::{Hooks, Text, TextShape};
use ruff_python_ast::{AnyNodeRef, StmtImport, StmtImportFrom};
use ruff_text_size::TextRange;

pub(crate) const RULE: Rule = Rule {
    name: "frameworks",
    grade: Grade::NeedsPerson,
    what: "Says what frameworks need on an NPU: Megatron wants MindSpeed's adaptor before it is imported; Lightning an \
           accelerator for NPUs; `attn_implementation=\"flash_attention_2\"` of transformers needs an NPU's attention. \
           DeepSpeed, accelerate and transformers themselves know NPUs. Their devices and backends are changed by the \
           other rules.",
    why: "These are decisions about packages and versions, which a change of the source cannot make.",
    before: "trainer = pl.Trainer(accelerator=\"gpu\", devices=8)\n",
    after: "trainer = pl.Trainer(accelerator=\"gpu\", devices=8)\n",
    references: &[
        "https://www.deepspeed.ai/tutorials/accelerator-setup-guide/",
        "https://huggingface.co/docs/accelerate",
        "https://gitee.com/ascend/MindSpeed",
    ],
    hooks: Hooks {
        text: Some(on_text),
        import: Some(on_import),
        import_from: Some(on_import_from),
        ..Hooks::NONE
    },
};

const PACKAGES: &[(&str, FindingKind, &str)] = &[
    ("megatron", FindingKind::NeedsPerson, "import `mindspeed.megatron_adaptor` before anything of Megatron"),
    (
        "deepspeed",
        FindingKind::Note,
        "knows NPUs where torch_npu is installed; operators that it compiles for CUDA are not there",
    ),
    (
        "pytorch_lightning",
        FindingKind::NeedsPerson,
        "has no accelerator for NPUs itself; register one, or use accelerate",
    ),
    (
        "lightning",
        FindingKind::NeedsPerson,
        "has no accelerator for NPUs itself; register one, or use accelerate",
    ),
];

fn on_text<'a>(checker: &mut Checker<'a>, rule: &'static Rule, text: &Text<'a>) {
    if text.shape != TextShape::Whole || checker.is_aware() {
        return;
    }
    let keyword = checker.ancestors.last().and_then(|node| match node {
        AnyNodeRef::Keyword(keyword) => keyword.arg.as_ref().map(ruff_python_ast::Identifier::as_str),
        _ => None,
    });
    let message = match (keyword, text.value) {
        (Some("accelerator"), "gpu" | "cuda") => {
            "an accelerator for NPUs has to be registered; then write `accelerator=\"npu\"`"
        }
        (Some("attn_implementation"), "flash_attention_2" | "flash_attention_3") => {
            "needs flash-attn, which is CUDA only, unless transformers finds NPUs; `sdpa` runs everywhere"
        }
        _ => return,
    };
    checker.report(rule, FindingKind::NeedsPerson, text.range, text.value, message);
}

fn on_import<'a>(checker: &mut Checker<'a>, rule: &'static Rule, import: &'a StmtImport) {
    for alias in &import.names {
        look(checker, rule, alias.range, alias.name.as_str());
    }
}

fn on_import_from<'a>(
    checker: &mut Checker<'a>,
    rule: &'static Rule,
    import: &'a StmtImportFrom,
    module: &str,
) {
    if import.level == 0 {
        look(checker, rule, import.range, module);
    }
}

/// Once for each file and package: a project imports them everywhere.
fn look(checker: &mut Checker<'_>, rule: &'static Rule, range: TextRange, module: &str) {
    let Some((name, kind, message)) = PACKAGES.iter().find(|(name, _, _)| crate::scope::is_in(module, name))
    else {
        return;
    };
    let is_known =
        checker.findings.iter().any(|finding| finding.rule == rule.name && finding.subject == *name);
    // The framework's own sources import themselves.
    if !is_known && !checker.package_is(name) {
        checker.report(rule, *kind, range, *name, *message);
    }
}
