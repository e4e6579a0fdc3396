//! A workspace's line of jobs, and what the first that cannot start means for those behind it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use danlu_types::{DeviceKind, HeadOfLine, JobId};
use jiff::{SignedDuration, Timestamp};

use super::pass::Pass;
use super::queue::{CPU_ONLY, First, JobClass, Pools, QueueKey};
use super::wait::Blocker;
use super::workspaces::WorkspaceIndex;
use crate::fleet::{Fleet, KindSet, PlacementConstraints, ShapeId};

/// Under `balance`, one more of those behind the head may be tried for each such time that the head has waited.
const BALANCE_STEP: SignedDuration = SignedDuration::from_mins(5);

/// A workspace's jobs that may be tried, and the first that could not start.
#[derive(Debug, Default)]
pub(super) struct WorkspaceQueue {
    pub(super) open: BTreeSet<Candidate>,
    /// Of those without room, while nobody could be made to give them any, the first that was not looked at: all that may
    /// become of one is a head, so they are looked at only until there is one.
    hopeless: BTreeMap<Pools, Candidate>,
    heads: Vec<Head>,
    /// How many were tried behind a head.
    tried: u32,
}

/// The first of a class that was not looked at yet.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Candidate {
    pub(super) place: QueueKey,
    pub(super) class: Arc<JobClass>,
    /// Whether there was room for it when the sweep began.
    pub(super) had_room: bool,
}

/// Whether there was room for each shape when the sweep began; many classes share one.
#[derive(Debug, Default)]
pub(super) struct Rooms(Vec<Option<bool>>);

impl Rooms {
    pub(super) fn look(&mut self, fleet: &mut Fleet, shape: ShapeId) -> bool {
        if self.0.len() <= shape.ordinal() {
            self.0.resize(shape.ordinal() + 1, None);
        }
        *self.0[shape.ordinal()].get_or_insert_with(|| fleet.fits(shape, &PlacementConstraints::NONE))
    }

    fn has_room(&self, shape: ShapeId) -> bool {
        self.0.get(shape.ordinal()).copied().flatten() == Some(true)
    }
}

#[derive(Debug)]
struct Head {
    job: JobId,
    pools: Pools,
    since: Timestamp,
}

impl WorkspaceQueue {
    /// Forgets who was to be tried; heads stay.
    pub(super) fn clear(&mut self) {
        self.open.clear();
        self.hopeless.clear();
    }

    /// They are added in their order.
    pub(super) fn add_hopeless(&mut self, place: QueueKey, first: &First) {
        self.hopeless.entry(first.pools).or_insert_with(|| Candidate {
            place,
            class: first.class.clone(),
            had_room: false,
        });
    }
}

impl Pass<'_> {
    /// Lets the first of the hopeless be looked at where there is no head.
    pub(super) fn open_hopeless(&mut self, account: WorkspaceIndex) {
        let Some(line) = self.lines.get_mut(&account) else { return };
        let headed = line.heads.iter().fold(0, |headed, head| headed | head.pools);
        let free: Vec<Pools> = line.hopeless.keys().copied().filter(|pools| pools & !headed != 0).collect();
        for pools in free {
            let Some(candidate) = line.hopeless.remove(&pools) else { continue };
            let next =
                self.scheduler.queue.firsts_from(account, candidate.place).skip(1).find(|(_, first)| {
                    first.pools == pools && !first.is_wary && !self.rooms.has_room(first.shape)
                });
            if let Some((place, first)) = next {
                line.add_hopeless(place, first);
            }
            line.open.insert(candidate);
        }
    }

    /// The device kinds on which a job may be tried; its verdict if the head of its line keeps it from being tried.
    pub(super) fn open_kinds(
        &mut self,
        account: WorkspaceIndex,
        pools: Pools,
        policy: HeadOfLine,
    ) -> Result<KindSet, Blocker> {
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
        Err(Blocker::Behind { head: head.job })
    }

    /// The job could not start: it becomes the head of its line, as far as there is none.
    pub(super) fn head(
        &mut self,
        account: WorkspaceIndex,
        class: &Arc<JobClass>,
        place: QueueKey,
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
