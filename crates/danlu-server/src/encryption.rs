//! Secrets at rest: what the server must be able to read again (keys of jobs, S3 keys) is kept sealed in the database.
//!
//! The key is a file of the data folder, so a copy of the database alone opens nothing. Each seal is bound to a context,
//! such as whose secret it is: moved to another row, it does not open. What is only ever compared (tokens, passwords) is
//! hashed instead and does not come here.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use data_encoding::BASE64URL_NOPAD;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hmac;
use ring::rand::{SecureRandom as _, SystemRandom};
use thiserror::Error;

pub const KEY_FILE: &str = "secret.key";
const KEY_BYTES: usize = 32;
const AUDIT: &[u8] = b"danlu audit 1";
/// So that another way of sealing can be told from this one.
const VERSION: &str = "v1.";

#[derive(Debug, Error)]
pub enum EncryptionError {
    #[error("could not read the key `{}`", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("could not make the key `{}`", path.display())]
    NotMade { path: PathBuf, source: io::Error },
    /// Never written over: everything that was sealed with the right one would be lost.
    #[error("`{}` is not a key: it has {bytes} bytes instead of {KEY_BYTES}; put back the one from the back-up", path.display())]
    NotAKey { path: PathBuf, bytes: usize },
    #[error("the secret of {context} was not sealed with this server's key")]
    NotOurs { context: String },
}

/// Seals and opens with the data folder's key.
pub struct Encryptor {
    key: LessSafeKey,
    audit: hmac::Key,
    random: SystemRandom,
}

impl fmt::Debug for Encryptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Encryptor")
    }
}

impl Encryptor {
    /// With the key of this folder, made on first use.
    pub fn open(folder: &Path) -> Result<Self, EncryptionError> {
        let path = folder.join(KEY_FILE);
        let random = SystemRandom::new();
        let bytes = match read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let mut bytes = vec![0; KEY_BYTES];
                random.fill(&mut bytes).expect("the system has randomness");
                write_new(&path, &bytes)
                    .map_err(|source| EncryptionError::NotMade { path: path.clone(), source })?;
                bytes
            }
            Err(source) => return Err(EncryptionError::Unreadable { path, source }),
        };
        let key = UnboundKey::new(&CHACHA20_POLY1305, &bytes)
            .map_err(|_| EncryptionError::NotAKey { path, bytes: bytes.len() })?;
        // Another key for another purpose: what one is used for says nothing about the other.
        let audit = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &bytes), AUDIT);
        let audit = hmac::Key::new(hmac::HMAC_SHA256, audit.as_ref());
        Ok(Encryptor { key: LessSafeKey::new(key), audit, random })
    }

    /// What vouches for the audit and for what it is about.
    pub(crate) fn audit_key(&self) -> hmac::Key {
        self.audit.clone()
    }

    /// The sealed form of `plain`, as text; it opens in the same context only.
    pub fn encrypt(&self, context: &str, plain: &[u8]) -> String {
        // Random nonces: at 2^32 secrets under one key a repetition is still one in 2^32, and nobody has so many.
        let mut nonce = [0; NONCE_LEN];
        self.random.fill(&mut nonce).expect("the system has randomness");
        let mut sealed = plain.to_vec();
        self.key
            .seal_in_place_append_tag(
                Nonce::assume_unique_for_key(nonce),
                Aad::from(context.as_bytes()),
                &mut sealed,
            )
            .expect("a secret is far shorter than what one nonce can seal");
        let sealed = [&nonce[..], &sealed].concat();
        format!("{VERSION}{}", BASE64URL_NOPAD.encode(&sealed))
    }

    pub fn decrypt(&self, context: &str, text: &str) -> Result<Vec<u8>, EncryptionError> {
        self.try_unseal(context, text).ok_or_else(|| EncryptionError::NotOurs { context: context.to_owned() })
    }

    fn try_unseal(&self, context: &str, text: &str) -> Option<Vec<u8>> {
        let sealed = BASE64URL_NOPAD.decode(text.strip_prefix(VERSION)?.as_bytes()).ok()?;
        let (nonce, sealed) = sealed.split_first_chunk::<NONCE_LEN>()?;
        let mut sealed = sealed.to_vec();
        let aad = Aad::from(context.as_bytes());
        let plain = self.key.open_in_place(Nonce::assume_unique_for_key(*nonce), aad, &mut sealed).ok()?;
        Some(plain.to_vec())
    }
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // One more than a key has: enough to see that it is none.
    File::open(path)?.take(KEY_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Whole or not at all: a key that was half written would be taken for a wrong one ever after.
fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let temporary = path.with_extension("new");
    let mut file = OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(&temporary)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    std::fs::rename(temporary, path)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_secret_opens_in_its_context_and_with_its_key_only() {
        let folder = tempfile::tempdir().unwrap();
        let encryptor = Encryptor::open(folder.path()).unwrap();
        let sealed = encryptor.encrypt("ada/registry", b"hunter2");
        assert!(!sealed.contains("hunter2"));
        assert_ne!(
            sealed,
            encryptor.encrypt("ada/registry", b"hunter2"),
            "nobody sees that two are the same"
        );
        let again = Encryptor::open(folder.path()).unwrap();
        assert_eq!(again.decrypt("ada/registry", &sealed).unwrap(), b"hunter2");
        assert!(again.decrypt("eve/registry", &sealed).is_err());

        let elsewhere = tempfile::tempdir().unwrap();
        let other = Encryptor::open(elsewhere.path()).unwrap();
        insta::assert_snapshot!(other.decrypt("ada/registry", &sealed).unwrap_err(), @"the secret of ada/registry was not sealed with this server's key");
        for broken in ["", "v1.", "v1.AAAA", "v2.AAAA", &sealed[..sealed.len() - 2], "v1.=ä"] {
            assert!(encryptor.decrypt("ada/registry", broken).is_err(), "{broken}");
        }
    }

    #[test]
    fn the_key_is_its_owners_and_never_written_over() {
        let folder = tempfile::tempdir().unwrap();
        Encryptor::open(folder.path()).unwrap();
        let path = folder.path().join(KEY_FILE);
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        std::fs::write(&path, b"short").unwrap();
        let error = Encryptor::open(folder.path()).unwrap_err();
        assert!(matches!(error, EncryptionError::NotAKey { bytes: 5, .. }), "{error}");
        assert_eq!(std::fs::read(&path).unwrap(), b"short");
    }
}
