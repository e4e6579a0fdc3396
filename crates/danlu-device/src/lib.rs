//! The machine: accelerators, host facts, cgroups and process placement; the only unsafe

pub mod cgroup;
pub mod process;
pub mod spawn;
