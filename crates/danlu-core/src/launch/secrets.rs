//! Secrets on their way to a worker.
//!
//! Their values are not in the launch file but beside it, for as long as it takes the launcher to come up and read them.

use std::fmt;

use danlu_types::SecretForm;
use serde::{Deserialize, Serialize};

/// In the run folder: the values of the launch file's secrets, a list of texts in the same order. The launcher removes
/// it before it starts anything.
pub const SECRETS_FILE: &str = "secrets.json";
/// In the run folder: secrets that programs want as files.
pub const SECRETS_FOLDER: &str = "secrets";

/// A secret for the programs of a worker.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GivenSecret {
    pub variable: String,
    pub form: SecretForm,
    #[serde(skip)]
    pub value: String,
}

impl fmt::Debug for GivenSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GivenSecret").field("variable", &self.variable).finish_non_exhaustive()
    }
}
