//! The passes that make what is into what should be.
//!
//! Each pass is idempotent, reads the live state, acts on the engine or hands events to the job writer, and says what it did. Loops
//! here only decide when to look: on a hint, or after a while. A pass that fails is tried again by the next one.

#[cfg(test)]
mod delegated_placement;
mod dispatch;
mod doubt;
#[cfg(test)]
mod faults;
pub(crate) mod observe;
pub(crate) mod retention;
pub(crate) mod retention_clock;
mod schedule;
mod take_back;

use std::sync::Arc;
use std::time::{Duration, Instant};

use danlu_engine::pause_after;
use jiff::Timestamp;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::app::App;

/// How long to wait without a hint. Hints can be lost; time cannot.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// Below this, timers are coarser than the rest.
const WORTH_A_REST: Duration = Duration::from_millis(2);
/// How late a job may be forgotten that ended just after a pass; each pass goes on until nothing is due.
const RETAIN_EVERY: Duration = Duration::from_mins(1);
/// Code is kept for a day anyway, and finding what no job names reads an index of all that do.
const CODE_EVERY_ROUNDS: u64 = 10;
const KEEP_RESERVE_EVERY: Duration = Duration::from_secs(10);
/// Disks rot slowly; a page that is read before is noticed then.
const CHECK_INTEGRITY_EVERY: Duration = Duration::from_hours(24);
/// Vendors' tools take a while and wake the driver; a job that meets an ill device says so itself.
const READ_DEVICES_EVERY: Duration = Duration::from_secs(30);
/// A cluster's controller is asked for all its nodes; they change by the hand of people.
const TAKE_INVENTORY_EVERY: Duration = Duration::from_secs(15);
/// As often as launchers take samples, which want to say what the devices of their workers do.
const READ_HELD_DEVICES_EVERY: Duration = Duration::from_secs(5);

/// Starts all passes; they end when `stop` is cancelled, between two actions and never within one.
pub(crate) fn spawn_all(app: &Arc<App>, stop: &CancellationToken) -> JoinSet<()> {
    let mut loops = JoinSet::new();
    loops.spawn(schedule_loop(app.clone(), stop.clone()));
    loops.spawn(act_loop(app.clone(), stop.clone()));
    loops.spawn(hint_loop(app.clone(), stop.clone()));
    loops.spawn(observe_loop(app.clone(), stop.clone()));
    loops.spawn(retain_loop(app.clone(), stop.clone()));
    loops.spawn(device_loop(app.clone(), stop.clone()));
    loops.spawn(usage_loop(app.clone(), stop.clone()));
    loops.spawn(reserve_loop(app.clone(), stop.clone()));
    loops.spawn(integrity_loop(app.clone(), stop.clone()));
    loops.spawn(doubt::doubt_loop(app.clone(), stop.clone()));
    if app.engine.inventory_changes() {
        loops.spawn(inventory_loop(app.clone(), stop.clone()));
    }
    loops
}

async fn schedule_loop(app: Arc<App>, stop: CancellationToken) {
    loop {
        let pass = schedule::reconcile_schedule(&app, Timestamp::now).await;
        let wait = pass.until_next.map_or(LOOK_AGAIN, |until| until.min(LOOK_AGAIN));
        // Planning over a long queue takes time, and every submission asks for it: it may have a fifth of one core.
        let rest = pass.planning * 4;
        if rest > WORTH_A_REST {
            tokio::time::sleep(rest).await;
        }
        tokio::select! {
            () = app.wake.schedule.notified() => {}
            () = tokio::time::sleep(wait) => {}
            () = stop.cancelled() => return,
        }
    }
}

async fn act_loop(app: Arc<App>, stop: CancellationToken) {
    let mut memory = dispatch::DispatchMemory::default();
    loop {
        dispatch::reconcile_launch(&app, &mut memory).await;
        dispatch::reconcile_stop(&app, &mut memory).await;
        dispatch::reconcile_time_limits(&app, &mut memory).await;
        tokio::select! {
            () = app.wake.act.notified() => {}
            () = tokio::time::sleep(LOOK_AGAIN) => {}
            () = stop.cancelled() => return,
        }
    }
}

/// Looks at the workers that say they have changed.
async fn hint_loop(app: Arc<App>, stop: CancellationToken) {
    loop {
        let workers = tokio::select! {
            workers = app.engine.changed() => workers,
            () = stop.cancelled() => return,
        };
        observe::reconcile_some(&app, &workers).await;
    }
}

/// Looks at all workers, whether they say anything or not.
async fn observe_loop(app: Arc<App>, stop: CancellationToken) {
    loop {
        observe::reconcile_all(&app).await;
        tokio::select! {
            () = tokio::time::sleep(LOOK_AGAIN) => {}
            () = stop.cancelled() => return,
        }
    }
}

/// Follows the health of devices, and what those do that are held.
async fn device_loop(app: Arc<App>, stop: CancellationToken) {
    let (mut last, mut answered): (Option<Instant>, bool) = (None, true);
    loop {
        tokio::select! {
            () = tokio::time::sleep(LOOK_AGAIN) => {}
            () = stop.cancelled() => return,
        }
        // Tools that have failed are not asked more often because somebody would like to know.
        let soon = answered && (app.holds_real_devices() || app.nodes.has_outside_use());
        let every = if soon { READ_HELD_DEVICES_EVERY } else { READ_DEVICES_EVERY };
        if last.is_none_or(|last| last.elapsed() >= every) {
            answered = app.take_readings().await;
            last = Some(Instant::now());
        }
    }
}

/// Follows what the engine's own administrators say of its nodes.
async fn inventory_loop(app: Arc<App>, stop: CancellationToken) {
    // A server may have begun without one.
    let is_whole = !app.live_state.nodes().is_empty() && app.engine.notices().is_empty();
    let mut pause = if is_whole { TAKE_INVENTORY_EVERY } else { LOOK_AGAIN };
    loop {
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = stop.cancelled() => return,
        }
        let asked = Instant::now();
        let answered = app.take_inventory().await;
        let is_whole = answered && app.engine.notices().is_empty();
        pause = if is_whole { pause_after(TAKE_INVENTORY_EVERY, asked.elapsed()) } else { LOOK_AGAIN };
    }
}

async fn usage_loop(app: Arc<App>, stop: CancellationToken) {
    loop {
        app.note_usage().await;
        tokio::select! {
            () = tokio::time::sleep(crate::usage::LOOK_EVERY) => {}
            () = stop.cancelled() => return,
        }
    }
}

/// Keeps the reserve for when the disk is full.
async fn reserve_loop(app: Arc<App>, stop: CancellationToken) {
    loop {
        let health = app.health.clone();
        let _ = tokio::task::spawn_blocking(move || health.keep_reserve()).await;
        tokio::select! {
            () = tokio::time::sleep(KEEP_RESERVE_EVERY) => {}
            () = stop.cancelled() => return,
        }
    }
}

/// Reads the whole database now and then; what is wrong with it is noted by whoever finds it. The first time is at start.
async fn integrity_loop(app: Arc<App>, stop: CancellationToken) {
    loop {
        tokio::select! {
            () = tokio::time::sleep(CHECK_INTEGRITY_EVERY) => {}
            () = stop.cancelled() => return,
        }
        if let Err(error) = app.store.integrity_check().await {
            tracing::warn!("{}", crate::error_chain(&error));
        }
    }
}

async fn retain_loop(app: Arc<App>, stop: CancellationToken) {
    for round in 0_u64.. {
        retention::reconcile_retain(&app, &stop).await;
        if round.is_multiple_of(CODE_EVERY_ROUNDS) {
            retention::reconcile_code(&app).await;
        }
        tokio::select! {
            () = tokio::time::sleep(RETAIN_EVERY) => {}
            () = stop.cancelled() => return,
        }
    }
}
