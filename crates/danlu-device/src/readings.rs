//! How this machine's devices are doing now, and who holds them: asked again and again, so what does not change is asked once.

use std::collections::BTreeMap;

use danlu_types::Reading;

use crate::ascend::{self, DeviceNumbers};
use crate::machine::Machine;
use crate::nvml;

/// Opened by [`crate::inventory::look`].
#[derive(Debug)]
pub struct Reader {
    pub(crate) machine: Machine,
    pub(crate) nvidia: Option<nvml::Library>,
    pub(crate) ascend: DeviceNumbers,
}

impl Reader {
    /// By device number. A device that is missing did not answer; all of a vendor's are an error, in words for people. Blocks as
    /// long as the vendor's tools do, which is up to a second on a good day and [`Machine::tool_limit`] on a bad one.
    pub fn read(&self) -> Result<BTreeMap<u32, Reading>, String> {
        if let Some(library) = &self.nvidia {
            let (gpus, remarks) = library.gpus();
            return match remarks.into_iter().next() {
                Some(remark) if gpus.is_empty() => Err(remark),
                _ => Ok((0..).zip(gpus).map(|(index, gpu)| (index, gpu.reading)).collect()),
            };
        }
        if self.ascend.is_empty() {
            return Ok(BTreeMap::new());
        }
        ascend::readings(&self.machine, &self.ascend)
    }
}
