//! What jobs do with the time they are given: work, checkpoints, and what is lost between them.
//!
//! [`Simulation::apply`] is the one place where a job changes; ledger, meter, agenda and the scheduler's news follow.

use danlu_core::job::{AttemptEnd, WorkerFailure};
use danlu_core::{
    FailureCause, Grant, Job, JobLifecycle, Transition, Trigger, WorkerEnd, WorkerLifecycle, apply,
};
use danlu_types::api::JobState;
use danlu_types::{AttemptNumber, JobId, NodeName, Span, WorkerIndex};
use jiff::Timestamp;

use super::agenda::Item;
use super::{Simulation, after, between, is_queued, position};
use crate::story::{SimJob, WorkerScript};

/// A job with what a real system would not know of it.
#[derive(Debug)]
pub(crate) struct SimulatedJob {
    pub(crate) story: usize,
    pub(crate) job: Job,
    /// The part of its story that it is at.
    part: usize,
    /// The work of that part that no interruption can take away any more.
    saved: Span,
    /// Whether the live attempt ended as its script says, and not because something interrupted it.
    ended_by_itself: bool,
    pub(crate) first_start: Option<Timestamp>,
    /// Time with devices, over all attempts that have ended.
    pub(crate) ran: Span,
    pub(crate) attempts: u32,
    pub(crate) preemptions: u32,
    pub(crate) failures: u32,
    /// What it held, in thousandths of the unit times milliseconds.
    pub(crate) held: u128,
    /// The same, of work that was done and had to be done again.
    pub(crate) lost: u128,
    lost_time: Span,
}

impl SimulatedJob {
    pub(super) fn new(story: usize, job: Job) -> Self {
        SimulatedJob {
            story,
            job,
            part: 0,
            saved: Span::default(),
            ended_by_itself: false,
            first_start: None,
            ran: Span::default(),
            attempts: 0,
            preemptions: 0,
            failures: 0,
            held: 0,
            lost: 0,
            lost_time: Span::default(),
        }
    }

    /// Work that had to be done again, as time on its devices.
    pub(crate) fn lost_time(&self) -> Span {
        self.lost_time
    }

    /// When the live attempt ends if nothing interrupts it.
    pub(super) fn runs_until(&self, stories: &[SimJob]) -> Timestamp {
        let placed_at = self.job.active().map_or(Timestamp::UNIX_EPOCH, |attempt| attempt.placed_at);
        let (runs, _) = self.course(&stories[self.story]);
        after(placed_at, runs)
    }

    /// How long the live attempt takes, and how it ends, which `max_time` may cut short.
    fn course(&self, story: &SimJob) -> (Span, WorkerEnd) {
        let script = self.script(story);
        let left = script.runs.milliseconds.saturating_sub(self.saved.milliseconds);
        let runs = Span { milliseconds: self.overhead(story).milliseconds.saturating_add(left) };
        match self.job.spec.max_time {
            Some(limit) if limit < runs => (limit, failed(FailureCause::TimeLimit)),
            _ => (runs, script.exit),
        }
    }

    fn script(&self, story: &SimJob) -> WorkerScript {
        let part = self.part.min(story.parts.len().saturating_sub(1));
        let nothing = || WorkerScript { runs: Span::default(), exit: WorkerEnd::Succeeded };
        story.parts.get(part).cloned().unwrap_or_else(nothing)
    }

    fn overhead(&self, story: &SimJob) -> Span {
        if self.attempts > 1 { story.restart_cost } else { Span::default() }
    }

    /// The part was interrupted after working until `until`: what is kept of it, and how much work is lost.
    fn interrupt(&mut self, story: &SimJob, placed_at: Timestamp, until: Timestamp) -> Span {
        let worked = between(placed_at, until).milliseconds;
        let worked = worked.saturating_sub(self.overhead(story).milliseconds);
        let total = self.saved.milliseconds + worked;
        let every = story.checkpoint_every.map(|every| every.milliseconds).filter(|every| *every > 0);
        self.saved = Span { milliseconds: every.map_or(0, |every| total / every * every) };
        Span { milliseconds: total - self.saved.milliseconds }
    }
}

impl Simulation {
    /// The attempt has run its course.
    pub(super) fn finish(&mut self, id: JobId, attempt: AttemptNumber) {
        let entry = &mut self.jobs[position(id)];
        let (_, exit) = entry.course(&self.stories[entry.story]);
        entry.ended_by_itself = true;
        if exit == WorkerEnd::Succeeded {
            self.end_workers(id, attempt, &exit, |_| true);
        } else {
            self.apply(id, Trigger::WorkerEnded { attempt, worker: WorkerIndex(0), exit });
        }
    }

    /// What is left of the attempt has ended, as it was told to.
    pub(super) fn stopped(&mut self, id: JobId, attempt: AttemptNumber) {
        self.end_workers(id, attempt, &WorkerEnd::Stopped, |_| true);
    }

    /// Ends the workers of an attempt whose grants are chosen and that have not ended yet.
    pub(super) fn end_workers(
        &mut self,
        id: JobId,
        attempt: AttemptNumber,
        exit: &WorkerEnd,
        choose: impl Fn(&Grant) -> bool,
    ) {
        let job = &self.jobs[position(id)].job;
        let Some(live) = job.active().filter(|live| live.number == attempt) else { return };
        let chosen = live.workers.iter().zip(0..).filter(|(worker, _)| {
            choose(&worker.grant) && !matches!(worker.state, WorkerLifecycle::Ended { .. })
        });
        for worker in chosen.map(|(_, index)| WorkerIndex(index)).collect::<Vec<_>>() {
            self.apply(id, Trigger::WorkerEnded { attempt, worker, exit: exit.clone() });
        }
    }

    /// The one place where a job changes.
    pub(super) fn apply(&mut self, id: JobId, event: Trigger) {
        let entry = &mut self.jobs[position(id)];
        let Transition::Next { job: next, .. } = apply(&entry.job, event, self.now) else { return };
        let before = std::mem::replace(&mut entry.job, *next);
        let after_it = &entry.job;
        self.touched.insert(id);
        match (is_queued(&before), is_queued(after_it)) {
            (false, true) => self.meter.queued(&after_it.spec),
            (true, false) => self.meter.left_queue(&after_it.spec),
            _ => {}
        }
        let begins_to_stop = after_it.state() == JobState::Stopping && before.state() != JobState::Stopping;
        let ends = matches!(after_it.life, JobLifecycle::Ended { .. });
        match (before.active().is_some(), after_it.active()) {
            (false, Some(_)) => self.on_start(id),
            (true, None) => self.on_attempt_end(id),
            (true, Some(attempt)) if begins_to_stop => {
                let story = &self.stories[entry.story];
                let wait = story.takes_to_stop.min(after_it.spec.grace);
                self.agenda.put(after(self.now, wait), Item::Stopped(id, attempt.number));
            }
            _ => {}
        }
        self.open -= usize::from(ends);
    }

    fn on_start(&mut self, id: JobId) {
        let entry = &mut self.jobs[position(id)];
        entry.attempts += 1;
        entry.ended_by_itself = false;
        entry.first_start.get_or_insert(self.now);
        self.active += 1;
        for worker in entry.job.active().map_or(&[][..], |attempt| &attempt.workers) {
            self.meter.take(&worker.grant);
            if let Some(node) = self.meter.ordinal(&worker.grant.node) {
                self.on_node[node].insert(id);
            }
        }
    }

    fn on_attempt_end(&mut self, id: JobId) {
        self.active -= 1;
        self.ledger.free(id);
        let entry = &mut self.jobs[position(id)];
        let past = entry.job.past.last().expect("an attempt that ended is the last of the past ones");
        let placed_at = past.attempt.placed_at;
        let mut units = 0;
        for worker in &past.attempt.workers {
            units += u128::from(self.meter.unit().held(&worker.grant));
            self.meter.give_back(&worker.grant);
            if let Some(node) = self.meter.ordinal(&worker.grant.node) {
                self.on_node[node].remove(&id);
            }
        }
        let held_for = between(placed_at, past.ended_at);
        let until = past.attempt.stop.as_ref().map_or(past.ended_at, |stop| stop.since);
        let verdict = past.verdict.clone();
        entry.ran.milliseconds += held_for.milliseconds;
        entry.held += units * u128::from(held_for.milliseconds);
        entry.preemptions += u32::from(matches!(verdict, AttemptEnd::Preempted { .. }));
        entry.failures += u32::from(matches!(verdict, AttemptEnd::Failed { .. }));
        if entry.ended_by_itself {
            entry.part += 1;
            entry.saved = Span::default();
        } else if !matches!(verdict, AttemptEnd::Succeeded | AttemptEnd::Stopped { .. }) {
            let lost = entry.interrupt(&self.stories[entry.story], placed_at, until);
            entry.lost += units * u128::from(lost.milliseconds);
            entry.lost_time.milliseconds += lost.milliseconds;
        }
    }

    /// Workers on a node, or only those that hold one of its devices, fail.
    pub(super) fn fail_workers(&mut self, node: &NodeName, device: Option<u32>, cause: FailureCause) {
        let Some(ordinal) = self.meter.ordinal(node) else { return };
        let exit = failed(cause);
        for id in self.on_node[ordinal].iter().copied().collect::<Vec<_>>() {
            let Some(attempt) = self.entry(id).job.active().map(|attempt| attempt.number) else { continue };
            self.end_workers(id, attempt, &exit, |grant| {
                grant.node == *node && device.is_none_or(|device| grant.devices.contains(&device))
            });
        }
    }
}

fn failed(cause: FailureCause) -> WorkerEnd {
    WorkerEnd::Failed(WorkerFailure { cause, rank: None, exit: None, detail: String::new() })
}
