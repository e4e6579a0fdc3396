//! Code that knows NPUs already.

use super::{Grade, Rule};
use crate::hooks::Hooks;

pub(crate) const RULE: Rule = Rule {
    name: "npu-aware",
    grade: Grade::NeedsPerson,
    what: "Leaves a function, or a statement outside of functions, as it is if it names NPUs in its code, and says so where it \
           would have been changed. This is not a search for letters: `input` is no NPU.",
    why: "Such code chooses between devices. Changing its branch for CUDA would make two branches for the NPU and none for CUDA.",
    before: "def best():\n    if is_npu_available():\n        return \"npu\"\n    return \"cuda\"\n",
    after: "def best():\n    if is_npu_available():\n        return \"npu\"\n    return \"cuda\"\n",
    references: &[],
    hooks: Hooks::NONE,
};
