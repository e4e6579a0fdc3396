//! The rules: one file each, with what it does, why, an example and where that is written.
//!
//! The order is that of the reference. Where two rules would change the same bytes, the change that begins first is kept,
//! and of two that begin at one place that of the rule which stands first here.

use serde::Serialize;

use crate::hooks::Hooks;

/// How sure a change is to do the right thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Grade {
    /// Resolved through imports, or unmistakable by itself.
    Safe,
    /// By convention: a reader would do the same without asking.
    Likely,
    /// Not changed, only reported.
    NeedsPerson,
}

impl Grade {
    pub fn name(self) -> &'static str {
        match self {
            Grade::Safe => "safe",
            Grade::Likely => "likely",
            Grade::NeedsPerson => "needs a person",
        }
    }
}

/// A rule, as code and as documentation.
#[derive(Debug)]
pub struct Rule {
    pub name: &'static str,
    /// The best grade that it gives.
    pub grade: Grade,
    pub what: &'static str,
    pub why: &'static str,
    pub before: &'static str,
    pub after: &'static str,
    pub references: &'static [&'static str],
    pub(crate) hooks: Hooks,
}

impl Rule {
    /// Rules about other files, and about Python files as a whole, have no hooks.
    pub fn looks_at_python(&self) -> bool {
        let Hooks { reference, method, call, text, import, import_from, function, end } = &self.hooks;
        reference.is_some()
            || method.is_some()
            || call.is_some()
            || text.is_some()
            || import.is_some()
            || import_from.is_some()
            || function.is_some()
            || end.is_some()
    }
}

pub(crate) mod advice;
pub(crate) mod backends;
pub(crate) mod configuration;
pub(crate) mod cuda_guard;
pub(crate) mod cuda_method;
pub(crate) mod cuda_only;
pub(crate) mod cuda_source;
pub(crate) mod data_parallel;
pub(crate) mod device_index;
pub(crate) mod device_string;
pub(crate) mod distributed;
pub(crate) mod environment;
pub(crate) mod frameworks;
pub(crate) mod is_cuda;
pub(crate) mod launch_script;
pub(crate) mod modelarts;
pub(crate) mod nccl;
pub(crate) mod npu_aware;
pub(crate) mod profiler;
pub(crate) mod python2;
pub(crate) mod requirements;
pub(crate) mod specify_device;
pub(crate) mod tensor_type;
pub(crate) mod torch_cuda;
pub(crate) mod torch_npu_import;
pub(crate) mod unsupported_api;

pub const RULES: &[&Rule] = &[
    &torch_cuda::RULE,
    &cuda_method::RULE,
    &device_string::RULE,
    &device_index::RULE,
    &is_cuda::RULE,
    &tensor_type::RULE,
    &nccl::RULE,
    &profiler::RULE,
    &environment::RULE,
    &launch_script::RULE,
    &configuration::RULE,
    &requirements::RULE,
    &distributed::RULE,
    &specify_device::RULE,
    &modelarts::RULE,
    &torch_npu_import::RULE,
    &npu_aware::RULE,
    &cuda_guard::RULE,
    &python2::RULE,
    &backends::RULE,
    &data_parallel::RULE,
    &cuda_only::RULE,
    &cuda_source::RULE,
    &frameworks::RULE,
    &unsupported_api::RULE,
    &advice::RULE,
];
