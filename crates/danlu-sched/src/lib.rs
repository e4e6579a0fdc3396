//! What should happen: the cluster and the queue in, a plan and an explanation out.
//!
//! [`Scheduler`] is told the state of every job and draws up what to do: which queued jobs start now and where, and who
//! has to make room for them. It also says why a job waits, with the very rules that made it wait, and what would start
//! it. [`Fleet`] below it knows nodes and devices only. [`Cluster`] is the plain ledger of who holds what, against which
//! a plan is verified before it is carried out.
//!
//! - **Order**: workspaces by their share (how much of its guarantee each uses, then how much it borrows), then larger
//!   priority, then earlier submission. A preempted job keeps its place.
//! - **Quota**: guarantees, limits, and limits per person, of devices by kind, CPUs and memory. What is guaranteed and
//!   idle is lent to preemptible jobs, and taken back by preempting them.
//! - **Fit**: a gang starts whole or not at all, on one kind and model of device, by the rules of its boards.
//! - **Head of line**, for each workspace: `backfill` keeps a start time for the first job that cannot start, `strict`
//!   lets nobody pass it, `skip` everybody, `balance` ever more the longer it waits.
//! - **Back-off**: a job that waits for its next attempt is passed over and keeps nobody waiting. Neither does one that
//!   not even the empty cluster could hold (nodes went away after it was accepted).

mod cluster;
mod delegated_placement;
mod fleet;
mod scheduler;
mod shape;
mod words;

pub use cluster::{AllocationConflict, Cluster, NodeUsage};
pub use delegated_placement::{replan_displaced, unsuitable};
pub use fleet::{
    Board, Fleet, KindSet, Mark, Need, NodeId, Placement, PlacementConstraints, ShapeId, Shortage, Totals,
    WorkerPlacement,
};
pub use scheduler::{
    Circumstances, Estimate, JobStart, Plan, Preemption, Reservation, Scheduler, WaitReason, Witness,
};
pub use shape::{DeviceAsk, Shape};
pub use words::paragraph as explanation_text;
