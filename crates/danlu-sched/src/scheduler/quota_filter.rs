//! What of a job's wishes it may have: alternatives and device kinds that quotas and the head of its line leave it.

use danlu_types::reason::QuotaResource;
use danlu_types::{DeviceKind, JobId};

use super::Scheduler;
use super::pass::Pass;
use super::queue::JobClass;
use super::running::after;
use super::usage::ResourceVector;
use super::wait::Blocker;
use super::workspaces::{OverQuota, PreemptionRight, WorkspaceIndex};
use crate::fleet::{Fleet, KindSet, ShapeId};
use crate::shape::{DeviceAsk, Shape};

/// Why nothing of a job's wishes is allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum QuotaBlocker {
    Quota(OverQuota),
    /// It would use up what its workspace's limit has to leave to a head.
    Reserved {
        for_job: JobId,
    },
    /// It would use up what is guaranteed to nobody, and a head, perhaps of another workspace, needs.
    FirmlyReserved {
        for_job: JobId,
    },
}

impl QuotaBlocker {
    pub(super) fn verdict(self) -> Blocker {
        match self {
            QuotaBlocker::Quota(over) => Blocker::OverQuota(over),
            QuotaBlocker::Reserved { for_job } | QuotaBlocker::FirmlyReserved { for_job } => {
                Blocker::Reserved { for_job }
            }
        }
    }
}

impl Pass<'_> {
    /// What a job may start as now, on these kinds of devices.
    pub(super) fn allowed(&mut self, class: &JobClass, kinds: KindSet) -> Result<ShapeId, QuotaBlocker> {
        let wished = self.wished(class, kinds);
        // What exceeds a limit by itself will never do, and is no reason to wait.
        let possible = self.scheduler.within_bounds(class.account, wished, class.preemptible);
        let within = self.within_quota(class, possible.unwrap_or(wished)).map_err(QuotaBlocker::Quota)?;
        let end = after(self.now, class.expected());
        let own = self.reserved.iter().filter(|reserved| reserved.is_of(class.account) && end > reserved.at);
        let within = narrowed(&mut self.scheduler.fleet, within, KindSet::ALL, |usage| {
            match own.clone().find(|reserved| reserved.is_delayed_by(usage)) {
                Some(reserved) => Err(QuotaBlocker::Reserved { for_job: reserved.job }),
                None => Ok(()),
            }
        })?;
        self.beside_firm_heads(class, within, self.now)
    }

    /// What quotas alone would let it start as.
    pub(super) fn within_quota(&mut self, class: &JobClass, shape: ShapeId) -> Result<ShapeId, OverQuota> {
        let scheduler = &mut *self.scheduler;
        // Where people have no limits of their own, whose it is makes no difference.
        let owner = class.user.as_deref().unwrap_or_default();
        narrowed(&mut scheduler.fleet, shape, KindSet::ALL, |usage| {
            scheduler.accounts.check(class.account, owner, usage, class.preemptible)
        })
    }

    /// What it wishes for on these kinds of devices.
    pub(super) fn wished(&mut self, class: &JobClass, kinds: KindSet) -> ShapeId {
        narrowed(&mut self.scheduler.fleet, class.shape, kinds, |_| Ok::<(), ()>(())).unwrap_or(class.shape)
    }

    /// The part of a shape to which its workspace's guarantee gives one of these rights.
    pub(super) fn with_right(
        &mut self,
        class: &JobClass,
        shape: ShapeId,
        rights: &[PreemptionRight],
    ) -> Option<ShapeId> {
        let leaving = self.leaving(class.account);
        let kept = self.kept_for(class.account);
        let scheduler = &mut *self.scheduler;
        let accounts = &scheduler.accounts;
        narrowed(&mut scheduler.fleet, shape, KindSet::ALL, |usage| {
            let asked = usage;
            let right = accounts.right(class.account, asked, class.preemptible, &leaving, &kept);
            if right.is_some_and(|right| rights.contains(&right)) { Ok(()) } else { Err(()) }
        })
        .ok()
    }

    /// The widest right that its workspace's guarantee gives to some part of a shape.
    pub(super) fn widest_right(&self, class: &JobClass, shape: ShapeId) -> Option<PreemptionRight> {
        let (leaving, kept) = (self.leaving(class.account), self.kept_for(class.account));
        let scheduler = &*self.scheduler;
        let shape = scheduler.fleet.shape_of(shape);
        let every = shape.alternatives.iter().flat_map(|ask| kinds_of(ask).map(move |kind| (ask, kind)));
        let usages = every.map(|(ask, kind)| ResourceVector::of_gang(shape, ask, kind));
        let right =
            |usage| scheduler.accounts.right(class.account, &usage, class.preemptible, &leaving, &kept);
        usages.filter_map(right).max()
    }

    /// What is withheld for the heads of a workspace: it has that already, as far as its guarantee goes.
    fn kept_for(&self, account: WorkspaceIndex) -> ResourceVector {
        let own = self.reserved.iter().filter(|reserved| reserved.is_of(account));
        own.fold(ResourceVector::default(), |kept, reserved| {
            kept.plus(&ResourceVector::of_placement(&reserved.withheld))
        })
    }
}

impl Scheduler {
    /// The part of a shape that does not by itself exceed what its workspace could ever have.
    pub(super) fn within_bounds(
        &mut self,
        account: WorkspaceIndex,
        shape: ShapeId,
        preemptible: bool,
    ) -> Option<ShapeId> {
        let accounts = &self.accounts;
        narrowed(&mut self.fleet, shape, KindSet::ALL, |usage| {
            accounts.bound_exceeded_by(account, usage, preemptible).map_or(Ok(()), Err)
        })
        .ok()
    }
}

/// The shape without those alternatives and kinds that are refused; the first refusal if nothing is left.
pub(super) fn narrowed<E>(
    fleet: &mut Fleet,
    id: ShapeId,
    kinds: KindSet,
    check: impl Fn(&ResourceVector) -> Result<(), E>,
) -> Result<ShapeId, E> {
    let shape = fleet.shape_of(id);
    let every = shape.alternatives.iter().flat_map(|ask| kinds_of(ask).map(move |kind| (ask, kind)));
    let is_open = |kind: Option<DeviceKind>| kind.is_none_or(|kind| kinds.contains(kind));
    let (mut refused, mut is_whole) = (None, true);
    for (ask, kind) in every.clone() {
        let answer = is_open(kind).then(|| check(&ResourceVector::of_gang(shape, ask, kind)));
        is_whole &= matches!(answer, Some(Ok(())));
        if let Some(Err(refusal)) = answer {
            refused = refused.or(Some(refusal));
        }
    }
    if is_whole {
        return Ok(id);
    }
    let allowed = every
        .filter(|(ask, kind)| is_open(*kind) && check(&ResourceVector::of_gang(shape, ask, *kind)).is_ok());
    let mut alternatives: Vec<DeviceAsk> = Vec::new();
    for (ask, kind) in allowed {
        // One that takes any kind keeps its freedom of choice as long as no kind is refused.
        let is_free = kinds_of(ask)
            .all(|kind| is_open(kind) && check(&ResourceVector::of_gang(shape, ask, kind)).is_ok());
        let ask = if is_free { ask.clone() } else { DeviceAsk { kind, ..ask.clone() } };
        if alternatives.last() != Some(&ask) {
            alternatives.push(ask);
        }
    }
    match refused {
        Some(refusal) if alternatives.is_empty() => Err(refusal),
        _ if alternatives.is_empty() => Ok(id),
        _ => {
            let narrower = Shape { alternatives, ..shape.clone() };
            Ok(fleet.shape(&narrower))
        }
    }
}

/// The kinds that would do; `None` stands for processors only.
pub(super) fn kinds_of(ask: &DeviceAsk) -> impl Iterator<Item = Option<DeviceKind>> + Clone {
    let (is_cpu_only, asked) = (ask.count.is_none(), ask.kind);
    let devices = DeviceKind::ALL.into_iter().map(Some);
    let devices = devices.filter(move |kind| !is_cpu_only && (asked.is_none() || asked == *kind));
    is_cpu_only.then_some(None).into_iter().chain(devices)
}

/// Whether `usage` is more than is left of something it asks for.
pub(super) fn exceeds(usage: &ResourceVector, left: &[Option<u64>; QuotaResource::ALL.len()]) -> bool {
    QuotaResource::ALL.into_iter().any(|resource| {
        usage.get(resource) > 0 && left[resource as usize].is_some_and(|left| usage.get(resource) > left)
    })
}
