//! Everything that writes.
//!
//! Rows go in by statements of a multiple of 16 rows and one for the rest: few round trips, and few enough texts that
//! each stays prepared.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use danlu_core::Job;
use danlu_types::JobId;
use sqlx::query::Query;
use sqlx::{AssertSqlSafe, Database, Row as _, query};

use super::counts::StateCounts;
use super::{Connection, Counters, Db, push_placeholder};
use crate::row::{self, JobRow, number, text};
use crate::{Batch, Committed, Insert, NodeChange, Update};

type Statement = Query<'static, Db, <Db as Database>::Arguments>;

/// A row of the event table, but for its number.
struct EventRow<'a> {
    job: Option<i64>,
    at: i64,
    record: &'a danlu_core::HistoryEvent,
}

/// Writes the batch; the caller's transaction makes it whole.
pub(super) async fn write(
    connection: &mut Connection,
    counters: Counters,
    batch: &Batch,
) -> Result<Committed, sqlx::Error> {
    let Counters { job_last_id, event_last_number, .. } = counters;
    let mut committed = Committed::default();
    let mut events = Vec::new();
    let mut counts = StateCounts::default();

    let inserts = keep_first_submissions(connection, &batch.inserts, &mut committed).await?;
    let rows: Vec<JobRow> = inserts.iter().map(|insert| JobRow::of(&insert.job)).collect::<Result<_, _>>()?;
    insert_jobs(connection, &inserts, &rows).await?;
    for (insert, row) in inserts.iter().zip(&rows) {
        counts.add(row, row.status(), 1);
        let at = insert.at.as_microsecond();
        events.extend(insert.records.iter().map(|record| EventRow { job: Some(row.id), at, record }));
    }

    let before = counted(connection, &batch.updates).await?;
    for update in &batch.updates {
        let row = JobRow::of(&update.job)?;
        if update_job(connection, &row, number(update.seen_generation)?).await? {
            if let Some((workspace, owner, status)) = before.get(&row.id) {
                counts.change(workspace.clone(), owner.clone(), status.clone(), -1);
                counts.add(&row, row.status(), 1);
            }
            if update.changes_spec() {
                update_spec(connection, &row, &update.job).await?;
            }
            let at = update.at.as_microsecond();
            events.extend(update.records.iter().map(|record| EventRow { job: Some(row.id), at, record }));
        } else {
            committed.stale.push(update.job.id);
        }
    }

    counts.write(connection).await?;
    let new_last_id = rows.iter().map(|row| row.id).max().unwrap_or(0).max(job_last_id);
    let new_last_number = insert_events(connection, &events, event_last_number).await?;
    if (new_last_id, new_last_number) != (job_last_id, event_last_number) {
        query("UPDATE counters SET job_last_id = $1, event_last_number = $2")
            .bind(new_last_id)
            .bind(new_last_number)
            .execute(&mut *connection)
            .await?;
    }
    Ok(committed)
}

/// Replaces what is known of a node. A note that says nothing leaves no row.
pub(super) async fn write_note(
    connection: &mut Connection,
    counters: Counters,
    change: &NodeChange,
) -> Result<(), sqlx::Error> {
    query("DELETE FROM node_notes WHERE node = $1")
        .bind(&*text(&change.node.0))
        .execute(&mut *connection)
        .await?;
    if !change.note.is_empty() {
        query("INSERT INTO node_notes (node, note) VALUES ($1, $2)")
            .bind(&*text(&change.node.0))
            .bind(row::json(&change.note)?)
            .execute(&mut *connection)
            .await?;
    }
    let at = change.at.as_microsecond();
    let events: Vec<_> = change.records.iter().map(|record| EventRow { job: None, at, record }).collect();
    let number = insert_events(connection, &events, counters.event_last_number).await?;
    query("UPDATE counters SET event_last_number = $1").bind(number).execute(connection).await?;
    Ok(())
}

/// Deletes those of the jobs that have ended; their labels and submission keys go with them, and their history after them.
pub(super) async fn delete(connection: &mut Connection, ids: &[JobId]) -> Result<u64, sqlx::Error> {
    // What does not fit is no job's id.
    let ids: Vec<i64> = ids.iter().filter_map(|id| i64::try_from(id.0).ok()).collect();
    let mut counts = StateCounts::default();
    let mut deleted = 0;
    for range in chunks(ids.len()) {
        let places = placeholders(1, range.len());
        let of_range = |sql: String| ids[range.clone()].iter().fold(statement(sql), |sql, id| sql.bind(*id));
        let ended = format!("jobs WHERE ended_at IS NOT NULL AND id IN ({places})");
        let counted = format!(
            "SELECT workspace, owner, COALESCE(outcome, state), COUNT(*) FROM {ended} GROUP BY 1, 2, 3"
        );
        for found in of_range(counted).fetch_all(&mut *connection).await? {
            let number: i64 = found.try_get(3)?;
            counts.change(found.try_get(0)?, found.try_get(1)?, found.try_get(2)?, -number);
        }
        deleted += of_range(format!("DELETE FROM {ended}")).execute(&mut *connection).await?.rows_affected();
        // Not `NOT IN`, for which PostgreSQL would read all jobs each time.
        let orphans = format!(
            "DELETE FROM events WHERE job IN ({places}) AND NOT EXISTS (SELECT 1 FROM jobs WHERE jobs.id = events.job)"
        );
        of_range(orphans).execute(&mut *connection).await?;
    }
    counts.write(connection).await?;
    Ok(deleted)
}

/// Begins an epoch, and says whose database this is from now on.
pub(super) async fn lead(
    connection: &mut Connection,
    identity: &str,
    epoch: i64,
) -> Result<i64, sqlx::Error> {
    query("UPDATE counters SET identity = $1, epoch = $2")
        .bind(identity.to_owned())
        .bind(epoch)
        .execute(connection)
        .await?;
    Ok(epoch)
}

/// Writes without changing anything.
pub(super) async fn touch(connection: &mut Connection) -> Result<(), sqlx::Error> {
    query("UPDATE counters SET job_last_id = job_last_id").execute(connection).await?;
    Ok(())
}

/// The inserts without those whose submission key is taken, by an earlier batch or earlier in this one.
async fn keep_first_submissions<'a>(
    connection: &mut Connection,
    inserts: &'a [Insert],
    committed: &mut Committed,
) -> Result<Vec<&'a Insert>, sqlx::Error> {
    let keys: HashSet<_> = inserts
        .iter()
        .filter_map(|insert| insert.submission_key.as_ref())
        .map(|keyed| text(&keyed.key))
        .collect();
    let keys: Vec<_> = keys.into_iter().collect();
    let mut taken: HashMap<String, JobId> = HashMap::with_capacity(keys.len());
    for range in chunks(keys.len()) {
        let places = placeholders(1, range.len());
        let mut statement = statement(format!("SELECT key, job FROM submissions WHERE key IN ({places})"));
        for key in &keys[range] {
            statement = statement.bind(&**key);
        }
        for found in statement.fetch_all(&mut *connection).await? {
            taken.insert(found.try_get(0)?, row::job_id(found.try_get(1)?));
        }
    }
    let mut kept = Vec::with_capacity(inserts.len());
    for insert in inserts {
        if let Some(key) = insert.submission_key.as_ref().map(|keyed| text(&keyed.key)) {
            if let Some(existing) = taken.get(&*key) {
                committed.duplicates.push((insert.job.id, *existing));
                continue;
            }
            taken.insert(key.into_owned(), insert.job.id);
        }
        kept.push(insert);
    }
    Ok(kept)
}

async fn insert_jobs(
    connection: &mut Connection,
    inserts: &[&Insert],
    rows: &[JobRow<'_>],
) -> Result<(), sqlx::Error> {
    const SUBMISSIONS: &str = "submissions (key, job, digest)";
    const JOBS: &str = "jobs (id, name, workspace, owner, priority, state, outcome, submitted_at, ended_at, \
                        generation, code, spec, life)";
    insert_rows(connection, JOBS, 13, rows, |statement, row| {
        statement
            .bind(row.id)
            .bind(&*row.name)
            .bind(&*row.workspace)
            .bind(&*row.owner)
            .bind(row.priority)
            .bind(row.state)
            .bind(row.outcome)
            .bind(row.submitted_at)
            .bind(row.ended_at)
            .bind(row.generation)
            .bind(row.code.as_deref())
            .bind(&*row.spec)
            .bind(&*row.life)
    })
    .await?;

    insert_labels(connection, inserts.iter().map(|insert| &insert.job).zip(rows)).await?;
    let mut submissions = Vec::new();
    for (insert, row) in inserts.iter().zip(rows) {
        submissions.extend(
            insert.submission_key.as_ref().map(|keyed| (text(&keyed.key), row.id, text(&keyed.digest))),
        );
    }
    insert_rows(connection, SUBMISSIONS, 3, &submissions, |statement, (key, job, digest)| {
        statement.bind(&**key).bind(*job).bind(&**digest)
    })
    .await
}

/// Where the jobs of these updates are counted now: workspace, owner and status.
async fn counted(
    connection: &mut Connection,
    updates: &[Update],
) -> Result<HashMap<i64, (String, String, String)>, sqlx::Error> {
    let ids: Vec<i64> = updates.iter().map(|update| number(update.job.id.0)).collect::<Result<_, _>>()?;
    let mut found = HashMap::with_capacity(ids.len());
    for range in chunks(ids.len()) {
        let places = placeholders(1, range.len());
        let columns = "id, workspace, owner, COALESCE(outcome, state)";
        let sql = format!("SELECT {columns} FROM jobs WHERE id IN ({places})");
        let statement = ids[range].iter().fold(statement(sql), |sql, id| sql.bind(*id));
        for row in statement.fetch_all(&mut *connection).await? {
            found.insert(row.try_get(0)?, (row.try_get(1)?, row.try_get(2)?, row.try_get(3)?));
        }
    }
    Ok(found)
}

/// Whether the job still was at the generation that the writer had seen.
async fn update_job(connection: &mut Connection, row: &JobRow<'_>, seen: i64) -> Result<bool, sqlx::Error> {
    let updated = query(
        "UPDATE jobs SET state = $1, outcome = $2, ended_at = $3, generation = $4, life = $5
         WHERE id = $6 AND generation = $7",
    )
    .bind(row.state)
    .bind(row.outcome)
    .bind(row.ended_at)
    .bind(row.generation)
    .bind(&*row.life)
    .bind(row.id)
    .bind(seen)
    .execute(connection)
    .await?;
    Ok(updated.rows_affected() > 0)
}

/// Writes what a job asks for anew, with what is found by it.
async fn update_spec(connection: &mut Connection, row: &JobRow<'_>, job: &Job) -> Result<(), sqlx::Error> {
    query("UPDATE jobs SET name = $1, workspace = $2, priority = $3, code = $4, spec = $5 WHERE id = $6")
        .bind(&*row.name)
        .bind(&*row.workspace)
        .bind(row.priority)
        .bind(row.code.as_deref())
        .bind(&*row.spec)
        .bind(row.id)
        .execute(&mut *connection)
        .await?;
    query("DELETE FROM job_labels WHERE job = $1").bind(row.id).execute(&mut *connection).await?;
    insert_labels(connection, [(job, row)]).await
}

async fn insert_labels<'a, 'b: 'a>(
    connection: &mut Connection,
    jobs: impl IntoIterator<Item = (&'a Job, &'a JobRow<'b>)>,
) -> Result<(), sqlx::Error> {
    let mut labels = Vec::new();
    for (job, row) in jobs {
        labels.extend(job.spec.labels.iter().map(|(key, value)| (row.id, text(key), text(value))));
    }
    insert_rows(connection, "job_labels (job, key, value)", 3, &labels, |statement, (job, key, value)| {
        statement.bind(*job).bind(&**key).bind(&**value)
    })
    .await
}

/// Appends to the history; the number of the last one.
async fn insert_events(
    connection: &mut Connection,
    events: &[EventRow<'_>],
    after: i64,
) -> Result<i64, sqlx::Error> {
    const EVENTS: &str = "events (number, at, job, attempt, kind, actor, message)";
    let numbered: Vec<_> = (after + 1..).zip(events).collect();
    insert_rows(connection, EVENTS, 7, &numbered, |statement, (number, event)| {
        statement
            .bind(*number)
            .bind(event.at)
            .bind(event.job)
            .bind(event.record.attempt.map(|attempt| i64::from(attempt.0)))
            .bind(event.record.kind.as_str())
            .bind(&*text(&event.record.actor))
            .bind(&*text(&event.record.message))
    })
    .await?;
    Ok(numbered.last().map_or(after, |(number, _)| *number))
}

/// Inserts `rows` into `target`, a table with its columns; `bind` gives a row's values in their order.
async fn insert_rows<T>(
    connection: &mut Connection,
    target: &str,
    columns: usize,
    rows: &[T],
    bind: impl Fn(Statement, &T) -> Statement,
) -> Result<(), sqlx::Error> {
    for range in chunks(rows.len()) {
        let tuples: Vec<String> =
            (0..range.len()).map(|row| format!("({})", placeholders(row * columns + 1, columns))).collect();
        let statement = statement(format!("INSERT INTO {target} VALUES {}", tuples.join(", ")));
        let statement = rows[range].iter().fold(statement, &bind);
        statement.execute(&mut *connection).await?;
    }
    Ok(())
}

/// Places for `count` values, the first of which is number `first`.
fn placeholders(first: usize, count: usize) -> String {
    let mut places = String::with_capacity(count * 6);
    for number in first..first + count {
        if number > first {
            places.push_str(", ");
        }
        push_placeholder(&mut places, number);
    }
    places
}

/// Statements here are put together from constants and placeholders only; values are bound.
fn statement(sql: String) -> Statement {
    query(AssertSqlSafe(sql))
}

/// Cuts `0..count` into pieces of few different sizes: 23 in all, which with the tables and lookups here is what
/// [`STATEMENTS_KEPT`](crate::STATEMENTS_KEPT) has room for.
fn chunks(count: usize) -> impl Iterator<Item = Range<usize>> {
    const STEP: usize = 16;
    const LARGEST: usize = 128;
    let mut start = 0;
    std::iter::from_fn(move || {
        let left = (count - start).min(LARGEST);
        let size = if left > STEP { left - left % STEP } else { left };
        start += size;
        (size > 0).then(|| start - size..start)
    })
}
