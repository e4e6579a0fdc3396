//! The worker's secrets: taken over from the engine, given to the ranks, kept out of the logs, gone at the end.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;

use danlu_core::launch::{LaunchFile, SECRETS_FILE, SECRETS_FOLDER};
use danlu_types::SecretForm;
use memchr::memmem;

use crate::user::WorkerUser;

/// Shorter ones would blot out half the log.
const SHORTEST_MASKED: usize = 6;
const MASKED: &[u8] = b"***";

/// Takes the values over: from here on they are in this process only. The current folder is the run folder.
pub(crate) fn take(launch: &LaunchFile, user: &WorkerUser) -> io::Result<Secrets> {
    if launch.secrets.is_empty() {
        return Ok(Secrets::default());
    }
    let text = fs::read(SECRETS_FILE)?;
    fs::remove_file(SECRETS_FILE)?;
    let values: Vec<String> = serde_json::from_slice(&text)?;
    if values.len() != launch.secrets.len() {
        return Err(io::Error::new(ErrorKind::InvalidData, "there are not as many values as secrets"));
    }
    let mut secrets = Secrets { variables: BTreeMap::new(), mask: Mask::of(&values) };
    let folder = launch.folders.run.join(SECRETS_FOLDER);
    for (secret, value) in launch.secrets.iter().zip(values) {
        let value = match secret.form {
            SecretForm::Env => value,
            SecretForm::File => {
                user.make_folder(&folder)?;
                let path = folder.join(&secret.variable);
                user.act(|| write_private(&path, value.as_bytes())).flatten()?;
                path.display().to_string()
            }
        };
        secrets.variables.insert(secret.variable.clone(), value);
    }
    Ok(secrets)
}

/// Leaves nothing of them on the disk.
pub(crate) fn remove(launch: &LaunchFile) -> io::Result<()> {
    if launch.secrets.is_empty() {
        return Ok(());
    }
    danlu_walk::remove(Path::new(SECRETS_FILE))?;
    danlu_walk::remove(Path::new(SECRETS_FOLDER))
}

fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?.write_all(bytes)
}

#[derive(Debug, Default)]
pub(crate) struct Secrets {
    /// For the environment of ranks and sessions.
    pub(crate) variables: BTreeMap<String, String>,
    pub(crate) mask: Mask,
}

/// What logs must not hold.
#[derive(Clone, Default)]
pub(crate) struct Mask(Arc<[Vec<u8>]>);

impl std::fmt::Debug for Mask {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Mask of {}", self.0.len())
    }
}

impl Mask {
    /// Logs are lines, so of a value of several lines each is looked for. Longer ones first: one may hold another.
    fn of(values: &[String]) -> Self {
        let lines = values.iter().flat_map(|value| value.lines()).map(str::trim);
        let mut words: Vec<Vec<u8>> =
            lines.filter(|line| line.len() >= SHORTEST_MASKED).map(|line| line.as_bytes().to_vec()).collect();
        words.sort_by_key(|word| std::cmp::Reverse(word.len()));
        words.dedup();
        Mask(words.into())
    }

    pub(crate) fn apply<'a>(&self, line: &'a [u8]) -> Cow<'a, [u8]> {
        let mut line = Cow::Borrowed(line);
        for word in self.0.iter() {
            if memmem::find(&line, word).is_some() {
                line = Cow::Owned(replaced(&line, word));
            }
        }
        line
    }
}

fn replaced(line: &[u8], word: &[u8]) -> Vec<u8> {
    let (mut masked, mut from) = (Vec::with_capacity(line.len()), 0);
    for at in memmem::find_iter(line, word) {
        masked.extend_from_slice(&line[from..at]);
        masked.extend_from_slice(MASKED);
        from = at + word.len();
    }
    masked.extend_from_slice(&line[from..]);
    masked
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_blotted_out_wherever_they_stand() {
        let mask =
            Mask::of(&["swordfish".into(), "swordfish-2".into(), "short".into(), "one line\nx\n".into()]);
        let shown = |line: &str| String::from_utf8(mask.apply(line.as_bytes()).into_owned()).unwrap();
        assert_eq!(shown("a swordfish, swordfish-2swordfish"), "a ***, ******");
        assert_eq!(shown("short, and one line of two"), "short, and *** of two");
        assert!(matches!(mask.apply(b"nothing"), Cow::Borrowed(_)));
    }
}
