//! What workspaces and their people use, and what they may.
//!
//! Lending rests on one sum: of each resource, the guarantees (or the firm use, where that is more) of all workspaces
//! together must fit what of the cluster works and takes jobs. *Firm* is what cannot be taken back: the use of jobs that are not preemptible. As long
//! as that sum fits, every guarantee can be made good by preempting borrowers. Without lending all use counts as firm.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use danlu_types::reason::QuotaResource;
use danlu_types::{HeadOfLine, Sharing, Workspace};

use super::usage::{Ceiling, ResourceVector};

/// A workspace's position in [`WorkspaceTable`]; it never changes as long as anybody needs it.
pub(crate) type WorkspaceIndex = usize;

#[derive(Debug)]
pub(crate) struct WorkspaceTable {
    pub(super) list: Vec<WorkspaceUsage>,
    names: BTreeMap<String, WorkspaceIndex>,
    /// Positions of workspaces that were forgotten; the next that are opened take them.
    vacant: BTreeSet<WorkspaceIndex>,
    lending: bool,
    /// The rules of workspaces that are not listed.
    personal: Workspace,
    pub(crate) capacity: ResourceVector,
    /// The part of it that works and takes jobs: guarantees are made good from nothing else.
    pub(super) in_service: ResourceVector,
    /// The sum over all workspaces of the larger of guarantee and firm use.
    pub(super) promised: ResourceVector,
    /// The sum over all workspaces of firm use.
    pub(super) firm: ResourceVector,
}

#[derive(Debug)]
pub(crate) struct WorkspaceUsage {
    pub(crate) name: String,
    pub(crate) guaranteed: ResourceVector,
    pub(crate) limit: Ceiling,
    pub(crate) per_user: Ceiling,
    pub(crate) head_of_line: HeadOfLine,
    pub(crate) used: ResourceVector,
    /// The part of `used` by jobs that are not preemptible.
    pub(crate) firm: ResourceVector,
    users: BTreeMap<Arc<str>, ResourceVector>,
}

/// Why a quota does not let a job start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OverQuota {
    Workspace(QuotaResource),
    User(QuotaResource),
    /// It would use what is guaranteed to others and could not be made to give it back.
    Guaranteed(QuotaResource),
}

/// What a job may exceed by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bound {
    Limit { is_user: bool },
    Guarantees,
}

/// What a guarantee lets a job do to others, the widest last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum PreemptionRight {
    /// Its workspace has all it is guaranteed, but holds it with jobs that may borrow instead: those give way.
    PushOutOwn,
    /// Its workspace uses less than it is guaranteed: others who borrow give way.
    TakeBack,
    TakeBackAndPushOutOwn,
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

impl WorkspaceTable {
    pub(crate) fn new(sharing: &Sharing, capacity: ResourceVector, in_service: ResourceVector) -> Self {
        let mut accounts = WorkspaceTable {
            list: Vec::new(),
            names: BTreeMap::new(),
            vacant: BTreeSet::new(),
            lending: sharing.lending,
            personal: sharing.personal.clone(),
            capacity,
            in_service,
            promised: ResourceVector::default(),
            firm: ResourceVector::default(),
        };
        for (name, workspace) in &sharing.workspaces {
            accounts.open(name, workspace);
        }
        accounts
    }

    /// The same workspaces under other rules, unused; they keep their positions.
    pub(crate) fn renewed(
        &self,
        sharing: &Sharing,
        capacity: ResourceVector,
        in_service: ResourceVector,
    ) -> Self {
        let nobody = Sharing { workspaces: BTreeMap::new(), ..sharing.clone() };
        let mut accounts = WorkspaceTable::new(&nobody, capacity, in_service);
        for WorkspaceUsage { name, .. } in &self.list {
            accounts.open(name, sharing.workspace(name));
        }
        for id in &self.vacant {
            accounts.vacate(*id);
        }
        for (name, workspace) in &sharing.workspaces {
            if !accounts.names.contains_key(name) {
                accounts.open(name, workspace);
            }
        }
        accounts
    }

    /// The workspace of that name; one that is not listed has the rules of people's own.
    pub(crate) fn id(&mut self, name: &str) -> WorkspaceIndex {
        match self.names.get(name) {
            Some(id) => *id,
            None => self.open(name, &self.personal.clone()),
        }
    }

    fn open(&mut self, name: &str, workspace: &Workspace) -> WorkspaceIndex {
        let account = WorkspaceUsage {
            name: name.to_owned(),
            guaranteed: ResourceVector::of_amounts(&workspace.guaranteed),
            limit: Ceiling::of(&workspace.limit),
            per_user: Ceiling::of(&workspace.per_user),
            head_of_line: workspace.head_of_line,
            used: ResourceVector::default(),
            firm: ResourceVector::default(),
            users: BTreeMap::new(),
        };
        self.promised.add(&account.guaranteed);
        let id = self.vacant.pop_first().unwrap_or(self.list.len());
        if id == self.list.len() {
            self.list.push(account);
        } else {
            self.list[id] = account;
        }
        self.names.insert(name.to_owned(), id);
        id
    }

    /// How many workspaces are known.
    pub(crate) fn len(&self) -> usize {
        self.names.len()
    }

    /// Forgets workspaces that nobody configured and nobody uses, and says which.
    pub(crate) fn forget_all_but(
        &mut self,
        in_use: &BTreeSet<WorkspaceIndex>,
        sharing: &Sharing,
    ) -> BTreeSet<WorkspaceIndex> {
        let is_needed = |name: &String, id| in_use.contains(id) || sharing.workspaces.contains_key(name);
        let idle = self.names.iter().filter(|(name, id)| !is_needed(name, id));
        let idle: BTreeSet<WorkspaceIndex> = idle.map(|(_, id)| *id).collect();
        for id in &idle {
            self.vacate(*id);
        }
        idle
    }

    fn vacate(&mut self, id: WorkspaceIndex) {
        let name = std::mem::take(&mut self.list[id].name);
        self.names.remove(&name);
        self.vacant.insert(id);
    }

    pub(crate) fn get(&self, id: WorkspaceIndex) -> &WorkspaceUsage {
        &self.list[id]
    }

    pub(crate) fn used_by(&self, id: WorkspaceIndex, user: &str) -> ResourceVector {
        self.list[id].users.get(user).copied().unwrap_or_default()
    }

    pub(crate) fn add(
        &mut self,
        id: WorkspaceIndex,
        user: &Arc<str>,
        usage: &ResourceVector,
        preemptible: bool,
    ) {
        let firm = !(self.lending && preemptible);
        let account = &mut self.list[id];
        account.used.add(usage);
        account.users.entry(user.clone()).or_default().add(usage);
        if firm {
            let before = account.firm.max(&account.guaranteed);
            account.firm.add(usage);
            self.firm.add(usage);
            self.promised.add(&account.firm.max(&account.guaranteed).minus(&before));
        }
    }

    pub(crate) fn remove(
        &mut self,
        id: WorkspaceIndex,
        user: &Arc<str>,
        usage: &ResourceVector,
        preemptible: bool,
    ) {
        let firm = !(self.lending && preemptible);
        let account = &mut self.list[id];
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
            self.firm.remove(usage);
            self.promised.remove(&before.minus(&account.firm.max(&account.guaranteed)));
        }
    }

    /// Whether quotas let a job start that would take `asked`.
    pub(crate) fn check(
        &self,
        id: WorkspaceIndex,
        user: &str,
        asked: &ResourceVector,
        preemptible: bool,
    ) -> Result<(), OverQuota> {
        let account = &self.list[id];
        if let Some(resource) = account.limit.exceeded_by(&account.used.plus(asked), asked) {
            return Err(OverQuota::Workspace(resource));
        }
        if !account.per_user.is_empty()
            && let Some(resource) = account.per_user.exceeded_by(&self.used_by(id, user).plus(asked), asked)
        {
            return Err(OverQuota::User(resource));
        }
        if self.lending && preemptible {
            return Ok(());
        }
        let firm = account.firm.plus(asked);
        let others = self.promised.minus(&account.firm.max(&account.guaranteed));
        // What others are guaranteed and hold nothing firm in. Without any, it is for the nodes to say what fits.
        let idle = others.minus(&self.firm.minus(&account.firm));
        let promised = others.plus(&firm.max(&account.guaranteed));
        let lent = QuotaResource::ALL.into_iter().find(|resource| {
            asked.get(*resource) > 0
                && idle.get(*resource) > 0
                && firm.get(*resource) > account.guaranteed.get(*resource)
                && promised.get(*resource) > self.in_service.get(*resource)
        });
        lent.map_or(Ok(()), |resource| Err(OverQuota::Guaranteed(resource)))
    }

    /// What the workspace may do to get what it asks for. `leaving` is what of its use is being given back, `kept` what is
    /// kept for its heads. What it was guaranteed nothing of (CPUs beside guaranteed devices, say) follows the
    /// main resource. A job that cannot borrow may also push out its own workspace's borrowing.
    pub(crate) fn right(
        &self,
        id: WorkspaceIndex,
        asked: &ResourceVector,
        preemptible: bool,
        leaving: &ResourceVector,
        kept: &ResourceVector,
    ) -> Option<PreemptionRight> {
        let account = &self.list[id];
        let main = asked.main_resource();
        if !self.lending || account.guaranteed.get(main) == 0 {
            return None;
        }
        let within = |used: &ResourceVector| {
            QuotaResource::ALL.into_iter().all(|resource| {
                let guaranteed = account.guaranteed.get(resource);
                asked.get(resource) == 0
                    || guaranteed == 0
                    || used.get(resource) + asked.get(resource) <= guaranteed
            })
        };
        let used = account.used.minus(leaving).plus(kept);
        if within(&used) {
            return Some(PreemptionRight::TakeBack);
        }
        if preemptible || !within(&account.firm) {
            return None;
        }
        let has_all = used.get(main) >= account.guaranteed.get(main);
        Some(if has_all { PreemptionRight::PushOutOwn } else { PreemptionRight::TakeBackAndPushOutOwn })
    }

    /// Whether a workspace uses more of a resource than it is guaranteed, beside what is being given back.
    pub(crate) fn borrows(
        &self,
        id: WorkspaceIndex,
        resource: QuotaResource,
        leaving: &ResourceVector,
    ) -> bool {
        let account = &self.list[id];
        account.used.minus(leaving).get(resource) > account.guaranteed.get(resource)
    }

    /// The same if it kept so much more.
    pub(crate) fn borrows_with(
        &self,
        id: WorkspaceIndex,
        resource: QuotaResource,
        leaving: &ResourceVector,
        more: u64,
    ) -> bool {
        let account = &self.list[id];
        let kept = account.used.get(resource).saturating_add(more);
        kept > account.guaranteed.get(resource).saturating_add(leaving.get(resource))
    }

    pub(crate) fn lends(&self) -> bool {
        self.lending
    }

    /// The most that jobs of a workspace could ever hold which cannot be made to give it back: what is not guaranteed to
    /// others.
    fn most_firm(&self, id: WorkspaceIndex, resource: QuotaResource) -> u64 {
        let others = self.list.iter().enumerate().filter(|(other, _)| *other != id);
        let others: u64 = others.map(|(_, account)| account.guaranteed.get(resource)).sum();
        let own = self.list[id].guaranteed.get(resource);
        self.capacity.get(resource).saturating_sub(others).max(own)
    }

    /// What a job would exceed that uses so much by itself: of which resource, and how much would be right.
    pub(crate) fn bound_exceeded_by(
        &self,
        id: WorkspaceIndex,
        usage: &ResourceVector,
        preemptible: bool,
    ) -> Option<(QuotaResource, u64, Bound)> {
        let account = &self.list[id];
        let over = |limit: &Ceiling, is_user: bool| {
            let resource = limit.exceeded_by(usage, usage)?;
            Some((resource, limit.get(resource)?, Bound::Limit { is_user }))
        };
        let is_firm = !(preemptible && self.lending);
        let lent = || {
            QuotaResource::ALL.into_iter().find_map(|resource| {
                let most = self.most_firm(id, resource);
                (is_firm && usage.get(resource) > most).then_some((resource, most, Bound::Guarantees))
            })
        };
        over(&account.limit, false).or_else(|| over(&account.per_user, true)).or_else(lent)
    }

    pub(crate) fn share(&self, id: WorkspaceIndex) -> Share {
        let account = &self.list[id];
        let has_none = account.guaranteed.is_zero();
        let (mut within, mut beyond) = (0.0f64, 0.0f64);
        for resource in QuotaResource::ALL {
            let (used, guaranteed) = (account.used.get(resource), account.guaranteed.get(resource));
            if guaranteed > 0 {
                within = within.max(used as f64 / guaranteed as f64);
            }
            // CPUs and memory beside guaranteed devices do not make a borrower of a workspace.
            let counts = guaranteed > 0 || has_none || resource.is_device();
            if counts && used > guaranteed {
                let capacity = self.capacity.get(resource).max(1);
                beyond = beyond.max((used - guaranteed) as f64 / capacity as f64);
            }
        }
        Share(if beyond > 0.0 || has_none { 1.0 + beyond } else { within })
    }
}
