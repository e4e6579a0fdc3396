//! requirements.txt and environments of conda.

use super::{Grade, Rule};
use crate::hooks::Hooks;

pub(crate) const RULE: Rule = Rule {
    name: "requirements",
    grade: Grade::Likely,
    what: "In requirements files and conda environments: takes the CUDA build out of a version of torch (`2.1.0+cu118`), adds \
           the torch_npu that belongs to a pinned torch, comments out packages that exist for CUDA only and indexes of CUDA \
           builds, each with its reason. A pinned torch without a torch_npu is reported, with the nearest that has one.",
    why: "torch_npu works with exactly one version of torch; which CANN and Python go with it is in the vendor's table.",
    before: "torch==2.1.0+cu118\nflash-attn==2.5.8\n",
    after: "torch==2.1.0\ntorch_npu==2.1.0.post17  # for torch 2.1.0; needs CANN 8.3.RC1 and Python 3.8 to 3.11\n# flash-attn==2.5.8  # CUDA only: use `torch_npu.npu_fusion_attention`, or `torch.nn.functional.scaled_dot_product_attention`\n",
    references: &["https://gitee.com/ascend/pytorch"],
    hooks: Hooks::NONE,
};
