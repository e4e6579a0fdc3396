//! Admits waiting jobs whose time has come, plans, and commits what the plan starts.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use danlu_core::Event;
use jiff::Timestamp;

use crate::app::App;
use crate::ledger::Answer;

/// What a pass cost, and when the next may come out differently although nothing happens.
#[derive(Debug)]
pub(crate) struct Pass {
    pub(crate) planning: Duration,
    pub(crate) until_back_off_ends: Option<Duration>,
}

/// Starts what can be started.
pub(crate) async fn reconcile_schedule(app: &App) -> Pass {
    let (now, begin) = (Timestamp::now(), Instant::now());
    let (plan, next_wake) = {
        let pages = app.book.read();
        let plan = danlu_sched::plan(&pages.cluster, pages.queue(), now);
        (plan, danlu_sched::next_wake(pages.queue(), now))
    };
    let waiting: HashMap<_, _> = plan.waiting.into_iter().collect();
    app.set_waiting(waiting);
    let planning = begin.elapsed();
    let places = plan
        .starts
        .into_iter()
        .map(|start| (start.job, Event::Place { grants: start.grants }, now))
        .collect();
    for answer in app.ledger.apply_all(places).await {
        match answer {
            Ok(Answer::Done(job)) => {
                tracing::debug!(job.id = %job.id, "placed job {}", job.id);
            }
            // Overtaken by a stop or a hold: the next pass sees the new state.
            Ok(_) => app.wake.schedule.notify_one(),
            // A store that fails will not be mended by asking at once.
            Err(_) => {}
        }
    }
    let until_back_off_ends = next_wake.map(|wake| wake.duration_since(now).unsigned_abs());
    Pass { planning, until_back_off_ends }
}
