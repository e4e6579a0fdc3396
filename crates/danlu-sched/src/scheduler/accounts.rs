//! What workspaces and their people use, and what they may.
//!
//! Lending rests on one sum: of each resource, the guarantees (or the firm use, where that is more) of all workspaces
//! together must fit the cluster. *Firm* is what cannot be taken back: the use of jobs that are not preemptible. As long
//! as that sum fits, every guarantee can be made good by preempting borrowers. Without lending all use counts as firm.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use danlu_types::{HeadOfLine, Sharing, Workspace};

use super::usage::{Ceiling, Resource, Usage};

/// A workspace's position in [`Accounts`]; it never changes.
pub(crate) type AccountId = usize;

#[derive(Debug)]
pub(crate) struct Accounts {
    accounts: Vec<Account>,
    names: BTreeMap<String, AccountId>,
    lending: bool,
    pub(crate) capacity: Usage,
    /// The sum over all workspaces of the larger of guarantee and firm use.
    promised: Usage,
}

#[derive(Debug)]
pub(crate) struct Account {
    pub(crate) name: String,
    pub(crate) guaranteed: Usage,
    pub(crate) limit: Ceiling,
    pub(crate) per_user: Ceiling,
    pub(crate) head_of_line: HeadOfLine,
    pub(crate) used: Usage,
    /// The part of `used` by jobs that are not preemptible.
    pub(crate) firm: Usage,
    users: BTreeMap<Arc<str>, Usage>,
}

/// Why a quota does not let a job start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OverQuota {
    Workspace(Resource),
    User(Resource),
    /// It would use what is guaranteed to others and could not be made to give it back.
    Guaranteed(Resource),
}

/// Smaller goes first: those within their guarantee by how much of it they use, then borrowers by how much they borrow.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Share(f64);

impl Eq for Share {}

impl PartialOrd for Share {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Share {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl Accounts {
    pub(crate) fn new(sharing: &Sharing, capacity: Usage) -> Self {
        let mut accounts = Accounts {
            accounts: Vec::new(),
            names: BTreeMap::new(),
            lending: sharing.lending,
            capacity,
            promised: Usage::default(),
        };
        for (name, workspace) in &sharing.workspaces {
            accounts.open(name, workspace);
        }
        accounts
    }

    /// The workspace of that name; one nobody spoke of has no guarantee and no limit.
    pub(crate) fn id(&mut self, name: &str) -> AccountId {
        match self.names.get(name) {
            Some(id) => *id,
            None => self.open(name, &Workspace::default()),
        }
    }

    fn open(&mut self, name: &str, workspace: &Workspace) -> AccountId {
        let account = Account {
            name: name.to_owned(),
            guaranteed: Usage::of_amounts(&workspace.guaranteed),
            limit: Ceiling::of(&workspace.limit),
            per_user: Ceiling::of(&workspace.per_user),
            head_of_line: workspace.head_of_line,
            used: Usage::default(),
            firm: Usage::default(),
            users: BTreeMap::new(),
        };
        self.promised.add(&account.guaranteed);
        self.accounts.push(account);
        self.names.insert(name.to_owned(), self.accounts.len() - 1);
        self.accounts.len() - 1
    }

    pub(crate) fn get(&self, id: AccountId) -> &Account {
        &self.accounts[id]
    }

    pub(crate) fn used_by(&self, id: AccountId, user: &str) -> Usage {
        self.accounts[id].users.get(user).copied().unwrap_or_default()
    }

    pub(crate) fn add(&mut self, id: AccountId, user: &Arc<str>, usage: &Usage, preemptible: bool) {
        let firm = !(self.lending && preemptible);
        let account = &mut self.accounts[id];
        account.used.add(usage);
        account.users.entry(user.clone()).or_default().add(usage);
        if firm {
            let before = account.firm.max(&account.guaranteed);
            account.firm.add(usage);
            self.promised.add(&account.firm.max(&account.guaranteed).minus(&before));
        }
    }

    pub(crate) fn remove(&mut self, id: AccountId, user: &Arc<str>, usage: &Usage, preemptible: bool) {
        let firm = !(self.lending && preemptible);
        let account = &mut self.accounts[id];
        account.used.remove(usage);
        if let Some(used) = account.users.get_mut(user) {
            used.remove(usage);
            if used.is_zero() {
                account.users.remove(user);
            }
        }
        if firm {
            let before = account.firm.max(&account.guaranteed);
            account.firm.remove(usage);
            self.promised.remove(&before.minus(&account.firm.max(&account.guaranteed)));
        }
    }

    /// Whether quotas let a job start that would take `asked`.
    pub(crate) fn check(
        &self,
        id: AccountId,
        user: &str,
        asked: &Usage,
        preemptible: bool,
    ) -> Result<(), OverQuota> {
        let account = &self.accounts[id];
        if let Some(resource) = account.limit.exceeded_by(&account.used.plus(asked), asked) {
            return Err(OverQuota::Workspace(resource));
        }
        if let Some(resource) = account.per_user.exceeded_by(&self.used_by(id, user).plus(asked), asked) {
            return Err(OverQuota::User(resource));
        }
        if self.lending && preemptible {
            return Ok(());
        }
        let firm = account.firm.plus(asked);
        let before = account.firm.max(&account.guaranteed);
        let promised = self.promised.minus(&before).plus(&firm.max(&account.guaranteed));
        let lent = Resource::ALL.into_iter().find(|resource| {
            asked.get(*resource) > 0
                && firm.get(*resource) > account.guaranteed.get(*resource)
                && promised.get(*resource) > self.capacity.get(*resource)
        });
        lent.map_or(Ok(()), |resource| Err(OverQuota::Guaranteed(resource)))
    }

    /// Whether the workspace has a right to what it asks for, and may take it back from borrowers. What it was
    /// guaranteed nothing of (CPUs beside guaranteed devices, say) follows the main resource.
    pub(crate) fn is_entitled(&self, id: AccountId, asked: &Usage, preemptible: bool) -> bool {
        let account = &self.accounts[id];
        if account.guaranteed.get(asked.main_resource()) == 0 {
            return false;
        }
        let used = if preemptible { account.used } else { account.firm };
        let after = used.plus(asked);
        Resource::ALL.into_iter().all(|resource| {
            let guaranteed = account.guaranteed.get(resource);
            asked.get(resource) == 0 || guaranteed == 0 || after.get(resource) <= guaranteed
        })
    }

    /// Whether a workspace uses more of a resource than it is guaranteed.
    pub(crate) fn borrows(&self, id: AccountId, resource: Resource) -> bool {
        let account = &self.accounts[id];
        account.used.get(resource) > account.guaranteed.get(resource)
    }

    pub(crate) fn lends(&self) -> bool {
        self.lending
    }

    pub(crate) fn share(&self, id: AccountId) -> Share {
        let account = &self.accounts[id];
        let (mut within, mut beyond) = (0.0f64, 0.0f64);
        for resource in Resource::ALL {
            let (used, guaranteed) = (account.used.get(resource), account.guaranteed.get(resource));
            let capacity = self.capacity.get(resource).max(1);
            if used > guaranteed {
                beyond = beyond.max((used - guaranteed) as f64 / capacity as f64);
            }
            if guaranteed > 0 {
                within = within.max(used as f64 / guaranteed as f64);
            }
        }
        // What is not guaranteed at all (CPUs beside guaranteed devices) does not make a borrower of a workspace.
        let main = Resource::ALL.into_iter().find(|resource| account.guaranteed.get(*resource) > 0);
        match main {
            Some(resource) if account.used.get(resource) <= account.guaranteed.get(resource) => {
                Share(within.min(1.0))
            }
            _ => Share(1.0 + beyond),
        }
    }
}
