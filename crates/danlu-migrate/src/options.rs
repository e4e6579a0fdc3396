//! What is asked of a migration.

use crate::support::TorchVersion;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// The version whose lists of supported calls are asked.
    pub torch: TorchVersion,
    /// The entry script that becomes a program of one process for each device, if any.
    pub distributed: Option<Distributed>,
    /// Names counterparts of `torch_npu` that compute the same.
    pub similar: bool,
    /// Scripts that are started take their device from `DEVICE_ID`.
    pub specify_device: bool,
    /// Adds what ModelArts starts and maps.
    pub modelarts: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Distributed {
    /// Relative to the project.
    pub main: String,
    /// The variable that holds the model: `model`, `self.net`.
    pub model: String,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            torch: TorchVersion::newest(),
            distributed: None,
            similar: false,
            specify_device: false,
            modelarts: false,
        }
    }
}
