//! Sources in CUDA and C++.

use super::{Grade, Rule};
use crate::finding::{Finding, FindingKind};
use crate::hooks::Hooks;
use crate::text;

pub(crate) const RULE: Rule = Rule {
    name: "cuda-source",
    grade: Grade::NeedsPerson,
    what: "Reports sources in CUDA (`.cu`, `.cuh`, and C++ that uses CUDA's headers), with the operators that they offer to Python. C++ that \
           offers operators without CUDA is noted. `cuda_op_list.csv` has all of these operators.",
    why: "Kernels have to be written anew for NPUs, with Ascend C or plain PyTorch. Code that calls them fails until then.",
    before: "__global__ void scale(float* x) { x[threadIdx.x] *= 2; }\n",
    after: "__global__ void scale(float* x) { x[threadIdx.x] *= 2; }\n",
    references: &["https://www.hiascend.com/document"],
    hooks: Hooks::NONE,
};

/// What tells C++ for CUDA from other C++.
const SIGNS: &[&str] = &[
    "__global__",
    "cuda_runtime",
    "<cuda",
    "ATen/cuda",
    "c10/cuda",
    "at::cuda",
    "cudaStream_t",
    "cublas",
    "cudnn",
];
/// Operators that a finding names.
const MOST_NAMED: usize = 8;

/// What is to be said of a source, by its name and text, and the operators that it offers.
pub(crate) fn look(path: &str, bytes: &[u8]) -> (Vec<Finding>, Vec<String>) {
    let operators = text::operators(bytes);
    let has = |sign: &&str| memchr::memmem::find(bytes, sign.as_bytes()).is_some();
    let is_cuda = matches!(path.rsplit_once('.'), Some((_, "cu" | "cuh"))) || SIGNS.iter().any(has);
    let offered = match operators.len() {
        0 => String::new(),
        count => {
            let named = operators[..count.min(MOST_NAMED)].join(", ");
            let more =
                if count > MOST_NAMED { format!(" and {} more", count - MOST_NAMED) } else { String::new() };
            format!("; offers to Python: {named}{more}")
        }
    };
    let (kind, message) = match (is_cuda, operators.is_empty()) {
        (true, _) => (
            FindingKind::NeedsPerson,
            format!("kernels for CUDA, to be rewritten with Ascend C or plain PyTorch{offered}"),
        ),
        (false, false) => {
            (FindingKind::Note, format!("operators in C++, which run on the host as they are{offered}"))
        }
        (false, true) => return (Vec::new(), operators),
    };
    let subject = path.rsplit('/').next().unwrap_or(path).to_owned();
    (vec![Finding { rule: RULE.name, kind, start: 0, end: 0, subject, message }], operators)
}
