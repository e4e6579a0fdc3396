//! YAML and JSON.

use super::{Grade, Rule};
use crate::hooks::Hooks;

pub(crate) const RULE: Rule = Rule {
    name: "configuration",
    grade: Grade::Safe,
    what: "Changes values of keys that hold a device or a backend in YAML and JSON files: `device: cuda:0`, `\"backend\": \"nccl\"`. \
           Environment variables that are keys or values are changed like everywhere else. Everything else, also a value \
           `cuda` under another key, is left alone.",
    why: "Configuration overrides the defaults that were changed in the program.",
    before: "device: cuda:0  # the first\nbackend: nccl\nname: cuda\n",
    after: "device: npu:0  # the first\nbackend: hccl\nname: cuda\n",
    references: &[],
    hooks: Hooks::NONE,
};
