//! Changes with which a waiting job would start now. Each is planned before it is offered, as it would be made: a queued job
//! is changed in place and keeps its turn, one of a dry run is submitted otherwise. Who may make a change, and whether the
//! changed job would be admitted, is not known here.

use std::collections::BTreeMap;
use std::sync::Arc;

use danlu_core::Job;
use danlu_types::api::Offer;
use danlu_types::{Bytes, Cpus, DeviceCount, DeviceRequest, JobId, JobSpec, Span};
use jiff::Timestamp;

use super::Scheduler;
use super::queue::QueuedJob;
use super::running::milliseconds;
use crate::fleet::PlacementConstraints;
use crate::shape::Shape;

/// Of each sort of change the best is enough, and nobody reads more than a handful.
const MOST_OFFERS: usize = 5;
/// The id of a dry run: behind everybody else, as a job that is submitted now would be.
const NOT_SUBMITTED: JobId = JobId(u64::MAX);
const GIB: u64 = 1 << 30;
/// Workspaces that are tried.
const MOST_WORKSPACES: usize = 16;

impl Scheduler {
    pub(super) fn offers(
        &mut self,
        job: &Job,
        waiting: &QueuedJob,
        now: Timestamp,
        workspaces: &[String],
    ) -> Vec<Offer> {
        let mut offers = Vec::new();
        offers.extend(self.preemptible(job, now));
        offers.extend(self.fewer_devices(job, now));
        offers.extend(self.other_model(job, now));
        offers.extend(self.fewer_workers(job, now));
        offers.extend(self.fewer_cpus(job, now));
        offers.extend(self.less_memory(job, now));
        offers.extend(self.shorter(job, waiting, now));
        offers.extend(self.other_workspace(job, now, workspaces));
        offers.truncate(MOST_OFFERS);
        offers
    }

    fn preemptible(&mut self, job: &Job, now: Timestamp) -> Option<Offer> {
        let changed = JobSpec { preemptible: true, ..JobSpec::clone(&job.spec) };
        let starts = !job.spec.preemptible && self.starts_as(job, &changed, now);
        starts.then(|| offer("preemptible", "true", "starts now if it may be preempted".to_owned()))
    }

    fn fewer_devices(&mut self, job: &Job, now: Timestamp) -> Option<Offer> {
        let request = single(&job.spec)?;
        let asked = request.count.devices();
        let count = most_below(asked, |count| {
            let devices = DeviceRequest { count: DeviceCount::whole(count), ..request.clone() };
            self.starts_as(job, &JobSpec { devices, ..JobSpec::clone(&job.spec) }, now)
        })?;
        let each = if job.spec.workers > 1 { " for each worker" } else { "" };
        let text = format!("{count} instead of {asked} devices{each} start now");
        Some(offer("devices.count", &count.to_string(), text))
    }

    fn fewer_workers(&mut self, job: &Job, now: Timestamp) -> Option<Offer> {
        let asked = job.spec.workers;
        let most = most_below(asked, |workers| {
            self.starts_as(job, &JobSpec { workers, ..JobSpec::clone(&job.spec) }, now)
        })?;
        let text = format!("{most} instead of {asked} workers start now");
        Some(offer("workers", &most.to_string(), text))
    }

    fn fewer_cpus(&mut self, job: &Job, now: Timestamp) -> Option<Offer> {
        let asked = job.spec.cpus;
        let whole = u32::try_from(asked.milli.div_ceil(1000)).ok()?;
        let most = most_below(whole, |cpus| {
            let cpus = Cpus::whole(u64::from(cpus));
            self.starts_as(job, &JobSpec { cpus, ..JobSpec::clone(&job.spec) }, now)
        })?;
        let each = if job.spec.workers > 1 { " for each worker" } else { "" };
        Some(offer(
            "cpus",
            &most.to_string(),
            format!("starts now with {most} instead of {asked} CPUs{each}"),
        ))
    }

    fn less_memory(&mut self, job: &Job, now: Timestamp) -> Option<Offer> {
        let asked = job.spec.memory?;
        let whole = u32::try_from(asked.0.div_ceil(GIB)).ok()?;
        let most = most_below(whole, |memory| {
            let memory = Some(Bytes(u64::from(memory) * GIB));
            self.starts_as(job, &JobSpec { memory, ..JobSpec::clone(&job.spec) }, now)
        })?;
        let each = if job.spec.workers > 1 { " for each worker" } else { "" };
        let memory = Bytes(u64::from(most) * GIB);
        let text = format!("starts now with {memory} instead of {asked} of memory{each}");
        Some(offer("memory", &memory.to_string(), text))
    }

    fn other_model(&mut self, job: &Job, now: Timestamp) -> Option<Offer> {
        let request = single(&job.spec)?;
        request.model.as_ref()?;
        let devices = self.fleet.nodes().iter().flat_map(|node| &node.devices);
        let mut models: Vec<String> = devices
            .filter(|device| request.kind.is_none_or(|kind| kind == device.kind) && !request.accepts(device))
            .map(|device| device.model.clone())
            .collect();
        models.sort_unstable();
        models.dedup();
        let model = models.into_iter().find(|model| {
            let devices = DeviceRequest { model: Some(model.clone()), ..request.clone() };
            self.starts_as(job, &JobSpec { devices, ..JobSpec::clone(&job.spec) }, now)
        })?;
        let text = format!("{} of model {model} start now", request.count);
        Some(offer("devices.model", &model, text))
    }

    /// What is kept for a job ahead may be used until that starts.
    fn shorter(&mut self, job: &Job, waiting: &QueuedJob, now: Timestamp) -> Option<Offer> {
        let at =
            self.kept.values().map(super::reserve::CachedReservation::at).filter(|at| *at > now).max()?;
        let lead = milliseconds(now, at) / 1000;
        // Lengths are compared as powers of two.
        let seconds = 1u64 << lead.checked_ilog2()?;
        let limit = Span::from_seconds(seconds);
        if seconds < 60 || waiting.estimate.typical <= limit {
            return None;
        }
        let changed = JobSpec { max_time: Some(limit), ..JobSpec::clone(&job.spec) };
        let starts = self.starts_as(job, &changed, now);
        starts.then(|| offer("max_time", &limit.to_string(), format!("starts now if it ends within {limit}")))
    }

    fn other_workspace(&mut self, job: &Job, now: Timestamp, workspaces: &[String]) -> Option<Offer> {
        let others = workspaces.iter().filter(|name| **name != job.spec.workspace).take(MOST_WORKSPACES);
        let workspace = others.into_iter().find(|name| {
            self.starts_as(job, &JobSpec { workspace: (*name).clone(), ..JobSpec::clone(&job.spec) }, now)
        })?;
        let text = format!("starts now in workspace `{workspace}`");
        Some(offer("workspace", workspace, text))
    }

    /// Plans with the job as it would be after the change, and puts everything back.
    fn starts_as(&mut self, job: &Job, spec: &JobSpec, now: Timestamp) -> bool {
        let shape = self.fleet.shape(&Shape::of(spec));
        // Most changes fall at this first hurdle, which costs a thousandth of a plan.
        if !self.fleet.fits(shape, &PlacementConstraints::NONE) {
            return false;
        }
        let Some(waiting) = self.queue.get(job.id).cloned() else { return false };
        let changed = Job { spec: Arc::new(spec.clone()), ..job.clone() };
        let (kept, findings) = (self.kept.clone(), std::mem::take(&mut self.findings));
        let handicap = self.handicap_after_change(&changed, Some(waiting.handicap));
        // Of a dry run, nothing waits yet: it would be submitted as it is offered.
        self.receive(&changed, handicap.filter(|_| job.id != NOT_SUBMITTED));
        let starts = self.would_start(job.id, now);
        (self.kept, self.findings) = (kept, findings);
        self.queue.insert(job.id, waiting);
        starts
    }
}

/// The largest number below `asked` that would do, if less always does where more does; boards may break that rule, and
/// then a good offer rather than the best is found.
fn most_below(asked: u32, mut starts: impl FnMut(u32) -> bool) -> Option<u32> {
    let (mut most, mut too_many) = (0, asked);
    while too_many - most > 1 {
        let middle = most + (too_many - most) / 2;
        if starts(middle) {
            most = middle;
        } else {
            too_many = middle;
        }
    }
    (most > 0).then_some(most)
}

fn single(spec: &JobSpec) -> Option<&DeviceRequest> {
    match spec.alternatives() {
        [request] if !request.count.is_none() && spec.any_of.is_empty() => Some(request),
        _ => None,
    }
}

fn offer(field: &str, value: &str, text: String) -> Offer {
    Offer { set: BTreeMap::from([(field.to_owned(), value.to_owned())]), text }
}
