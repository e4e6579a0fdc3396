//! The machine: accelerators, host facts, cgroups and process placement; the only unsafe

mod ascend;
pub mod cgroup;
pub mod channel;
pub mod device_files;
pub mod inventory;
pub mod landlock;
pub mod limits;
pub mod machine;
pub mod npu_smi;
pub mod nvml;
pub mod process;
pub mod readings;
pub mod seccomp;
pub mod simulate;
pub mod spawn;
pub mod sweep;
mod tool;
pub mod user;
