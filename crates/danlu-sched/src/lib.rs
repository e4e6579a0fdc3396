//! What should happen: the cluster and the queue in, a plan and an explanation out.
//!
//! Everything here is a plain function of values. [`Cluster`] is what there is and who holds it, kept up to date by its
//! owner as jobs start and end; [`plan`] says which queued jobs to start now and where; [`explain`] says why one of them
//! still waits, with the very rules that made it wait.
//!
//! This is the first scheduler: right, and deliberately plain.
//!
//! - **Order**: larger priority first, then earlier submission ([`danlu_core::Job::place`]). Callers pass the queue in that order.
//! - **Fit**: a gang starts whole or not at all, and on one kind and model of device. Workers of a gang may share a node.
//!   A worker's devices come from one island where one can hold them; then from the node that is left with the fewest
//!   free devices, so that whole nodes and whole islands stay free for those who need them.
//! - **Head of line**: strict within a *pool* (each kind of device is one, jobs without devices are another). A job that
//!   does not fit closes its pool for this pass, so nothing later in the queue can take what it waits for and a large
//!   gang is never starved by small jobs. Jobs without devices pass a head that waits for devices, but not one that has
//!   its devices free and waits for CPUs or memory: these they would take from it. They may well occupy CPUs that a
//!   head will lack once devices do become free; then it closes their pool too, and gets its turn when they end.
//! - **Back-off**: a job that waits for its next attempt is passed over and closes nothing.
//! - A job that not even the empty cluster could hold (nodes went away after it was accepted) closes nothing either.

mod cluster;
mod explain;
mod fit;
mod fleet;
mod layout;
mod plan;
mod possible;
mod reason;
mod shape;

pub use cluster::{Cluster, Overbooked, Usage};
pub use explain::explain;
pub use fleet::{Board, Fleet, KindSet, Mark, Need, NodeId, Part, Placement, ShapeId, Totals, Wish};
pub use plan::{MOST_REASONS, Plan, Start, Waiting, next_wake, plan};
pub use possible::{Impossible, can_ever_run};
pub use reason::{ReasonCode, WaitReason};
pub use shape::{DeviceAsk, Shape};
