//! Who a worker's programs are: to the machine, and to the server.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Where the server is, and what opens it to the programs of one worker: `$DANLU_SERVER` and `$DANLU_TOKEN`.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Access {
    pub server: String,
    pub token: String,
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Access").field("server", &self.server).finish_non_exhaustive()
    }
}

/// A user of the machine. It need not have an entry in `/etc/passwd`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnixUser {
    pub name: String,
    pub uid: u32,
    pub gid: u32,
    /// Besides `gid`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<u32>,
    pub home: PathBuf,
}
