//! The environment of a rank: Danlu's own names, and those that frameworks look for.

use std::collections::BTreeMap;

use danlu_types::{DeviceKind, Framework};

use super::{LaunchFile, RUN_FOLDER_VARIABLE, RankPlan};

/// Where the ranks of an attempt meet; decided by the launchers when they have found each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rendezvous {
    pub address: String,
    pub port: u16,
    /// A checkpoint of an earlier attempt is there.
    pub resume: bool,
}

/// Everything Danlu sets for one rank. The user's own `env` wins over all but the `DANLU_` names.
pub fn rank_environment(
    launch: &LaunchFile,
    rendezvous: &Rendezvous,
    rank: &RankPlan,
) -> BTreeMap<String, String> {
    let mut env = BTreeMap::new();
    let mut set = |name: &str, value: String| {
        env.insert(name.to_owned(), value);
    };
    let local_size = launch.ranks.len();

    set("MASTER_ADDR", rendezvous.address.clone());
    set("MASTER_PORT", rendezvous.port.to_string());
    // Counted in processes, as torchrun does; not in nodes, as some platforms do.
    set("WORLD_SIZE", launch.world_size.to_string());
    set("RANK", rank.rank.to_string());
    set("LOCAL_RANK", rank.local_rank.to_string());
    set("LOCAL_WORLD_SIZE", local_size.to_string());
    set("GROUP_RANK", launch.worker.worker.to_string());
    set("TMPDIR", launch.folders.run.join("tmp").display().to_string());
    set("PYTHONUNBUFFERED", "1".to_owned());

    let threads = (launch.limits.cpus.milli / 1000 / local_size.max(1) as u64).max(1);
    set("OMP_NUM_THREADS", threads.to_string());

    for kind in DeviceKind::ALL {
        // A worker sees its own devices and no others: without any, the list is empty, which hides them all.
        let own: Vec<String> = launch
            .devices
            .iter()
            .filter(|device| device.kind == kind)
            .map(|device| device.index.to_string())
            .collect();
        let name = match kind {
            DeviceKind::Nvidia => "CUDA_VISIBLE_DEVICES",
            DeviceKind::Ascend => "ASCEND_RT_VISIBLE_DEVICES",
        };
        set(name, own.join(","));
    }
    if launch.devices.iter().any(|device| device.kind == DeviceKind::Ascend) {
        set("RANK_ID", rank.rank.to_string());
        set("RANK_SIZE", launch.world_size.to_string());
        set("ASCEND_DEVICE_ID", rank.local_rank.to_string());
        if let Some(device) = launch.devices.get(rank.local_rank as usize) {
            set("DEVICE_ID", device.index.to_string());
        }
    }
    if launch.framework == Framework::Mindspore {
        set("MS_WORKER_NUM", launch.world_size.to_string());
        set("MS_SCHED_HOST", rendezvous.address.clone());
        set("MS_SCHED_PORT", rendezvous.port.to_string());
        set("MS_NODE_ID", rank.rank.to_string());
    }

    for (name, value) in &launch.env {
        set(name, value.clone());
    }

    set("DANLU_JOB_ID", launch.worker.job.to_string());
    set("DANLU_JOB_NAME", launch.job_name.clone());
    set("DANLU_ATTEMPT", launch.worker.attempt.to_string());
    set("DANLU_WORKER", launch.worker.worker.to_string());
    set("DANLU_WORKERS", launch.gang.workers.to_string());
    set("DANLU_RANK", rank.rank.to_string());
    set("DANLU_LOCAL_RANK", rank.local_rank.to_string());
    set("DANLU_WORLD_SIZE", launch.world_size.to_string());
    set("DANLU_NODE", launch.node.to_string());
    set(RUN_FOLDER_VARIABLE, launch.folders.run.display().to_string());
    set("DANLU_OUTPUT_DIR", launch.folders.output.display().to_string());
    if launch.checkpoint.is_some() {
        set("DANLU_CHECKPOINT_DIR", launch.folders.checkpoint.display().to_string());
    }
    if rendezvous.resume {
        set("DANLU_RESUME_DIR", launch.folders.checkpoint.display().to_string());
    }
    env
}
