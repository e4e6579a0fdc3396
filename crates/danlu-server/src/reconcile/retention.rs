//! Forgets jobs that ended long ago, with their folders, and code that no job names. Retention counts from a job's end.

use std::collections::HashSet;
use std::time::{Duration, Instant, SystemTime};

use danlu_objects::StoredSnapshot;
use danlu_store::StoreError;
use jiff::{SignedDuration, Timestamp};
use tokio_util::sync::CancellationToken;

use crate::app::App;
use crate::troubles::Subject;

/// So many in one transaction: the writer waits for it, and submissions for the writer.
const JOBS_AT_ONCE: u32 = 500;
/// After each piece of work, a rest as long as it took: what is due after years of jobs may take half of a disk's time.
const LONGEST_REST: Duration = Duration::from_secs(2);
/// A client asks for a snapshot or uploads it, and then names it in a job; nobody takes a day for that.
const KEEP_CODE: Duration = Duration::from_hours(24);

/// Forgets all jobs whose time has come, piece by piece, and gives the space that they leave back. Ends early when `stop`
/// is cancelled; the next pass goes on where it was.
pub(crate) async fn reconcile_retain(app: &App, stop: &CancellationToken) {
    let mut forgotten = 0;
    let result = forget_due(app, stop, &mut forgotten).await;
    if forgotten > 0 {
        tracing::info!("forgot {forgotten} jobs that ended long enough ago");
    }
    if let Err(error) = result {
        tracing::warn!("could not forget old jobs: {}", crate::error_chain(&error));
    }
    // Jobs that people delete leave space too.
    if let Err(error) = give_space_back(app, stop).await {
        tracing::warn!("{}", crate::error_chain(&error));
    }
}

async fn forget_due(app: &App, stop: &CancellationToken, forgotten: &mut u64) -> Result<(), StoreError> {
    let Some(keep) = app.keep_ended else { return Ok(()) };
    let keep = SignedDuration::try_from(keep.to_duration()).unwrap_or(SignedDuration::MAX);
    let Ok(before) = retention_time(app, keep).await?.checked_sub(keep) else { return Ok(()) };
    loop {
        let began = Instant::now();
        let ids = app.store.jobs_ended_before(before, JOBS_AT_ONCE).await?;
        *forgotten += app.forget(&ids).await?;
        let is_last = ids.len() < JOBS_AT_ONCE as usize;
        if is_last || !rest(began, stop).await {
            return Ok(());
        }
    }
}

/// What time it is where jobs are to be deleted for good; says so where the wall clock is not believed.
async fn retention_time(app: &App, keep: SignedDuration) -> Result<Timestamp, StoreError> {
    let newest = app.store.jobs_ended_last(1).await?;
    let newest_end = newest.first().and_then(danlu_core::Job::ended_at);
    let reading = app.retention_clock.read(Timestamp::now(), Instant::now(), newest_end, keep);
    let trouble = reading.ahead.map(|ahead| {
        let days = ahead.as_hours() / 24;
        format!(
            "the clock is {days} days ahead of when this server last ran, so jobs are not forgotten by it (`--keep-ended`): if it is \
             right, start once with `danlu up --trust-clock`; if not, set it right"
        )
    });
    app.troubles.note(Subject::Clock, trouble);
    Ok(reading.now)
}

async fn give_space_back(app: &App, stop: &CancellationToken) -> Result<(), StoreError> {
    loop {
        let began = Instant::now();
        if !app.store.space_give_back().await? || !rest(began, stop).await {
            return Ok(());
        }
    }
}

/// False when it is time to end.
async fn rest(began: Instant, stop: &CancellationToken) -> bool {
    tokio::select! {
        () = tokio::time::sleep(began.elapsed().min(LONGEST_REST)) => true,
        () = stop.cancelled() => false,
    }
}

/// Ends what an earlier server had begun to forget: folders that were put aside, and whose jobs are gone by now. Those whose
/// jobs are still there go back to them.
pub(crate) async fn reconcile_put_aside(app: &App) {
    let Ok(mut entries) = tokio::fs::read_dir(app.put_aside()).await else { return };
    while let Ok(Some(entry)) = entries.next_entry().await {
        let Some(id) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        let done = match app.store.job_fetch(id).await {
            Ok(Some(_)) => tokio::fs::rename(entry.path(), app.layout.job_folder(id)).await,
            Ok(None) => {
                app.removals.add([entry.path()]);
                Ok(())
            }
            // Not to be had now, so nothing is known of it.
            Err(_) => continue,
        };
        if let Err(error) = done {
            tracing::warn!("could not clear away {}: {error}", entry.path().display());
        }
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
    use danlu_core::job::{JobEnd, JobLifecycle};
    use danlu_core::{HistoryEvent, Job, transition::EventKind};
    use danlu_store::{Batch, EventFilter, Insert};
    use danlu_types::{JobId, JobSpec};

    use super::super::faults::FaultWorld;
    use super::*;

    fn ended(id: u64) -> Insert {
        let at = Timestamp::now() - SignedDuration::from_hours(1);
        let job = Job::submitted(JobId(id), "ada".to_owned(), JobSpec::of_command("true").into(), at);
        let job = Job { life: JobLifecycle::Ended { at, outcome: JobEnd::Succeeded }, ..job };
        let (kind, actor) = (EventKind::JobSubmitted, "ada".to_owned());
        let record = HistoryEvent { kind, attempt: None, actor, message: "submitted".to_owned() };
        Insert { job, submission_key: None, at, records: vec![record] }
    }

    #[tokio::test]
    async fn one_pass_forgets_everything_that_is_due() {
        let world = FaultWorld::keeping_ended("10m").await;
        let app = &world.app;
        let inserts: Vec<Insert> = (1..=1201).map(ended).collect();
        app.store.commit(Batch { inserts, updates: Vec::new() }).await.unwrap();
        for id in [1, 700, 1201] {
            std::fs::create_dir_all(app.layout.job_folder(JobId(id)).join("output")).unwrap();
        }
        reconcile_retain(app, &CancellationToken::new()).await;
        assert_eq!(app.store.jobs_ended_last(1).await.unwrap(), []);
        let left = EventFilter { job: None, visible: None, after: 0, limit: 1 };
        assert_eq!(app.store.events_list(&left).await.unwrap(), []);
        for folder in [app.layout.data.join("runs"), app.put_aside()] {
            wait_until(|| std::fs::read_dir(&folder).unwrap().count() == 0).await;
        }
    }

    #[tokio::test]
    async fn what_was_put_aside_by_a_killed_server_is_cleared_away() {
        let world = FaultWorld::keeping_ended("10m").await;
        let app = &world.app;
        app.store.commit(Batch { inserts: vec![ended(1)], updates: Vec::new() }).await.unwrap();
        std::fs::create_dir_all(app.layout.data.join("runs")).unwrap();
        for id in ["1", "2"] {
            std::fs::create_dir_all(app.put_aside().join(id).join("output")).unwrap();
        }
        reconcile_put_aside(app).await;
        assert!(app.layout.job_folder(JobId(1)).join("output").is_dir(), "its job is still listed");
        assert!(!app.layout.job_folder(JobId(2)).exists());
        wait_until(|| !app.put_aside().join("2").exists()).await;
    }

    async fn wait_until(is_so: impl Fn() -> bool) {
        let deadline = Instant::now() + Duration::from_mins(3);
        while !is_so() {
            assert!(Instant::now() < deadline, "it takes too long");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// What a job may leave.
    fn deep(folder: &std::path::Path, depth: usize) {
        use nix::fcntl::{OFlag, openat};
        use nix::sys::stat::{Mode, mkdirat};
        std::fs::create_dir_all(folder).unwrap();
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY;
        let mut folder = nix::fcntl::open(folder, flags, Mode::empty()).unwrap();
        for _ in 0..depth {
            mkdirat(&folder, "d", Mode::S_IRWXU).unwrap();
            folder = openat(&folder, "d", flags, Mode::empty()).unwrap();
        }
    }

    /// The security review's H3: fifteen thousand levels ended the server, at a deletion and at each start.
    #[tokio::test]
    async fn a_folder_without_a_bottom_stops_neither_a_deletion_nor_a_start() {
        const DEPTH: usize = 16_000;
        let world = FaultWorld::keeping_ended("10m").await;
        let app = &world.app;
        app.store.commit(Batch { inserts: vec![ended(1)], updates: Vec::new() }).await.unwrap();
        deep(&app.layout.job_folder(JobId(1)).join("output"), DEPTH);
        deep(&app.put_aside().join("2"), 100);
        reconcile_put_aside(app).await;
        reconcile_retain(app, &CancellationToken::new()).await;
        assert_eq!(app.store.jobs_ended_last(1).await.unwrap(), []);
        wait_until(|| std::fs::read_dir(app.put_aside()).unwrap().count() == 0).await;
    }

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
