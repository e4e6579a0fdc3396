//! Where the server is, and the token for it.
//!
//! The server writes both into its data folder; the environment may say otherwise, value by value.

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use danlu_types::fingerprint::Fingerprint;
use serde::{Deserialize, Serialize};

use crate::{Client, ClientError, Profile, ProfileName};

/// What a running server writes as `server.json` into its data folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerFile {
    /// Such as `http://127.0.0.1:8765`.
    pub address: String,
    pub pid: u32,
    /// Of its certificate, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<Fingerprint>,
}

impl ServerFile {
    pub const NAME: &str = "server.json";

    pub fn read(data: &Path) -> Result<Self, ClientError> {
        let path = data.join(Self::NAME);
        let text = fs::read(&path).map_err(|source| match source.kind() {
            io::ErrorKind::NotFound => ClientError::NoServer(data.to_owned()),
            _ => ClientError::Unreadable { path: path.clone(), source },
        })?;
        serde_json::from_slice(&text).map_err(|source| ClientError::BadServerFile { path, source })
    }
}

/// The data folder when nothing else is said: the same for everyone, `$XDG_DATA_HOME/danlu` or
/// `~/.local/share/danlu`.
pub fn default_data_folder() -> PathBuf {
    let xdg = env::var_os("XDG_DATA_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let base = xdg.or_else(|| env::home_dir().map(|home| home.join(".local/share")));
    base.unwrap_or_else(|| PathBuf::from("/var/lib")).join("danlu")
}

/// The data folder: as given, else `$DANLU_DATA`, else the default.
pub fn data_folder(given: Option<&Path>) -> PathBuf {
    given
        .map(Path::to_owned)
        .or_else(|| variable("DANLU_DATA").map(PathBuf::from))
        .unwrap_or_else(default_data_folder)
}

impl Client {
    /// A client of the server whose data folder was given, that `$DANLU_SERVER` and `$DANLU_TOKEN` name, where this person
    /// signed in as `$DANLU_PROFILE`, that `$DANLU_DATA` is of, where this person signed in otherwise, or that runs with the
    /// usual data folder: the first of these that there is. Who has signed in at the server of `$DANLU_DATA` is who signed
    /// in, and not whoever owns the folder.
    pub fn discover(data: Option<&Path>) -> Result<Client, ClientError> {
        if data.is_none() && variable("DANLU_SERVER").is_none() {
            if let Some(name) = variable("DANLU_PROFILE") {
                return Self::of_profile(&name.parse()?);
            }
            let folder = variable("DANLU_DATA").map(PathBuf::from);
            if let Some(profile) = Profile::read(&ProfileName::default())?
                && folder.is_none_or(|folder| profile.is_of(&folder))
            {
                return Ok(profile.client());
            }
        }
        let data = data_folder(data);
        let named = variable("DANLU_SERVER");
        let (address, fingerprint) = if let Some(address) = &named {
            let fingerprint = variable("DANLU_FINGERPRINT").map(|text| text.parse()).transpose();
            (address.clone(), fingerprint.map_err(ClientError::BadFingerprint)?)
        } else {
            let file = ServerFile::read(&data)?;
            (file.address, file.fingerprint)
        };
        let token = match variable("DANLU_TOKEN") {
            Some(token) => token,
            None => read_token(&data)?,
        };
        let client = Client::trusting(&address, token.trim(), fingerprint);
        Ok(if named.is_none() { client.found_in(data) } else { client })
    }
}

pub(crate) fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

fn read_token(data: &Path) -> Result<String, ClientError> {
    let path = data.join("token");
    fs::read_to_string(&path).map_err(|source| ClientError::Unreadable { path, source })
}
