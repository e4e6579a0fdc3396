//! Plans, and commits what the plan starts and whom it asks to make room.

use std::sync::Arc;
use std::time::{Duration, Instant};

use danlu_core::job::Whereabouts;
use danlu_core::{Attempt, Event, Job};
use danlu_types::WorkerId;
use danlu_types::api::JobState;
use jiff::Timestamp;

use crate::app::App;
use crate::ledger::Answer;

/// What a pass cost, and when the next may come out differently although nothing happens.
#[derive(Debug)]
pub(crate) struct Pass {
    pub(crate) planning: Duration,
    pub(crate) until_next: Option<Duration>,
}

/// Starts what can be started, and preempts whom that takes.
pub(crate) async fn reconcile_schedule(app: &App, clock: impl Fn() -> Timestamp) -> Pass {
    make_way(app, clock()).await;
    let (now, begin) = (clock(), Instant::now());
    let plan = app.planner.plan(now).await;
    // The plan may have waited for its turn and seen ends that came after `now`: by the record nothing may be given out before
    // it was given back.
    let decided = clock();
    let planning = begin.elapsed();
    let preemptions = plan
        .preemptions
        .into_iter()
        .map(|preemption| (preemption.victim, Event::Preempt { for_job: preemption.for_job }, decided, None));
    // A job that was changed while the plan was made asks for something else.
    let starts = plan
        .starts
        .into_iter()
        .map(|start| (start.job, Event::Place { grants: start.grants }, decided, Some(start.seen)));
    let events: Vec<_> = preemptions.chain(starts).collect();
    let ids: Vec<_> = events.iter().map(|(id, _, _, _)| *id).collect();
    let answers = app.ledger.apply_planned(events).await;
    for (id, answer) in ids.into_iter().zip(answers) {
        match answer {
            Ok(Answer::Done(job)) => tracing::debug!(job.id = %id, "job {id} is {}", job.state().as_str()),
            // Not at once: if the scheduler were wrong about what is free, asking again would not mend it.
            Ok(Answer::Overbooked) => {
                tracing::warn!(job.id = %id, "job {id} was to start on what another holds; planning again");
                app.book.write().mention(id);
            }
            // Overtaken by a stop, a hold or a change: the next pass sees the new state.
            Ok(_) => {
                app.book.write().mention(id);
                app.wake.schedule.notify_one();
            }
            // A store that fails will not be mended by asking at once.
            Err(_) => app.book.write().mention(id),
        }
    }
    let until_next = plan.next_wake.map(|wake| wake.duration_since(now).unsigned_abs());
    Pass { planning, until_next }
}

/// Plans for other places those workers that are only planned, and whose places others were put on.
async fn make_way(app: &App, now: Timestamp) {
    let may_move = |attempt: &Attempt| app.engine.places(&attempt.grants());
    let (jobs, nodes) = {
        let pages = app.book.read();
        let is_moving = |job: &&Arc<Job>| {
            job.active().is_some_and(|attempt| attempt.state() == JobState::Starting && may_move(attempt))
        };
        if !pages.active().any(|job| is_moving(&job)) {
            return;
        }
        (pages.active().cloned().collect::<Vec<_>>(), pages.nodes.clone())
    };
    let moves = danlu_sched::make_way(&nodes, jobs.iter().map(AsRef::<Job>::as_ref), may_move);
    let event = |(id, to): (WorkerId, Whereabouts)| {
        let event = Event::WorkerMoved { attempt: id.attempt, worker: id.worker, to, settled: false };
        (id.job, event, now)
    };
    // What could not be written is found again by the next pass.
    app.ledger.apply_all(moves.into_iter().map(event).collect()).await;
}
