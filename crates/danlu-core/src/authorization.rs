//! Who may do what: one table, and the relation of a person to a thing that it is about.
//!
//! Relations are ordered, so the table needs one line for each action: the least that one must be. Whoever is not even
//! allowed to *see* a thing is told that it does not exist; whoever sees it and may not touch it is told that.

use danlu_types::JobSpec;
use danlu_types::account::{AccountName, Scope, WorkspaceRole};

/// What somebody is to the thing that they ask about. Each may do what the ones before it may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Relation {
    /// Nobody that we know.
    Outsider,
    /// Has an account, and no part in this.
    Stranger,
    /// Looks on, in the workspace.
    Viewer,
    /// Works in the workspace.
    Member,
    /// Submitted this very job, or is this very account.
    Author,
    /// Answers for the workspace.
    Owner,
    Admin,
}

impl Relation {
    pub const ALL: [Relation; 7] = [
        Relation::Outsider,
        Relation::Stranger,
        Relation::Viewer,
        Relation::Member,
        Relation::Author,
        Relation::Owner,
        Relation::Admin,
    ];
}

/// What people do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Sign in, register.
    ComeIn,
    /// Look at nodes, devices, and what workspaces use.
    SeeCluster,
    /// Ask what would have been, which takes the server's time.
    Simulate,
    /// Have a job file read, without submitting it.
    ParseJobFile,
    /// Keep jobs off nodes, empty them, put devices back into service.
    RunCluster,
    /// Bring code that jobs may name.
    BringCode,
    /// Have code changed for other devices, which takes the server's time, and read what was done to it.
    MigrateCode,
    /// See that a job exists, what it is, what it prints, why it waits.
    SeeJob,
    SubmitJob,
    /// Change, stop, hold, release, delete.
    ChangeJob,
    /// Run commands inside.
    EnterJob,
    /// See who is in a workspace.
    SeeMembers,
    ChangeMembers,
    /// Change what concerns a workspace's own people.
    ChangeWorkspace,
    /// Let jobs start that ask for much.
    ApproveJob,
    /// Make and delete workspaces, and say what each may take of the cluster.
    RunWorkspaces,
    /// See the names of a workspace's secrets; jobs there can use them.
    SeeSecrets,
    /// Set and delete them.
    ChangeSecrets,
    /// See an account, its tokens and its sessions.
    SeeAccount,
    /// Change a password, make and revoke tokens.
    ChangeAccount,
    /// Make, approve, disable and delete accounts.
    RunAccounts,
    /// Read what was done by whom.
    SeeAudit,
}

/// The whole policy: action, the least relation, the least scope of a token.
pub const POLICY: [(Action, Relation, Scope); 22] = [
    (Action::ComeIn, Relation::Outsider, Scope::Read),
    (Action::SeeCluster, Relation::Stranger, Scope::Read),
    (Action::Simulate, Relation::Stranger, Scope::Jobs),
    (Action::ParseJobFile, Relation::Stranger, Scope::Read),
    (Action::RunCluster, Relation::Admin, Scope::All),
    (Action::BringCode, Relation::Stranger, Scope::Jobs),
    (Action::MigrateCode, Relation::Stranger, Scope::Jobs),
    (Action::SeeJob, Relation::Viewer, Scope::Read),
    (Action::SubmitJob, Relation::Member, Scope::Jobs),
    (Action::ChangeJob, Relation::Author, Scope::Jobs),
    (Action::EnterJob, Relation::Author, Scope::Jobs),
    (Action::SeeMembers, Relation::Viewer, Scope::Read),
    (Action::ChangeMembers, Relation::Owner, Scope::All),
    (Action::ChangeWorkspace, Relation::Owner, Scope::All),
    (Action::ApproveJob, Relation::Owner, Scope::Jobs),
    (Action::RunWorkspaces, Relation::Admin, Scope::All),
    (Action::SeeSecrets, Relation::Member, Scope::Read),
    (Action::ChangeSecrets, Relation::Owner, Scope::All),
    (Action::SeeAccount, Relation::Author, Scope::Read),
    (Action::ChangeAccount, Relation::Author, Scope::All),
    (Action::RunAccounts, Relation::Admin, Scope::All),
    (Action::SeeAudit, Relation::Admin, Scope::Read),
];

/// Somebody who asks, as far as the policy cares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Principal {
    pub name: AccountName,
    pub admin: bool,
    /// Of the token that the request came with.
    pub scope: Scope,
}

/// What an answer to "may they?" can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuthzDecision {
    Yes,
    /// They see the thing, and may not do this to it.
    No,
    /// They may not even know that the thing exists.
    Hidden,
    /// They could, with another token.
    ScopeTooSmall(Scope),
}

/// Whether somebody who is this to a thing may do that to it. `see` is the action by which the thing is seen at all.
pub fn permission(relation: Relation, scope: Scope, action: Action, see: Action) -> AuthzDecision {
    let ((least, least_scope), (least_to_see, _)) = (line(action), line(see));
    if relation < least {
        if relation < least_to_see { AuthzDecision::Hidden } else { AuthzDecision::No }
    } else if scope < least_scope {
        AuthzDecision::ScopeTooSmall(least_scope)
    } else {
        AuthzDecision::Yes
    }
}

fn line(action: Action) -> (Relation, Scope) {
    let found = POLICY.iter().find(|(listed, _, _)| *listed == action);
    // What nobody has thought about is for administrators.
    found.map_or((Relation::Admin, Scope::All), |(_, relation, scope)| (*relation, *scope))
}

/// Whether a change of a job is only about what it takes and when it starts. What a job runs, it runs in its owner's name:
/// that is for its owner alone to change, and so is the workspace that it counts in.
pub fn only_changes_scheduling(before: &JobSpec, after: &JobSpec) -> bool {
    let JobSpec {
        name,
        workers,
        devices,
        any_of,
        nodes,
        cpus,
        memory,
        shared_memory,
        priority,
        preemptible,
        max_time,
        labels,
        ..
    } = before.clone();
    let undone = JobSpec {
        name,
        workers,
        devices,
        any_of,
        nodes,
        cpus,
        memory,
        shared_memory,
        priority,
        preemptible,
        max_time,
        labels,
        ..after.clone()
    };
    undone == *before
}

/// What a person is to a job of `owner` in a workspace where they have this role.
pub fn to_job(person: &Principal, role: Option<WorkspaceRole>, owner: &str) -> Relation {
    let relation = to_workspace(person, role);
    if relation == Relation::Member && person.name.as_str() == owner { Relation::Author } else { relation }
}

pub fn to_workspace(person: &Principal, role: Option<WorkspaceRole>) -> Relation {
    match role {
        _ if person.admin => Relation::Admin,
        None => Relation::Stranger,
        Some(WorkspaceRole::Viewer) => Relation::Viewer,
        Some(WorkspaceRole::Member) => Relation::Member,
        Some(WorkspaceRole::Owner) => Relation::Owner,
    }
}

pub fn to_account(person: &Principal, account: &AccountName) -> Relation {
    match () {
        () if person.admin => Relation::Admin,
        () if person.name == *account => Relation::Author,
        () => Relation::Stranger,
    }
}

/// To what belongs to everybody.
pub fn to_platform(person: &Principal) -> Relation {
    if person.admin { Relation::Admin } else { Relation::Stranger }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn person(name: &str, admin: bool) -> Principal {
        Principal { name: name.parse().unwrap(), admin, scope: Scope::All }
    }

    #[test]
    fn every_action_has_one_line() {
        for (number, (action, _, _)) in POLICY.iter().enumerate() {
            assert!(!POLICY[..number].iter().any(|(earlier, _, _)| earlier == action), "{action:?} twice");
        }
    }

    #[test]
    fn nobody_learns_of_jobs_that_they_may_not_see() {
        let stop = |relation| permission(relation, Scope::All, Action::ChangeJob, Action::SeeJob);
        assert_eq!(stop(Relation::Stranger), AuthzDecision::Hidden);
        assert_eq!(stop(Relation::Viewer), AuthzDecision::No);
        assert_eq!(stop(Relation::Member), AuthzDecision::No);
        assert_eq!(stop(Relation::Author), AuthzDecision::Yes);
        assert_eq!(stop(Relation::Owner), AuthzDecision::Yes);
        let to_look = permission(Relation::Author, Scope::Read, Action::ChangeJob, Action::SeeJob);
        assert_eq!(to_look, AuthzDecision::ScopeTooSmall(Scope::Jobs));
    }

    #[test]
    fn a_viewer_is_no_author_even_of_their_own_jobs() {
        let ada = person("ada", false);
        assert_eq!(to_job(&ada, Some(WorkspaceRole::Viewer), "ada"), Relation::Viewer);
        assert_eq!(to_job(&ada, Some(WorkspaceRole::Member), "ada"), Relation::Author);
        assert_eq!(to_job(&ada, Some(WorkspaceRole::Member), "grace"), Relation::Member);
        assert_eq!(to_job(&ada, None, "ada"), Relation::Stranger);
        assert_eq!(to_job(&person("root", true), None, "ada"), Relation::Admin);
    }
}
