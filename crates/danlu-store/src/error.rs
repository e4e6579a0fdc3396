//! What can go wrong, told apart by what a caller can do about it.

use danlu_types::JobId;
use sqlx::error::{DatabaseError, ErrorKind};

#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The disk is full or read-only, the database does not answer: nothing was changed, and trying again may help.
    ///
    /// One case is beyond us: when the connection to a PostgreSQL breaks while it commits, nobody can tell on which
    /// side of the commit. Who tries again then learns it: updates that were written come back as stale, inserts as
    /// duplicates by their submission key, or [`Refused`](Self::Refused) for their id.
    #[error("could not {doing}")]
    Unavailable {
        doing: &'static str,
        #[source]
        source: sqlx::Error,
    },
    /// The database will never take this: an id that is in use, a number or a key beyond its limits. Nothing was
    /// changed. What else was in the batch may be written without it.
    #[error("the database refused to {doing}")]
    Refused {
        doing: &'static str,
        #[source]
        source: sqlx::Error,
    },
    /// What is stored is not what this version writes.
    #[error("job {id} cannot be read from the store")]
    Corrupt {
        id: JobId,
        #[source]
        source: serde_json::Error,
    },
    #[error("the database is of a newer Danlu (schema {found}, this one knows {known})")]
    TooNew { found: i64, known: i64 },
    #[error("another `danlu up` is using this database")]
    InUse,
    /// Nothing was changed, and nothing will be by this store.
    #[error("another `danlu up` has taken over this database")]
    Deposed,
    /// `given` is the part before the first colon only: the rest may hold a password.
    #[error("`{given}` names no database; give `sqlite:PATH` or `postgres://USER:PASSWORD@HOST/NAME`")]
    UnknownDatabase { given: String },
}

impl StoreError {
    /// What nothing can be done about but to try again, in the words of whoever stands before a store.
    pub fn unavailable(doing: &'static str, error: std::io::Error) -> Self {
        StoreError::Unavailable { doing, source: sqlx::Error::Io(error) }
    }

    pub(crate) fn of(doing: &'static str, source: sqlx::Error) -> Self {
        let is_final = match &source {
            sqlx::Error::Encode(_) => true,
            sqlx::Error::Database(error) => is_final(&**error),
            _ => false,
        };
        if is_final {
            StoreError::Refused { doing, source }
        } else {
            StoreError::Unavailable { doing, source }
        }
    }
}

/// Whether the same statement would fail again, whatever happens to disk and network.
fn is_final(error: &dyn DatabaseError) -> bool {
    // PostgreSQL's classes: 22 data exception, 54 program limit exceeded (a key too long for an index).
    // SQLite's 18: a string or row beyond its limit.
    let by_code = error.code().is_some_and(|code| {
        code == "18" || code.len() == 5 && (code.starts_with("22") || code.starts_with("54"))
    });
    by_code || !matches!(error.kind(), ErrorKind::Other)
}
