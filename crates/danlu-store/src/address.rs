//! Which database an address names.

use std::path::Path;
use std::sync::Arc;

use crate::{Store, StoreError, postgres, sqlite};

/// Opens `sqlite:PATH` (created if it is not there, readable by its owner alone) or `postgres://…`, and brings its
/// schema up to date.
pub async fn open(url: &str) -> Result<Arc<dyn Store>, StoreError> {
    open_at_version(url, i64::MAX).await
}

/// As [`open`], but with the schema of an older version: for tests of migrations, which need a database to migrate.
#[doc(hidden)]
pub async fn open_at_version(url: &str, version: i64) -> Result<Arc<dyn Store>, StoreError> {
    // The path is taken as it stands, not as a URL: `?` and `%` are characters of file names.
    if let Some(path) = url.strip_prefix("sqlite:") {
        sqlite::open(Path::new(path), version).await
    } else if url.starts_with("postgres://") || url.starts_with("postgresql://") {
        postgres::open(url, version).await
    } else {
        let given = url.split(':').next().unwrap_or_default().to_owned();
        Err(StoreError::UnknownDatabase { given })
    }
}
