//! What follows from the state a job is in: its place in the queue, or what it holds.

use std::cmp::Reverse;
use std::sync::Arc;

use danlu_core::job::{AttemptEnd, QueueCause, StopCause};
use danlu_core::{Attempt, FailureCause, Grant, Job, JobLifecycle};
use danlu_types::{HeadOfLine, JobId, JobSpec, NodeName, Span};
use jiff::{SignedDuration, Timestamp};

use super::history::Estimate;
use super::queue::{self, JobClass, QueueKey, QueuedJob};
use super::running::{self, Running, Stopping, after};
use super::usage::ResourceVector;
use super::{Scheduler, wait};
use crate::fleet::{Fleet, NodeId, ShapeId};
use crate::shape::Shape;

/// How long a job keeps away from a node that failed it.
const AVOID_FOR: SignedDuration = SignedDuration::from_mins(10);

/// Shapes that are remembered although nobody who waits has them.
pub(super) const MOST_IDLE_SHAPES: usize = 4096;

impl Scheduler {
    /// Forgets shapes and names that nobody needs any more, once there are many.
    pub(super) fn tidy(&mut self) {
        let counts = [self.fleet.shape_count(), self.owners.len(), self.accounts.len()];
        if counts.into_iter().all(|count| count < self.tidy_at) {
            return;
        }
        let found = self.findings.verdicts.values().filter_map(|verdict| match verdict {
            wait::Blocker::NoRoom { shape } => Some(*shape),
            _ => None,
        });
        let in_use = self.queue.shapes().chain(found).collect();
        self.fleet.forget_shapes(&in_use, in_use.len() + MOST_IDLE_SHAPES / 2);
        self.possible.clear();
        self.owners.retain(|_, owner| Arc::strong_count(owner) > 1);
        self.forget_accounts();
        let counts = [self.fleet.shape_count(), self.owners.len(), self.accounts.len()];
        self.tidy_at = counts.into_iter().fold(MOST_IDLE_SHAPES, |most, count| most.max(2 * count));
    }

    /// A position may be given to another workspace afterwards: nothing may be left that speaks of it.
    fn forget_accounts(&mut self) {
        let waiting = self.queue.jobs().map(|(_, waiting)| waiting.class.account);
        let in_use = waiting.chain(self.running.iter().map(|(_, running)| running.account)).collect();
        let forgotten = self.accounts.forget_all_but(&in_use, &self.sharing);
        self.history.forget(&forgotten);
        self.kept.clear();
        self.findings.verdicts.retain(|class, _| !forgotten.contains(&class.account));
    }

    /// What a job's turn was put off by when it was first seen; `None` if it is new here.
    pub(super) fn handicap_of(&self, job: JobId) -> Option<Span> {
        let waiting = self.queue.get(job).map(|waiting| waiting.handicap);
        waiting.or_else(|| self.running.get(job).map(|running| running.handicap))
    }

    /// A job that was changed keeps its turn, unless it became longer: a short job must not go ahead and turn long. What
    /// was reserved for it was reserved for what it asked for before.
    pub(super) fn handicap_after_change(&mut self, job: &Job, handicap: Option<Span>) -> Option<Span> {
        if self.queue.get(job.id).is_none_or(|before| before.spec == job.spec) {
            return handicap;
        }
        self.kept.retain(|_, kept| kept.job() != job.id);
        handicap.map(|handicap| handicap.max(self.estimate(job).handicap()))
    }

    /// Puts a job into the queue.
    pub(super) fn receive(&mut self, job: &Job, handicap: Option<Span>) -> ShapeId {
        let shape = self.fleet.shape(&Shape::of(&job.spec));
        let waiting = self.waiting(job, shape, handicap);
        self.queue.insert(job.id, waiting);
        shape
    }

    pub(super) fn waiting(&mut self, job: &Job, shape: ShapeId, handicap: Option<Span>) -> QueuedJob {
        let account = self.accounts.id(&job.spec.workspace);
        let owner = self.owner(&job.owner);
        let estimate = self.estimate(job);
        let (since, not_before, made_room_for) = match &job.life {
            JobLifecycle::Queued {
                since,
                why: QueueCause::Retry { not_before, .. } | QueueCause::Requeued { not_before, .. },
            } => (*since, Some(*not_before), None),
            JobLifecycle::Queued { since, why: QueueCause::Preempted { for_job, .. } } => {
                (*since, None, Some(*for_job))
            }
            JobLifecycle::Queued { since, .. } => (*since, None, None),
            _ => (job.submitted_at, None, None),
        };
        let handicap = handicap.unwrap_or_else(|| estimate.handicap());
        let due = due(job.submitted_at, self.accounts.get(account).head_of_line, handicap);
        let user = (!self.accounts.get(account).per_user.is_empty()).then(|| owner.clone());
        let blamed = blamed(job);
        let avoid = avoided(&mut self.fleet, blamed.as_ref(), shape);
        let avoid_until = blamed.is_some().then(|| since.saturating_add(AVOID_FOR).unwrap_or(Timestamp::MAX));
        let class = JobClass {
            account,
            shape,
            pools: queue::pools_of(self.fleet.shape_of(shape)),
            preemptible: job.spec.preemptible,
            length: JobClass::length_of(estimate.typical),
            user,
            avoid,
        };
        QueuedJob {
            place: QueueKey { priority: Reverse(job.spec.priority()), due, job: job.id },
            spec: job.spec.clone(),
            generation: job.generation,
            class: Arc::new(class),
            owner,
            submitted_at: job.submitted_at,
            handicap,
            since,
            not_before,
            made_room_for,
            blamed,
            avoid_until,
            estimate,
        }
    }

    pub(super) fn activate(&mut self, job: &Job, attempt: &Attempt, handicap: Option<Span>) {
        let stopping = attempt.stop.as_ref().map(|stop| Stopping {
            for_job: match stop.why {
                StopCause::Preempted { for_job } => Some(for_job),
                _ => None,
            },
            since: stop.since,
            grace: stop.grace,
        });
        let grants: Arc<[Grant]> = attempt.workers.iter().map(|worker| worker.grant.clone()).collect();
        let known = self.running.get(job.id).filter(|running| running.placed_at == attempt.placed_at);
        let handicap = handicap.or_else(|| known.map(|running| running.handicap));
        // A cluster that places workers itself may have put them elsewhere.
        if let Some(running) = known.filter(|running| running.grants == grants) {
            if running.saved_at != attempt.saved_at {
                let running = Running { saved_at: attempt.saved_at, ..running.clone() };
                self.running.insert(job.id, running);
            }
            if let Some(running) = self.running.get(job.id).filter(|running| running.stopping != stopping) {
                let (before, mut running) = (running.clone(), Running { stopping, ..running.clone() });
                let asked_at = stopping.map_or(running.placed_at, |stopping| stopping.since);
                running.expected_end = running.end_expected_at(asked_at);
                self.firm_leaves(&before);
                self.firm_joins(&running);
                self.running.insert(job.id, running);
            }
            return;
        }
        self.release(job.id);
        let account = self.accounts.id(&job.spec.workspace);
        let owner = self.owner(&job.owner);
        let estimate = self.estimate(job);
        let placement = self.fleet.placement(&grants);
        let usage = ResourceVector::of_placement(&placement);
        self.fleet.allocate(&placement);
        self.accounts.add(account, &owner, &usage, job.spec.preemptible);
        let mut running = Running {
            account,
            owner,
            name: job.spec.name.as_str().into(),
            priority: job.spec.priority(),
            preemptible: job.spec.preemptible,
            placed_at: attempt.placed_at,
            saved_at: attempt.saved_at,
            grants,
            placement,
            usage,
            expected_end: attempt.placed_at,
            latest_end: job.spec.max_time.map(|limit| after(attempt.placed_at, limit)),
            handicap: handicap.unwrap_or_else(|| estimate.handicap()),
            estimate,
            stopping,
            grace: job.spec.grace,
        };
        running.expected_end = running.end_expected_at(running.placed_at);
        self.firm_joins(&running);
        self.running.insert(job.id, running);
    }

    /// Takes back what a job holds.
    pub(super) fn release(&mut self, job: JobId) -> Option<()> {
        let running = self.running.remove(job)?;
        self.firm_leaves(&running);
        self.fleet.free(&running.placement);
        self.accounts.remove(running.account, &running.owner, &running.usage, running.preemptible);
        Some(())
    }

    pub(super) fn remember(&mut self, job: &Job, at: Timestamp) {
        let last = job.past.last().and_then(|past| past.attempt.running_since());
        let Some(since) = last.filter(|since| *since <= at) else { return };
        let ran = Span { milliseconds: running::milliseconds(since, at) };
        let account = self.accounts.id(&job.spec.workspace);
        self.history.record(account, &job.owner, &job.spec.name, size(&job.spec), ran);
    }

    pub(super) fn estimate(&mut self, job: &Job) -> Estimate {
        let account = self.accounts.id(&job.spec.workspace);
        self.history.estimate(account, &job.owner, &job.spec.name, size(&job.spec), job.spec.max_time)
    }

    fn owner(&mut self, name: &str) -> Arc<str> {
        if let Some(owner) = self.owners.get(name) {
            return owner.clone();
        }
        let owner: Arc<str> = name.into();
        self.owners.insert(name.to_owned(), owner.clone());
        owner
    }
}

/// When a job's turn comes: at its submission, put off by its handicap unless the workspace insists on the order of
/// submission.
pub(super) fn due(submitted_at: Timestamp, policy: HeadOfLine, handicap: Span) -> Timestamp {
    match policy {
        HeadOfLine::Strict | HeadOfLine::Balance => submitted_at,
        HeadOfLine::Backfill | HeadOfLine::Skip => after(submitted_at, handicap),
    }
}

/// The node that failed the last attempt, if a node did.
pub(crate) fn blamed(job: &Job) -> Option<NodeName> {
    let past = job.past.last()?;
    let AttemptEnd::Failed { worker, failure } = &past.verdict else { return None };
    match failure.cause {
        FailureCause::NodeLost
        | FailureCause::LauncherLost
        | FailureCause::DeviceError
        | FailureCause::StartFailed => {}
        FailureCause::Exit
        | FailureCause::OutOfMemory
        | FailureCause::TimeLimit
        | FailureCause::SetupFailed
        | FailureCause::GangTimeout
        | FailureCause::ProgramError
        | FailureCause::Hang => return None,
    }
    Some(past.attempt.workers.get(worker.0 as usize)?.grant.node.clone())
}

/// The node to keep away from, if others could take the job.
pub(super) fn avoided(fleet: &mut Fleet, blamed: Option<&NodeName>, shape: ShapeId) -> Vec<NodeId> {
    let avoid: Vec<NodeId> = blamed.and_then(|name| fleet.node(name)).into_iter().collect();
    if avoid.is_empty() || fleet.could_fit_when_idle(shape, &avoid) { avoid } else { Vec::new() }
}

/// How many devices a job is about, in thousandths; for the history only.
fn size(spec: &JobSpec) -> u64 {
    let most = spec.alternatives().iter().map(|request| request.count.milli()).max().unwrap_or(0);
    u64::from(most) * u64::from(spec.workers)
}

#[cfg(test)]
mod tests {
    use danlu_core::{Transition, Trigger, apply};
    use danlu_types::{Cpus, Sharing};

    use super::*;

    /// Each job has a shape, an owner, a workspace and a name of its own; each starts, and ends.
    #[test]
    fn what_is_remembered_of_jobs_that_are_gone_is_bounded() {
        let mut scheduler = Scheduler::new(&crate::cluster::test_nodes(1), Sharing::default());
        let now = Timestamp::UNIX_EPOCH;
        let mut most = 0;
        for id in 1..=4 * MOST_IDLE_SHAPES as u64 {
            let workspace = format!("team-{id}");
            let spec = JobSpec { cpus: Cpus { milli: id }, workspace, ..JobSpec::of_command("true") };
            let job = Job::submitted(JobId(id), format!("user-{id}"), Arc::new(spec), now);
            scheduler.file(&job);
            if id % 512 == 0 {
                let start = scheduler.plan(now).starts.into_iter().find(|start| start.job == job.id);
                let grants = start.expect("it fits").grants;
                let Transition::Next { job, .. } = apply(&job, Trigger::Place { grants }, now) else {
                    panic!("it takes its place");
                };
                scheduler.file(&job);
            }
            scheduler.forget(job.id);
            most = most.max(scheduler.fleet.shape_count()).max(scheduler.owners.len());
            most = most.max(scheduler.accounts.len());
        }
        assert!(most <= 2 * MOST_IDLE_SHAPES, "{most}");
        assert!(most >= MOST_IDLE_SHAPES, "the case is too small to show anything");
    }

    #[test]
    fn lengths_of_names_that_were_not_seen_for_long_are_forgotten() {
        let mut history = super::super::history::History::default();
        for number in 0..70_000_u64 {
            history.record(0, "ann", &format!("job-{number}"), 1000, Span::from_seconds(number));
        }
        assert!(history.len() <= 1 << 16);
        let known = |name: &str| history.estimate(0, "ann", name, 1000, None).witness;
        assert_eq!(known("job-69999"), super::super::Witness::SameName);
        assert_eq!(known("job-0"), super::super::Witness::SameSize);
    }
}
