//! Admits waiting jobs whose time has come, plans, and commits what the plan starts.

use std::collections::HashMap;
use std::time::Duration;

use danlu_core::Event;
use jiff::Timestamp;

use crate::app::App;
use crate::ledger::Answer;

/// Starts what can be started; returns how long until a back-off ends.
pub(crate) async fn reconcile_schedule(app: &App) -> Duration {
    let now = Timestamp::now();
    let (plan, next_wake) = {
        let pages = app.book.read();
        let plan = danlu_sched::plan(&pages.cluster, pages.queue(), now);
        (plan, danlu_sched::next_wake(pages.queue(), now))
    };
    let waiting: HashMap<_, _> = plan.waiting.into_iter().collect();
    app.set_waiting(waiting);
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
            // Overtaken by a stop, a hold or a failing store: the next pass sees the new state.
            Ok(_) | Err(_) => app.wake.schedule.notify_one(),
        }
    }
    let until = next_wake.map(|wake| wake.duration_since(now).unsigned_abs());
    until.unwrap_or(Duration::MAX)
}
