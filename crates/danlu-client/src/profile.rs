//! Where somebody signed in, and the secret of their session: a file for each profile, that only they can read.

use std::env;
use std::fmt;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use danlu_types::fingerprint::Fingerprint;
use serde::{Deserialize, Serialize};

use crate::discover::variable;
use crate::{Client, ClientError, ServerFile};

const LONGEST_NAME: usize = 63;

/// What a profile is called; also the name of its file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct ProfileName(String);

impl Default for ProfileName {
    fn default() -> Self {
        ProfileName("default".to_owned())
    }
}

impl fmt::Display for ProfileName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for ProfileName {
    type Err = ClientError;

    fn from_str(text: &str) -> Result<Self, ClientError> {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        if !text.is_empty() && text.len() <= LONGEST_NAME && text.bytes().all(allowed) {
            Ok(ProfileName(text.to_owned()))
        } else {
            Err(ClientError::BadProfileName(text.chars().take(100).collect()))
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Profile {
    pub address: String,
    pub account: String,
    pub token: String,
    /// Of the server's certificate, where nobody else vouches for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<Fingerprint>,
    /// The data folder by which the server was found, where it was found so: the server is then looked for there again,
    /// and `$DANLU_DATA` that names the same folder means the same server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<PathBuf>,
}

impl Profile {
    /// `$XDG_CONFIG_HOME/danlu/profiles` or `~/.config/danlu/profiles`.
    fn folder() -> PathBuf {
        let xdg = env::var_os("XDG_CONFIG_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
        let base = xdg.or_else(|| env::home_dir().map(|home| home.join(".config")));
        base.unwrap_or_else(|| PathBuf::from("/etc")).join("danlu/profiles")
    }

    pub fn path(name: &ProfileName) -> PathBuf {
        Self::folder().join(format!("{name}.json"))
    }

    pub fn read(name: &ProfileName) -> Result<Option<Self>, ClientError> {
        let path = Self::path(name);
        match fs::read(&path) {
            Ok(text) => serde_json::from_slice(&text)
                .map(Some)
                .map_err(|source| ClientError::BadServerFile { path, source }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(ClientError::Unreadable { path, source }),
        }
    }

    /// All there are, by name.
    pub fn list() -> Result<Vec<(ProfileName, Self)>, ClientError> {
        let folder = Self::folder();
        let unreadable = |source| ClientError::Unreadable { path: folder.clone(), source };
        let entries = match fs::read_dir(&folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(unreadable)?,
        };
        let mut profiles = Vec::new();
        for entry in entries {
            let name = entry.map_err(unreadable)?.file_name();
            let name = name.to_str().and_then(|name| name.strip_suffix(".json")).map(str::parse);
            if let Some(Ok(name)) = name
                && let Some(profile) = Self::read(&name)?
            {
                profiles.push((name, profile));
            }
        }
        profiles.sort_by(|(one, _), (other, _)| one.cmp(other));
        Ok(profiles)
    }

    pub fn write(&self, name: &ProfileName) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(Self::folder())?;
        let path = Self::path(name);
        let mut file = OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(path)?;
        file.write_all(&serde_json::to_vec_pretty(self)?)
    }

    pub fn forget(name: &ProfileName) -> io::Result<()> {
        match fs::remove_file(Self::path(name)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            done => done,
        }
    }

    pub(crate) fn client(&self) -> Client {
        let token = variable("DANLU_TOKEN").unwrap_or_else(|| self.token.clone());
        match self.data.as_deref().map(|data| (data, ServerFile::read(data))) {
            // It may have been started again, on another port.
            Some((data, Ok(file))) => {
                Client::trusting(&file.address, token.trim(), file.fingerprint.or(self.fingerprint))
                    .found_in(data.to_owned())
            }
            _ => Client::trusting(&self.address, token.trim(), self.fingerprint),
        }
    }

    /// Whether somebody signed in at the server of this data folder.
    pub(crate) fn is_of(&self, data: &Path) -> bool {
        let same_folder = self.data.as_ref().is_some_and(|own| real(own) == real(data));
        same_folder || ServerFile::read(data).is_ok_and(|file| file.address == self.address)
    }
}

fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

impl Client {
    /// A client of the server where somebody signed in under this name.
    pub fn of_profile(name: &ProfileName) -> Result<Client, ClientError> {
        let profile = Profile::read(name)?;
        profile.map(|profile| profile.client()).ok_or_else(|| ClientError::NoProfile(name.clone()))
    }
}
