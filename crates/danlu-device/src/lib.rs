//! The machine: accelerators, host facts, cgroups and process placement; the only unsafe

pub mod inventory;
pub mod simulate;
