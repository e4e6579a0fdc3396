//! Forgets jobs that ended long ago, with their folders, and code that no job names. Retention counts from a job's end.

use std::collections::HashSet;
use std::time::{Duration, SystemTime};

use danlu_objects::StoredSnapshot;
use jiff::{SignedDuration, Timestamp};

use crate::app::App;

/// So many at a time, so that a first pass over years of jobs does not stall everything else.
const MOST_PER_PASS: u32 = 500;
/// A client asks for a snapshot or uploads it, and then names it in a job; nobody takes a day for that.
const KEEP_CODE: Duration = Duration::from_hours(24);

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

pub(crate) async fn reconcile_code(app: &App) {
    match remove_code(app).await {
        Ok(0) => {}
        Ok(count) => tracing::info!("removed {count} code snapshots that no job names"),
        Err(error) => tracing::warn!("could not remove old code: {}", crate::error_chain(error.as_ref())),
    }
}

async fn remove_code(app: &App) -> anyhow::Result<usize> {
    let Some(before) = SystemTime::now().checked_sub(KEEP_CODE) else { return Ok(0) };
    let code = app.code.clone();
    let snapshots = tokio::task::spawn_blocking(move || code.list()).await??;
    // After the list: a job that names a snapshot of it by now counts, and one that will asks for it first.
    let doomed = plan_code_removal(snapshots, &app.store.codes_named().await?, before);
    let code = app.code.clone();
    tokio::task::spawn_blocking(move || {
        let mut removed = 0;
        for digest in doomed {
            removed += usize::from(code.remove_if_unasked(&digest, before)?);
        }
        Ok(removed)
    })
    .await?
}

fn plan_code_removal(
    snapshots: Vec<StoredSnapshot>,
    named: &HashSet<String>,
    before: SystemTime,
) -> Vec<String> {
    snapshots
        .into_iter()
        .filter(|snapshot| snapshot.asked_for < before && !named.contains(&snapshot.digest))
        .map(|snapshot| snapshot.digest)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_code_that_is_old_and_that_no_job_names_is_removed() {
        let before = SystemTime::UNIX_EPOCH + Duration::from_secs(1000);
        let snapshot = |digest: &str, second| StoredSnapshot {
            digest: digest.to_owned(),
            asked_for: SystemTime::UNIX_EPOCH + Duration::from_secs(second),
        };
        let snapshots = vec![
            snapshot("old", 999),
            snapshot("old and named", 1),
            snapshot("young", 1000),
            snapshot("young and named", 2000),
        ];
        let named = HashSet::from(["old and named".to_owned(), "young and named".to_owned()]);
        assert_eq!(plan_code_removal(snapshots, &named, before), ["old"]);
    }
}
