//! Forgets jobs that ended long ago, with their folders. Retention counts from a job's end.

use jiff::{SignedDuration, Timestamp};

use crate::app::App;

/// So many at a time, so that a first pass over years of jobs does not stall everything else.
const MOST_PER_PASS: u32 = 500;

pub(crate) async fn reconcile_retain(app: &App) {
    let Some(keep) = app.keep_ended else { return };
    let keep = SignedDuration::try_from(keep.to_duration()).unwrap_or(SignedDuration::MAX);
    let Ok(before) = Timestamp::now().checked_sub(keep) else { return };
    match app.store.jobs_ended_before(before, MOST_PER_PASS).await {
        Ok(ids) if ids.is_empty() => {}
        Ok(ids) => match app.forget(&ids).await {
            Ok(count) => tracing::info!("forgot {count} jobs that ended before {before:.0}"),
            Err(error) => tracing::warn!("could not forget old jobs: {}", crate::error_chain(&error)),
        },
        Err(error) => tracing::warn!("could not find old jobs: {}", crate::error_chain(&error)),
    }
}
