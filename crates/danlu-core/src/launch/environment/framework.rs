//! What each framework reads.
//!
//! On Ascend there are two ways for ranks to find each other: a rank table, or by asking rank 0. PyTorch and MindSpore ask,
//! unless the job wants the table; TensorFlow takes the table where there is one, because its way of asking is not there
//! for all hardware.

use std::collections::BTreeMap;
use std::fmt::Write;

use danlu_types::{DeviceKind, Framework};

use super::{Rendezvous, Variables, rank_environment};
use crate::launch::{LaunchFile, RankPlan};

pub(super) fn names(env: &mut Variables, launch: &LaunchFile, rendezvous: &Rendezvous, rank: &RankPlan) {
    if launch.devices.iter().any(|device| device.kind == DeviceKind::Ascend) && launch.is_rank_per_device() {
        own_device(env, launch, rendezvous, rank);
    }
    match launch.framework {
        Framework::Pytorch => torchrun(env, launch, rendezvous),
        Framework::Tensorflow => tensorflow(env, launch, rendezvous, rank),
        Framework::Mindspore => mindspore(env, launch, rendezvous, rank),
        Framework::Mpi => mpi(env, launch, rank),
        Framework::None => {}
    }
}

/// `DEVICE_ID` is documented as the number of the card on the machine, and so it is where nothing is hidden. But the
/// programs that read it hand it to the runtime, and the runtime counts what `ASCEND_RT_VISIBLE_DEVICES` leaves: with
/// cards 8 to 15, number 11 would be refused. So it is the place in that list, like `ASCEND_DEVICE_ID`; the machine's
/// numbers stand in the rank table, where HCCL looks for them.
fn own_device(env: &mut Variables, launch: &LaunchFile, rendezvous: &Rendezvous, rank: &RankPlan) {
    env.set("ASCEND_DEVICE_ID", rank.local_rank);
    env.set("DEVICE_ID", rank.local_rank);
    // Beside `CM_*`, TensorFlow refuses them.
    if !asks_the_chief(launch, rendezvous) {
        env.set("RANK_ID", launch.world_rank(rank));
        env.set("RANK_SIZE", launch.world_size);
    }
    if let Some(table) = rendezvous.rank_table.as_ref().filter(|_| uses_table(launch)) {
        env.set("RANK_TABLE_FILE", table.display());
    }
}

/// HCCL refuses a table for one rank.
fn uses_table(launch: &LaunchFile) -> bool {
    let wanted = launch.options.needs_rank_table() || launch.framework == Framework::Tensorflow;
    wanted && launch.world_size > 1 && launch.is_rank_per_device()
}

fn asks_the_chief(launch: &LaunchFile, rendezvous: &Rendezvous) -> bool {
    launch.framework == Framework::Tensorflow
        && launch.world_size > 1
        && !(uses_table(launch) && rendezvous.rank_table.is_some())
}

/// Where one process per worker is to start the others, a plain `torchrun train.py` finds its arguments here.
fn torchrun(env: &mut Variables, launch: &LaunchFile, rendezvous: &Rendezvous) {
    if launch.ranks.len() != 1 || launch.devices.len() <= 1 {
        return;
    }
    env.set("PET_NNODES", launch.world_workers());
    env.set("PET_NODE_RANK", launch.world_worker());
    env.set("PET_NPROC_PER_NODE", launch.devices.len());
    env.set("PET_MASTER_ADDR", &rendezvous.address);
    env.set("PET_MASTER_PORT", rendezvous.port);
}

fn tensorflow(env: &mut Variables, launch: &LaunchFile, rendezvous: &Rendezvous, rank: &RankPlan) {
    if !launch.devices.iter().any(|device| device.kind == DeviceKind::Ascend) {
        return;
    }
    if asks_the_chief(launch, rendezvous) {
        env.set("CM_CHIEF_IP", &rendezvous.address);
        env.set("CM_CHIEF_PORT", rendezvous.port);
        env.set("CM_CHIEF_DEVICE", 0);
        env.set("CM_WORKER_IP", &launch.address);
        env.set("CM_WORKER_SIZE", launch.world_size);
        return;
    }
    // Never digits alone: some releases refuse those that begin with a zero.
    env.set("JOB_ID", format_args!("danlu-{}", launch.worker.job));
    if launch.is_rank_per_device() {
        env.set("DEVICE_INDEX", rank.local_rank);
    }
}

fn mindspore(env: &mut Variables, launch: &LaunchFile, rendezvous: &Rendezvous, rank: &RankPlan) {
    let by_table = uses_table(launch) && rendezvous.rank_table.is_some();
    let starts_others = launch.ranks.len() == 1 && launch.devices.len() > 1;
    if by_table || (launch.world_size <= 1 && !starts_others) {
        return;
    }
    env.set("MS_SCHED_HOST", &rendezvous.address);
    env.set("MS_SCHED_PORT", rendezvous.port);
    env.set("MS_WORKER_IP", &launch.address);
    if starts_others {
        // For msrun, which makes the roles itself and counts devices.
        let total = launch.devices.len() * launch.world_workers() as usize;
        env.set("MS_WORKER_NUM", total);
        env.set("MS_LOCAL_WORKER", launch.devices.len());
        env.set("MS_NODE_RANK", launch.world_worker());
        return;
    }
    env.set("MS_ROLE", "MS_WORKER");
    env.set("MS_WORKER_NUM", launch.world_size);
    env.set("MS_NODE_ID", launch.world_rank(rank));
}

/// MindSpore's dynamic cluster has one process more than ranks: the scheduler, which is the same program in another role
/// and computes nothing. The launcher of the first worker runs it; `None` for all others, and where no cluster is made.
pub fn scheduler_environment(
    launch: &LaunchFile,
    rendezvous: &Rendezvous,
) -> Option<BTreeMap<String, String>> {
    let first = launch.ranks.first()?;
    if launch.framework != Framework::Mindspore || launch.world_worker() != 0 {
        return None;
    }
    // Whoever plays the roles themselves is left alone.
    let mut env = rank_environment(launch, rendezvous, first);
    if launch.env.contains_key("MS_ROLE") || env.get("MS_ROLE").map(String::as_str) != Some("MS_WORKER") {
        return None;
    }
    let of_a_rank =
        ["MS_NODE_ID", "RANK", "LOCAL_RANK", "RANK_ID", "DEVICE_ID", "ASCEND_DEVICE_ID", "DANLU_RANK"];
    for name in of_a_rank {
        env.remove(name);
    }
    env.insert("MS_ROLE".to_owned(), "MS_SCHED".to_owned());
    Some(env)
}

/// No process manager stands behind these names, so an MPI library takes each rank for a world of its own; they are for the
/// many programs that only read their rank from them. To have a world of MPI's, run `mpirun` in one rank per worker.
fn mpi(env: &mut Variables, launch: &LaunchFile, rank: &RankPlan) {
    env.set("DANLU_HOSTFILE", launch.folders.run.join("hostfile").display());
    if launch.ranks.len() == 1 && launch.devices.len() > 1 {
        return;
    }
    let number = launch.world_rank(rank);
    env.set("OMPI_COMM_WORLD_RANK", number);
    env.set("OMPI_COMM_WORLD_SIZE", launch.world_size);
    env.set("OMPI_COMM_WORLD_LOCAL_RANK", rank.local_rank);
    env.set("OMPI_COMM_WORLD_LOCAL_SIZE", launch.ranks.len());
    env.set("PMI_RANK", number);
    env.set("PMI_SIZE", launch.world_size);
}

/// For `mpirun --hostfile $DANLU_HOSTFILE`: one line for each worker, in their order.
pub fn mpi_hostfile(launch: &LaunchFile, rendezvous: &Rendezvous) -> String {
    let slots = launch.ranks.len().max(launch.devices.len());
    rendezvous.workers.iter().fold(String::new(), |mut text, worker| {
        let _ = writeln!(text, "{} slots={slots}", worker.address);
        text
    })
}
