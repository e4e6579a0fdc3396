//! A workspace's line of jobs, and what the first that cannot start means for those behind it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use danlu_types::{DeviceKind, HeadOfLine, JobId};
use jiff::{SignedDuration, Timestamp};

use super::accounts::AccountId;
use super::pass::Pass;
use super::queue::{CPU_ONLY, Class, Place, Pools};
use super::wait::Verdict;
use crate::fleet::KindSet;

/// Under `balance`, one more of those behind the head may be tried for each such time that the head has waited.
const BALANCE_STEP: SignedDuration = SignedDuration::from_mins(5);

/// A workspace's jobs that may be tried, and the first that could not start.
#[derive(Debug, Default)]
pub(super) struct Line {
    pub(super) open: BTreeSet<Candidate>,
    /// Those without room, while nobody could be made to give them any: all that may become of one is a head, so they are
    /// looked at only until there is one.
    hopeless: BTreeMap<Pools, Vec<Candidate>>,
    heads: Vec<Head>,
    /// How many were tried behind a head.
    tried: u32,
}

/// The first of a class that was not looked at yet.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Candidate {
    pub(super) place: Place,
    pub(super) class: Arc<Class>,
    /// Whether there was room for it when the sweep began.
    pub(super) had_room: bool,
}

#[derive(Debug)]
struct Head {
    job: JobId,
    pools: Pools,
    since: Timestamp,
}

impl Line {
    /// Forgets who was to be tried; heads stay.
    pub(super) fn clear(&mut self) {
        self.open.clear();
        self.hopeless.clear();
    }

    pub(super) fn add_hopeless(&mut self, candidate: Candidate) {
        self.hopeless.entry(candidate.class.pools).or_default().push(candidate);
    }

    /// Those of the hopeless that were not looked at.
    pub(super) fn given_up(&mut self) -> impl Iterator<Item = Arc<Class>> {
        std::mem::take(&mut self.hopeless).into_values().flatten().map(|candidate| candidate.class)
    }

    /// Lets the first of the hopeless be looked at where there is no head.
    pub(super) fn open_hopeless(&mut self) {
        let headed = self.heads.iter().fold(0, |headed, head| headed | head.pools);
        for (_, candidates) in self.hopeless.iter_mut().filter(|(pools, _)| **pools & !headed != 0) {
            let first = (0..candidates.len()).min_by_key(|at| candidates[*at].place);
            self.open.extend(first.map(|at| candidates.swap_remove(at)));
        }
    }
}

impl Pass<'_> {
    /// The device kinds on which a job may be tried; its verdict if the head of its line keeps it from being tried.
    pub(super) fn open_kinds(
        &mut self,
        account: AccountId,
        pools: Pools,
        policy: HeadOfLine,
    ) -> Result<KindSet, Verdict> {
        let Some(line) = self.lines.get_mut(&account) else { return Ok(KindSet::ALL) };
        let Some(head) = line.heads.iter().find(|head| head.pools & pools != 0) else {
            return Ok(KindSet::ALL);
        };
        if matches!(policy, HeadOfLine::Backfill | HeadOfLine::Skip) {
            return Ok(KindSet::ALL);
        }
        let closed = line.heads.iter().fold(0, |closed, head| closed | head.pools);
        if pools & !closed != 0 {
            return Ok(kinds_of(pools & !closed));
        }
        if policy == HeadOfLine::Balance {
            let steps = self.now.duration_since(head.since).as_millis() / BALANCE_STEP.as_millis();
            if i128::from(line.tried) < steps {
                line.tried += 1;
                return Ok(KindSet::ALL);
            }
            let wider = BALANCE_STEP * i32::try_from(steps + 1).unwrap_or(i32::MAX);
            let next = head.since.saturating_add(wider).unwrap_or(Timestamp::MAX);
            self.plan.next_wake = self.plan.next_wake.into_iter().chain([next]).min();
        }
        Err(Verdict::Behind { head: head.job })
    }

    /// The job could not start: it becomes the head of its line, as far as there is none.
    pub(super) fn head(
        &mut self,
        account: AccountId,
        class: &Arc<Class>,
        place: Place,
        pools: Pools,
        policy: HeadOfLine,
    ) {
        let line = self.lines.entry(account).or_default();
        let closed = line.heads.iter().fold(0, |closed, head| closed | head.pools);
        let mut pools = pools & !closed;
        if pools == 0 || !self.scheduler.could_ever_start(class) {
            return;
        }
        let since = self.scheduler.queue.get(place.job).map_or(self.now, |waiting| waiting.since);
        // A head that has its devices and waits for processors keeps jobs without devices from taking them.
        let closes = matches!(policy, HeadOfLine::Strict | HeadOfLine::Balance);
        if closes && self.scheduler.fleet.devices_fit(class.shape) {
            pools |= CPU_ONLY;
        }
        line.heads.push(Head { job: place.job, pools, since });
        if policy == HeadOfLine::Backfill {
            self.reserve(account, class, place, pools);
        }
    }
}

fn kinds_of(pools: Pools) -> KindSet {
    let kinds = DeviceKind::ALL.into_iter().enumerate();
    kinds.filter(|(position, _)| pools & (1 << position) != 0).map(|(_, kind)| kind).collect()
}
