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
    /// Code for both kinds of devices instead of code for NPUs.
    pub portable: Option<Portable>,
}

/// How a file of a portable copy gets to know which device there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Portable {
    /// It finds out by itself.
    Inline,
    /// It imports a module that is added to the project.
    Shim,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Distributed {
    /// Relative to the project.
    pub main: String,
    /// The variable that holds the model: `model`, `self.net`.
    pub model: String,
}

impl Distributed {
    /// Nothing if `model` is not the name of a variable or an attribute.
    pub fn new(main: impl Into<String>, model: &str) -> Option<Self> {
        let is_name = |part: &str| {
            part.chars().all(|c| c.is_alphanumeric() || c == '_')
                && part.starts_with(|c: char| !c.is_numeric())
        };
        let model = model.split('.').all(is_name).then(|| model.to_owned())?;
        Some(Distributed { main: main.into(), model })
    }
}

impl Default for Options {
    fn default() -> Self {
        Options {
            torch: TorchVersion::newest(),
            distributed: None,
            similar: false,
            specify_device: false,
            modelarts: false,
            portable: None,
        }
    }
}
