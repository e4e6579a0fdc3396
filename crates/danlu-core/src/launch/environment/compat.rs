//! The names that programs written for other platforms look for.
//!
//! Only the names and their meaning are taken over. Folders that lie at fixed places of a container there lie in the run
//! folder here, so a program that reads the variables finds them and one with the paths written into it does not.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use danlu_types::{Compat, DeviceKind, Framework};

use super::{Rendezvous, Variables};
use crate::launch::{LaunchFile, Present};

/// In the run folder: `$MA_HOME`.
pub const MODELARTS_FOLDER: &str = "ma-user";
/// In the run folder: what stands in for Slurm around a batch script.
pub const STEPS_FOLDER: &str = "slurm";

pub(super) fn names(env: &mut Variables, launch: &LaunchFile, rendezvous: &Rendezvous) {
    for platform in &launch.options.compat {
        match platform {
            Compat::Modelarts => modelarts(env, launch, rendezvous),
            Compat::Dlc => {
                // Nodes there, not processes; the best known trap of that platform.
                env.set("WORLD_SIZE", launch.world_workers());
                env.set("RANK", launch.world_worker());
            }
            Compat::Apulis => apulis(env, launch),
            Compat::Slurm => slurm(env, launch, rendezvous),
        }
    }
}

fn modelarts(env: &mut Variables, launch: &LaunchFile, rendezvous: &Rendezvous) {
    let home = launch.folders.run.join(MODELARTS_FOLDER);
    let mount = home.join("modelarts");
    env.set("MA_HOME", home.display());
    env.set("MA_MOUNT_PATH", mount.display());
    env.set("MA_JOB_DIR", mount.join("user-job-dir").display());
    env.set("MA_LOG_DIR", mount.join("log").display());
    env.set("DLS_DATA_URL", mount.join("inputs/data_url_0").display());
    env.set("DLS_TRAIN_URL", mount.join("outputs/train_url_0").display());

    let hosts: Vec<&str> = rendezvous.workers.iter().map(|worker| worker.address.as_str()).collect();
    let (workers, index) = (launch.world_workers(), launch.world_worker());
    let name = format!("danlu-{}", launch.worker.job);
    env.set("MA_NUM_HOSTS", workers);
    env.set("MA_NUM_GPUS", launch.devices.len());
    env.set("MA_TASK_NAME", "worker");
    env.set("MA_VJ_NAME", &name);
    env.set("MA_CURRENT_IP", &launch.address);
    env.set("MA_CURRENT_HOST_IP", &launch.address);
    env.set("MA_CURRENT_INSTANCE_NAME", format_args!("{name}-worker-{index}"));
    env.set("VC_TASK_INDEX", index);
    env.set("VC_WORKER_NUM", workers);
    env.set("VC_WORKER_HOSTS", hosts.join(","));
    // The first version's names for the same.
    env.set("DLS_TASK_NUMBER", workers);
    env.set("DLS_TASK_INDEX", index);
    env.set("BATCH_JOB_ID", &name);
}

fn apulis(env: &mut Variables, launch: &LaunchFile) {
    let ascend = || launch.devices.iter().filter(|device| device.kind == DeviceKind::Ascend);
    let ids: Vec<String> = ascend().map(|device| device.index.to_string()).collect();
    let addresses: Vec<String> =
        ascend().filter_map(|device| Some(format!("{}:{}", device.index, device.wiring.address?))).collect();
    let framework = match launch.framework {
        Framework::Pytorch => "pytorch",
        Framework::Tensorflow => "tensorflow",
        Framework::Mindspore => "mindspore",
        Framework::Mpi | Framework::None => "none",
    };
    env.set("DLWS_JOB_ID", launch.worker.job);
    env.set("DLWS_USER_NAME", &launch.owner);
    env.set("DLWS_WORKER_NUM", launch.world_workers());
    env.set("DLWS_NUM_PS", 0);
    env.set("DLWS_ROLE_NAME", "worker");
    env.set("DLWS_ROLE_IDX", launch.world_worker());
    env.set("DLWS_LAUNCH_CMD", &launch.command);
    env.set("POD_NAME", format_args!("{}-worker{}", launch.worker.job, launch.world_worker()));
    env.set("aiframework", framework);
    env.set("VISIBLE_IDS", ids.join(","));
    env.set("NPU_IPS", addresses.join(","));
}

/// What holds for the whole job; which task one is, the programs in [`STEPS_FOLDER`] say.
fn slurm(env: &mut Variables, launch: &LaunchFile, rendezvous: &Rendezvous) {
    let hosts = host_names(launch, rendezvous);
    let of_worker =
        |worker: &Present| worker.node.as_ref().map_or(worker.address.clone(), ToString::to_string);
    let mut node_names: Vec<String> = rendezvous.workers.iter().map(of_worker).collect();
    if node_names.is_empty() {
        node_names.push(launch.node.to_string());
    }
    let (nodes, each) = (launch.world_workers(), launch.ranks.len());
    let cpus = (launch.limits.cpus.milli / 1000).max(1);
    let devices: Vec<String> = launch.devices.iter().map(|device| device.index.to_string()).collect();
    let on_all = |each: String| if nodes > 1 { format!("{each}(x{nodes})") } else { each };
    for (name, value) in [
        ("SLURM_JOB_ID", launch.worker.job.to_string()),
        ("SLURM_JOBID", launch.worker.job.to_string()),
        ("SLURM_JOB_NAME", launch.job_name.clone()),
        ("SLURM_JOB_USER", launch.owner.clone()),
        ("SLURM_JOB_NODELIST", hosts.join(",")),
        ("SLURM_NODELIST", hosts.join(",")),
        ("SLURM_JOB_NUM_NODES", nodes.to_string()),
        ("SLURM_NNODES", nodes.to_string()),
        ("SLURM_NTASKS", launch.world_size.to_string()),
        ("SLURM_NPROCS", launch.world_size.to_string()),
        ("SLURM_NTASKS_PER_NODE", each.to_string()),
        ("SLURM_TASKS_PER_NODE", on_all(each.to_string())),
        ("SLURM_CPUS_PER_TASK", (cpus / each.max(1) as u64).max(1).to_string()),
        ("SLURM_CPUS_ON_NODE", cpus.to_string()),
        ("SLURM_JOB_CPUS_PER_NODE", on_all(cpus.to_string())),
        ("SLURMD_NODENAME", launch.node.to_string()),
        ("SLURM_TMPDIR", launch.folders.run.join("tmp").display().to_string()),
        ("SLURM_RESTART_COUNT", launch.worker.attempt.0.saturating_sub(1).to_string()),
        ("SLURM_SUBMIT_DIR", submitted_from(launch)),
        // By which `srun -w` knows them, too.
        ("DANLU_NODE_NAMES", node_names.join(",")),
    ] {
        env.set(name, value);
    }
    // The first of an array; the others know its number.
    if launch.env.contains_key("SLURM_ARRAY_TASK_ID") && !launch.env.contains_key("SLURM_ARRAY_JOB_ID") {
        env.set("SLURM_ARRAY_JOB_ID", launch.worker.job);
    }
    if !devices.is_empty() {
        env.set("SLURM_GPUS_ON_NODE", devices.len());
        env.set("SLURM_JOB_GPUS", devices.join(","));
    }
    // Ranks of one worker meet in its own folder, those of several where all of them see it.
    let own = launch.folders.run.join(STEPS_FOLDER).join("steps");
    let shared = || launch.folders.output.join(format!(".steps-{}", launch.worker.attempt));
    env.set("DANLU_STEPS_DIR", if nodes > 1 { shared() } else { own }.display());
}

/// The name of each worker's node, for `SLURM_JOB_NODELIST`. Addresses, not names: only those are sure to be found from the
/// other nodes. Each worker counts as a node, so that a second one at the same address has a name of its own; that one means
/// something to `srun -w` only.
fn host_names(launch: &LaunchFile, rendezvous: &Rendezvous) -> Vec<String> {
    if rendezvous.workers.is_empty() {
        return vec![launch.address.clone()];
    }
    let mut seen = BTreeSet::new();
    let mut names = Vec::with_capacity(rendezvous.workers.len());
    for (index, Present { address, .. }) in rendezvous.workers.iter().enumerate() {
        let is_first = seen.insert(address);
        names.push(if is_first { address.clone() } else { format!("{address}-w{index}") });
    }
    names
}

fn submitted_from(launch: &LaunchFile) -> String {
    let own = || launch.folders.run.join("work");
    let folder = launch.working_directory.clone().filter(|_| launch.folders.code.is_none());
    folder.unwrap_or_else(own).display().to_string()
}

/// Apulis' `/pod.env`: what a shell reads to have a worker's variables. Those of one rank are left out, because all ranks
/// of the worker read it.
pub fn pod_env(env: &BTreeMap<String, String>) -> String {
    let shared = env.iter().filter(|(name, _)| !super::ROLES_OF_A_RANK.contains(&name.as_str()));
    shared.fold(String::new(), |mut text, (name, value)| {
        let _ = writeln!(text, "export {name}='{}'", value.replace('\'', r"'\''"));
        text
    })
}
