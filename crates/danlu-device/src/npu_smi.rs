//! What Ascend's own tools print, as values: `npu-smi`, `hccn_tool` and the file they share.
//!
//! Plain functions of texts. The tools' output differs between drivers, boards and translations of the same table, so
//! nothing here counts columns of characters: rows are split where the tool draws a bar, and what a cell means follows from
//! the header above it. Never panics, whatever the text; what is not understood is left out.

mod fields;
mod hccn;
mod mapping;
mod report;
mod topology;

pub use fields::{SuperPodPlace, fields, super_pod_place};
pub use hccn::{configured_addresses, tool_address};
pub use mapping::{MappedChip, mapping};
pub use report::{Chip, NpuProcess, NpuSmiError, NpuSmiReport, NpuUsage, report};
pub use topology::{Matrix, NpuLink, matrix};
