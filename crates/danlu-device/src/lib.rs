//! The machine: accelerators, host facts, cgroups and process placement; the only unsafe
