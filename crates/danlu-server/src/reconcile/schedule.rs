//! Plans, and commits what the plan starts and whom it asks to make room.

use std::sync::Arc;
use std::time::{Duration, Instant};

use danlu_core::job::WorkerLocation;
use danlu_core::{Attempt, Job, Trigger};
use danlu_types::WorkerId;
use danlu_types::api::JobState;
use jiff::Timestamp;

use crate::app::App;
use crate::job_writer::WriteResult;

/// What a pass cost, and when the next may come out differently although nothing happens.
#[derive(Debug)]
pub(crate) struct PassStats {
    pub(crate) planning: Duration,
    pub(crate) until_next: Option<Duration>,
}

/// Starts what can be started, and preempts whom that takes.
pub(crate) async fn reconcile_schedule(app: &App, clock: impl Fn() -> Timestamp) -> PassStats {
    make_way(app, clock()).await;
    let (now, begin) = (clock(), Instant::now());
    let plan = app.planner.plan(now).await;
    // The plan may have waited for its turn and seen ends that came after `now`: by the record nothing may be given out before
    // it was given back.
    let decided = clock();
    let planning = begin.elapsed();
    let preemptions = plan.preemptions.into_iter().map(|preemption| {
        (preemption.victim, Trigger::Preempt { for_job: preemption.for_job }, decided, None)
    });
    // A job that was changed while the plan was made asks for something else.
    let starts = plan
        .starts
        .into_iter()
        .map(|start| (start.job, Trigger::Place { grants: start.grants }, decided, Some(start.seen)));
    let events: Vec<_> = preemptions.chain(starts).collect();
    let ids: Vec<_> = events.iter().map(|(id, _, _, _)| *id).collect();
    let answers = app.job_writer.apply_planned(events).await;
    for (id, answer) in ids.into_iter().zip(answers) {
        match answer {
            Ok(WriteResult::Done(job)) => {
                tracing::debug!(job.id = %id, "job {id} is {}", job.state().as_str());
            }
            // Not at once: if the scheduler were wrong about what is free, asking again would not mend it.
            Ok(WriteResult::Overbooked) => {
                tracing::warn!(job.id = %id, "job {id} was to start on what another holds; planning again");
                app.live_state.write().mark_changed(id);
            }
            // Overtaken by a stop, a hold or a change: the next pass sees the new state.
            Ok(_) => {
                app.live_state.write().mark_changed(id);
                app.wake.schedule.notify_one();
            }
            // A store that fails will not be mended by asking at once.
            Err(_) => app.live_state.write().mark_changed(id),
        }
    }
    app.health.measures.passes.add(begin.elapsed());
    let until_next = plan.next_wake.map(|wake| wake.duration_since(now).unsigned_abs());
    PassStats { planning, until_next }
}

/// Plans for other places those workers that are only planned, and whose places others were put on.
async fn make_way(app: &App, now: Timestamp) {
    let may_move = |attempt: &Attempt| app.engine.places(&attempt.grants());
    let (jobs, nodes) = {
        let pages = app.live_state.read();
        let is_moving = |job: &&Arc<Job>| {
            job.active().is_some_and(|attempt| attempt.state() == JobState::Starting && may_move(attempt))
        };
        if !pages.active().any(|job| is_moving(&job)) {
            return;
        }
        (pages.active().cloned().collect::<Vec<_>>(), pages.nodes.clone())
    };
    let moves = danlu_sched::replan_displaced(&nodes, jobs.iter().map(AsRef::<Job>::as_ref), may_move);
    let event = |(id, to): (WorkerId, WorkerLocation)| {
        let event = Trigger::WorkerMoved { attempt: id.attempt, worker: id.worker, to, settled: false };
        (id.job, event, now)
    };
    // What could not be written is found again by the next pass.
    app.job_writer.apply_all(moves.into_iter().map(event).collect()).await;
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use danlu_core::{JobLifecycle, TransitionError};
    use danlu_types::{JobId, JobSpec};

    use super::super::faults::FaultWorld;
    use super::*;

    const TESTER: &str = "tester";

    async fn submitted(app: &App, devices: &str) -> Arc<Job> {
        let spec = JobSpec { devices: devices.parse().unwrap(), ..JobSpec::of_command("true") };
        match app.job_writer.submit(spec, TESTER.to_owned(), None, None).await.unwrap() {
            WriteResult::Done(job) => job,
            other => panic!("a submission was answered with {other:?}"),
        }
    }

    /// A pass during which something happens after the plan was made and before it is committed: where the pass asks for
    /// the time of its decisions.
    async fn pass_with(app: &Arc<App>, between: impl Fn() -> Trigger) -> Option<WriteResult> {
        const OF_DECISION: u32 = 2;
        let (asked, answer) = (AtomicU32::new(0), std::sync::Mutex::new(None));
        let clock = || {
            if asked.fetch_add(1, Ordering::SeqCst) == OF_DECISION {
                let told = app.job_writer.apply(JobId(1), between());
                let told = tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(told));
                *answer.lock().unwrap() = Some(told.unwrap());
            }
            Timestamp::now()
        };
        reconcile_schedule(app, clock).await;
        answer.into_inner().unwrap()
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_job_that_is_changed_between_plan_and_placement_is_planned_anew() {
        let app = FaultWorld::new(false).await.app;
        let job = submitted(&app, "nvidia:4").await;
        let smaller = JobSpec { devices: "nvidia:1".parse().unwrap(), ..JobSpec::clone(&job.spec) };
        let change = || Trigger::Change {
            by: TESTER.to_owned(),
            spec: Arc::new(smaller.clone()),
            approval: None,
            seen: job.generation,
        };
        let answer = pass_with(&app, change).await;
        assert!(matches!(answer, Some(WriteResult::Done(_))), "{answer:?}");
        let waits = app.live_state.job(job.id).unwrap();
        assert!(
            matches!(waits.life, JobLifecycle::Queued { .. }),
            "placed for what it no longer asks for: {waits:?}"
        );
        assert_eq!(waits.spec.devices.count.devices(), 1);

        reconcile_schedule(&app, Timestamp::now).await;
        let placed = app.live_state.job(job.id).unwrap();
        let grants = placed.active().map(danlu_core::Attempt::grants).unwrap();
        assert_eq!(grants[0].devices.len(), 1);
        // And what was planned for it before is free.
        let all = submitted(&app, "nvidia:4").await;
        reconcile_schedule(&app, Timestamp::now).await;
        assert!(app.live_state.job(all.id).unwrap().active().is_some());
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_job_that_is_held_between_plan_and_placement_stays_held() {
        let app = FaultWorld::new(false).await.app;
        submitted(&app, "nvidia:4").await;
        pass_with(&app, || Trigger::Hold { by: TESTER.to_owned() }).await;
        assert!(matches!(app.live_state.job(JobId(1)).unwrap().life, JobLifecycle::Held { .. }));
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_change_that_comes_after_the_placement_is_refused() {
        let app = FaultWorld::new(false).await.app;
        let job = submitted(&app, "nvidia:4").await;
        reconcile_schedule(&app, Timestamp::now).await;
        let change = Trigger::Change {
            by: TESTER.to_owned(),
            spec: job.spec.clone(),
            approval: None,
            seen: job.generation,
        };
        let answer = app.job_writer.apply(job.id, change).await.unwrap();
        assert!(matches!(answer, WriteResult::Refused(TransitionError::NotWaiting { .. })), "{answer:?}");
    }
}
