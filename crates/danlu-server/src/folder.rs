//! The data folder: who may use it, and what the CLI finds there.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use danlu_types::fingerprint::Fingerprint;
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use rand::Rng;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::health::ServerHealth;

const TOKEN_FILE: &str = "token";
const ATTEMPT_KEY_FILE: &str = "attempts.key";
const SERVER_FILE: &str = "server.json";
const LOCK_FILE: &str = "server.lock";

/// Below this, the next burst of submissions or logs may well not fit: the time to say so is before.
pub(crate) const LEAST_ROOM_BYTES: u64 = 8 << 20;

/// A killed server's lock lives on in children that it was just starting, until they have become launchers: moments, and
/// more of them on a busy machine.
const LOCK_PATIENCE: Duration = Duration::from_secs(3);
/// Somebody who makes room, or mends a disk, looks whether that has helped.
const ANNOUNCE_AGAIN: Duration = Duration::from_secs(1);
const ASK_FOR_LOCK_EVERY: Duration = Duration::from_millis(20);

/// What is wrong with the room on the data folder's disk, if anything. A store may accept a last small write when there is
/// no room for anything else.
pub(crate) fn lack_of_room(path: &Path) -> Option<String> {
    let disk = nix::sys::statvfs::statvfs(path).ok()?;
    let free = disk.blocks_available() * disk.fragment_size();
    (free < LEAST_ROOM_BYTES)
        .then(|| format!("the disk of the data folder is full: only {free} bytes of space are left"))
}

/// Says so if nothing can be written below the folder. The store may not notice: its files are open, or elsewhere.
pub(crate) fn read_only(path: &Path) -> Option<String> {
    let disk = nix::sys::statvfs::statvfs(path).ok()?;
    let is_read_only = disk.flags().contains(nix::sys::statvfs::FsFlags::ST_RDONLY);
    is_read_only.then(|| format!("the data folder `{}` is on a read-only file system", path.display()))
}

fn restrict(path: &Path, mode: u32) -> anyhow::Result<()> {
    // Where nothing can be written, what is right may stay so.
    if std::fs::metadata(path).is_ok_and(|found| found.permissions().mode() & 0o7777 == mode) {
        return Ok(());
    }
    std::fs::set_permissions(path, Permissions::from_mode(mode))
        .with_context(|| format!("could not restrict access to the data folder `{}`", path.display()))
}

/// Other users cannot reach their folders where one above is closed to them, as root's home is.
fn refuse_closed_way(data: &Path) -> anyhow::Result<()> {
    for folder in data.ancestors().skip(1) {
        let mode = std::fs::metadata(folder)
            .with_context(|| format!("could not look at `{}`", folder.display()))?
            .permissions()
            .mode();
        if mode & 0o001 == 0 {
            bail!(
                "the users that jobs run as cannot pass through `{}` to the data folder `{}`: choose another with `--data`, \
                 such as `/var/lib/danlu`, or open it with `chmod o+x {0}`",
                folder.display(),
                data.display()
            );
        }
    }
    Ok(())
}

/// For reading where nothing can be written: the kernel locks such a file as well.
fn open_lock(path: &Path) -> std::io::Result<File> {
    match OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(path) {
        Err(error) if error.kind() == ErrorKind::ReadOnlyFilesystem => File::open(path).map_err(|_| error),
        opened => opened,
    }
}

/// A data folder in this server's hands. The lock is the kernel's: it is gone with the process, however it ends.
#[derive(Debug)]
pub(crate) struct DataFolder {
    pub(crate) path: PathBuf,
    pub(crate) health: Arc<ServerHealth>,
    _lock: Flock<File>,
}

impl DataFolder {
    /// Creates the folder where needed, and makes sure that no other server uses it. Where jobs run as other users, these
    /// may pass through it to what is theirs.
    pub(crate) fn open(path: &Path, others_pass: bool) -> anyhow::Result<Self> {
        std::fs::create_dir_all(path)
            .with_context(|| format!("could not create the data folder `{}`", path.display()))?;
        let path = path.canonicalize().with_context(|| format!("could not resolve `{}`", path.display()))?;
        // Run folders hold what jobs print and see; only their owner may look.
        restrict(&path, if others_pass { 0o711 } else { 0o700 })?;
        if others_pass {
            for private in ["code", "live", "readings"] {
                let inner = path.join(private);
                std::fs::create_dir_all(&inner)
                    .with_context(|| format!("could not create the folder `{}`", inner.display()))?;
                restrict(&inner, 0o700)?;
            }
            refuse_closed_way(&path)?;
        }
        let lock_path = path.join(LOCK_FILE);
        let mut file = open_lock(&lock_path)
            .with_context(|| format!("could not write to the data folder `{}`", path.display()))?;
        let give_up = Instant::now() + LOCK_PATIENCE;
        loop {
            match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
                Ok(lock) => {
                    let health = Arc::new(ServerHealth::new(&path));
                    return Ok(DataFolder { path, health, _lock: lock });
                }
                Err((unlocked, Errno::EWOULDBLOCK)) if Instant::now() < give_up => file = unlocked,
                Err((_, Errno::EWOULDBLOCK)) => {
                    bail!("another `danlu up` is using the data folder `{}`", path.display())
                }
                Err((_, error)) => {
                    return Err(error).with_context(|| format!("could not lock `{}`", lock_path.display()));
                }
            }
            std::thread::sleep(ASK_FOR_LOCK_EVERY);
        }
    }

    /// The bearer token of this folder.
    pub(crate) fn token(&self) -> anyhow::Result<String> {
        self.secret(TOKEN_FILE)
    }

    /// What seals the tokens of attempts. A new one makes those of running jobs worthless.
    pub(crate) fn attempt_key(&self) -> anyhow::Result<String> {
        self.secret(ATTEMPT_KEY_FILE)
    }

    /// Made on first use.
    fn secret(&self, name: &str) -> anyhow::Result<String> {
        let path = self.path.join(name);
        match std::fs::read_to_string(&path) {
            Ok(secret) if secret.trim().len() >= 32 => return Ok(secret.trim().to_owned()),
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error).with_context(|| format!("could not read `{}`", path.display())),
        }
        let words: [u128; 2] = rand::rng().random();
        let secret = format!("{:032x}{:032x}", words[0], words[1]);
        self.write_private(name, &format!("{secret}\n"))?;
        Ok(secret)
    }

    /// Tells programs on this machine where the server is.
    pub(crate) fn announce(&self, address: &str, fingerprint: Option<Fingerprint>) -> anyhow::Result<()> {
        self.write_private(SERVER_FILE, &announcement(address, fingerprint))
    }

    /// Where that was not possible because of the disk: as soon as it is.
    pub(crate) async fn announce_later(
        self: Arc<Self>,
        address: String,
        fingerprint: Option<Fingerprint>,
        stop: CancellationToken,
    ) {
        loop {
            tokio::select! {
                () = tokio::time::sleep(ANNOUNCE_AGAIN) => {}
                () = stop.cancelled() => return,
            }
            if self.announce(&address, fingerprint).is_ok() {
                tracing::info!("clients that look into the data folder find this server now");
                return;
            }
        }
    }

    /// Takes back what [`announce`](Self::announce) wrote. A server that has taken over this folder, on a disk whose locks are each
    /// machine's own, has announced itself: clients have to find that one.
    pub(crate) fn retract(&self, address: &str, fingerprint: Option<Fingerprint>) {
        let path = self.path.join(SERVER_FILE);
        let is_ours =
            std::fs::read_to_string(&path).is_ok_and(|text| text == announcement(address, fingerprint));
        if is_ours {
            // A stale file only means that the CLI says "not reachable" instead of "not running".
            let _ = std::fs::remove_file(path);
        }
    }

    fn write_private(&self, name: &str, text: &str) -> anyhow::Result<()> {
        let (path, temporary) = (self.path.join(name), self.path.join(format!("{name}.new")));
        let write = || -> std::io::Result<()> {
            let mut file =
                OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(&temporary)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            std::fs::rename(&temporary, &path)
        };
        let written = write();
        if written.is_err() {
            // On a full disk the half that was written is in the way of others.
            let _ = std::fs::remove_file(&temporary);
        }
        written.with_context(|| format!("could not write `{}`", path.display()))
    }
}

/// What programs on this machine read about the server of this process.
fn announcement(address: &str, fingerprint: Option<Fingerprint>) -> String {
    let pid = std::process::id();
    let announcement = match fingerprint {
        Some(fingerprint) => json!({ "address": address, "pid": pid, "fingerprint": fingerprint }),
        None => json!({ "address": address, "pid": pid }),
    };
    announcement.to_string()
}
