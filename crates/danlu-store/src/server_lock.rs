//! One server per database: who may write to it, not what is written.
//!
//! A server keeps what should be in memory and gives numbers by itself; two of them on one database would start the same
//! job twice. Invariant: a claim ends with its process, however that ends, because a kernel or a database holds it.

use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions, Connection, Executor, PgConnection};

use crate::StoreError;

/// PostgreSQL notices within milliseconds that a client on the same machine is gone, and the lock of a file lives on for
/// moments in children that were just being started: a server that is started again right after a crash must not be
/// refused for that.
const PATIENCE: Duration = Duration::from_secs(3);
const ASK_FOR_FILE_EVERY: Duration = Duration::from_millis(20);
const WAIT_FOR_LOCK: &str = "SET lock_timeout = '3s'";
/// Held by the session, not by a transaction. The number is arbitrary, and ours; such locks are per database.
const LOCK_SERVER: &str = "SELECT pg_advisory_lock(4926107314)";
/// PostgreSQL's `lock_not_available`: someone else has it.
const LOCK_NOT_AVAILABLE: &str = "55P03";
const ASK_AGAIN: Duration = Duration::from_secs(2);

/// The right to be the one server of a database, for as long as this lives.
#[derive(Debug)]
pub struct ServerLock(Held);

#[derive(Debug)]
enum Held {
    /// Locked; the kernel unlocks it when it is closed.
    File {
        _lock: File,
    },
    Session {
        options: Box<PgConnectOptions>,
        connection: Option<PgConnection>,
    },
}

impl ServerLock {
    pub(crate) async fn of_file(database: &Path) -> Result<Self, StoreError> {
        // Beside the database: SQLite has locks of its own on that file, which closing ours would drop.
        let mut path = database.as_os_str().to_owned();
        path.push(".lock");
        let doing = "lock the database";
        let file = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(path);
        let file = file.map_err(|error| StoreError::of(doing, sqlx::Error::Io(error)))?;
        let give_up = Instant::now() + PATIENCE;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(ServerLock(Held::File { _lock: file })),
                Err(TryLockError::WouldBlock) if Instant::now() < give_up => {
                    tokio::time::sleep(ASK_FOR_FILE_EVERY).await;
                }
                Err(TryLockError::WouldBlock) => return Err(StoreError::InUse),
                Err(TryLockError::Error(error)) => {
                    return Err(StoreError::of(doing, sqlx::Error::Io(error)));
                }
            }
        }
    }

    pub(crate) async fn of_postgres(url: &str) -> Result<Self, StoreError> {
        let options: PgConnectOptions =
            url.parse().map_err(|error| StoreError::of("read the database's address", error))?;
        let options = options.application_name("danlu claim").disable_statement_logging();
        let connection = lock(&options).await?;
        Ok(ServerLock(Held::Session { options: Box::new(options), connection: Some(connection) }))
    }

    /// Returns once another server has taken the database; for ever waits otherwise.
    ///
    /// A session ends when PostgreSQL is restarted or the network fails, and the lock with it. Then this takes it again as
    /// soon as it can, which is for the server to know only if it cannot.
    pub async fn lost(&mut self) -> StoreError {
        let Held::Session { options, connection } = &mut self.0 else { return std::future::pending().await };
        loop {
            tokio::time::sleep(ASK_AGAIN).await;
            let held = match connection {
                Some(connection) => connection.ping().await.is_ok(),
                None => false,
            };
            if !held {
                match lock(options).await {
                    Ok(taken) => *connection = Some(taken),
                    Err(StoreError::InUse) => return StoreError::InUse,
                    // The store says by itself, at every request, that the database cannot be reached.
                    Err(_) => *connection = None,
                }
            }
        }
    }
}

async fn lock(options: &PgConnectOptions) -> Result<PgConnection, StoreError> {
    let mut connection =
        options.connect().await.map_err(|error| StoreError::of("connect to the database", error))?;
    let locked = async {
        connection.execute(WAIT_FOR_LOCK).await?;
        connection.execute(LOCK_SERVER).await
    };
    match locked.await {
        Ok(_) => Ok(connection),
        Err(sqlx::Error::Database(error)) if error.code().as_deref() == Some(LOCK_NOT_AVAILABLE) => {
            Err(StoreError::InUse)
        }
        Err(error) => Err(StoreError::of("lock the database", error)),
    }
}
