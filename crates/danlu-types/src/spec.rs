//! What a person asks for: the job file of `danlu submit`, field by field.
//!
//! Reading is strict about fields and units; [`JobSpec::check`] then says everything that is wrong with the values, so
//! that one round trip is enough to mend a file. Whether a job could run *here* is the scheduler's question, not ours.

mod check;
mod flexible;
mod launching;
mod secrets;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

pub use check::FIELDS_OF_LATER_VERSIONS;
pub use check::{is_digest, is_name, is_set_by_grant};
pub use flexible::Parameter;
pub use launching::{Compat, OnHang, RankTableUse};
pub use secrets::{SecretForm, SecretUse};

use crate::{Bytes, Cpus, DeviceRequest, Span};

pub const LOWEST_PRIORITY: u8 = 1;
pub const HIGHEST_PRIORITY: u8 = 9;
/// Of a job that names none, in a workspace that names none.
pub const USUAL_PRIORITY: u8 = 5;

/// A job, as a job file describes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct JobSpec {
    /// Letters, digits, `.`, `_` and `-`; at most 63. Need not be unique.
    #[serde(default = "default_name")]
    pub name: String,
    #[serde(default = "default_workspace")]
    pub workspace: String,
    /// `host`: this machine's own programs.
    #[serde(default = "default_image")]
    pub image: String,
    /// How many equal members; all start or none does.
    #[serde(default = "one")]
    pub workers: u32,
    /// Accelerators for each worker.
    #[serde(default)]
    pub devices: DeviceRequest,
    /// Other devices that would do, in order of preference; used instead of `devices`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub any_of: Vec<DeviceRequest>,
    /// Which nodes may run it.
    #[serde(default, skip_serializing_if = "NodeSelection::is_default")]
    pub nodes: NodeSelection,
    /// Processor cores for each worker.
    #[serde(default = "one_cpu")]
    pub cpus: Cpus,
    /// Memory for each worker; it may not use more. Unlimited when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Bytes>,
    /// The size of `/dev/shm` in each worker; the machine's own when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared_memory: Option<Bytes>,
    #[serde(default)]
    pub framework: Framework,
    /// Processes in each worker; by default one per device for frameworks, one for `none`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ranks: Option<RanksPerWorker>,
    /// Whether the workers are one world. `false`: each counts its ranks from 0 and meets nobody, as in AIS-Bench's
    /// single-server mode.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub together: bool,
    /// Whether ranks are bound to the processors nearest to their devices.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub binding: bool,
    /// `always`: ranks on Ascend get a rank table, or the job does not start.
    #[serde(default, skip_serializing_if = "is_default")]
    pub rank_table: RankTableUse,
    /// Other platforms whose variables and folders the program expects.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub compat: Vec<Compat>,
    /// Run by `/bin/sh -c`, once for each rank.
    pub command: String,
    /// The digest of an uploaded code snapshot, `sha256:…`; `danlu submit` replaces a folder's path by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// Where to run when there is no `code`: a folder of this machine. Defaults to the worker's own empty folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub working_directory: Option<String>,
    /// A script run once in each worker before its ranks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setup: Option<String>,
    /// Appended to the command as `--name=value`; a map, or ModelArts' list of `{label, value}` or `{name, value}`.
    #[serde(default, deserialize_with = "flexible::parameters", skip_serializing_if = "Vec::is_empty")]
    pub parameters: Vec<Parameter>,
    #[serde(default, deserialize_with = "flexible::text_map", skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// 1 to 9, larger first. Absent, it is what the workspace says, or 5.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<u8>,
    /// Secrets of the workspace by the variables they are for: `HF_TOKEN: hf-token`, or `KUBECONFIG: {name: kube, as: file}`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub secrets: BTreeMap<String, SecretUse>,
    /// May be stopped for others and started again later.
    #[serde(default)]
    pub preemptible: bool,
    /// A folder kept between attempts, given back as `$DANLU_RESUME_DIR`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<String>,
    /// Ends the job after running this long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_time: Option<Span>,
    /// How long a program may take to end after it was asked to (SIGTERM) before it is killed.
    #[serde(default = "default_grace")]
    pub grace: Span,
    /// A worker hangs when it has printed nothing for this long and its devices did nothing either; never when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hang_after: Option<Span>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub on_hang: OnHang,
    #[serde(default)]
    pub retry: Retry,
    /// Free words for filters: `labels: { project: ocr }`.
    #[serde(default, deserialize_with = "flexible::text_map", skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
}

/// Which nodes a job may run on; every one when nothing is said.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NodeSelection {
    /// `x86_64` or `aarch64`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub architecture: Option<String>,
    /// Labels that a node must have, with exactly these values.
    #[serde(default, deserialize_with = "flexible::text_map", skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Whether all workers must be in one rack (nodes with the same label `rack`); otherwise that is only preferred.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub same_rack: bool,
}

impl NodeSelection {
    fn is_default(&self) -> bool {
        *self == NodeSelection::default()
    }
}

/// Decides how many ranks there are and which environment they get.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Framework {
    Pytorch,
    Tensorflow,
    Mindspore,
    Mpi,
    #[default]
    None,
}

/// `per_device`, `per_worker`, or a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RanksPerWorker {
    PerDevice,
    PerWorker,
    Count(u32),
}

/// What to do when an attempt fails.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Retry {
    /// How many failed attempts are followed by another.
    #[serde(default)]
    pub limit: u32,
    /// Which failures are worth another attempt.
    #[serde(default = "default_retry_causes")]
    pub on: Vec<RetryCause>,
}

/// Why an attempt ended without success, as far as trying again is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum RetryCause {
    /// The machine, or Danlu's launcher on it, went away.
    NodeLost,
    /// A device failed.
    DeviceError,
    /// The worker could not be started, or its gang did not assemble in time.
    StartFailed,
    /// The program, or its `setup`, ended with a non-zero code or by a signal.
    Exit,
    OutOfMemory,
    /// Always tried again, without counting; accepted here because other platforms' files name it.
    Preempted,
}

impl JobSpec {
    /// The smallest job: one command, one core.
    pub fn of_command(command: impl Into<String>) -> Self {
        JobSpec {
            name: default_name(),
            workspace: default_workspace(),
            image: default_image(),
            workers: 1,
            devices: DeviceRequest::default(),
            any_of: Vec::new(),
            nodes: NodeSelection::default(),
            cpus: one_cpu(),
            memory: None,
            shared_memory: None,
            framework: Framework::None,
            ranks: None,
            together: true,
            binding: true,
            rank_table: RankTableUse::Auto,
            compat: Vec::new(),
            command: command.into(),
            code: None,
            working_directory: None,
            setup: None,
            parameters: Vec::new(),
            env: BTreeMap::new(),
            priority: None,
            secrets: BTreeMap::new(),
            preemptible: false,
            checkpoint: None,
            max_time: None,
            grace: default_grace(),
            hang_after: None,
            on_hang: OnHang::Notify,
            retry: Retry::default(),
            labels: BTreeMap::new(),
        }
    }

    pub fn priority(&self) -> u8 {
        self.priority.unwrap_or(USUAL_PRIORITY)
    }

    /// What each worker accepts, in order of preference.
    pub fn alternatives(&self) -> &[DeviceRequest] {
        if self.any_of.is_empty() { std::slice::from_ref(&self.devices) } else { &self.any_of }
    }

    /// Whether it computes on processors only.
    pub fn is_cpu_only(&self) -> bool {
        self.alternatives().iter().all(|request| request.count.is_none())
    }

    /// Devices that each worker gets at most.
    pub fn most_devices(&self) -> u32 {
        self.alternatives().iter().map(|request| request.count.devices()).max().unwrap_or(0)
    }

    /// Processes in each worker, where each holds so many devices.
    pub fn ranks_per_worker(&self, devices: u32) -> u32 {
        match self.ranks {
            Some(RanksPerWorker::Count(count)) => count,
            Some(RanksPerWorker::PerWorker) => 1,
            None if self.framework == Framework::None || self.compat.contains(&Compat::Dlc) => 1,
            Some(RanksPerWorker::PerDevice) | None => devices.max(1),
        }
    }

    /// The command with its parameters appended, quoted for the shell.
    pub fn full_command(&self) -> String {
        let mut command = self.command.clone();
        for parameter in &self.parameters {
            command.push_str(" --");
            command.push_str(&parameter.name);
            command.push('=');
            command.push_str(&shell_quote(&parameter.value));
        }
        command
    }
}

impl Default for Retry {
    fn default() -> Self {
        Retry { limit: 0, on: default_retry_causes() }
    }
}

/// One word of a command line, quoted for the shell where it must be.
pub fn shell_quote(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

fn default_name() -> String {
    "job".to_owned()
}

fn default_workspace() -> String {
    "default".to_owned()
}

fn default_image() -> String {
    "host".to_owned()
}

fn one() -> u32 {
    1
}

fn yes() -> bool {
    true
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_yes(value: &bool) -> bool {
    *value
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

fn one_cpu() -> Cpus {
    Cpus::whole(1)
}

fn default_grace() -> Span {
    Span::from_seconds(30)
}

fn default_retry_causes() -> Vec<RetryCause> {
    vec![RetryCause::NodeLost, RetryCause::DeviceError, RetryCause::StartFailed]
}
