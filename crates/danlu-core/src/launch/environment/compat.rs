//! The names that programs written for other platforms look for.
//!
//! Only the names and their meaning are taken over. Folders that lie at fixed places of a container there lie in the run
//! folder here, so a program that reads the variables finds them and one with the paths written into it does not.

use std::collections::BTreeMap;
use std::fmt::Write;

use danlu_types::{Compat, DeviceKind, Framework};

use super::{Rendezvous, Variables};
use crate::launch::LaunchFile;

/// In the run folder: `$MA_HOME`.
pub const MODELARTS_FOLDER: &str = "ma-user";

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

/// Apulis' `/pod.env`: what a shell reads to have a worker's variables. Those of one rank are left out, because all ranks
/// of the worker read it.
pub fn pod_env(env: &BTreeMap<String, String>) -> String {
    let shared = env.iter().filter(|(name, _)| !super::ROLES_OF_A_RANK.contains(&name.as_str()));
    shared.fold(String::new(), |mut text, (name, value)| {
        let _ = writeln!(text, "export {name}='{}'", value.replace('\'', r"'\''"));
        text
    })
}
