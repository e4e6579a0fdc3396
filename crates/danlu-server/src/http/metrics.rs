//! `GET /metrics`: the server in figures, as Prometheus reads them.
//!
//! Sums of everybody's jobs and devices; no names of people, jobs or workspaces, so whoever sees the cluster may read them.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use danlu_core::authorization::Action;
use danlu_types::Health;
use danlu_types::api::{DeviceView, JobState};
use jiff::Timestamp;

use super::Context;
use super::extract::ApiError;
use crate::accounts::{Caller, require_of_platform};

const FORM: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Read the figures of the server
///
/// In the text form of Prometheus. Also at `/metrics`, outside `/api/v1`; a scrape needs a token, of scope `read`.
#[utoipa::path(get, path = "/metrics", tag = "cluster", operation_id = "server_metrics",
    responses((status = 200, body = String, content_type = "text/plain")))]
pub(crate) async fn show(
    State(context): State<Context>,
    caller: Caller,
) -> Result<impl IntoResponse, ApiError> {
    require_of_platform(&caller, Action::SeeCluster)?;
    Ok(([(CONTENT_TYPE, FORM)], page(&context)))
}

fn page(context: &Context) -> String {
    let app = &context.app;
    let mut page = Page::default();

    let mut jobs: BTreeMap<&str, u64> =
        [JobState::Held, JobState::Queued, JobState::Starting, JobState::Running, JobState::Stopping]
            .map(|state| (state.as_str(), 0))
            .into();
    for job in app.live_state.read().jobs() {
        *jobs.entry(job.state().as_str()).or_default() += 1;
    }
    page.family("danlu_jobs", "gauge", "Jobs that have not ended, by state");
    for (state, count) in jobs {
        page.value("danlu_jobs", &format!("{{state=\"{state}\"}}"), count);
    }
    let oldest = app.live_state.oldest_wait(&danlu_store::JobFilter::default());
    let waited = oldest.map_or(0, |since| Timestamp::now().duration_since(since).as_secs().max(0));
    page.one("danlu_oldest_wait_seconds", "gauge", "How long the job has waited that waits longest", waited);

    page.family("danlu_devices", "gauge", "Devices by state: held by jobs, free, or unavailable (ill, out of service, used from outside, or on a cordoned node)");
    for ((kind, state), count) in devices(context) {
        page.value("danlu_devices", &format!("{{kind=\"{kind}\",state=\"{state}\"}}"), count);
    }

    let measures = &app.health.measures;
    page.timing("danlu_scheduling_passes", "Passes of the scheduler", &measures.passes);
    page.timing("danlu_commits", "Commits of changes of jobs", &measures.commits);
    for (name, help, count) in [
        ("danlu_commit_failures_total", "Commits that the database did not take", &measures.failed_commits),
        (
            "danlu_forgotten_jobs_total",
            "Ended jobs that were deleted, by people or after their time",
            &measures.forgotten_jobs,
        ),
        (
            "danlu_observation_failures_total",
            "Looks at all workers that came to nothing",
            &measures.failed_observations,
        ),
    ] {
        page.one(name, "counter", help, count.get());
    }
    page.one(
        "danlu_problems",
        "gauge",
        "What keeps the server from doing all of its work, as `/readyz` lists it",
        problems(context),
    );
    if let Some((free, total)) = app.health.room() {
        page.one("danlu_disk_free_bytes", "gauge", "Free space on the disk of the data folder", free);
        page.one("danlu_disk_bytes", "gauge", "Size of the disk of the data folder", total);
    }
    let (connections, streams) = context.places.taken();
    page.one("danlu_connections", "gauge", "Open connections", connections);
    page.one("danlu_streams", "gauge", "Open streams, downloads and terminals", streams);
    page.0
}

fn problems(context: &Context) -> usize {
    let app = &context.app;
    app.health.problems().len() + usize::from(app.engine.trouble().is_some()) + app.troubles.all().len()
}

fn devices(context: &Context) -> BTreeMap<(&'static str, &'static str), u64> {
    let app = &context.app;
    let cordoned = app.closed_nodes();
    let state = |view: &DeviceView| {
        let is_away = view.device.health != Health::Ok
            || view.out_of_service.is_some()
            || view.foreign.is_some()
            || cordoned.contains(&view.node);
        match (view.held_by.is_some(), is_away) {
            (true, _) => "held",
            (false, true) => "unavailable",
            (false, false) => "free",
        }
    };
    let mut counts = BTreeMap::new();
    for view in app.devices() {
        for state in ["held", "unavailable", "free"] {
            counts.entry((view.device.kind.as_str(), state)).or_insert(0);
        }
        *counts.entry((view.device.kind.as_str(), state(&view))).or_default() += 1;
    }
    counts
}

#[derive(Debug, Default)]
struct Page(String);

impl Page {
    fn family(&mut self, name: &str, form: &str, help: &str) {
        // Writing into a text cannot fail.
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {form}");
    }

    fn value(&mut self, name: &str, labels: &str, value: impl std::fmt::Display) {
        let _ = writeln!(self.0, "{name}{labels} {value}");
    }

    fn one(&mut self, name: &str, form: &str, help: &str, value: impl std::fmt::Display) {
        self.family(name, form, help);
        self.value(name, "", value);
    }

    fn timing(&mut self, name: &str, help: &str, timing: &crate::measures::Timing) {
        self.one(&format!("{name}_total"), "counter", help, timing.count());
        let seconds = timing.time().as_secs_f64();
        self.one(&format!("{name}_seconds_total"), "counter", &format!("{help}: seconds in all"), seconds);
    }
}
