//! Which database an address names.

use std::path::Path;
use std::sync::Arc;

use crate::{ServerLock, Store, StoreError, postgres, sqlite};

/// Opens `sqlite:PATH` (created if it is not there, readable by its owner alone) or `postgres://…`, and brings its
/// schema up to date.
pub async fn open(url: &str) -> Result<Arc<dyn Store>, StoreError> {
    open_at_version(url, i64::MAX).await
}

/// Opens a database of this version's schema for reading: every write will fail. For SQLite on a disk that takes nothing.
pub async fn open_read_only(url: &str) -> Result<Arc<dyn Store>, StoreError> {
    match Address::of(url)? {
        Address::Sqlite(path) => sqlite::open_read_only(path).await,
        Address::Postgres => open(url).await,
    }
}

/// As [`open`], but with the schema of an older version: for tests of migrations, which need a database to migrate.
#[doc(hidden)]
pub async fn open_at_version(url: &str, version: i64) -> Result<Arc<dyn Store>, StoreError> {
    match Address::of(url)? {
        Address::Sqlite(path) => sqlite::open(path, version).await,
        Address::Postgres => postgres::open(url, version).await,
    }
}

/// Makes the caller the only server on a database, or says that another one is. To be done before [`open`], which may
/// change the schema under that one's feet.
pub async fn claim(url: &str) -> Result<ServerLock, StoreError> {
    match Address::of(url)? {
        Address::Sqlite(path) => ServerLock::of_file(path).await,
        Address::Postgres => ServerLock::of_postgres(url).await,
    }
}

enum Address<'a> {
    Sqlite(&'a Path),
    Postgres,
}

impl<'a> Address<'a> {
    fn of(url: &'a str) -> Result<Self, StoreError> {
        // The path is taken as it stands, not as a URL: `?` and `%` are characters of file names.
        if let Some(path) = url.strip_prefix("sqlite:") {
            Ok(Address::Sqlite(Path::new(path)))
        } else if url.starts_with("postgres://") || url.starts_with("postgresql://") {
            Ok(Address::Postgres)
        } else {
            let given = url.split(':').next().unwrap_or_default().to_owned();
            Err(StoreError::UnknownDatabase { given })
        }
    }
}
