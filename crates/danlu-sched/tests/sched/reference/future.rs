//! When the head of a line can start.

use danlu_core::Job;
use danlu_sched::{Shape, WorkerPlacement};
use danlu_types::{ForeignHold, Node};
use jiff::{SignedDuration, Timestamp};

use super::quota::{FirmUse, Use, narrowed};
use super::{Hold, Pass, placement_of};

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Begin,
    End,
}

/// When it fits, on what, what its workspace's limit leaves beside it, and who uses what firmly then.
type Opening = (Timestamp, Vec<WorkerPlacement>, [Option<u64>; 4], Vec<FirmUse>);

impl Pass<'_> {
    /// Keeps for a head what it needs, from the time at which those who hold it should have ended.
    pub(super) fn reserve(&mut self, job: &Job) {
        let Some((at, parts, spare, firm)) = self.opening(job) else { return };
        let shape = Shape::of(&job.spec);
        let covered = narrowed(&shape, |asked, _| self.has_right(job, &asked));
        let withheld = self.fleet().withhold(&placement_of(parts.clone())).parts;
        self.hold(job, Some(at), parts, withheld);
        let hold = self.holds.last_mut().unwrap();
        (hold.spare, hold.firm, hold.is_entitled) = (spare, firm, !covered.alternatives.is_empty());
    }

    /// Lets the time go by until the job fits: running jobs end as expected, and those before it begin, take what they
    /// are owed as soon as it is free, and end.
    fn opening(&self, job: &Job) -> Option<Opening> {
        let mut then = self.clone();
        then.holds.sort_by_key(|hold| hold.reservation.is_some());
        then.gone.extend(&self.victims);
        let graces = self.victims.iter().map(|victim| self.now + duration(self.jobs[victim].spec.grace));
        let mut at = graces.fold(self.now, Timestamp::max);
        let mut ends: Vec<(Timestamp, _)> =
            self.running().into_iter().map(|(job, _)| (self.expected_end(job), job.id)).collect();
        ends.retain(|(_, job)| !self.victims.contains(job));
        ends.sort_unstable();
        let mut events: Vec<(Timestamp, usize, Event)> = Vec::new();
        for (position, hold) in then.holds.iter().enumerate() {
            events.extend(hold.reservation.map(|begin| (begin, position, Event::Begin)));
            events.push((hold.until, position, Event::End));
        }
        events.sort_unstable();
        let holds = self.nodes.iter().flat_map(|node| &node.foreign);
        let mut departures: Vec<Timestamp> = holds.filter_map(|hold| self.foreign_end(hold)).collect();
        departures.sort_unstable();
        loop {
            then.collect();
            let shape = then.within_quota(job, &Shape::of(&job.spec));
            let shape = then.beside_firm_heads(job, &shape, at);
            if let Some(parts) = then.place(job, &shape) {
                let (used, own) = (then.used(&job.spec.workspace), Use::of(&parts, self.nodes));
                let limit = self.limit(&job.spec.workspace);
                let spare = |of: usize| Some(limit[of]?.saturating_sub(used[of] + own.0[of]));
                let mut firm = self.firm_at(at);
                firm.push((job.id, own));
                return Some((at, parts, std::array::from_fn(spare), firm));
            }
            let end = ends.first().map(|(end, _)| *end);
            if let Some(&next) = departures.first()
                && end.is_none_or(|end| next < end)
                && events.first().is_none_or(|(event, _, _)| next <= *event)
            {
                departures.retain(|departure| *departure != next);
                at = at.max(next);
                then.others_left = Some(next);
                continue;
            }
            match (events.first().copied(), ends.first().copied()) {
                (Some((next, position, event)), end) if end.is_none_or(|(end, _)| next < end) => {
                    events.remove(0);
                    at = at.max(next);
                    let hold = &mut then.holds[position];
                    hold.counts = event == Event::Begin;
                    if event == Event::End {
                        (hold.parts, hold.withheld) = (Vec::new(), Vec::new());
                    }
                }
                (_, Some((end, ended))) => {
                    ends.remove(0);
                    at = at.max(end);
                    then.gone.insert(ended);
                }
                (_, None) => return None,
            }
        }
    }

    /// Gives those before it what they lack of what has become free.
    fn collect(&mut self) {
        for at in 0..self.holds.len() {
            let Hold { parts, withheld, .. } = &self.holds[at];
            let lacks = parts.iter().zip(withheld).map(|(all, has)| WorkerPlacement {
                devices: all.devices.iter().filter(|device| !has.devices.contains(device)).copied().collect(),
                milli_cpus: all.milli_cpus - has.milli_cpus,
                bytes: all.bytes - has.bytes,
                ..*all
            });
            let found = self.fleet().withhold(&placement_of(lacks.collect())).parts;
            for (has, found) in self.holds[at].withheld.iter_mut().zip(found) {
                has.devices.extend(found.devices);
                has.milli_cpus += found.milli_cpus;
                has.bytes += found.bytes;
            }
        }
    }

    /// A job that outlives its estimate is given as long again.
    pub(super) fn expected_end(&self, job: &Job) -> Timestamp {
        let ahead = |from, span| self.ahead(from, span);
        let attempt = job.active().unwrap();
        let end = ahead(attempt.placed_at, estimate(job));
        let limit = job.spec.max_time.map(|limit| attempt.placed_at + duration(limit));
        let stop = attempt.stop.as_ref().map(|stop| ahead(stop.since, duration(stop.grace)));
        stop.into_iter().chain(limit.filter(|limit| *limit > self.now)).fold(end, Timestamp::min)
    }
}

impl Pass<'_> {
    /// Without what those of others held that have ended.
    pub(super) fn nodes_then(&self) -> Vec<Node> {
        let mut nodes = self.nodes.to_vec();
        let is_here =
            |hold: &ForeignHold| self.foreign_end(hold).is_none_or(|end| Some(end) > self.others_left);
        for node in &mut nodes {
            node.foreign.retain(is_here);
        }
        nodes
    }

    /// When a job of somebody else's should end, if it has a limit.
    fn foreign_end(&self, hold: &ForeignHold) -> Option<Timestamp> {
        let until = hold.until?;
        Some(if until > self.now { until } else { self.ahead(until, SignedDuration::ZERO) })
    }

    fn ahead(&self, from: Timestamp, span: SignedDuration) -> Timestamp {
        let mut span = span.max(SignedDuration::from_secs(1));
        while from + span <= self.now {
            span *= 2;
        }
        from + span
    }
}

fn duration(span: danlu_types::Span) -> SignedDuration {
    span.to_duration().try_into().unwrap()
}

/// Without history: its limit, or a working day.
pub(super) fn estimate(job: &Job) -> SignedDuration {
    duration(job.spec.max_time.unwrap_or(danlu_types::Span::from_seconds(8 * 3600)))
}

/// Lengths are compared as powers of two.
pub(super) fn length(job: &Job) -> SignedDuration {
    let seconds = u64::try_from(estimate(job).as_millis()).unwrap().div_ceil(1000).max(1);
    SignedDuration::from_secs(i64::try_from(seconds.next_power_of_two()).unwrap())
}
