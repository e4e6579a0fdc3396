//! Conditions before code that stays CUDA's.

use super::{Grade, Rule};
use crate::hooks::Hooks;

pub(crate) const RULE: Rule = Rule {
    name: "cuda-guard",
    grade: Grade::NeedsPerson,
    what: "Leaves a condition (`torch.cuda.is_available()`, `x.is_cuda`, `device.type == \"cuda\"`) as it is, with the block under it, where \
           that block runs something for CUDA only that is left as well: a call that torch_npu lacks, `torch.version.cuda`, Triton, \
           TensorRT or CuPy. The same for the rest of a condition, and for what follows a check that raises or returns.",
    why: "On a machine without CUDA the condition keeps the program away from such code. Opened for NPUs it would lead there, and the \
          program would fail where it went on before.",
    before: "if torch.cuda.is_available() and torch.cuda.get_device_capability()[0] >= 8:\n    print(\"TF32\")\n",
    after: "if torch.cuda.is_available() and torch.cuda.get_device_capability()[0] >= 8:\n    print(\"TF32\")\n",
    references: &[],
    hooks: Hooks::NONE,
};
