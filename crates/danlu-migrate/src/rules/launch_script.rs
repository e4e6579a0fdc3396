//! What starts a training: shell scripts, Makefiles, Dockerfiles.

use super::{Grade, Rule};
use crate::hooks::Hooks;

pub(crate) const RULE: Rule = Rule {
    name: "launch-script",
    grade: Grade::Safe,
    what: "Changes the values of options that take a device or a backend (`--device cuda`, `--dist-backend=nccl`) in shell scripts, \
           Makefiles and Dockerfiles; environment variables are changed by the rule `environment`. Reports `nvidia-smi` and \
           `torch.distributed.launch`. Comments are left alone.",
    why: "A script that asks for `cuda` overrides what was changed in the program.",
    before: "CUDA_VISIBLE_DEVICES=0,1 torchrun --nproc-per-node 2 train.py --device cuda --dist-backend nccl\n",
    after: "ASCEND_RT_VISIBLE_DEVICES=0,1 torchrun --nproc-per-node 2 train.py --device npu --dist-backend hccl\n",
    references: &["https://docs.pytorch.org/docs/stable/elastic/run.html"],
    hooks: Hooks::NONE,
};
