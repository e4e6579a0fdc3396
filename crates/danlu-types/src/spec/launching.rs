//! How the processes of a job are started and watched, beyond how many there are.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A platform whose variables and folders a program expects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Compat {
    /// `MA_*` and `VC_*`, `$MA_MOUNT_PATH`, a rank table.
    Modelarts,
    /// `WORLD_SIZE` and `RANK` count workers, and the command runs once in each.
    Dlc,
    /// `DLWS_*`, `pod.env`, `~/.npu/<job>/`.
    Apulis,
    /// The command is a batch script: it runs once, in the first rank, with `SLURM_*`, and `srun` in it runs on all.
    Slurm,
}

/// Whether the ranks of an Ascend job are given a rank table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum RankTableUse {
    /// Written where the machines say enough, and used where the framework wants one.
    #[default]
    Auto,
    /// Used whatever the framework; a device whose address is missing fails the start.
    Always,
}

/// What to do about a job that prints nothing and whose devices do nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnHang {
    /// Say so in the job's log.
    #[default]
    Notify,
    /// End the attempt, so that another can be made.
    Restart,
}
