//! Taking and opening the database at start: waits for one that is coming up, reads one that cannot be written, and looks
//! whether it is whole.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use danlu_store::{ServerLock, Store, StoreError};

use crate::audit_proof::Trail;
use crate::guarded::GuardedStore;
use crate::health::ServerHealth;

/// PostgreSQL comes up within seconds, a machine that it runs on within a minute.
const DATABASE_PATIENCE: Duration = Duration::from_mins(1);
const ASK_DATABASE_EVERY: Duration = Duration::from_secs(1);
/// How long a start waits for the check of the database: about a gigabyte of it.
const INTEGRITY_PATIENCE: Duration = Duration::from_secs(2);

/// A database that is not there yet, because the machine or the network has just come up, is waited for.
pub(crate) async fn claim(url: &str) -> Result<ServerLock, StoreError> {
    let give_up = Instant::now() + DATABASE_PATIENCE;
    let mut waits = false;
    loop {
        match danlu_store::claim(url).await {
            Err(error) if error.is_away() && Instant::now() < give_up => {
                if !waits {
                    tracing::warn!(
                        "waiting up to {} s for the database: {}",
                        DATABASE_PATIENCE.as_secs(),
                        crate::error_chain(&error)
                    );
                }
                waits = true;
                tokio::select! {
                    () = tokio::time::sleep(ASK_DATABASE_EVERY) => {}
                    () = crate::serve::wait_for_signal() => return Err(error),
                }
            }
            done => return done,
        }
    }
}

/// Opens the store: for reading only where the disk takes nothing, so that jobs can at least be seen.
pub(crate) async fn open(
    url: &str,
    health: &Arc<ServerHealth>,
    trail: &Arc<Trail>,
) -> anyhow::Result<Arc<dyn Store>> {
    let opened = match danlu_store::open(url).await {
        Err(error @ StoreError::Unavailable { .. }) if health.objection().is_some() => {
            match danlu_store::open_read_only(url).await {
                Ok(store) => {
                    health.note(format!(
                        "the database could be opened for reading only ({}); make room or mend the disk, then start \
                         the server again",
                        crate::error_chain(&error)
                    ));
                    Ok(store)
                }
                Err(second) => {
                    tracing::warn!("nor can it be opened for reading: {}", crate::error_chain(&second));
                    Err(error)
                }
            }
        }
        opened => opened,
    };
    if let Err(error @ StoreError::Damaged { .. }) = &opened {
        bail!(crate::guarded::damage(error));
    }
    let opened = opened.context("could not open the database")?;
    let store: Arc<dyn Store> = Arc::new(GuardedStore::new(opened, health.clone(), trail.clone()));
    // A few GB take longer than anybody wants to wait for a start; then the rest is read while the server works.
    let checked = {
        let store = store.clone();
        tokio::spawn(async move { store.integrity_check().await })
    };
    if let Ok(Ok(Err(error))) = tokio::time::timeout(INTEGRITY_PATIENCE, checked).await {
        tracing::warn!("{}", crate::error_chain(&error));
    }
    Ok(store)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_damaged_database_is_noticed_at_start_and_takes_no_jobs() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("danlu.db");
        let url = format!("sqlite:{}", file.display());
        let health = Arc::new(ServerHealth::new(folder.path()));
        let encryptor = crate::encryption::Encryptor::open(folder.path()).unwrap();
        let trail = Arc::new(Trail::new(folder.path(), &encryptor));
        open(&url, &health, &trail).await.unwrap().close().await;
        assert_eq!(health.objection(), None);

        // Half of it: tables and indexes, some of which a start does not read.
        let mut bytes = std::fs::read(&file).unwrap();
        let half = bytes.len() / 2 / 4096 * 4096;
        bytes[half..].fill(0x5a);
        std::fs::write(&file, bytes).unwrap();
        let refused = open(&url, &health, &trail).await.err().map(|error| error.to_string());
        let objection = refused.or(health.objection()).unwrap_or_default();
        assert!(objection.contains("damaged") && objection.contains("back-up"), "{objection}");
    }

    #[tokio::test]
    async fn what_is_no_database_is_called_damaged() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("danlu.db");
        std::fs::write(&file, "not a database ".repeat(500)).unwrap();
        let health = Arc::new(ServerHealth::new(folder.path()));
        let encryptor = crate::encryption::Encryptor::open(folder.path()).unwrap();
        let trail = Arc::new(Trail::new(folder.path(), &encryptor));
        let error =
            open(&format!("sqlite:{}", file.display()), &health, &trail).await.unwrap_err().to_string();
        assert!(error.contains("damaged") && error.contains("back-up"), "{error}");
    }
}
