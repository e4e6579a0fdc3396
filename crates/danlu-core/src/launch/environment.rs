//! The environment of a rank: Danlu's own names, and those that frameworks and other platforms look for.
//!
//! In order, later ones over earlier ones: what holds for all, devices, network, framework, other platforms, the user's
//! own, Danlu's own. Nothing here ever changes what the user set, but for the names that begin with `DANLU_`.

mod compat;
mod devices;
mod framework;

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::{LaunchFile, Present, RUN_FOLDER_VARIABLE, RankPlan};

pub use compat::{MODELARTS_FOLDER, STEPS_FOLDER, pod_env};
pub use framework::{mpi_hostfile, scheduler_environment};

/// Names that say which of several ranks a process is. What a script leaves in the environment for all ranks of a worker
/// must not carry them over from the one that ran it.
pub const ROLES_OF_A_RANK: [&str; 14] = [
    "RANK",
    "LOCAL_RANK",
    "RANK_ID",
    "DEVICE_ID",
    "DEVICE_INDEX",
    "ASCEND_DEVICE_ID",
    "MS_NODE_ID",
    "MS_ROLE",
    "OMPI_COMM_WORLD_RANK",
    "OMPI_COMM_WORLD_LOCAL_RANK",
    "PMI_RANK",
    "CM_RANK",
    "DANLU_RANK",
    "DANLU_LOCAL_RANK",
];

/// Where the ranks of an attempt meet; decided by the launchers when they have found each other.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rendezvous {
    pub address: String,
    pub port: u16,
    /// A checkpoint of an earlier attempt is there.
    pub resume: bool,
    /// All workers of the world, in their order.
    pub workers: Vec<Present>,
    /// The network interface that has this worker's address.
    pub interface: Option<String>,
    /// The finished rank table of the world.
    pub rank_table: Option<PathBuf>,
}

/// Variables in the making.
#[derive(Debug, Default)]
struct Variables(BTreeMap<String, String>);

impl Variables {
    fn set(&mut self, name: &str, value: impl ToString) {
        self.0.insert(name.to_owned(), value.to_string());
    }
}

/// Everything Danlu sets for one rank. The user's own `env` wins over all but the `DANLU_` names.
pub fn rank_environment(
    launch: &LaunchFile,
    rendezvous: &Rendezvous,
    rank: &RankPlan,
) -> BTreeMap<String, String> {
    let mut env = Variables::default();
    env.set("PYTHONUNBUFFERED", 1);
    if let Some(user) = &launch.user {
        env.set("HOME", user.home.display());
        env.set("USER", &user.name);
        env.set("LOGNAME", &user.name);
    }
    env.set("TMPDIR", launch.folders.run.join("tmp").display());
    let threads = (launch.limits.cpus.milli / 1000 / launch.ranks.len().max(1) as u64).max(1);
    env.set("OMP_NUM_THREADS", threads);
    meeting_point(&mut env, launch, rendezvous, rank);
    devices::visible(&mut env, launch);
    devices::network(&mut env, launch, rendezvous);
    framework::names(&mut env, launch, rendezvous, rank);
    compat::names(&mut env, launch, rendezvous);
    for (name, value) in &launch.env {
        env.set(name, value);
    }
    danlu_names(&mut env, launch, rendezvous, rank);
    env.0
}

/// By which nearly everything finds its world, whatever the framework.
fn meeting_point(env: &mut Variables, launch: &LaunchFile, rendezvous: &Rendezvous, rank: &RankPlan) {
    env.set("MASTER_ADDR", &rendezvous.address);
    env.set("MASTER_PORT", rendezvous.port);
    // Counted in processes, as torchrun does; not in nodes, as some platforms do.
    env.set("WORLD_SIZE", launch.world_size);
    env.set("RANK", launch.world_rank(rank));
    env.set("LOCAL_RANK", rank.local_rank);
    env.set("LOCAL_WORLD_SIZE", launch.ranks.len());
    env.set("GROUP_RANK", launch.world_worker());
}

fn danlu_names(env: &mut Variables, launch: &LaunchFile, rendezvous: &Rendezvous, rank: &RankPlan) {
    env.set("DANLU_JOB_ID", launch.worker.job);
    env.set("DANLU_JOB_NAME", &launch.job_name);
    env.set("DANLU_ATTEMPT", launch.worker.attempt);
    env.set("DANLU_WORKER", launch.worker.worker);
    env.set("DANLU_WORKERS", launch.gang.workers);
    env.set("DANLU_RANK", rank.rank);
    env.set("DANLU_LOCAL_RANK", rank.local_rank);
    env.set("DANLU_WORLD_SIZE", launch.world_size);
    env.set("DANLU_NODE", &launch.node);
    env.set(RUN_FOLDER_VARIABLE, launch.folders.run.display());
    env.set("DANLU_OUTPUT_DIR", launch.folders.output.display());
    if let Some(access) = &launch.access {
        env.set("DANLU_SERVER", &access.server);
        env.set("DANLU_TOKEN", &access.token);
    }
    if launch.checkpoint.is_some() {
        env.set("DANLU_CHECKPOINT_DIR", launch.folders.checkpoint.display());
    }
    if rendezvous.resume {
        env.set("DANLU_RESUME_DIR", launch.folders.checkpoint.display());
    }
    if let Some(table) = &rendezvous.rank_table {
        env.set("DANLU_RANK_TABLE", table.display());
    }
}
