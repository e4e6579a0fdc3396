//! Where the server is, and the token for it.
//!
//! The server writes both into its data folder; the environment may say otherwise, value by value.

use std::env;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::{Client, ClientError};

/// What a running server writes as `server.json` into its data folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerFile {
    /// Such as `http://127.0.0.1:8765`.
    pub address: String,
    pub pid: u32,
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

/// Where somebody signed in, and the secret of their session: in a file that only they can read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Profile {
    pub address: String,
    pub token: String,
}

impl Profile {
    /// `$XDG_CONFIG_HOME/danlu/profile.json` or `~/.config/danlu/profile.json`.
    pub fn path() -> PathBuf {
        let xdg = env::var_os("XDG_CONFIG_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
        let base = xdg.or_else(|| env::home_dir().map(|home| home.join(".config")));
        base.unwrap_or_else(|| PathBuf::from("/etc")).join("danlu/profile.json")
    }

    pub fn read() -> Result<Option<Self>, ClientError> {
        let path = Self::path();
        match fs::read(&path) {
            Ok(text) => serde_json::from_slice(&text)
                .map(Some)
                .map_err(|source| ClientError::BadServerFile { path, source }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(ClientError::Unreadable { path, source }),
        }
    }

    pub fn write(&self) -> io::Result<()> {
        let path = Self::path();
        if let Some(folder) = path.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        }
        let mut file = OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(path)?;
        file.write_all(&serde_json::to_vec_pretty(self)?)
    }

    pub fn forget() -> io::Result<()> {
        match fs::remove_file(Self::path()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            done => done,
        }
    }
}

impl Client {
    /// A client of the server that `$DANLU_SERVER` and `$DANLU_TOKEN` name, that the data folder was said to be of, where
    /// this person signed in, or that runs with the usual data folder: the first of these that there is.
    pub fn discover(data: Option<&Path>) -> Result<Client, ClientError> {
        let nothing_said = data.is_none() && ["DANLU_DATA", "DANLU_SERVER"].map(variable) == [None, None];
        if nothing_said && let Some(profile) = Profile::read()? {
            let token = variable("DANLU_TOKEN").unwrap_or(profile.token);
            return Ok(Client::new(&profile.address, token.trim()));
        }
        let data = data_folder(data);
        let named = variable("DANLU_SERVER");
        let address = match &named {
            Some(address) => address.clone(),
            None => ServerFile::read(&data)?.address,
        };
        let token = match variable("DANLU_TOKEN") {
            Some(token) => token,
            None => read_token(&data)?,
        };
        let client = Client::new(&address, token.trim());
        Ok(if named.is_none() { client.found_in(data) } else { client })
    }
}

fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

fn read_token(data: &Path) -> Result<String, ClientError> {
    let path = data.join("token");
    fs::read_to_string(&path).map_err(|source| ClientError::Unreadable { path, source })
}
