//! What passes between an engine and a launcher: the files of a run folder, and the environment of a rank.
//!
//! The engine writes [`LAUNCH_FILE`] once, and [`STOP_FILE`] when the worker is to end. The launcher adds lines to
//! [`STATUS_FILE`], of which the last one counts. Neither side ever writes the other's file.

mod actual_allocation;
mod binding;
mod environment;
mod identity;
mod options;
mod rank_table;
mod sandbox;
mod secrets;

use std::collections::BTreeMap;
use std::path::PathBuf;

use danlu_types::{
    AttemptNumber, Bytes, Cpus, Device, Framework, JobId, Node, NodeName, Rank, Span, Topology, WorkerId,
    WorkerIndex,
};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

pub use actual_allocation::{ActualAllocation, GIVEN_FILE, GivenPlace, HeldGres};
pub use binding::{bind_ranks, processor_list};
pub use environment::{
    MODELARTS_FOLDER, ROLES_OF_A_RANK, Rendezvous, STEPS_FOLDER, mpi_hostfile, pod_env, rank_environment,
    scheduler_environment,
};
pub use identity::{Access, UnixUser};
pub use options::LaunchOptions;
pub use rank_table::{NoRankTable, RANK_TABLE_FILE, rank_table};
pub use sandbox::{Sandbox, is_passed_on, is_proxy_with_user};
pub use secrets::{GivenSecret, SECRETS_FILE, SECRETS_FOLDER};

use crate::job::{Attempt, Job, WorkerEnd};

pub const LAUNCH_FILE: &str = "launch.json";
pub const STOP_FILE: &str = "stop.json";
/// One [`LauncherStatus`] per line.
pub const STATUS_FILE: &str = "status.jsonl";
/// The launcher's socket for sessions, in the run folder.
pub const SESSION_SOCKET: &str = "session.sock";
/// The key that a client of it shows first: a JSON string in the run folder, there where other jobs could connect too.
pub const SESSION_KEY: &str = "session.key";
/// Set for every process of a worker to its run folder, which no other worker on the machine has: by this an engine
/// finds what is left of a worker whose launcher died.
pub const RUN_FOLDER_VARIABLE: &str = "DANLU_RUN_DIR";

/// `danlu.py`, by which a Python program reports on itself. An engine lays it down; launchers put it on `PYTHONPATH`.
pub const PYTHON_HELPER: &str = include_str!("../../../python/danlu.py");
pub const PYTHON_HELPER_NAME: &str = "danlu.py";

/// How long workers wait for each other before they name the missing and give up.
pub const GANG_TIMEOUT: Span = Span::from_seconds(120);

/// Everything a launcher needs to run one worker. Paths are absolute.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaunchFile {
    pub worker: WorkerId,
    pub job_name: String,
    pub owner: String,
    pub workspace: String,
    pub node: NodeName,
    /// The address by which other workers reach this one.
    pub address: String,
    pub framework: Framework,
    /// Given to `/bin/sh -c`.
    pub command: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setup: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub working_directory: Option<PathBuf>,
    /// A path below the working directory that is kept between attempts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<PathBuf>,
    pub env: BTreeMap<String, String>,
    pub gang: Gang,
    pub ranks: Vec<RankPlan>,
    pub world_size: u32,
    /// The devices this worker holds, in the order of their indices.
    pub devices: Vec<Device>,
    /// What its machine says of itself: which processors are near which device.
    #[serde(default, skip_serializing_if = "Topology::is_unknown")]
    pub topology: Topology,
    pub limits: Limits,
    #[serde(default, skip_serializing_if = "LaunchOptions::is_default")]
    pub options: LaunchOptions,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_time: Option<Span>,
    pub grace: Span,
    pub folders: WorkerFolders,
    /// Nodes that will not do for it; told only to engines that choose nodes themselves.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unsuitable: Vec<NodeName>,
    /// Whom its programs run as; the launcher's own user when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<UnixUser>,
    /// By which its programs speak to the server for their own attempt; where there is one to speak to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access: Option<Access>,
    /// What holds for all of the server's jobs; nothing but what the launcher has itself when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<Sandbox>,
    /// Without their values, which are in [`SECRETS_FILE`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<GivenSecret>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gang {
    pub workers: u32,
    pub timeout: Span,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RankPlan {
    pub rank: Rank,
    pub local_rank: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    pub cpus: Cpus,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Bytes>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared_memory: Option<Bytes>,
    /// Processes and threads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processes: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerFolders {
    /// This worker's own: files of this module, logs, `work/`, `tmp/`.
    pub run: PathBuf,
    /// Where the attempt's workers find each other: `worker-<index>.json` holding a [`Present`], one per worker. Made by
    /// the first that comes, and only for workers that have others to find.
    pub gang: PathBuf,
    /// Shared by the job's attempts: what `checkpoint` names lives here.
    pub checkpoint: PathBuf,
    /// Shared by the job's attempts: `$DANLU_OUTPUT_DIR`.
    pub output: PathBuf,
    /// The packed code snapshot to unpack into the working directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<PathBuf>,
    /// Holds `danlu.py`, for the ranks' Python.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub python: Option<PathBuf>,
    /// A datagram socket: a worker id sent there makes the server look at that worker's status now.
    pub hints: PathBuf,
}

/// What the launcher says of itself, in [`STATUS_FILE`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LauncherStatus {
    pub worker: WorkerId,
    pub launcher: ProcessIdentity,
    pub phase: LauncherState,
}

impl LauncherStatus {
    /// The text to add to [`STATUS_FILE`]. It begins with a line feed too: half a line that a full disk left is no part
    /// of the next one.
    pub fn to_line(&self) -> serde_json::Result<Vec<u8>> {
        let mut line = vec![b'\n'];
        serde_json::to_writer(&mut line, self)?;
        line.push(b'\n');
        Ok(line)
    }

    /// The last status in the text of a [`STATUS_FILE`]; what is no status is passed over. One without its line feed counts: what
    /// was cut off before the closing brace is no JSON.
    pub fn last_in(text: &[u8]) -> Option<Self> {
        text.rsplit(|byte| *byte == b'\n').find_map(|line| serde_json::from_slice(line).ok())
    }
}

/// A process, told apart from a later one with the same number by the time it started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessIdentity {
    pub pid: i32,
    /// Field 22 of `/proc/<pid>/stat`.
    pub start_ticks: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LauncherState {
    /// Unpacking code, waiting for the gang, running `setup`.
    Preparing,
    Running {
        since: Timestamp,
        ranks: Vec<RankProcess>,
    },
    Ended {
        running_since: Option<Timestamp>,
        at: Timestamp,
        exit: WorkerEnd,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RankProcess {
    pub rank: Rank,
    pub pid: i32,
}

/// In [`STOP_FILE`]: end the worker. A later file with a shorter grace replaces an earlier one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StopOrder {
    pub grace: Span,
}

/// In the gang folder: this worker is here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Present {
    pub address: String,
    /// Where its first rank is to listen, if it has the first rank of all; 0 otherwise.
    pub port: u16,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<NodeName>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub super_pod: Option<u32>,
    /// Its Ascend devices: everyone makes the same rank table of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<Device>,
}

impl LaunchFile {
    /// The number by which a rank counts in its world; the same as its own unless each worker is a world.
    pub fn world_rank(&self, rank: &RankPlan) -> u32 {
        if self.options.together { rank.rank.0 } else { rank.local_rank }
    }

    /// Workers of this one's world.
    pub fn world_workers(&self) -> u32 {
        if self.options.together { self.gang.workers } else { 1 }
    }

    /// This worker's place among them.
    pub fn world_worker(&self) -> u32 {
        if self.options.together { self.worker.worker.0 } else { 0 }
    }

    /// Whether each rank has a device of its own. If not, one process that sees all of them is to start others, as
    /// torchrun and msrun do.
    pub fn is_rank_per_device(&self) -> bool {
        self.ranks.len() == self.devices.len()
    }
}

/// Where an engine keeps the folders of a job's workers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunLayout {
    pub data: PathBuf,
}

impl RunLayout {
    pub fn job_folder(&self, job: JobId) -> PathBuf {
        self.data.join("runs").join(job.to_string())
    }

    /// Next to each other and not one folder per attempt: making a folder is among the dearest things that are done for
    /// a worker.
    pub fn run_folder(&self, worker: WorkerId) -> PathBuf {
        self.job_folder(worker.job).join(format!("{}.{}", worker.attempt, worker.worker))
    }

    pub fn gang_folder(&self, job: JobId, attempt: AttemptNumber) -> PathBuf {
        self.job_folder(job).join(format!("{attempt}.gang"))
    }

    pub fn checkpoint_folder(&self, job: JobId) -> PathBuf {
        self.job_folder(job).join("checkpoint")
    }

    pub fn output_folder(&self, job: JobId) -> PathBuf {
        self.job_folder(job).join("output")
    }

    /// One marker for each worker that was launched and not yet released, so that finding what runs does not mean
    /// reading every folder that ever was.
    pub fn live_folder(&self) -> PathBuf {
        self.data.join("live")
    }

    /// What the node's devices did last: see [`crate::sample::NodeReadings`].
    pub fn readings_file(&self, node: &NodeName) -> PathBuf {
        self.data.join("readings").join(format!("{node}.json"))
    }

    /// Where the engine keeps `danlu.py`.
    pub fn python_folder(&self) -> PathBuf {
        self.data.join("python")
    }

    /// The homes of users that have none of their own on this machine.
    pub fn homes_folder(&self) -> PathBuf {
        self.data.join("homes")
    }

    pub fn hints_socket(&self) -> PathBuf {
        self.data.join("hints.sock")
    }

    pub fn code_archive(&self, digest: &str) -> PathBuf {
        let hex = digest.strip_prefix("sha256:").unwrap_or(digest);
        self.data.join("code").join(format!("{hex}.tar.zst"))
    }
}

/// The launch file of one worker of the job's live attempt; `None` if there is no such worker. Whom it runs as, how
/// it reaches the server and its secrets are for the caller to say.
pub fn launch_file(
    job: &Job,
    attempt: &Attempt,
    index: WorkerIndex,
    node: &Node,
    layout: &RunLayout,
) -> Option<LaunchFile> {
    let grant = &attempt.workers.get(index.0 as usize)?.grant;
    let spec = &job.spec;
    let worker = job.worker_id(attempt.number, index);
    let per_worker = spec.ranks_per_worker(attempt.devices_per_worker());
    let ranks = (0..per_worker)
        .map(|local_rank| RankPlan { rank: Rank(index.0 * per_worker + local_rank), local_rank })
        .collect();
    let held = |device: &&Device| grant.devices.contains(&device.index);
    Some(LaunchFile {
        worker,
        job_name: spec.name.clone(),
        owner: job.owner.clone(),
        workspace: spec.workspace.clone(),
        node: node.name.clone(),
        address: node.address.clone(),
        framework: spec.framework,
        command: spec.full_command(),
        setup: spec.setup.clone(),
        working_directory: spec.working_directory.clone().map(PathBuf::from),
        checkpoint: spec.checkpoint.clone().map(PathBuf::from),
        env: spec.env.clone(),
        gang: Gang { workers: spec.workers, timeout: GANG_TIMEOUT },
        ranks,
        world_size: if spec.together { spec.workers * per_worker } else { per_worker },
        devices: node.devices.iter().filter(held).cloned().collect(),
        topology: node.topology.clone(),
        limits: Limits {
            cpus: spec.cpus,
            memory: spec.memory,
            shared_memory: spec.shared_memory,
            processes: None,
        },
        options: LaunchOptions::of(spec),
        max_time: spec.max_time,
        grace: spec.grace,
        folders: WorkerFolders {
            run: layout.run_folder(worker),
            gang: layout.gang_folder(job.id, attempt.number),
            checkpoint: layout.checkpoint_folder(job.id),
            output: layout.output_folder(job.id),
            code: spec.code.as_deref().map(|digest| layout.code_archive(digest)),
            python: Some(layout.python_folder()),
            hints: layout.hints_socket(),
        },
        user: None,
        access: None,
        sandbox: None,
        unsuitable: Vec::new(),
        secrets: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_that_can_be_read_is_the_status() {
        let status = |phase| LauncherStatus {
            worker: "7.1.0".parse().unwrap(),
            launcher: ProcessIdentity { pid: 12, start_ticks: 34 },
            phase,
        };
        let running = status(LauncherState::Running { since: Timestamp::UNIX_EPOCH, ranks: Vec::new() });
        let mut text = status(LauncherState::Preparing).to_line().unwrap();
        // A full disk took a part of a line; then there was room again.
        text.extend_from_slice(br#"{"worker":"7.1.0","laun"#);
        assert_eq!(LauncherStatus::last_in(&text), Some(status(LauncherState::Preparing)));
        let line = running.to_line().unwrap();
        for cut in 0..line.len() - 2 {
            let torn = [&text, &line[..cut]].concat();
            assert_eq!(
                LauncherStatus::last_in(&torn),
                Some(status(LauncherState::Preparing)),
                "cut at {cut}"
            );
        }
        // Only the line feed at its end did not fit.
        let torn = [&text, &line[..line.len() - 1]].concat();
        assert_eq!(LauncherStatus::last_in(&torn), Some(running.clone()));
        text.extend_from_slice(&line);
        assert_eq!(LauncherStatus::last_in(&text), Some(running));
        for nothing in [&b""[..], b"\n", b"{", b"null\n{}\n"] {
            assert_eq!(LauncherStatus::last_in(nothing), None);
        }
    }
}
