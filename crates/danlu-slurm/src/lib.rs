//! What Slurm says, read; and what it is to be told, written.
//!
//! Everything here is text in and values out: the engine runs the programs, the launcher stands inside the allocation.
//! What Slurm prints is treated as hostile. A line that cannot be read is passed over, and nothing that is missing from
//! an answer counts as gone (see [`judge`]).

mod fit;
mod foreign;
mod grant;
mod gres;
mod hostlist;
mod judge;
mod names;
mod nodes;
mod order;
mod queue;
mod remote;
mod reservations;
mod settings;

use danlu_types::AttemptNumber;

pub use fit::{check_unshared, fit};
pub use foreign::{HeldPart, HoldingJob, PLACES_FORMAT, keep_listed, lay_over, parse_holders, parse_waiting};
pub use grant::{Granted, TaskLocation, granted};
pub use gres::{Gres, parse_gres};
pub use hostlist::expand;
pub use judge::{
    InferredState, QueueWait, SlurmEvidence, SlurmReply, infer_state, pending_reason, queue_wait,
};
pub use names::{order_comment, order_name, order_of_name};
pub use nodes::{GresSlot, NodeRecord, node, parse_nodes};
pub use order::{AllocationRequest, Delegated, GresNeed, RequestedWorker, batch_script, parts, submission};
pub use queue::{
    ACCOUNT_FORMAT, QUEUE_FORMAT, SlurmJobEnd, SlurmJobState, SqueueJob, WATCH_FORMAT, parse_accounted,
    parse_job, parse_preempted, parse_queue, parse_submitted,
};
pub use remote::{
    CLAIMED_BY_ANOTHER, NodeProgram, SidecarConfig, TOKEN_VARIABLE, parse_allocation_name, remote_script,
    sidecar_folder,
};
pub use reservations::{SlurmReservation, keep_to_reservations, parse_reservations};
pub use settings::{GresRule, InvalidSettings, PlacementMode, SlurmSettings, WorkspaceSettings};

/// In a job's folder, beside the run folders of its workers: what the engine and one allocation share. An attempt has
/// several where its nodes have unequally many workers.
pub fn allocation_folder_name(attempt: AttemptNumber, part: usize) -> String {
    format!("{attempt}.slurm.{part}")
}

/// The engine's, in a run folder: the name of the worker's allocation's folder.
pub const ALLOCATION_FILE: &str = "allocation";
/// The engine's, in the allocation's folder, before anything is submitted: an [`AllocationRequest`].
pub const ORDER_FILE: &str = "order.json";
/// The engine's: the number that Slurm gave the job.
pub const SUBMITTED_FILE: &str = "submitted";
/// The engine's: what `sbatch` is given.
pub const SCRIPT_FILE: &str = "batch.sh";
/// The allocation's: made by the first that comes. Whoever finds it runs nothing.
pub const CLAIM_FILE: &str = "claim";
/// The allocation's: the number of the job that came first.
pub const CLAIMANT_FILE: &str = "claim.job";
/// The allocation's: `scontrol --details show job` as it was when the job began.
pub const GRANTED_FILE: &str = "granted";
/// What the script and `srun` print.
pub const ALLOCATION_LOG: &str = "slurm.log";
