//! What is guaranteed to nobody, and has to be left of it for a head that may not borrow.
//!
//! Devices alone do not let such a head start: its use, beside what the others are guaranteed, must fit the cluster. So
//! a reservation keeps a look at everybody's firm use at the time of its start, the head's own included. Who starts
//! before and is still there then is added to it, and may not start where the head could not any more.
//!
//! Invariant: what is kept from pass to pass counts exactly those running jobs that should end after the head's start,
//! and follows whatever is filed. A pass adds what it starts, on a copy of its own.

use std::sync::Arc;

use danlu_types::reason::QuotaResource;
use jiff::Timestamp;

use super::Scheduler;
use super::pass::{Pass, UsageEntry};
use super::queue::JobClass;
use super::reserve::CachedReservation;
use super::running::Running;
use super::usage::ResourceVector;
use super::workspaces::{WorkspaceIndex, WorkspaceTable};

/// Everybody's firm use when a head starts, its own included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NonReclaimableAt {
    head: WorkspaceIndex,
    asked: ResourceVector,
    /// Of accounts that were opened since, nothing.
    by_account: Vec<ResourceVector>,
    /// The sum of the larger of guarantee and firm use.
    promised: ResourceVector,
    firm: ResourceVector,
}

impl WorkspaceTable {
    /// The firm use now, with a head that would take `asked`; nothing where no guarantee could keep it from starting.
    fn firm_with(
        &self,
        head: WorkspaceIndex,
        asked: &ResourceVector,
        preemptible: bool,
    ) -> Option<NonReclaimableAt> {
        if !self.is_firm(preemptible) || self.list.iter().all(|account| account.guaranteed.is_zero()) {
            return None;
        }
        let by_account = self.list.iter().map(|account| account.firm).collect();
        let (promised, firm) = (self.promised, self.firm);
        let mut then = NonReclaimableAt { head, asked: *asked, by_account, promised, firm };
        self.add_firm(&mut then, head, asked, preemptible);
        Some(then)
    }

    /// One more is there then.
    pub(super) fn add_firm(
        &self,
        then: &mut NonReclaimableAt,
        id: WorkspaceIndex,
        usage: &ResourceVector,
        preemptible: bool,
    ) {
        if self.is_firm(preemptible) {
            let promised = then.promised.minus(&self.promised_to(then, id));
            then.by_account[id].add(usage);
            then.firm.add(usage);
            then.promised = promised.plus(&self.promised_to(then, id));
        }
    }

    /// One is not there then.
    fn remove_firm(
        &self,
        then: &mut NonReclaimableAt,
        id: WorkspaceIndex,
        usage: &ResourceVector,
        preemptible: bool,
    ) {
        if self.is_firm(preemptible) {
            let promised = then.promised.minus(&self.promised_to(then, id));
            then.by_account[id].remove(usage);
            then.firm.remove(usage);
            then.promised = promised.plus(&self.promised_to(then, id));
        }
    }

    /// The larger of a workspace's guarantee and its firm use then.
    fn promised_to(&self, then: &mut NonReclaimableAt, id: WorkspaceIndex) -> ResourceVector {
        if then.by_account.len() <= id {
            // It was opened since, and nobody is guaranteed anything without being configured.
            then.by_account.resize(id + 1, ResourceVector::default());
        }
        then.by_account[id].max(&self.get(id).guaranteed)
    }

    /// Whether the head could not start any more if one more were there then. What a guarantee covers is nobody's to keep.
    pub(super) fn delays(
        &self,
        then: &NonReclaimableAt,
        id: WorkspaceIndex,
        usage: &ResourceVector,
        preemptible: bool,
    ) -> bool {
        let own = self.get(id);
        self.is_firm(preemptible)
            && QuotaResource::ALL.into_iter().any(|resource| {
                let (asked, guaranteed) = (usage.get(resource), own.guaranteed.get(resource));
                let is_covered = id != then.head && own.firm.get(resource) + asked <= guaranteed;
                asked > 0 && !is_covered && self.keeps_from_starting(then, resource, id, asked)
            })
    }

    /// Whether the head's start would be refused for this resource, if a workspace used so much more of it.
    fn keeps_from_starting(
        &self,
        then: &NonReclaimableAt,
        resource: QuotaResource,
        id: WorkspaceIndex,
        more: u64,
    ) -> bool {
        let of = |usage: &ResourceVector| usage.get(resource);
        let firm_of = |id: WorkspaceIndex| then.by_account.get(id).map_or(0, of);
        let guaranteed_to = |id: WorkspaceIndex| of(&self.get(id).guaranteed);
        let grown = guaranteed_to(id).max(firm_of(id) + more) - guaranteed_to(id).max(firm_of(id));
        let promised = of(&then.promised) + grown;
        let firm_of_head = firm_of(then.head) + if id == then.head { more } else { 0 };
        let others_promised = promised - firm_of_head.max(guaranteed_to(then.head));
        let others_firm = of(&then.firm) + more - firm_of_head;
        of(&then.asked) > 0
            && others_promised > others_firm
            && firm_of_head > guaranteed_to(then.head)
            && promised > of(&self.in_service)
    }

    fn is_firm(&self, preemptible: bool) -> bool {
        !(self.lends() && preemptible)
    }
}

impl Scheduler {
    /// A job runs from now on, or its end is expected at another time than it was.
    pub(super) fn firm_joins(&mut self, running: &Running) {
        let accounts = &self.accounts;
        for then in there_then(self.kept.values_mut(), running.expected_end) {
            accounts.add_firm(then, running.account, &running.usage, running.preemptible);
        }
    }

    /// A job does not run any more, or its end is expected at another time.
    pub(super) fn firm_leaves(&mut self, running: &Running) {
        let accounts = &self.accounts;
        for then in there_then(self.kept.values_mut(), running.expected_end) {
            accounts.remove_firm(then, running.account, &running.usage, running.preemptible);
        }
    }
}

/// What is kept for heads that start before a time.
fn there_then<'a>(
    kept: impl Iterator<Item = &'a mut CachedReservation>,
    end: Timestamp,
) -> impl Iterator<Item = &'a mut NonReclaimableAt> {
    kept.filter(move |kept| end > kept.at()).filter_map(|kept| kept.firm.as_mut()).map(Arc::make_mut)
}

impl Pass<'_> {
    /// What running jobs will use firmly when a head starts, and the head.
    pub(super) fn firm_at(
        &self,
        class: &JobClass,
        asked: &ResourceVector,
        at: Timestamp,
    ) -> Option<NonReclaimableAt> {
        let accounts = &self.scheduler.accounts;
        let mut then = accounts.firm_with(class.account, asked, class.preemptible)?;
        for UsageEntry { account, usage, preemptible, .. } in self.entries() {
            accounts.remove_firm(&mut then, *account, usage, *preemptible);
        }
        for running in self.scheduler.running.ending_by(at) {
            accounts.remove_firm(&mut then, running.account, &running.usage, running.preemptible);
        }
        Some(then)
    }

    /// The same with what this pass has decided.
    pub(super) fn firm_in_pass(&self, kept: &CachedReservation) -> Option<Arc<NonReclaimableAt>> {
        let mut then = kept.firm.clone()?;
        let accounts = &self.scheduler.accounts;
        let at = kept.at();
        let started = self.promises.iter().filter(|promise| promise.until > at).map(|promise| &promise.entry);
        let begun = self
            .reserved
            .iter()
            .filter(|earlier| earlier.at < at && self.end_expected_of(earlier.job, earlier.at) > at);
        for entry in started.chain(begun.map(|earlier| &earlier.entry)) {
            accounts.add_firm(Arc::make_mut(&mut then), entry.account, &entry.usage, entry.preemptible);
        }
        let victims = self.victims.iter().filter_map(|victim| self.scheduler.running.get(*victim));
        for victim in victims.filter(|victim| victim.expected_end > at) {
            let then = Arc::make_mut(&mut then);
            accounts.remove_firm(then, victim.account, &victim.usage, victim.preemptible);
        }
        Some(then)
    }

    /// Whether others' guarantees leave a head what it asks for.
    pub(super) fn leaves_room_for_head(&self, then: Option<&NonReclaimableAt>) -> bool {
        let accounts = &self.scheduler.accounts;
        let keeps =
            |then: &NonReclaimableAt, resource| accounts.keeps_from_starting(then, resource, then.head, 0);
        then.is_none_or(|then| !QuotaResource::ALL.into_iter().any(|resource| keeps(then, resource)))
    }
}

#[cfg(test)]
mod tests {
    use danlu_core::{Job, Transition, Trigger, apply};
    use danlu_types::{Amounts, DeviceCount, DeviceKind, JobId, JobSpec, Sharing, Span, Workspace};
    use jiff::SignedDuration;
    use proptest::prelude::*;

    use super::*;
    use crate::scheduler::Plan;

    fn sharing(lending: bool, guaranteed: u32) -> Sharing {
        let nvidia = Some(DeviceCount::whole(guaranteed));
        let guaranteed = Amounts { nvidia, ..Amounts::default() };
        let red = Workspace { guaranteed, ..Workspace::default() };
        Sharing { lending, workspaces: [("red".to_owned(), red)].into(), ..Sharing::default() }
    }

    fn spec((devices, hours, workspace, preemptible): (u32, u64, usize, bool)) -> JobSpec {
        let mut spec = JobSpec::of_command("true");
        ["red", "green", "blue"][workspace].clone_into(&mut spec.workspace);
        (spec.devices.kind, spec.devices.count) = (Some(DeviceKind::Nvidia), DeviceCount::whole(devices));
        (spec.preemptible, spec.max_time) = (preemptible, Some(Span::from_seconds(3600 * hours)));
        spec
    }

    fn carry_out(scheduler: &mut Scheduler, jobs: &mut [Job], plan: Plan, now: Timestamp) {
        let starts =
            plan.starts.into_iter().map(|start| (start.job, Trigger::Place { grants: start.grants }));
        let stops =
            plan.preemptions.into_iter().map(|one| (one.victim, Trigger::Preempt { for_job: one.for_job }));
        for (id, event) in starts.chain(stops) {
            let job = jobs.iter_mut().find(|job| job.id == id).expect("it was submitted");
            let Transition::Next { job: next, .. } = apply(job, event, now) else {
                panic!("the plan is sound")
            };
            scheduler.file(&next);
            *job = *next;
        }
    }

    fn assert_kept_is_what_would_be_counted(scheduler: &mut Scheduler, now: Timestamp) {
        let kept: Vec<CachedReservation> = scheduler.kept.values().cloned().collect();
        for kept in kept {
            let class = JobClass::clone(&scheduler.queue.get(kept.job()).expect("heads wait").class);
            let pass = Pass::new(scheduler, now);
            let anew = pass.firm_at(&class, &ResourceVector::of_placement(kept.placement()), kept.at());
            // Accounts that were opened since have nothing, be it written down or not.
            let short = |then: &NonReclaimableAt| {
                let mut then = then.clone();
                while then.by_account.last().is_some_and(ResourceVector::is_zero) {
                    then.by_account.pop();
                }
                then
            };
            assert_eq!(anew.as_ref().map(short), kept.firm.as_deref().map(short), "for {}", kept.job());
        }
    }

    proptest! {
        #[test]
        fn what_is_kept_for_heads_follows_whatever_is_filed(
            lending in any::<bool>(),
            guaranteed in 1..6u32,
            steps in prop::collection::vec(
                (prop::collection::vec((1..7u32, 1..5u64, 0..3usize, any::<bool>()), 0..4), any::<prop::sample::Index>(), 0..180i64),
                1..12,
            ),
        ) {
            let nodes = crate::cluster::test_nodes(2);
            let mut scheduler = Scheduler::new(&nodes, sharing(lending, guaranteed));
            let (mut jobs, mut ids, mut now) = (Vec::new(), (1..).map(JobId), Timestamp::UNIX_EPOCH);
            for (specs, which, minutes) in steps {
                now += SignedDuration::from_mins(minutes);
                for (one, id) in specs.into_iter().zip(&mut ids) {
                    let job = Job::submitted(id, "ann".to_owned(), Arc::new(spec(one)), now);
                    scheduler.file(&job);
                    jobs.push(job);
                }
                let plan = scheduler.plan(now);
                carry_out(&mut scheduler, &mut jobs, plan, now);
                let active: Vec<JobId> =
                    jobs.iter().filter(|job| job.active().is_some()).map(|job| job.id).collect();
                if !active.is_empty() {
                    let gone = active[which.index(active.len())];
                    scheduler.forget(gone);
                    jobs.retain(|job| job.id != gone);
                }
                scheduler.put_off_overdue(now + SignedDuration::from_mins(minutes));
                scheduler.kept.retain(|_, kept| scheduler.queue.get(kept.job()).is_some());
                assert_kept_is_what_would_be_counted(&mut scheduler, now);
            }
        }
    }
}
