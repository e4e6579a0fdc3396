//! What can go wrong, told apart by what a caller can do about it.

use danlu_types::JobId;
use sqlx::error::{DatabaseError, ErrorKind};

#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The disk is full or read-only, the database does not answer. Trying again may help; a change whose answer was lost may have been
    /// written.
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
    /// The database's file is not what SQLite or PostgreSQL wrote: pages are broken, or it is no database at all.
    #[error("could not {doing}, because the database is damaged")]
    Damaged {
        doing: &'static str,
        #[source]
        source: sqlx::Error,
    },
    /// What is stored is not what this version writes.
    #[error("job {id} cannot be read from the store")]
    Corrupt {
        id: JobId,
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A row of the tables of people is not what this version writes.
    #[error(transparent)]
    UnreadableRow(UnreadableRow),
    /// Another change of the same row came first; nothing was changed.
    #[error(transparent)]
    Stale(StaleRow),
    #[error("the database is of a newer Danlu (schema {found}, this one knows {known})")]
    TooNew { found: i64, known: i64 },
    /// It can only be read now, so it cannot be brought up to date.
    #[error("the database is of an older Danlu (schema {found}, this one needs {known})")]
    TooOld { found: i64, known: i64 },
    #[error("another `danlu up` is using this database")]
    InUse,
    /// Nothing was changed, and nothing will be by this store.
    #[error("another `danlu up` has taken over this database")]
    Deposed,
    /// `given` is the part before the first colon only: the rest may hold a password.
    #[error("`{given}` names no database; give `sqlite:PATH` or `postgres://USER:PASSWORD@HOST/NAME`")]
    UnknownDatabase { given: String },
}

/// See [`StoreError::UnreadableRow`].
#[derive(Debug, thiserror::Error)]
#[error(
    "the {kind} `{key}` cannot be read from the database: {why}; restore the database from a back-up, or correct this row with a \
     SQL client"
)]
pub struct UnreadableRow {
    pub kind: String,
    pub key: String,
    pub why: String,
}

/// See [`StoreError::Stale`].
#[derive(Debug, thiserror::Error)]
#[error("the {kind} `{key}` was changed meanwhile")]
pub struct StaleRow {
    pub kind: &'static str,
    pub key: String,
}

impl StoreError {
    /// What nothing can be done about but to try again, in the words of whoever stands before a store.
    pub fn unavailable(doing: &'static str, error: std::io::Error) -> Self {
        StoreError::Unavailable { doing, source: sqlx::Error::Io(error) }
    }

    /// Whether the database does not answer at all, or is only coming up.
    pub fn is_away(&self) -> bool {
        let StoreError::Unavailable { source, .. } = self else { return false };
        match source {
            sqlx::Error::Io(_) | sqlx::Error::PoolTimedOut => true,
            // PostgreSQL's class 57: starting, shutting down, crashed.
            sqlx::Error::Database(error) => error.code().is_some_and(|code| code.starts_with("57P")),
            _ => false,
        }
    }

    pub(crate) fn of(doing: &'static str, source: sqlx::Error) -> Self {
        // Ours, on their way through a transaction.
        let source = match source {
            sqlx::Error::Decode(error) => match error.downcast::<UnreadableRow>() {
                Ok(row) => return StoreError::UnreadableRow(*row),
                Err(error) => sqlx::Error::Decode(error),
            },
            sqlx::Error::Encode(error) => match error.downcast::<StaleRow>() {
                Ok(row) => return StoreError::Stale(*row),
                Err(error) => sqlx::Error::Encode(error),
            },
            source => source,
        };
        if let sqlx::Error::Database(error) = &source
            && is_damage(&**error)
        {
            return StoreError::Damaged { doing, source };
        }
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

/// SQLite's 11 (a page is not what it should be) and 26 (no database at all), whose extended codes share the lowest byte;
/// PostgreSQL's `data_corrupted` and `index_corrupted`.
fn is_damage(error: &dyn DatabaseError) -> bool {
    error.code().is_some_and(|code| match code.len() {
        5 => code == "XX001" || code == "XX002",
        _ => code.parse::<u32>().is_ok_and(|code| matches!(code & 0xff, 11 | 26)),
    })
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
