//! Code that knows NPUs already.

use super::{Grade, Rule};
use crate::finding::{Finding, FindingKind};
use crate::hooks::Hooks;

pub(crate) const RULE: Rule = Rule {
    name: "npu-aware",
    grade: Grade::NeedsPerson,
    what: "Leaves a function, or a statement outside of functions, as it is if it names NPUs in its code, and says so where it \
           would have been changed. So is a file with one for NPUs beside it (`cuda_accelerator.py` and `npu_accelerator.py`). This is not a search for letters: `input` is no NPU.",
    why: "Such code chooses between devices. Changing its branch for CUDA would make two branches for the NPU and none for CUDA.",
    before: "def best():\n    if is_npu_available():\n        return \"npu\"\n    return \"cuda\"\n",
    after: "def best():\n    if is_npu_available():\n        return \"npu\"\n    return \"cuda\"\n",
    references: &[],
    hooks: Hooks::NONE,
};

/// What a file is told that has one for NPUs beside it.
pub(crate) fn has_twin(twin: &str) -> Finding {
    let message = "does the same for NPUs, so this file was left as it is".to_owned();
    Finding { rule: RULE.name, kind: FindingKind::Note, start: 0, end: 0, subject: twin.to_owned(), message }
}
