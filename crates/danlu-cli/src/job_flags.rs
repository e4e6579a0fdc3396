//! The flags that describe a job, for `submit` and `run`: a file, what overrides it, or everything by itself.

use clap::Args;
use danlu_jobfile::{Code, JobFile};
use danlu_types::DeviceRequest;
use danlu_types::spec::shell_quote;

use crate::failure::{CliError, USAGE};
use crate::migration::MigrationFlags;
use crate::{job_file, output};

/// Each overrides what comes before it: the file, the flags, `--set`, the command after `--`.
#[derive(Debug, Args)]
pub(crate) struct JobFlags {
    /// Job file (YAML or JSON) or Slurm batch script; `-` reads standard input
    pub(crate) file: Option<String>,
    /// Field to set, e.g. `devices.count=4`; overrides the job file and other flags
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Name of the job, e.g. `resnet`
    #[arg(long)]
    name: Option<String>,
    /// Workspace of the job
    #[arg(long)]
    workspace: Option<String>,
    /// Number of workers; all start together or none does
    #[arg(long, value_name = "N")]
    workers: Option<String>,
    /// Devices per worker, e.g. `8`, `0.5`, `ascend:8` or `ascend:910B*:8`; repeat for alternatives in order of preference
    #[arg(long, value_name = "KIND:MODEL:COUNT")]
    devices: Vec<String>,
    /// CPU cores per worker, e.g. `16`
    #[arg(long, value_name = "CORES")]
    cpus: Option<String>,
    /// Memory per worker, e.g. `64Gi`
    #[arg(long, value_name = "SIZE")]
    memory: Option<String>,
    /// Size of /dev/shm per worker, e.g. `16Gi`
    #[arg(long, value_name = "SIZE")]
    shared_memory: Option<String>,
    /// Framework: `pytorch`, `tensorflow`, `mindspore`, `mpi` or `none`
    #[arg(long)]
    framework: Option<String>,
    /// Ranks per worker: a number, `per_device` or `per_worker`
    #[arg(long, value_name = "N")]
    ranks: Option<String>,
    /// Priority from 1 to 9; higher priorities start first
    #[arg(long, value_name = "N")]
    priority: Option<String>,
    /// Time limit, e.g. `24h`
    #[arg(long, value_name = "DURATION")]
    max_time: Option<String>,
    /// Allow the job to be preempted and requeued
    #[arg(long)]
    preemptible: bool,
    /// Number of retries after failed attempts, e.g. `3`
    #[arg(long, value_name = "N")]
    retry: Option<String>,
    /// Folder to upload as the job's code, e.g. `.`
    #[arg(long, value_name = "FOLDER")]
    code: Option<String>,
    #[command(flatten)]
    pub(crate) migration: MigrationFlags,
    /// Environment variable of the job, e.g. `SEED=1`; repeat for more
    #[arg(long, value_name = "NAME=VALUE")]
    env: Vec<String>,
    /// Label of the job, e.g. `team=vision`; repeat for more
    #[arg(long = "label", value_name = "KEY=VALUE")]
    labels: Vec<String>,
    /// Idempotency key; submissions with the same key create one job
    #[arg(long = "key", value_name = "KEY")]
    pub(crate) key: Option<String>,
    /// Command to run, as one shell command line or as a program and its arguments; with a batch script, its arguments
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

impl JobFlags {
    /// The job that the file and the flags describe.
    pub(crate) fn draft(&self) -> Result<JobFile, CliError> {
        let mut draft = match &self.file {
            Some(file) => job_file::open(file)?,
            None if self.command.is_empty() && !self.set.iter().any(|set| set.starts_with("command=")) => {
                return Err(CliError::new("there is nothing to run").with_code(USAGE).hint(
                    "give a job file (`danlu submit job.yaml`) or a command (`danlu run -- python train.py`)",
                ));
            }
            None => JobFile::empty(),
        };
        self.apply(&mut draft);
        for assignment in &self.set {
            draft.set(assignment);
        }
        self.apply_command(&mut draft);
        if let Ok(here) = std::env::current_dir() {
            draft.settle_script(&here);
        }
        for note in draft.notes() {
            output::say(output::printable(&note));
        }
        Ok(draft)
    }

    /// Whether the command was typed, rather than read from a file.
    pub(crate) fn has_command(&self) -> bool {
        !self.command.is_empty()
    }

    fn apply(&self, draft: &mut JobFile) {
        for (flag, key, value) in [
            ("--workers", "workers", &self.workers),
            ("--cpus", "cpus", &self.cpus),
            ("--memory", "memory", &self.memory),
            ("--shared-memory", "shared_memory", &self.shared_memory),
            ("--framework", "framework", &self.framework),
            ("--ranks", "ranks", &self.ranks),
            ("--priority", "priority", &self.priority),
            ("--max-time", "max_time", &self.max_time),
            ("--retry", "retry.limit", &self.retry),
        ] {
            if let Some(value) = value {
                draft.flag(flag, key, value);
            }
        }
        for (flag, key, value) in [
            ("--name", "name", &self.name),
            ("--workspace", "workspace", &self.workspace),
            ("--code", "code", &self.code),
        ] {
            if let Some(value) = value {
                draft.text_flag(flag, key, value);
            }
        }
        if self.preemptible {
            draft.flag("--preemptible", "preemptible", "true");
        }
        apply_devices(draft, &self.devices);
        self.env.iter().for_each(|pair| draft.pair_flag("--env", "env", pair));
        self.labels.iter().for_each(|pair| draft.pair_flag("--label", "labels", pair));
    }

    fn apply_command(&self, draft: &mut JobFile) {
        if self.command.is_empty() {
            return;
        }
        if draft.is_script() {
            return draft.script_arguments(&self.command);
        }
        let command = command_line(&self.command);
        draft.text_flag("--", "command", &command);
        // A command typed here is about the files that are here.
        if !draft.has("code")
            && !draft.has("working_directory")
            && let Ok(folder) = std::env::current_dir()
        {
            draft.text_flag("--", "working_directory", &folder.display().to_string());
        }
    }
}

/// One word is a shell command line as it is; several are a program and its arguments.
pub(crate) fn command_line(words: &[String]) -> String {
    match words {
        [line] => line.clone(),
        words => words.iter().map(|word| shell_quote(word)).collect::<Vec<_>>().join(" "),
    }
}

/// One request is `devices`; several are `any_of`, in order of preference. Either replaces what the file said of both.
fn apply_devices(draft: &mut JobFile, texts: &[String]) {
    let mut requests = Vec::new();
    for text in texts {
        match text.parse::<DeviceRequest>() {
            Ok(request) => requests.push(request),
            Err(error) => {
                let error = error.to_string();
                let accepted = error.split_once("; ").map_or(error.as_str(), |(_, right)| right);
                draft.complain("--devices", "devices", text, accepted);
            }
        }
    }
    let (key, other, value) = match &requests[..] {
        [] => return,
        [one] => ("devices", "any_of", serde_json::to_string(one)),
        several => ("any_of", "devices", serde_json::to_string(several)),
    };
    if draft.has(other) {
        draft.flag("--devices", other, "");
    }
    let value = value.expect("requests are plain values");
    draft.flag_for("--devices", &texts.join(" --devices "), key, &value);
}

/// Whether there is anything to upload.
pub(crate) fn folder_of(code: &Code) -> Option<&std::path::Path> {
    match code {
        Code::Folder(folder) => Some(folder),
        Code::None | Code::Uploaded => None,
    }
}
