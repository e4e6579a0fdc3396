//! What conditions ask, what blocks behind them do with the answer, and what handlers catch.

use std::collections::HashMap;

use ruff_python_ast::{CmpOp, Expr, Stmt, UnaryOp};
use ruff_text_size::{Ranged as _, TextRange};

use super::evidence::has_word;
use crate::checker::Checker;

pub(super) fn names_cuda(name: &str) -> bool {
    name.split('_').any(|part| part.eq_ignore_ascii_case("cuda"))
}

/// Whether an expression answers yes or no, rather than with a device.
pub(super) fn is_question(expression: &Expr) -> bool {
    matches!(
        expression,
        Expr::Call(_) | Expr::Compare(_) | Expr::BoolOp(_) | Expr::UnaryOp(_) | Expr::Attribute(_)
    )
}

/// Where the names that a condition asks got their answers.
pub(super) fn answered(test: &Expr, answers: &HashMap<&str, TextRange>) -> Option<TextRange> {
    match test {
        Expr::Name(name) => answers.get(name.id.as_str()).copied(),
        Expr::UnaryOp(operation) => answered(&operation.operand, answers),
        Expr::BoolOp(operation) => operation.values.iter().find_map(|operand| answered(operand, answers)),
        _ => None,
    }
}

/// Whether a condition holds where there is no such device.
pub(super) fn is_negative(test: &Expr) -> bool {
    match test {
        Expr::UnaryOp(operation) => operation.op == UnaryOp::Not && !is_negative(&operation.operand),
        Expr::Compare(comparison) => {
            comparison.ops.iter().any(|operator| matches!(operator, CmpOp::NotEq | CmpOp::NotIn | CmpOp::IsNot))
                // `torch.cuda.device_count() == 0`
                || matches!((&comparison.ops[..], &comparison.comparators[..]), ([CmpOp::Eq], [Expr::NumberLiteral(_)]))
        }
        Expr::BoolOp(operation) => operation.values.iter().all(is_negative),
        _ => false,
    }
}

pub(super) fn leaves(body: &[Stmt]) -> bool {
    matches!(body.last(), Some(Stmt::Return(_) | Stmt::Raise(_) | Stmt::Continue(_) | Stmt::Break(_)))
}

/// `raise ValueError("xformers' attention needs CUDA")`, `raise NotImplementedError("is implemented for CUDA")`; not
/// `raise NotImplementedError("training without a device")`, which NPUs do away with.
pub(super) fn refuses_for_nvidia(body: &[Stmt], checker: &Checker<'_>) -> bool {
    let Some(Stmt::Raise(raise)) = body.last() else { return false };
    // Without kernels of its own for others, a file of Triton's refuses for them.
    if ["triton", "cupy", "numba.cuda"].iter().any(|library| checker.libraries.contains_key(library)) {
        return true;
    }
    let text = checker.text(raise);
    let words = || text.split(|c: char| !c.is_ascii_alphanumeric());
    let is_unwritten = text.contains("NotImplementedError")
        && words().any(|word| word == "CUDA")
        && !words().any(|word| word.starts_with("train"));
    is_unwritten
        || words().any(|word| matches!(word, "NVIDIA" | "NCCL" | "implemented" | "compile" | "compiled"))
        || nvidia_word(text).is_some()
}

/// What only messages about code for CUDA say.
const PHRASES: &[&str] =
    &["CUDA graph", "CUDA Graph", "cuda graph", "CUDA kernel", "nvidia.com", "fused_adam", "FusedAdam"];

/// A word of a message that only code for CUDA has: `"CUDA required for bitsandbytes"`, `"CUDA graphs need a CUDA device"`.
pub(super) fn nvidia_word(text: &str) -> Option<String> {
    let mut words =
        text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|word| !word.is_empty());
    let phrase = PHRASES.iter().find(|phrase| text.contains(**phrase));
    phrase
        .map(|phrase| (*phrase).to_owned())
        .or_else(|| words.find(|word| has_word(word) || word.eq_ignore_ascii_case("apex")).map(str::to_owned))
}

/// Whether a handler is there for what is missing where there is no CUDA: modules, attributes, PyTorch's own assertion.
pub(super) fn catches_what_is_missing(kind: Option<&Expr>) -> bool {
    const MISSING: &[&str] = &[
        "Exception",
        "BaseException",
        "ImportError",
        "ModuleNotFoundError",
        "AttributeError",
        "AssertionError",
    ];
    let is_missing = |kind: &Expr| match kind {
        Expr::Name(name) => MISSING.contains(&name.id.as_str()),
        Expr::Attribute(attribute) => MISSING.contains(&attribute.attr.as_str()),
        _ => false,
    };
    match kind {
        None => true,
        Some(Expr::Tuple(kinds)) => kinds.elts.iter().any(is_missing),
        Some(kind) => is_missing(kind),
    }
}

pub(super) fn end_of(body: &[Stmt], test: &Expr) -> ruff_text_size::TextSize {
    body.last().map_or(test.end(), ruff_text_size::Ranged::end)
}

/// `build_for_cpu`, `self.build_cuda`: what is compiled, which a change of names does not do.
pub(super) fn names_build(target: &Expr) -> bool {
    let name = match target {
        Expr::Name(name) => name.id.as_str(),
        Expr::Attribute(attribute) => attribute.attr.as_str(),
        _ => return false,
    };
    name.split('_').any(|part| part.eq_ignore_ascii_case("build"))
}
