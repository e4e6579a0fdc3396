//! The flags that describe a job, for `submit` and `run`: a file, what overrides it, or everything by itself.

use clap::Args;
use danlu_types::DeviceRequest;

use crate::failure::{CliError, USAGE};
use crate::job_file::{Code, JobFile};
use crate::migration::MigrationFlags;
use crate::output;
use crate::words::shell_word;

/// Each overrides what comes before it: the file, the flags, `--set`, the command after `--`.
#[derive(Debug, Args)]
pub(crate) struct JobFlags {
    /// A job file in YAML or JSON, or a batch script of Slurm's; `-` reads standard input
    pub(crate) file: Option<String>,
    /// Overrides a field of the job file or a flag: `--set devices.count=4`
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// The job's name
    #[arg(long)]
    name: Option<String>,
    /// The workspace it belongs to
    #[arg(long)]
    workspace: Option<String>,
    /// How many equal workers; all start or none does
    #[arg(long, value_name = "N")]
    workers: Option<String>,
    /// Accelerators for each worker: `8`, `0.5`, `ascend:8` or `ascend:910B*:8`; several times: the first that fits
    #[arg(long, value_name = "KIND:MODEL:COUNT")]
    devices: Vec<String>,
    /// Processor cores for each worker
    #[arg(long, value_name = "CORES")]
    cpus: Option<String>,
    /// Memory for each worker, such as `64Gi`
    #[arg(long, value_name = "SIZE")]
    memory: Option<String>,
    /// The size of /dev/shm in each worker
    #[arg(long, value_name = "SIZE")]
    shared_memory: Option<String>,
    /// pytorch, tensorflow, mindspore, mpi or none
    #[arg(long)]
    framework: Option<String>,
    /// Processes in each worker: a number, `per_device` or `per_worker`
    #[arg(long, value_name = "N")]
    ranks: Option<String>,
    /// 1 to 9, larger first
    #[arg(long, value_name = "N")]
    priority: Option<String>,
    /// Ends the job after running this long, such as `24h`
    #[arg(long, value_name = "TIME")]
    max_time: Option<String>,
    /// May be stopped for others and started again later
    #[arg(long)]
    preemptible: bool,
    /// How many failed attempts are followed by another
    #[arg(long, value_name = "N")]
    retry: Option<String>,
    /// A folder to upload, as the job's code
    #[arg(long, value_name = "FOLDER")]
    code: Option<String>,
    #[command(flatten)]
    pub(crate) migration: MigrationFlags,
    /// A variable of the job's environment
    #[arg(long, value_name = "NAME=VALUE")]
    env: Vec<String>,
    /// A word for filters
    #[arg(long = "label", value_name = "KEY=VALUE")]
    labels: Vec<String>,
    /// Submitting twice with the same key submits once
    #[arg(long = "key", value_name = "IDEMPOTENCY_KEY")]
    pub(crate) key: Option<String>,
    /// What to run; several words are quoted for the shell. After a batch script: its arguments
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

impl JobFlags {
    /// The job that the file and the flags describe.
    pub(crate) fn draft(&self) -> Result<JobFile, CliError> {
        let mut draft = match &self.file {
            Some(file) => JobFile::open(file)?,
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
        for remark in draft.remarks() {
            output::say(output::printable(&remark));
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
        words => words.iter().map(|word| shell_word(word)).collect::<Vec<_>>().join(" "),
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
