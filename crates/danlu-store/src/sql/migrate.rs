//! Brings a database to the newest schema, or to an older one for tests of migrations.
//!
//! A migration is a numbered file, never edited once released, and runs in one transaction with the note that it ran.

use sqlx::{AssertSqlSafe, Executor, Pool, query, query_scalar, raw_sql};

use super::{Connection, Db, LOCK_SCHEMA, MIGRATIONS, in_transaction, people};
use crate::StoreError;

/// The migration whose rows the program carries over.
const PEOPLE: i64 = 9;

/// Applies what is missing, up to and including version `up_to`.
pub(crate) async fn migrate(pool: &Pool<Db>, up_to: i64) -> Result<(), StoreError> {
    let found = in_transaction(pool, async |connection| apply(connection, up_to).await)
        .await
        .map_err(|error| StoreError::of("migrate the database", error))?;
    let known = i64::try_from(MIGRATIONS.len()).expect("migrations are counted in single digits");
    if found > known {
        return Err(StoreError::TooNew { found, known });
    }
    Ok(())
}

/// The version that was found; one that is newer than ours is left as it is.
async fn apply(connection: &mut Connection, up_to: i64) -> Result<i64, sqlx::Error> {
    connection.execute(LOCK_SCHEMA).await?;
    connection
        .execute("CREATE TABLE IF NOT EXISTS schema_version (version BIGINT NOT NULL PRIMARY KEY)")
        .await?;
    let found: i64 = query_scalar("SELECT COALESCE(MAX(version), 0) FROM schema_version")
        .fetch_one(&mut *connection)
        .await?;
    for (version, statements) in (1..=up_to).zip(MIGRATIONS) {
        if version > found {
            connection.execute(raw_sql(AssertSqlSafe(*statements))).await?;
            if version == PEOPLE {
                people::carry_over(connection).await?;
            }
            query("INSERT INTO schema_version (version) VALUES ($1)")
                .bind(version)
                .execute(&mut *connection)
                .await?;
        }
    }
    Ok(found)
}
