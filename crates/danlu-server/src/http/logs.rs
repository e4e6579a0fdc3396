//! Logs: pages, tails, searches, and following a job to its end.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::response::sse::{Event as SseEvent, KeepAlive, Sse};
use danlu_core::authorization::Action;
use danlu_core::log::rank_log_name;
use danlu_core::view::{exit_code, reason};
use danlu_core::{Attempt, Job};
use danlu_store::logs::{self, LogError, LogFollower, LogPage, LogSource, Pattern};
use danlu_types::api::{JobState, LogLine, LogLines, LogMessage, LogQuery};
use danlu_types::{AttemptNumber, FieldError, JobId, Problem, ProblemCode, Rank, ReasonCode, WorkerIndex};
use futures::Stream;

use super::Context;
use super::extract::{ApiError, PathParams, Query};
use crate::accounts::Caller;
use crate::app::App;

const DEFAULT_LIMIT: u32 = 1000;
const LARGEST_LIMIT: u32 = 10_000;
const LONGEST_SEARCH: usize = 1000;
/// Lines in one event of a follower's stream.
const LINES_AT_ONCE: usize = 500;
/// How often a follower looks whether a log has grown. Launchers say nothing about lines: a program may print millions.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// Read a job's logs
///
/// Lines of all ranks, merged by time, oldest first; with `tail`, the last so many. With `search`, a page may hold few lines
/// or none and still have a `next`: the server reads so much at a time and answers with what it has found.
#[utoipa::path(get, path = "/jobs/{id}/logs", tag = "logs", params(("id" = u64, Path), LogQuery),
    responses((status = 200, body = LogLines)))]
pub(crate) async fn page(
    State(context): State<Context>,
    caller: Caller,
    PathParams(id): PathParams<JobId>,
    Query(query): Query<LogQuery>,
) -> Result<Json<LogLines>, ApiError> {
    let job = context.app.job_for(&caller, id, Action::SeeJob).await?;
    let sources = sources(&context.app, &job, &query, None)?;
    let first = query.attempt.unwrap_or_else(|| last_attempt(&job));
    if query.line.is_some() && query.rank.is_none() {
        let error = FieldError::new("line", "needs a `rank`: each counts its own");
        return Err(ApiError(Problem::invalid_fields(vec![error])));
    }
    if query.before.is_some() && query.tail.is_none() {
        let error = FieldError::new("before", "goes with `tail`: the last lines before a place");
        return Err(ApiError(Problem::invalid_fields(vec![error])));
    }
    let app = context.app.clone();
    let read = tokio::task::spawn_blocking(move || read(&app, &sources, &query)).await;
    let page = read
        .map_err(|_| Problem::new(ProblemCode::Internal, "reading the log failed"))?
        .map_err(log_problem)?;
    let end = format!("{first}!{}", page.next);
    let next = page.more.then_some(page.next);
    Ok(Json(LogLines { items: page.lines, next, before: page.before, end }))
}

fn read(app: &App, sources: &[LogSource], query: &LogQuery) -> Result<LogPage, LogError> {
    let limit = query.limit.unwrap_or(DEFAULT_LIMIT).clamp(1, LARGEST_LIMIT) as usize;
    let cursor = query.cursor.as_deref();
    match (&query.search, query.tail) {
        (Some(search), _) => logs::search(sources, &pattern(search, query.regex)?, cursor, limit),
        (None, Some(tail)) => {
            let count = tail.min(LARGEST_LIMIT) as usize;
            logs::tail(sources, query.before.as_deref(), count, &app.line_counts)
        }
        (None, None) => match (query.line, sources) {
            (Some(number), [source]) => logs::page_at(source, number, limit),
            _ => logs::page(sources, cursor, limit),
        },
    }
}

fn pattern(search: &str, regex: Option<bool>) -> Result<Pattern, LogError> {
    if regex == Some(true) { Pattern::regex(search) } else { Ok(Pattern::text(search)) }
}

/// Follow a job's logs to its end
///
/// A stream of server-sent events, each a `LogMessage`. The id of an event is a cursor: a client that was cut off asks again
/// with it and misses no line. A job that starts another attempt is followed into it.
#[utoipa::path(get, path = "/jobs/{id}/logs/follow", tag = "logs", params(("id" = u64, Path), LogQuery),
    responses((status = 200, content_type = "text/event-stream", body = LogMessage)))]
pub(crate) async fn follow(
    State(context): State<Context>,
    caller: Caller,
    PathParams(id): PathParams<JobId>,
    Query(query): Query<LogQuery>,
) -> Result<Sse<impl Stream<Item = Result<SseEvent, Infallible>>>, ApiError> {
    let following = Following::begin(context.app.clone(), caller, id, query).await?;
    let stop = context.stop.clone();
    let stream = async_stream::stream! {
        let mut following = following;
        loop {
            let (messages, ended) = following.step().await;
            for message in messages {
                yield Ok(message);
            }
            if ended {
                return;
            }
            tokio::select! {
                () = tokio::time::sleep(LOOK_AGAIN) => {}
                () = stop.cancelled() => return,
            }
        }
    };
    Ok(Sse::new(stream).keep_alive(KeepAlive::default()))
}

/// One client's place in a job's logs.
struct Following {
    app: Arc<App>,
    caller: Caller,
    id: JobId,
    query: LogQuery,
    pattern: Option<Pattern>,
    follower: LogFollower,
    /// Lines before the follower's place that were not given yet: the tail that was asked for.
    lines: Vec<LogLine>,
    /// Attempts before it are not followed; it is part of the cursor.
    first: AttemptNumber,
    said: Option<(JobState, ReasonCode)>,
}

impl Following {
    async fn begin(app: Arc<App>, caller: Caller, id: JobId, mut query: LogQuery) -> Result<Self, Problem> {
        let job = app.job_for(&caller, id, Action::SeeJob).await?;
        let (first, cursor) = match query.cursor.take() {
            Some(text) => {
                let (first, cursor) = text.split_once('!').ok_or_else(bad_cursor)?;
                (AttemptNumber(first.parse().map_err(|_| bad_cursor())?), Some(cursor.to_owned()))
            }
            None => (query.attempt.unwrap_or_else(|| last_attempt(&job)), None),
        };
        let pattern = query
            .search
            .as_deref()
            .map(|search| pattern(search, query.regex))
            .transpose()
            .map_err(log_problem)?;
        let sources = sources(&app, &job, &query, Some(first))?;
        let (tail, counting) = (query.tail.take(), app.clone());
        let (follower, lines) = tokio::task::spawn_blocking(move || match (cursor, tail) {
            (None, Some(count)) => {
                let page =
                    logs::tail(&sources, None, count.min(LARGEST_LIMIT) as usize, &counting.line_counts)?;
                LogFollower::new(sources, Some(&page.next)).map(|follower| (follower, page.lines))
            }
            (cursor, _) => {
                LogFollower::new(sources, cursor.as_deref()).map(|follower| (follower, Vec::new()))
            }
        })
        .await
        .map_err(|_| Problem::new(ProblemCode::Internal, "reading the log failed"))?
        .map_err(log_problem)?;
        Ok(Following { app, caller, id, query, pattern, follower, lines, first, said: None })
    }

    /// What is new; true when nothing will follow.
    async fn step(&mut self) -> (Vec<SseEvent>, bool) {
        let mut messages = Vec::new();
        // The job before its logs: a launcher's last lines are written before its end is known.
        // Checked again each time: an account that has left the workspace, or lost its administrator rights, reads no more.
        let Some(caller) = self.app.directory.asker_now(&self.caller) else { return (messages, true) };
        let Ok(job) = self.app.job_for(&caller, self.id, Action::SeeJob).await else {
            return (messages, true);
        };
        for source in sources(&self.app, &job, &self.query, Some(self.first)).unwrap_or_default() {
            self.follower.add(source);
        }
        let why = reason(&job, None);
        if job.state() != JobState::Ended && self.said.as_ref() != Some(&(job.state(), why.code())) {
            self.said = Some((job.state(), why.code()));
            let view = self.app.view(&job).await;
            messages.push(self.event(&LogMessage::State { state: view.state, reason: view.reason }));
        }
        if !self.lines.is_empty() {
            let lines = std::mem::take(&mut self.lines);
            let lines = self.filtered(lines);
            messages.push(self.event(&LogMessage::Lines { lines }));
        }
        loop {
            let mut follower = self.follower.clone();
            let polled = tokio::task::spawn_blocking(move || {
                let lines = follower.poll(LINES_AT_ONCE);
                (follower, lines)
            });
            let Ok((follower, Ok(lines))) = polled.await else { return (messages, true) };
            self.follower = follower;
            if lines.is_empty() {
                break;
            }
            let lines = self.filtered(lines);
            messages.push(self.event(&LogMessage::Lines { lines }));
        }
        let Some(outcome) = job.outcome() else { return (messages, false) };
        let exit_code = exit_code(&job).unwrap_or_default();
        messages.push(self.event(&LogMessage::End { outcome, exit_code, reason: reason(&job, None) }));
        (messages, true)
    }

    fn filtered(&self, mut lines: Vec<LogLine>) -> Vec<LogLine> {
        if let Some(pattern) = &self.pattern {
            lines.retain(|line| pattern.is_match(line.text.as_bytes()));
        }
        lines
    }

    fn event(&self, message: &LogMessage) -> SseEvent {
        let cursor = format!("{}!{}", self.first, self.follower.cursor());
        SseEvent::default().id(cursor).data(serde_json::to_string(message).unwrap_or_default())
    }
}

/// The logs that a query is about; with `since`, those of all attempts from it on.
fn sources(
    app: &App,
    job: &Job,
    query: &LogQuery,
    since: Option<AttemptNumber>,
) -> Result<Vec<LogSource>, Problem> {
    if query.search.as_ref().is_some_and(|search| search.len() > LONGEST_SEARCH) {
        let detail = format!("`search` is longer than {LONGEST_SEARCH} bytes");
        return Err(Problem::new(ProblemCode::BadRequest, detail));
    }
    let wanted = |number: AttemptNumber| match (query.attempt, since) {
        (Some(only), _) => number == only,
        (None, Some(first)) => number >= first,
        (None, None) => number == last_attempt(job),
    };
    let attempts: Vec<&Attempt> = job
        .past
        .iter()
        .map(|past| &past.attempt)
        .chain(job.active())
        .filter(|attempt| wanted(attempt.number))
        .collect();
    if let (Some(number), true) = (query.attempt, attempts.is_empty()) {
        let detail = format!("job {} has no attempt {number}", job.id);
        return Err(Problem::new(ProblemCode::NotFound, detail));
    }
    // Attempts on different devices may have different numbers of ranks.
    let ranks_of = |devices| job.spec.workers.saturating_mul(job.spec.ranks_per_worker(devices));
    let most = attempts.iter().map(|attempt| ranks_of(attempt.devices_per_worker())).max();
    let most = most.unwrap_or_else(|| ranks_of(job.spec.most_devices()));
    if let Some(rank) = query.rank.filter(|rank| rank.0 >= most) {
        let detail = format!("job {} has no rank {rank}: they are counted from 0 to {}", job.id, most - 1);
        return Err(Problem::new(ProblemCode::NotFound, detail));
    }
    let sources = attempts.iter().flat_map(|attempt| {
        let per_worker = job.spec.ranks_per_worker(attempt.devices_per_worker());
        let ranks = 0..ranks_of(attempt.devices_per_worker());
        ranks.filter(|rank| query.rank.is_none_or(|only| only.0 == *rank)).map(move |rank| {
            let worker = WorkerIndex(rank / per_worker);
            let folder = app.layout.run_folder(job.worker_id(attempt.number, worker));
            let rank = Rank(rank);
            LogSource { path: folder.join(rank_log_name(rank)), attempt: attempt.number, worker, rank }
        })
    });
    Ok(sources.collect())
}

/// The newest attempt; 1 where there is none yet, which is then the first to be followed.
pub(crate) fn last_attempt(job: &Job) -> AttemptNumber {
    let live = job.active().map(|attempt| attempt.number);
    live.or(job.past.last().map(|past| past.attempt.number)).unwrap_or(AttemptNumber(1))
}

pub(super) fn bad_cursor() -> Problem {
    Problem::new(ProblemCode::BadRequest, "invalid `cursor`: pass `next` of an earlier page")
}

#[expect(clippy::needless_pass_by_value, reason = "reads as `map_err(log_problem)`")]
pub(super) fn log_problem(error: LogError) -> Problem {
    match &error {
        LogError::BadCursor => Problem::invalid_fields(vec![FieldError::new("cursor", error.to_string())]),
        LogError::BadPattern { .. } => {
            Problem::invalid_fields(vec![FieldError::new("search", crate::error_chain(&error))])
        }
        LogError::Read { .. } | LogError::NotAFile { .. } => {
            Problem::new(ProblemCode::Unavailable, crate::error_chain(&error))
        }
    }
}
