//! What is guaranteed to nobody, and has to be left of it for a head that may not borrow.
//!
//! Devices alone do not let such a head start: its use, beside what the others are guaranteed, must fit the cluster. So
//! a reservation keeps a look at everybody's firm use at the time of its start, the head's own included. Who starts
//! before and is still there then is added to it, and may not start where the head could not any more.

use super::accounts::{AccountId, Accounts};
use super::usage::{Resource, Usage};

/// Everybody's firm use when a head starts, its own included.
#[derive(Debug, Clone)]
pub(super) struct FirmThen {
    head: AccountId,
    asked: Usage,
    by_account: Vec<Usage>,
    /// The sum of the larger of guarantee and firm use.
    promised: Usage,
    firm: Usage,
}

impl Accounts {
    /// The firm use now, with a head that would take `asked`; nothing where no guarantee could keep it from starting.
    pub(super) fn firm_with(&self, head: AccountId, asked: &Usage, preemptible: bool) -> Option<FirmThen> {
        let is_idle = |resource| self.promised.get(resource) > self.firm.get(resource);
        if !self.is_firm(preemptible) || !Resource::ALL.into_iter().any(is_idle) {
            return None;
        }
        let by_account = self.list.iter().map(|account| account.firm).collect();
        let (promised, firm) = (self.promised, self.firm);
        let mut then = FirmThen { head, asked: *asked, by_account, promised, firm };
        self.add_firm(&mut then, head, asked, preemptible);
        Some(then)
    }

    /// One more is there then.
    pub(super) fn add_firm(&self, then: &mut FirmThen, id: AccountId, usage: &Usage, preemptible: bool) {
        if !self.is_firm(preemptible) {
            return;
        }
        // Workspaces may have been opened since.
        then.by_account.resize(self.list.len(), Usage::default());
        let (own, guaranteed) = (&mut then.by_account[id], self.get(id).guaranteed);
        let before = own.max(&guaranteed);
        own.add(usage);
        then.firm.add(usage);
        then.promised.add(&own.max(&guaranteed).minus(&before));
    }

    /// Whether the head could not start any more if one more were there then. What a guarantee covers is nobody's to keep.
    pub(super) fn delays(&self, then: &FirmThen, id: AccountId, usage: &Usage, preemptible: bool) -> bool {
        if !self.is_firm(preemptible) {
            return false;
        }
        let (own, head) = (self.get(id), self.get(then.head));
        let firm_of = |id: AccountId| then.by_account.get(id).copied().unwrap_or_default();
        let (then_own, then_head) = (firm_of(id), firm_of(then.head));
        Resource::ALL.into_iter().any(|resource| {
            let of = |usage: &Usage| usage.get(resource);
            let (asked, guaranteed) = (of(usage), of(&head.guaranteed));
            let is_covered = id != then.head && of(&own.firm) + asked <= of(&own.guaranteed);
            if asked == 0 || of(&then.asked) == 0 || is_covered {
                return false;
            }
            let grown = |firm: u64| of(&own.guaranteed).max(firm + asked) - of(&own.guaranteed).max(firm);
            let promised = of(&then.promised) + grown(of(&then_own));
            let firm_of_head = of(&then_head) + if id == then.head { asked } else { 0 };
            let others_promised = promised - firm_of_head.max(guaranteed);
            let others_firm = of(&then.firm) + asked - firm_of_head;
            others_promised > others_firm && firm_of_head > guaranteed && promised > of(&self.in_service)
        })
    }

    fn is_firm(&self, preemptible: bool) -> bool {
        !(self.lends() && preemptible)
    }
}
