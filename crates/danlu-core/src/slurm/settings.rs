//! How a site wants its Slurm used.

use std::path::PathBuf;

use danlu_types::{Bytes, DeviceKind, Span};
use serde::Deserialize;

/// The file of `danlu up --slurm`. Everything in it may be left out.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SlurmSettings {
    /// Where jobs are submitted to; only its nodes are offered. The site's default partition, and all nodes, when absent.
    pub partition: Option<String>,
    pub account: Option<String>,
    pub qos: Option<String>,
    /// What generic resources are devices, and which. `gpu` is taken for NVIDIA's and `npu` for Ascend where nothing
    /// here says otherwise.
    pub gres: Vec<GresRule>,
    /// This program, as the nodes see it; its own path when absent.
    pub program: Option<PathBuf>,
    /// Where Slurm's programs are, where that is not on the server's `PATH`.
    pub programs: Option<PathBuf>,
    /// `slurm.conf`, where it is not where Slurm's programs look for it.
    pub configuration: Option<PathBuf>,
    /// How often Slurm is asked how jobs are doing; one question for all of them.
    pub poll: Span,
    /// Further options for `sbatch`, such as `--reservation=night`.
    pub options: Vec<String>,
}

impl Default for SlurmSettings {
    fn default() -> Self {
        SlurmSettings {
            partition: None,
            account: None,
            qos: None,
            gres: Vec::new(),
            program: None,
            programs: None,
            configuration: None,
            poll: Span::from_seconds(2),
            options: Vec::new(),
        }
    }
}

/// What a generic resource stands for.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GresRule {
    /// `gpu:a100`, or `gpu` for all of them.
    pub gres: String,
    pub kind: DeviceKind,
    /// As jobs are to ask for it; the resource's own type when absent.
    #[serde(default)]
    pub model: Option<String>,
    #[serde(default)]
    pub memory: Bytes,
}
