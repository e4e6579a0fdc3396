//! How many jobs there are of each kind, without reading them.
//!
//! Invariant: `job_counts` says for each workspace, owner and status what counting the rows of `jobs` would. Every
//! transaction that changes one changes the other.

use std::collections::BTreeMap;

use danlu_types::api::{JobCounts, JobState};
use jiff::Timestamp;
use sqlx::{Pool, QueryBuilder, query};

use super::listing::{plan_walks, push_filtered, push_statuses, push_walks, push_whose, statuses};
use super::{Connection, Db};
use crate::row::JobRow;
use crate::words::part;
use crate::{JobFilter, StoreError};

/// What a transaction changes of `job_counts`.
#[derive(Debug, Default)]
pub(super) struct StateCounts {
    changes: BTreeMap<(String, String, String), i64>,
}

impl StateCounts {
    pub(super) fn add(&mut self, row: &JobRow<'_>, status: &str, number: i64) {
        self.change(row.workspace.to_string(), row.owner.to_string(), status.to_owned(), number);
    }

    pub(super) fn change(&mut self, workspace: String, owner: String, status: String, number: i64) {
        *self.changes.entry((workspace, owner, status)).or_default() += number;
    }

    pub(super) async fn write(self, connection: &mut Connection) -> Result<(), sqlx::Error> {
        for ((workspace, owner, status), number) in
            self.changes.into_iter().filter(|(_, number)| *number != 0)
        {
            query(
                "INSERT INTO job_counts (workspace, owner, status, number) VALUES ($1, $2, $3, $4)
                 ON CONFLICT (workspace, owner, status) DO UPDATE SET number = job_counts.number + excluded.number",
            )
            .bind(workspace)
            .bind(owner)
            .bind(status)
            .bind(number)
            .execute(&mut *connection)
            .await?;
        }
        Ok(())
    }
}

pub(super) async fn jobs_count(pool: &Pool<Db>, filter: &JobFilter) -> Result<JobCounts, StoreError> {
    count(pool, filter).await.map_err(|error| StoreError::of("count jobs", error))
}

async fn count(pool: &Pool<Db>, filter: &JobFilter) -> Result<JobCounts, sqlx::Error> {
    let rows: Vec<(String, i64)> = counts_query(filter).build_query_as().fetch_all(pool).await?;
    let mut counts = JobCounts::default();
    for (status, number) in rows {
        counts.by_state.insert(status, number.cast_unsigned());
    }
    if counts.by_state.contains_key(JobState::Queued.as_str()) {
        let first: Option<i64> = oldest_queued_query(filter).build_query_scalar().fetch_one(pool).await?;
        let first = first.map(Timestamp::from_microsecond).transpose();
        counts.oldest_queued_at = first.map_err(|error| sqlx::Error::Decode(Box::new(error)))?;
    }
    Ok(counts)
}

fn counts_query(filter: &JobFilter) -> QueryBuilder<Db> {
    let is_counted =
        filter.name.is_none() && part(filter).is_none() && filter.label.is_none() && filter.before.is_none();
    let mut sql;
    if is_counted {
        sql =
            QueryBuilder::new("SELECT status, CAST(SUM(number) AS BIGINT) FROM job_counts WHERE number <> 0");
        push_statuses(&mut sql, "status", &statuses(filter));
        push_whose(&mut sql, filter.workspace.as_deref(), filter.owner.as_deref(), filter.visible.as_deref());
    } else {
        sql = QueryBuilder::new("SELECT COALESCE(outcome, state), COUNT(*) FROM ");
        push_filtered(&mut sql, filter);
    }
    sql.push(" GROUP BY 1");
    sql
}

/// Ids are given in the order of submission: the oldest job has the smallest.
fn oldest_queued_query(filter: &JobFilter) -> QueryBuilder<Db> {
    let queued = JobFilter { states: vec![JobState::Queued], outcomes: Vec::new(), ..filter.clone() };
    let mut sql = QueryBuilder::new("SELECT MIN(submitted_at) FROM ");
    if let Some(walks) = plan_walks(&queued, &statuses(&queued)) {
        sql.push("(");
        push_walks(&mut sql, &queued, &walks, "submitted_at", "id", 1);
        sql.push(") AS oldest");
    } else {
        push_filtered(&mut sql, &queued);
    }
    sql
}
