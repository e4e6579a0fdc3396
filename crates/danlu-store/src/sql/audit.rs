//! Changes of people with their entries in the audit, and the audit itself.

use danlu_core::audit::{FIRST_SEAL, chain_hash};
use danlu_types::api::AuditEntry;
use sqlx::{Pool, QueryBuilder, query, query_as, query_scalar};

use super::people::write_row;
use super::{Connection, Db};
use crate::row::{self, number, text};
use crate::{AuditFilter, AuditRow, DirectoryChange, DirectoryRow, Prove, StoreError};

/// Writers wait for each other at the counters: each entry is sealed over the one before.
pub(super) async fn change(
    connection: &mut Connection,
    change: &DirectoryChange,
    prove: Option<&Prove<'_>>,
) -> Result<AuditEntry, sqlx::Error> {
    for row in &change.rows {
        write_row(connection, row).await?;
    }
    let last: Option<String> = query_scalar("SELECT entry FROM audit ORDER BY number DESC LIMIT 1")
        .fetch_optional(&mut *connection)
        .await?;
    let last: Option<AuditEntry> = last.as_deref().map(entry_of).transpose()?;
    let mut entry = change.audit.clone();
    entry.number = last.as_ref().map_or(0, |last| last.number) + 1;
    entry.seal = chain_hash(last.as_ref().map_or(FIRST_SEAL, |last| &last.seal), &entry);
    query("INSERT INTO audit (number, by_whom, subject, entry) VALUES ($1, $2, $3, $4)")
        .bind(number(entry.number)?)
        .bind(&*text(&entry.by))
        .bind(&*text(&entry.subject))
        .bind(row::json(&entry)?)
        .execute(&mut *connection)
        .await?;
    if let Some(prove) = prove {
        write_row(connection, &DirectoryRow::AuditHead(prove(&entry))).await?;
    }
    Ok(entry)
}

pub(super) async fn audit_rows(pool: &Pool<Db>, after: u64, limit: u32) -> Result<Vec<AuditRow>, StoreError> {
    let rows: Vec<(i64, String, String, String)> = query_as(
        "SELECT number, by_whom, subject, entry FROM audit WHERE number > $1 ORDER BY number LIMIT $2",
    )
    .bind(i64::try_from(after).unwrap_or(i64::MAX))
    .bind(i64::from(limit))
    .fetch_all(pool)
    .await
    .map_err(|error| StoreError::of("read the audit", error))?;
    let row = |(number, by, subject, entry): (i64, String, String, String)| AuditRow {
        number: number.cast_unsigned(),
        by,
        subject,
        entry,
    };
    Ok(rows.into_iter().map(row).collect())
}

pub(super) async fn audit_list(pool: &Pool<Db>, filter: &AuditFilter) -> Result<Vec<AuditEntry>, StoreError> {
    let read = |error| StoreError::of("read the audit", error);
    let mut sql = QueryBuilder::<Db>::new("SELECT entry FROM audit WHERE number > ");
    sql.push_bind(i64::try_from(filter.after).unwrap_or(i64::MAX));
    if let Some(by) = &filter.by {
        sql.push(" AND by_whom = ").push_bind(text(by).into_owned());
    }
    if let Some(subject) = &filter.subject {
        sql.push(" AND subject = ").push_bind(text(subject).into_owned());
    }
    sql.push(" ORDER BY number LIMIT ").push_bind(i64::from(filter.limit));
    let texts: Vec<String> = sql.build_query_scalar().fetch_all(pool).await.map_err(read)?;
    texts.iter().map(|text| entry_of(text).map_err(read)).collect()
}

fn entry_of(text: &str) -> Result<AuditEntry, sqlx::Error> {
    serde_json::from_str(text).map_err(|error| sqlx::Error::Decode(Box::new(error)))
}
