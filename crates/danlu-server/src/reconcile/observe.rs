//! Compares what the engine sees with what the live state says, and tells the job writer the difference.
//!
//! Also reaps: a worker whose end is durable is released, and one that no live attempt knows is ended first.

use std::collections::HashSet;

use danlu_core::job::{FailureCause, WorkerEnd, WorkerFailure};
use danlu_core::launch::StopOrder;
use danlu_core::{Job, Trigger, WorkerLifecycle};
use danlu_engine::{Observation, ObservedState, Which};
use danlu_types::{JobId, Reason, Span, WorkerId};
use futures::StreamExt;
use jiff::{SignedDuration, Timestamp};

use crate::app::App;
use crate::job_writer::{JobWriterError, WriteResult};
use crate::troubles::Subject;

const SAVED_ENOUGH: SignedDuration = SignedDuration::from_secs(5);

/// What is to be done about one observation.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ObserveAction {
    Nothing,
    Tell(Vec<(Trigger, Timestamp)>),
    /// Its end is known: let go of what it held outside its folder.
    Release,
    /// Nobody wants it: end it.
    Kill,
}

pub(crate) async fn reconcile_some(app: &App, workers: &[WorkerId]) {
    let running: HashSet<WorkerId> = workers.iter().copied().filter(|worker| runs(app, *worker)).collect();
    match app.engine.observe(Which::These(workers)).await {
        Ok(observations) => reconcile(app, without_old_news(observations, &running)).await,
        // The look at all workers is a moment away, and says so if it fails too.
        Err(error) => tracing::debug!("could not look at workers: {}", crate::error_chain(&error)),
    }
}

pub(crate) async fn reconcile_all(app: &App) {
    let running = running(app);
    let observed = app.engine.observe(Which::All).await;
    let trouble = observed
        .as_ref()
        .err()
        .map(|error| format!("could not look at workers: {}", crate::error_chain(error)));
    app.health.measures.failed_observations.add(u64::from(trouble.is_some()));
    app.troubles.note(Subject::Workers, trouble);
    let Ok(mut observations) = observed else { return };
    app.troubles.note_workers(observations.iter().filter_map(|observation| match &observation.seen {
        ObservedState::Unreadable { error } => Some((observation.worker, error.as_str())),
        _ => None,
    }));
    let troubled = observations.iter().filter_map(|seen| Some((seen.worker, seen.trouble.as_deref()?)));
    app.troubles.note_launchers(troubled);
    let seen: HashSet<WorkerId> = observations.iter().map(|observation| observation.worker).collect();
    app.troubles.keep_releases(|worker| seen.contains(worker));
    let missing = running.difference(&seen).map(|worker| Observation::new(*worker, ObservedState::Unknown));
    observations.extend(missing);
    reconcile(app, without_old_news(observations, &running)).await;
    app.reports.keep(|job| app.live_state.job(job).is_some_and(|job| job.active().is_some()));
}

/// Without workers that the engine did not know, unless they ran by the live state *before* it was asked: one that was launched
/// and said so while the engine looked around is not lost.
pub(crate) fn without_old_news(
    mut observations: Vec<Observation>,
    running_before: &HashSet<WorkerId>,
) -> Vec<Observation> {
    observations.retain(|seen| seen.seen != ObservedState::Unknown || running_before.contains(&seen.worker));
    observations
}

/// The workers that run by the live state.
fn running(app: &App) -> HashSet<WorkerId> {
    let pages = app.live_state.read();
    let mut running = HashSet::new();
    for job in pages.active() {
        let Some(attempt) = job.active() else { continue };
        for (worker, index) in attempt.workers.iter().zip(0..) {
            if matches!(worker.state, WorkerLifecycle::Running { .. }) {
                running.insert(job.worker_id(attempt.number, danlu_types::WorkerIndex(index)));
            }
        }
    }
    running
}

fn runs(app: &App, worker: WorkerId) -> bool {
    let job = app.live_state.job(worker.job);
    let attempt = job.as_ref().and_then(|job| job.active()).filter(|live| live.number == worker.attempt);
    let state =
        attempt.and_then(|live| live.workers.get(worker.worker.0 as usize)).map(|worker| &worker.state);
    matches!(state, Some(WorkerLifecycle::Running { .. }))
}

async fn reconcile(app: &App, observations: Vec<Observation>) {
    let mut events: Vec<(JobId, Trigger, Timestamp)> = Vec::new();
    let mut release = Vec::new();
    for observation in observations {
        let worker = observation.worker;
        if let ObservedState::Running { report: Some(report), .. } = &observation.seen {
            app.reports.take(worker, (**report).clone());
        }
        let stalled = |detail: &String| Reason::LauncherStalled { detail: detail.clone() };
        let trouble = observation.trouble.as_ref().map(stalled);
        app.reports.remark(worker, observation.remark.clone().or(trouble), observation.wait);
        events.extend(moved(app, &observation).map(|event| (worker.job, event, Timestamp::now())));
        match judge(app.live_state.job(worker.job).as_deref(), &observation, Timestamp::now()) {
            ObserveAction::Nothing => {}
            ObserveAction::Tell(told) => {
                if matches!(observation.seen, ObservedState::Ended { .. }) {
                    release.push((worker, events.len() + told.len() - 1));
                }
                events.extend(told.into_iter().map(|(event, at)| (worker.job, event, at)));
            }
            ObserveAction::Release => release_worker(app, worker).await,
            ObserveAction::Kill => kill_worker(app, worker).await,
        }
    }
    let results = app.job_writer.apply_all(events).await;
    let changed = results.iter().filter_map(|result| match result {
        Ok(WriteResult::Done(job)) => Some(job.as_ref()),
        _ => None,
    });
    if app.nodes.learn(changed, Timestamp::now()) {
        app.take_out_worn_devices().await;
    }
    // Only what is durable may be forgotten by the engine.
    let durable: Vec<WorkerId> = release
        .into_iter()
        .filter(|(_, index)| is_durable(&results[*index]))
        .map(|(worker, _)| worker)
        .collect();
    futures::stream::iter(durable).for_each_concurrent(4, |worker| release_worker(app, worker)).await;
}

/// That an engine which places workers itself has put this one somewhere. Told before anything else of it: should it have
/// failed there, that node is to be avoided.
fn moved(app: &App, observation: &Observation) -> Option<Trigger> {
    let WorkerId { job, attempt, worker } = observation.worker;
    let to = observation.place.as_ref()?;
    let job = app.live_state.job(job)?;
    let live = job.active().filter(|live| live.number == attempt)?;
    let is_known = live.workers.get(worker.0 as usize)?.settled;
    (!is_known).then(|| Trigger::WorkerMoved { attempt, worker, to: to.clone(), settled: true })
}

/// Whether the job's end of this worker is written down. Where the job writer had anything else to say, the next look finds what
/// is to be done about the worker.
pub(crate) fn is_durable(told: &Result<WriteResult, JobWriterError>) -> bool {
    matches!(told, Ok(WriteResult::Done(_) | WriteResult::Unchanged(_)))
}

/// `job` as it is durable, if it has not ended.
pub(crate) fn judge(job: Option<&Job>, observation: &Observation, now: Timestamp) -> ObserveAction {
    let WorkerId { attempt, worker, .. } = observation.worker;
    let live = job.and_then(Job::active).filter(|live| live.number == attempt);
    let known = live.and_then(|live| live.workers.get(worker.0 as usize));
    let known_to_hang = known.is_some_and(|worker| worker.hangs);
    let Some(state) = known.map(|worker| &worker.state) else {
        return match observation.seen {
            ObservedState::Unknown | ObservedState::Unreadable { .. } => ObserveAction::Nothing,
            ObservedState::Ended { .. } => ObserveAction::Release,
            ObservedState::Preparing | ObservedState::Running { .. } => ObserveAction::Kill,
        };
    };
    let placed_at = live.map_or(now, |live| live.placed_at);
    let by_our_clock = |at: Timestamp| within(at, placed_at, now);
    let running = |since: Timestamp| (Trigger::WorkerRunning { attempt, worker }, by_our_clock(since));
    match (&observation.seen, state) {
        (ObservedState::Ended { .. }, WorkerLifecycle::Ended { .. }) => ObserveAction::Release,
        (ObservedState::Ended { running_since, at, exit }, WorkerLifecycle::Placed) => {
            let mut events: Vec<_> = running_since.map(running).into_iter().collect();
            events.push((Trigger::WorkerEnded { attempt, worker, exit: exit.clone() }, by_our_clock(*at)));
            ObserveAction::Tell(events)
        }
        (ObservedState::Ended { at, exit, .. }, WorkerLifecycle::Running { .. }) => {
            let exit = exit.clone();
            ObserveAction::Tell(vec![(Trigger::WorkerEnded { attempt, worker, exit }, by_our_clock(*at))])
        }
        (ObservedState::Running { since, .. }, WorkerLifecycle::Placed) => {
            ObserveAction::Tell(vec![running(*since)])
        }
        (ObservedState::Running { report: Some(report), .. }, WorkerLifecycle::Running { .. }) => {
            let mut events = Vec::new();
            if let Some(saved) = &report.checkpoint
                && is_news(saved.at, live.and_then(|live| live.saved_at))
            {
                events.push((Trigger::Saved { attempt }, saved.at));
            }
            let is_ending = live.is_some_and(|live| live.stop.is_some());
            if report.hang.is_some() != known_to_hang && !is_ending {
                events.push((Trigger::WorkerHangs { attempt, worker, hang: report.hang.clone() }, now));
            }
            if events.is_empty() { ObserveAction::Nothing } else { ObserveAction::Tell(events) }
        }
        (ObservedState::Unknown, WorkerLifecycle::Running { .. }) => {
            let detail = "the engine has forgotten it".to_owned();
            let failure = WorkerFailure { cause: FailureCause::NodeLost, rank: None, exit: None, detail };
            ObserveAction::Tell(vec![(
                Trigger::WorkerEnded { attempt, worker, exit: WorkerEnd::Failed(failure) },
                now,
            )])
        }
        (ObservedState::Running { .. } | ObservedState::Preparing | ObservedState::Unreadable { .. }, _)
        | (ObservedState::Unknown, WorkerLifecycle::Placed | WorkerLifecycle::Ended { .. }) => {
            ObserveAction::Nothing
        }
    }
}

/// Nodes have clocks of their own: nothing happened before the job was placed, or will have happened after now.
fn within(at: Timestamp, placed_at: Timestamp, now: Timestamp) -> Timestamp {
    at.max(placed_at).min(now.max(placed_at))
}

/// What a job would lose is known to the second or two; a program that saves all the time need not be written down so often.
fn is_news(saved_at: Timestamp, known: Option<Timestamp>) -> bool {
    known.is_none_or(|known| saved_at.duration_since(known) >= SAVED_ENOUGH)
}

/// Tried again every second while it fails, and said once.
async fn release_worker(app: &App, worker: WorkerId) {
    let released = app.engine.release(worker).await;
    let trouble = released.err().map(|error| {
        format!(
            "what worker {worker} held cannot be let go although it has ended: {}",
            crate::error_chain(&error)
        )
    });
    app.troubles.note(Subject::Release(worker), trouble);
}

async fn kill_worker(app: &App, worker: WorkerId) {
    // The look may be older than the live state: what has ended since needs no killing.
    let seen = app.engine.observe(Which::These(&[worker])).await;
    let lives =
        |seen: &Observation| matches!(seen.seen, ObservedState::Preparing | ObservedState::Running { .. });
    if seen.is_ok_and(|seen| !seen.iter().any(lives)) {
        return;
    }
    let ended = app.engine.signal(worker, &StopOrder { grace: Span::default() }).await;
    let trouble = match ended {
        Ok(()) => format!("ending worker {worker}, which belongs to no live attempt"),
        Err(error) => format!(
            "worker {worker}, which belongs to no live attempt, cannot be told to end: {}",
            crate::error_chain(&error)
        ),
    };
    app.troubles.note(Subject::Release(worker), Some(trouble));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_wrong_clocks_are_kept_within_ours() {
        let at = |second| Timestamp::from_second(second).expect("a time");
        assert_eq!(within(at(5), at(10), at(20)), at(10));
        assert_eq!(within(at(15), at(10), at(20)), at(15));
        assert_eq!(within(at(260), at(10), at(20)), at(20));
        assert_eq!(within(at(15), at(30), at(20)), at(30), "ours was set back meanwhile");
    }
}
