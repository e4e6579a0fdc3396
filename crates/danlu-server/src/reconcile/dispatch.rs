//! Launches workers that are placed, and signals those that are to end.
//!
//! Both are done by one loop, so a worker is never launched while it is being given up.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use danlu_core::job::{FailureCause, WorkerEnd, WorkerFailure};
use danlu_core::launch::{StopOrder, launch_file};
use danlu_core::{Attempt, Job, Trigger, WorkerLifecycle};
use danlu_engine::{ObservedState, Which};
use danlu_types::{Span, WorkerId, WorkerIndex};
use jiff::Timestamp;
use tokio::task::JoinSet;

use crate::app::{App, NAMES_NO_NODES};
use crate::unix_users::UnixUserError;

/// What this server has done already, so that a pass costs little when there is nothing to do. Forgetting it is harmless:
/// the engine's calls are idempotent.
#[derive(Debug, Default)]
pub(crate) struct DispatchMemory {
    /// When each worker that has not been seen to run was last launched.
    launched: HashMap<WorkerId, Instant>,
    signalled: HashMap<WorkerId, Signalled>,
    /// Since when each worker with a time limit has been seen to run, by a clock that nobody sets.
    running: HashMap<WorkerId, Instant>,
    /// Launches that have not been answered, and since when.
    launching: HashMap<WorkerId, Instant>,
    tasks: JoinSet<(WorkerId, Launched)>,
}

/// What a worker was told about its end.
#[derive(Debug, Clone, Copy)]
struct Signalled {
    grace: Span,
    /// When that was first tried, until its launcher has heard it.
    at: Instant,
    /// Whether its launcher has heard it.
    told: bool,
}

/// A launcher that has not ended its worker this long after it should have is stopped or hangs, and is killed. What it does
/// by then takes milliseconds; what it may not have read of its ranks' output is lost.
const LAUNCHER_IS_LATE: Duration = Duration::from_secs(10);

/// Launches are short, but not so short that a gang of a thousand should be started one by one.
const LAUNCHES_AT_ONCE: usize = 4;
/// A launch that takes longer is not waited for: a cluster's program that hangs holds up only what it was started for.
const SLOW: Duration = Duration::from_secs(2);
/// With so many that hang, the engine does not answer at all.
const MOST_SLOW: usize = 16;
/// A worker that was launched and does not run after this time is launched again: an engine that lost it on the way starts
/// it, one that has it does nothing.
const LAUNCH_AGAIN: Duration = Duration::from_secs(1);

pub(crate) async fn reconcile_launch(app: &Arc<App>, memory: &mut DispatchMemory) {
    let active: Vec<Arc<Job>> = app.live_state.read().active().cloned().collect();
    let mut due = Vec::new();
    let mut live = HashSet::new();
    for job in &active {
        let Some(attempt) = job.active() else { continue };
        for index in indices(attempt, |state| *state == WorkerLifecycle::Placed) {
            let worker = job.worker_id(attempt.number, index);
            live.insert(worker);
            let is_recent = |at: &Instant| at.elapsed() < LAUNCH_AGAIN;
            let is_under_way = memory.launching.contains_key(&worker);
            if attempt.stop.is_none() && !is_under_way && !memory.launched.get(&worker).is_some_and(is_recent)
            {
                due.push((job.clone(), worker));
            }
        }
    }
    memory.launched.retain(|worker, _| live.contains(worker));
    let mut failed = Vec::new();
    for (worker, launched) in launch_all(app, memory, due).await {
        let trouble = if let Launched::Later(trouble) = &launched { trouble.clone() } else { None };
        app.reports.launch_trouble(worker, trouble);
        match launched {
            Launched::Later(_) => continue,
            Launched::Yes => {}
            Launched::Never(event) => failed.push((worker.job, event, Timestamp::now())),
        }
        memory.launched.insert(worker, Instant::now());
    }
    for (worker, since) in memory.launching.iter().filter(|(_, since)| since.elapsed() > SLOW) {
        let text = format!("waits for the engine to accept it, for {} s now", since.elapsed().as_secs());
        app.reports.launch_trouble(*worker, Some(text));
    }
    // What could not be written now is found again, because the worker is still placed and unknown to the engine.
    for (result, worker) in app.job_writer.apply_all(failed.clone()).await.into_iter().zip(failed) {
        if result.is_err() {
            memory.launched.retain(|launched, _| launched.job != worker.0);
        }
    }
}

/// Launches all that are due, and says what became of those that were answered soon.
async fn launch_all(
    app: &Arc<App>,
    memory: &mut DispatchMemory,
    due: Vec<(Arc<Job>, WorkerId)>,
) -> Vec<(WorkerId, Launched)> {
    let mut due = due.into_iter();
    let mut results = Vec::new();
    loop {
        let slow = memory.launching.values().filter(|since| since.elapsed() > SLOW).count();
        while memory.launching.len() < LAUNCHES_AT_ONCE + slow.min(MOST_SLOW)
            && let Some((job, worker)) = due.next()
        {
            let app = Arc::clone(app);
            memory.launching.insert(worker, Instant::now());
            memory.tasks.spawn(async move { (worker, launch(&app, &job, worker).await) });
        }
        let newest = memory.launching.values().filter(|since| since.elapsed() <= SLOW).max();
        // Nothing is under way but what hangs.
        let patience = newest.map_or(Duration::ZERO, |since| SLOW.saturating_sub(since.elapsed()));
        match tokio::time::timeout(patience, memory.tasks.join_next()).await {
            Ok(Some(Ok((worker, launched)))) => {
                memory.launching.remove(&worker);
                results.push((worker, launched));
            }
            // A panic: what it was for is not known, and is launched again.
            Ok(Some(Err(error))) => {
                tracing::error!("a launch failed: {error}");
                memory.launching.clear();
                memory.tasks.abort_all();
            }
            Ok(None) => return results,
            Err(_) if newest_is_slow(memory) => return results,
            Err(_) => {}
        }
    }
}

fn newest_is_slow(memory: &DispatchMemory) -> bool {
    memory.launching.values().all(|since| since.elapsed() > SLOW)
}

#[derive(Debug)]
enum Launched {
    Yes,
    /// The host lacks something now, a disk with room for instance; the next pass tries again. Why, for people.
    Later(Option<String>),
    Never(Trigger),
}

async fn launch(app: &App, job: &Job, worker: WorkerId) -> Launched {
    let nodes = app.live_state.nodes();
    // A pass over many takes a while with some engines: meanwhile this one may have run, ended and been released.
    let is_placed = |job: &Arc<Job>| {
        let attempt =
            job.active().filter(|attempt| attempt.number == worker.attempt && attempt.stop.is_none());
        let own = attempt.and_then(|attempt| attempt.workers.get(worker.worker.0 as usize));
        own.is_some_and(|own| own.state == WorkerLifecycle::Placed)
    };
    if !app.live_state.job(worker.job).as_ref().is_some_and(is_placed) {
        return Launched::Later(None);
    }
    let Some(attempt) = job.active() else { return Launched::Later(None) };
    let name = &attempt.workers[worker.worker.0 as usize].grant.node;
    let failed = |cause, detail: String| {
        let failure = WorkerFailure { cause, rank: None, exit: None, detail };
        let exit = WorkerEnd::Failed(failure);
        Launched::Never(Trigger::WorkerEnded { attempt: worker.attempt, worker: worker.worker, exit })
    };
    let Some(node) = nodes.iter().find(|node| node.name == *name) else {
        // An engine that has not answered yet has said nothing of its nodes.
        if let Some(trouble) = app.engine.trouble() {
            return Launched::Later(Some(format!("waits: {trouble}")));
        }
        // One that answers again names them with the next inventory.
        if nodes.is_empty() {
            return Launched::Later(Some(format!("waits: {NAMES_NO_NODES}")));
        }
        return failed(FailureCause::NodeLost, format!("node `{name}` is not in the inventory"));
    };
    let Some(mut file) = launch_file(job, attempt, worker.worker, node, &app.layout) else {
        return Launched::Later(None);
    };
    if app.engine.places(&attempt.grants()) {
        file.unsuitable = danlu_sched::unsuitable(job, attempt, &nodes);
    }
    file.env.extend(app.directory.shared_places(&job.spec.workspace));
    file.user = match app.unix_user(&job.owner).await {
        Ok(user) => user,
        Err(error @ (UnixUserError::Store(_) | UnixUserError::LookUp { .. })) => {
            tracing::error!(job.id = %job.id, "could not launch worker {worker}: {}", crate::error_chain(&error));
            return Launched::Later(None);
        }
        Err(error) => return failed(FailureCause::StartFailed, error.to_string()),
    };
    file.secrets = match app.directory.given_secrets(job) {
        Ok(secrets) => secrets,
        Err(error) => return failed(FailureCause::StartFailed, crate::error_chain(&error)),
    };
    file.access = app.attempts.access(worker);
    file.sandbox = Some(app.sandbox.launch.clone());
    file.limits.processes = app.sandbox.processes;
    match app.engine.launch(&file).await {
        Ok(()) => Launched::Yes,
        Err(error) => {
            let detail = crate::error_chain(&error);
            tracing::error!(job.id = %job.id, "could not launch worker {worker}: {detail}");
            if error.is_transient() {
                return Launched::Later(Some(format!(
                    "could not be launched yet: {detail}; it is tried again"
                )));
            }
            if let Some(reason) = error.not_now() {
                return Launched::Never(Trigger::Requeue { attempt: worker.attempt, reason });
            }
            failed(FailureCause::StartFailed, detail)
        }
    }
}

pub(crate) async fn reconcile_stop(app: &App, memory: &mut DispatchMemory) {
    let active: Vec<Arc<Job>> = app.live_state.read().active().cloned().collect();
    let mut live = HashSet::new();
    for job in &active {
        let Some(attempt) = job.active() else { continue };
        let Some(stop) = &attempt.stop else { continue };
        for index in indices(attempt, |state| !matches!(state, WorkerLifecycle::Ended { .. })) {
            let worker = job.worker_id(attempt.number, index);
            live.insert(worker);
            let now = Instant::now();
            let before = memory.signalled.get(&worker).filter(|before| before.grace == stop.grace).copied();
            let mut signalled = before.unwrap_or(Signalled { grace: stop.grace, at: now, told: false });
            if is_late(signalled.at.elapsed(), stop.grace.to_duration()) {
                kill_hanging(app, worker, &WorkerEnd::Stopped).await;
                // Should that fail, it is tried again after the same time.
                signalled.at = now;
            } else if memory.launching.contains_key(&worker) {
                // Not to be called unknown before the engine knows it.
                let _ = send(app, worker, stop.grace).await;
            } else if !signalled.told {
                signalled.told = signal(app, worker, stop.grace).await;
                if signalled.told {
                    // Its grace begins when it is told: a cluster that did not answer for a while has told it only now.
                    signalled.at = Instant::now();
                }
            }
            memory.signalled.insert(worker, signalled);
        }
    }
    memory.signalled.retain(|worker, _| live.contains(worker));
}

/// Ends workers that run on after their `max_time`. Their launchers do so; this is for those that hang.
pub(crate) async fn reconcile_time_limits(app: &App, memory: &mut DispatchMemory) {
    let active: Vec<Arc<Job>> = app.live_state.read().active().cloned().collect();
    let mut live = HashSet::new();
    for job in &active {
        let (Some(attempt), Some(limit)) = (job.active(), job.spec.max_time) else { continue };
        if attempt.stop.is_some() {
            continue;
        }
        for index in indices(attempt, |state| matches!(state, WorkerLifecycle::Running { .. })) {
            let worker = job.worker_id(attempt.number, index);
            live.insert(worker);
            let since = memory.running.entry(worker).or_insert_with(Instant::now);
            let allowed = limit.to_duration().saturating_add(job.spec.grace.to_duration());
            if is_late(since.elapsed(), allowed) {
                *since = Instant::now();
                let detail = limit.to_string();
                let failure =
                    WorkerFailure { cause: FailureCause::TimeLimit, rank: None, exit: None, detail };
                kill_hanging(app, worker, &WorkerEnd::Failed(failure)).await;
            }
        }
    }
    memory.running.retain(|worker, _| live.contains(worker));
}

fn is_late(elapsed: Duration, allowed: Duration) -> bool {
    elapsed > allowed.saturating_add(LAUNCHER_IS_LATE)
}

async fn kill_hanging(app: &App, worker: WorkerId, exit: &WorkerEnd) {
    // That it was killed is written down.
    app.health.make_room();
    match app.engine.kill(worker, exit).await {
        Ok(true) => {
            tracing::warn!(job.id = %worker.job, "the launcher of worker {worker} did not end it: both are killed");
        }
        Ok(false) => {}
        Err(error) => {
            let chain = crate::error_chain(&error);
            tracing::error!(job.id = %worker.job, "could not kill worker {worker}, whose launcher hangs: {chain}");
        }
    }
}

/// Tells one worker to end; true when it has been told and need not be told again.
async fn signal(app: &App, worker: WorkerId, grace: Span) -> bool {
    let seen = match app.engine.observe(Which::These(&[worker])).await {
        Ok(observations) => {
            observations.into_iter().next().map_or(ObservedState::Unknown, |observation| observation.seen)
        }
        Err(error) => {
            tracing::warn!("could not look at worker {worker}: {}", crate::error_chain(&error));
            return false;
        }
    };
    match seen {
        // It was never launched, and this loop, which alone launches, will not do so any more.
        ObservedState::Unknown => {
            let event = Trigger::WorkerEnded {
                attempt: worker.attempt,
                worker: worker.worker,
                exit: WorkerEnd::Stopped,
            };
            app.job_writer.apply(worker.job, event).await.is_ok()
        }
        ObservedState::Ended { .. } => true,
        // Until it runs, or can be looked at, it may not hear us: say it again at the next pass.
        ObservedState::Preparing | ObservedState::Unreadable { .. } => {
            let _ = send(app, worker, grace).await;
            false
        }
        ObservedState::Running { .. } => send(app, worker, grace).await,
    }
}

async fn send(app: &App, worker: WorkerId, grace: Span) -> bool {
    let order = StopOrder { grace };
    let mut sent = app.engine.signal(worker, &order).await;
    // Perhaps it is this very job that fills the disk.
    while sent.as_ref().is_err_and(danlu_engine::EngineError::is_full_disk) && app.health.make_room() {
        sent = app.engine.signal(worker, &order).await;
    }
    match sent {
        Ok(()) => {
            if let Some(sidecars) = &app.sidecars {
                sidecars.tell(worker.job);
            }
            true
        }
        Err(error) => {
            tracing::warn!("could not signal worker {worker}: {}", crate::error_chain(&error));
            false
        }
    }
}

fn indices(
    attempt: &Attempt,
    wanted: impl Fn(&WorkerLifecycle) -> bool,
) -> impl Iterator<Item = WorkerIndex> {
    attempt
        .workers
        .iter()
        .zip(0..)
        .filter(move |(worker, _)| wanted(&worker.state))
        .map(|(_, index)| WorkerIndex(index))
}

#[cfg(test)]
mod tests {
    use super::super::faults::{FaultStep, FaultWorld, TestSubmission};
    use super::*;

    /// An engine that answers again has named its nodes only when the next inventory was taken.
    #[tokio::test]
    async fn what_was_placed_waits_for_the_first_inventory() {
        let mut world = FaultWorld::new(false).await;
        let wish = TestSubmission { workers: 1, devices: 1, seconds: 0, retries: 0, code: 0 };
        world.act(FaultStep::Submit(wish)).await;
        world.act(FaultStep::Schedule).await;
        let nodes = world.app.live_state.nodes().to_vec();
        world.app.live_state.write().set_nodes(Vec::new());
        world.act(FaultStep::Launch).await;
        let states = |world: &FaultWorld| -> Vec<WorkerLifecycle> {
            let pages = world.app.live_state.read();
            let attempts: Vec<_> = pages.active().filter_map(|job| job.active()).collect();
            attempts.iter().flat_map(|it| it.workers.iter().map(|worker| worker.state.clone())).collect()
        };
        assert_eq!(
            states(&world),
            [WorkerLifecycle::Placed],
            "it was given up for a node that nobody has named yet"
        );
        world.app.live_state.write().set_nodes(nodes);
        world.act(FaultStep::Launch).await;
        world.act(FaultStep::Observe).await;
        assert!(!states(&world).contains(&WorkerLifecycle::Placed) || states(&world).is_empty());
    }

    #[test]
    fn a_launcher_is_late_only_well_after_the_grace() {
        let second = Duration::from_secs;
        assert!(!is_late(second(39), second(30)));
        assert!(!is_late(second(40), second(30)));
        assert!(is_late(second(41), second(30)));
        assert!(!is_late(Duration::MAX, Duration::MAX), "no grace is too long to be added to");
    }
}
