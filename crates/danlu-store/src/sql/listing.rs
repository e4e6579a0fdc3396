//! Lists of jobs: which rows a filter finds, and in which index the database finds them.
//!
//! A list comes newest first, a page at a time. Walking all jobs from the newest and leaving out what the filter does not
//! want is quick for what is common and reads everything for what is rare. So a filter by status, workspace or owner is
//! asked as one short walk per combination, each along an index that has exactly those in the order of ids, and the page
//! is the newest of what they find together.

use danlu_core::Job;
use danlu_types::api::{JobOutcome, JobState};
use sqlx::{Pool, QueryBuilder};

use super::read::{job_of, largest, row_id};
use super::{Db, SEARCH_ORDER, push_search};
use crate::row::{self, text};
use crate::unreadable::Unreadable;
use crate::words::{part, words};
use crate::{JobFilter, StoreError};

/// More walks than this cost more than they save.
const MOST_WALKS: usize = 64;

/// Rows that lie together in one index, in the order of ids.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Walk<'a> {
    status: &'static str,
    among: Among<'a>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Among<'a> {
    All,
    OfOwner(&'a str),
    InWorkspace(&'a str),
}

/// Rows that cannot be read are left out, and others take their places: whoever gets fewer than asked for has seen all.
pub(super) async fn jobs_list(
    pool: &Pool<Db>,
    unreadable: &Unreadable,
    filter: &JobFilter,
) -> Result<Vec<Job>, StoreError> {
    let mut filter = filter.clone();
    let mut jobs = Vec::new();
    loop {
        let rows = jobs_list_query(&filter)
            .build()
            .fetch_all(pool)
            .await
            .map_err(|error| StoreError::of("list jobs", error))?;
        let read_before = jobs.len();
        for row in &rows {
            jobs.extend(unreadable.noting(job_of(row))?);
        }
        let left_out = rows.len() - (jobs.len() - read_before);
        let is_last = rows.len() < filter.limit as usize;
        let (Some(last), false, 1..) = (rows.last(), is_last, left_out) else { return Ok(jobs) };
        filter.before = Some(row_id(last)?);
        filter.limit = u32::try_from(left_out).unwrap_or(u32::MAX);
    }
}

fn jobs_list_query(filter: &JobFilter) -> QueryBuilder<Db> {
    let mut sql = QueryBuilder::<Db>::new("SELECT id, owner, generation, spec, life FROM ");
    match plan_walks(filter, &statuses(filter)) {
        Some(walks) => {
            sql.push("jobs WHERE id IN (");
            push_walks(&mut sql, filter, &walks, "id", "id DESC", filter.limit);
            sql.push(")");
        }
        None => push_filtered(&mut sql, filter),
    }
    let order = if part(filter).is_some() { SEARCH_ORDER } else { "id DESC" };
    sql.push(format!(" ORDER BY {order} LIMIT ")).push_bind(i64::from(filter.limit));
    sql
}

/// The statuses that the filter asks for; empty when it asks for none in particular.
pub(super) fn statuses(filter: &JobFilter) -> Vec<&'static str> {
    let mut statuses = Vec::new();
    for state in &filter.states {
        match state {
            JobState::Ended => statuses.extend(JobOutcome::ALL.map(JobOutcome::as_str)),
            state => statuses.push(state.as_str()),
        }
    }
    statuses.extend(filter.outcomes.iter().map(|outcome| outcome.as_str()));
    statuses.sort_unstable();
    statuses.dedup();
    statuses
}

/// The walks that find together what the filter finds; `None` where another index is better, or none is needed.
pub(super) fn plan_walks<'a>(filter: &'a JobFilter, statuses: &[&'static str]) -> Option<Vec<Walk<'a>>> {
    if filter.name.is_some() || part(filter).is_some() || filter.label.is_some() {
        return None;
    }
    let among = match (&filter.owner, &filter.workspace, &filter.visible) {
        (Some(owner), _, _) => vec![Among::OfOwner(owner)],
        (None, Some(workspace), _) => vec![Among::InWorkspace(workspace)],
        (None, None, Some(visible)) => visible.iter().map(|name| Among::InWorkspace(name)).collect(),
        (None, None, None) if statuses.is_empty() => return None,
        (None, None, None) => vec![Among::All],
    };
    let live = JobState::ALL.into_iter().filter(|state| *state != JobState::Ended).map(JobState::as_str);
    let every: Vec<&'static str> = live.chain(JobOutcome::ALL.map(JobOutcome::as_str)).collect();
    let statuses = if statuses.is_empty() { &every[..] } else { statuses };
    let walks: Vec<Walk<'_>> =
        among.iter().flat_map(|among| statuses.iter().map(|status| Walk { status, among: *among })).collect();
    (1..=MOST_WALKS).contains(&walks.len()).then_some(walks)
}

/// A query for one column of the first rows of each walk.
pub(super) fn push_walks(
    sql: &mut QueryBuilder<Db>,
    filter: &JobFilter,
    walks: &[Walk<'_>],
    column: &'static str,
    order: &'static str,
    limit: u32,
) {
    for (number, Walk { status, among }) in walks.iter().enumerate() {
        let separator = if number == 0 { "" } else { " UNION ALL " };
        sql.push(separator).push(format!("SELECT {column} FROM (SELECT {column} FROM jobs WHERE "));
        // As the indexes say it, word for word.
        sql.push("COALESCE(outcome, state) = ").push_bind(*status);
        match among {
            Among::All => {}
            Among::OfOwner(owner) => {
                sql.push(" AND owner = ").push_bind(text(owner).into_owned());
            }
            Among::InWorkspace(workspace) => {
                sql.push(" AND workspace = ").push_bind(text(workspace).into_owned());
            }
        }
        sql.push(" AND ");
        push_filter(sql, &JobFilter { states: Vec::new(), outcomes: Vec::new(), ..filter.clone() });
        sql.push(format!(" ORDER BY {order} LIMIT ")).push_bind(i64::from(limit));
        sql.push(format!(") AS walk_{number}"));
    }
}

/// The jobs that meet the filter, after `FROM`: by the index of names where a part of one is looked for.
pub(super) fn push_filtered(sql: &mut QueryBuilder<Db>, filter: &JobFilter) {
    match words(filter) {
        Some(words) => {
            push_search(sql, &words, filter.before.map_or(i64::MAX, |before| largest(before.0)));
            sql.push(" AND ");
        }
        None => {
            sql.push("jobs WHERE ");
        }
    }
    push_filter(sql, filter);
}

/// The condition that a job meets the filter; its limit is none.
pub(super) fn push_filter(sql: &mut QueryBuilder<Db>, filter: &JobFilter) {
    let JobFilter {
        states: _,
        outcomes: _,
        workspace,
        owner,
        visible,
        name,
        search: _,
        label,
        before,
        limit: _,
    } = filter;
    sql.push("id < ").push_bind(before.map_or(i64::MAX, |before| largest(before.0)));
    push_statuses(sql, "COALESCE(outcome, state)", &statuses(filter));
    push_whose(sql, workspace.as_deref(), owner.as_deref(), visible.as_deref());
    if let Some(name) = name {
        sql.push(" AND name = ").push_bind(text(name).into_owned());
    }
    if let Some(part) = part(filter) {
        // Names are ASCII, so both databases fold the same letters.
        sql.push(" AND lower(name) LIKE ").push_bind(row::like_pattern(part)).push(r" ESCAPE '\'");
    }
    if let Some((key, value)) = label {
        sql.push(" AND id IN (SELECT job FROM job_labels WHERE key = ")
            .push_bind(text(key).into_owned())
            .push(" AND value = ")
            .push_bind(text(value).into_owned())
            .push(")");
    }
}

pub(super) fn push_statuses(sql: &mut QueryBuilder<Db>, column: &'static str, statuses: &[&'static str]) {
    if statuses.is_empty() {
        return;
    }
    sql.push(" AND (1 = 0");
    for status in statuses {
        sql.push(format!(" OR {column} = ")).push_bind(*status);
    }
    sql.push(")");
}

/// Conditions on columns that `jobs` and `job_counts` both have.
pub(super) fn push_whose(
    sql: &mut QueryBuilder<Db>,
    workspace: Option<&str>,
    owner: Option<&str>,
    visible: Option<&[String]>,
) {
    if let Some(workspace) = workspace {
        sql.push(" AND workspace = ").push_bind(text(workspace).into_owned());
    }
    if let Some(owner) = owner {
        sql.push(" AND owner = ").push_bind(text(owner).into_owned());
    }
    if let Some(visible) = visible {
        sql.push(" AND ");
        push_workspaces(sql, visible);
    }
}

pub(super) fn push_workspaces(sql: &mut QueryBuilder<Db>, workspaces: &[String]) {
    sql.push("(1 = 0");
    for workspace in workspaces {
        sql.push(" OR workspace = ").push_bind(text(workspace).into_owned());
    }
    sql.push(")");
}
