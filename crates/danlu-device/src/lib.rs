//! The machine: accelerators, host facts, cgroups and process placement; the only unsafe

pub mod cgroup;
pub mod inventory;
pub mod npu_smi;
pub mod process;
pub mod simulate;
pub mod spawn;
