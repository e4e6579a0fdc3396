//! The machine: accelerators, host facts, cgroups and process placement; the only unsafe

pub mod cgroup;
pub mod channel;
pub mod inventory;
pub mod process;
pub mod simulate;
pub mod spawn;
