//! When a waiting job should start, and what that rests on.
//!
//! Earliest: running jobs end when half of their like have, and nobody else waits. Latest: they take as long as nine in ten
//! of their like, and everybody ahead in the workspace runs first, sharing what the cluster has. A job that reports its
//! progress ends when that says. A job that may take others' devices once those have run for the minimum time starts when
//! they have been stopped. Reports change estimates only, never who goes first.

use std::collections::BTreeSet;

use danlu_types::api::{EstimateBasis, EstimateBound, StartEstimate};
use danlu_types::{JobId, Span};
use jiff::Timestamp;

use super::history::Witness;
use super::pass::Pass;
use super::queue::QueuedJob;
use super::running::{Ends, after, foreign_end};
use super::{Circumstances, Scheduler, WaitReason};
use crate::words;

/// When a job ends that does not run: no estimate rests on that.
const NEVER: Timestamp = Timestamp::MAX;

/// A start that others are stopped for.
struct ByPreemption {
    /// When the last of the victims may be stopped.
    from: Timestamp,
    /// When the last of them will have ended.
    until: Timestamp,
    victims: usize,
}

impl Scheduler {
    pub(super) fn start_estimate(
        &mut self,
        waiting: &QueuedJob,
        reason: &WaitReason,
        now: Timestamp,
        known: &Circumstances,
    ) -> Option<StartEstimate> {
        let by_preemption = self.start_by_preemption(waiting, now);
        let by_ends = self.start_by_ends(waiting, reason, now, known);
        let is_next = self.position(waiting) == 1;
        match (by_ends, by_preemption) {
            (ends, Some(taken)) if ends.as_ref().is_none_or(|ends| taken.from < ends.earliest) => {
                let preemptions = u32::try_from(taken.victims).unwrap_or(u32::MAX);
                let basis = EstimateBasis { preemptions, ..EstimateBasis::default() };
                // Those ahead may take the same devices.
                let latest = match ends {
                    _ if is_next => Some(taken.until),
                    Some(ends) => ends.latest,
                    None => None,
                };
                Some(estimate(taken.from, latest, basis))
            }
            (ends, _) => ends,
        }
    }

    fn start_by_ends(
        &mut self,
        waiting: &QueuedJob,
        reason: &WaitReason,
        now: Timestamp,
        known: &Circumstances,
    ) -> Option<StartEstimate> {
        let told = &known.ends;
        let end_told = |job: JobId, end: Timestamp, limit: Option<Timestamp>| {
            if known.held.contains(&job) {
                return NEVER;
            }
            told.get(&job).map_or(end, |told| limit.map_or(*told, |limit| limit.min(*told))).max(now)
        };
        let typical = Ends::given(&self.running, |job, running| {
            end_told(job, running.typical_end_at(now), running.latest_end)
        });
        let expected = Ends::given(&self.running, |job, running| {
            end_told(job, running.expected_end, running.latest_end)
        });
        let head_starts = match reason {
            WaitReason::Reserved { for_job } => self.kept.values().find(|kept| kept.job() == *for_job),
            _ => None,
        };
        let head_starts = head_starts.map(super::reserve::CachedReservation::at);
        let mut pass = Pass::new(self, now);
        let earliest = pass.opening(&waiting.class, typical).filter(|opening| opening.at < NEVER)?;
        let latest = pass.opening(&waiting.class, expected).filter(|opening| opening.at < NEVER)?;
        // What is free now is kept for the head until that has started.
        let earliest = head_starts.map_or(earliest.at, |head_starts| earliest.at.max(head_starts));
        let waits_for = |witnesses: &[Witness]| {
            let ended = latest.ended.iter().filter(|job| !told.contains_key(job));
            let ended = ended.filter_map(|job| self.running.get(*job));
            let count = ended.filter(|running| witnesses.contains(&running.estimate.witness)).count();
            u32::try_from(count).unwrap_or(u32::MAX)
        };
        let others: BTreeSet<&str> = self
            .fleet
            .foreign()
            .filter(|(hold, _)| hold.until.is_some_and(|until| foreign_end(until, now) <= latest.at))
            .map(|(hold, _)| hold.job.as_str())
            .collect();
        let progress = latest.ended.iter().filter(|job| told.contains_key(job)).count();
        let basis = EstimateBasis {
            time_limits: waits_for(&[Witness::TimeLimit]) + u32::try_from(others.len()).unwrap_or(u32::MAX),
            past_durations: waits_for(&[Witness::SameName, Witness::SameSize]),
            progress: u32::try_from(progress).unwrap_or(u32::MAX),
            guesses: waits_for(&[Witness::Guess]),
            preemptions: 0,
        };
        let queue_time = after(latest.at, self.time_for_those_ahead(waiting));
        let latest = (basis.guesses == 0).then_some(queue_time.max(earliest));
        Some(estimate(earliest, latest, basis))
    }

    /// When the job could start on what it may take from others, as soon as those have run for the minimum time.
    fn start_by_preemption(&mut self, waiting: &QueuedJob, now: Timestamp) -> Option<ByPreemption> {
        let minimum = self.sharing.minimum_run_time;
        // Reservations are not made anew here, and those of the last plan stay.
        let (mark, kept) = (self.fleet.mark(), self.kept.clone());
        let mut pass = Pass::new(self, now);
        pass.takes_until = Timestamp::MAX;
        pass.claims();
        let kinds = crate::fleet::KindSet::ALL;
        pass.preempt_for(&waiting.class, waiting.place, kinds);
        let plan = pass.finish();
        self.fleet.undo(mark);
        self.kept = kept;
        let of_job = plan.preemptions.iter().filter(|preemption| preemption.for_job == waiting.place.job);
        let victims: Vec<_> = of_job.filter_map(|preemption| self.running.get(preemption.victim)).collect();
        let may_be_stopped = |running: &super::Running| {
            after(running.placed_at, minimum).max(running.until_worth_stopping(now)).max(now)
        };
        let planned = victims.iter().map(|running| {
            let from = may_be_stopped(running);
            (from, after(from, running.grace))
        });
        // Those that are being stopped for it already may end at any moment.
        let stopped = self.running.stopping().filter_map(|(_, running)| {
            let stopping = running.stopping.filter(|stopping| stopping.for_job == Some(waiting.place.job))?;
            Some((now, after(stopping.since, stopping.grace).max(now)))
        });
        let all: Vec<_> = planned.chain(stopped).collect();
        let from = all.iter().map(|(from, _)| *from).max()?;
        let until = all.iter().map(|(_, until)| *until).max()?;
        Some(ByPreemption { from, until, victims: all.len() })
    }

    /// How long the whole cluster would be busy with those ahead in the workspace that wait for the same.
    fn time_for_those_ahead(&self, waiting: &QueuedJob) -> Span {
        let QueuedJob { class, place, .. } = waiting;
        let resource = self.usual_use(class).main_resource();
        let work: u128 = self
            .queue
            .ahead_of(class.account, class.pools, *place)
            .map(|(class, count)| {
                let each = u128::from(self.usual_use(class).get(resource));
                each * u128::from(class.expected().milliseconds) * count as u128
            })
            .sum();
        let account = self.accounts.get(waiting.class.account);
        let capacity = self.accounts.capacity.get(resource);
        let share = account.limit.get(resource).map_or(capacity, |limit| limit.min(capacity)).max(1);
        Span { milliseconds: u64::try_from(work / u128::from(share)).unwrap_or(u64::MAX) }
    }
}

fn estimate(earliest: Timestamp, latest: Option<Timestamp>, basis: EstimateBasis) -> StartEstimate {
    let bound = if latest.is_some() { EstimateBound::Range } else { EstimateBound::Earliest };
    StartEstimate { earliest, latest, bound, basis, rests_on: words::rests_on(&basis) }
}
